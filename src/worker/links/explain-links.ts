import type { Element } from 'domhandler';
import type { FollowRule } from '../../core/job-schema/job.ts';
import { type CompiledFollow, isWithin } from '../../core/url/scope.ts';
import { isTrapUrl, normalizeUrl } from '../../core/url/url.ts';
import { hostOfOrigin, originOf } from '../../core/url/url-shape.ts';
import type { CompiledJob, CompiledRoute } from '../job/compiled-job.ts';
import { baseUrlOf, type Page } from '../page/page.ts';
import { hasNofollow, LINKS_PER_PAGE_MAX } from './link-scanner.ts';

/** A link of a page, and why the job does not follow it. */
export interface ExplainedLink {
  url: string;
  /** Null where a rule of the job takes it. */
  reason: string | null;
}

/** Every link of a page, each once, in its order. For people: it looks at the whole tree, and hurries nowhere. */
export function explainLinks(
  page: Page,
  job: CompiledJob,
  { route, depth }: { route: CompiledRoute | null; depth: number },
): ExplainedLink[] {
  const whole = reasonForAll(page, job, route, depth);
  const rules = job.follow.filter(({ rule }) => rule.from === undefined || rule.from === page.route);
  const base = baseUrlOf(page);
  const host = hostOfOrigin(originOf(page.url));
  const inside = new Map(rules.map((entry) => [entry, hrefsInside(entry, page, job)]));
  const links = new Map<string, string | null>();
  for (const element of page.all('a[href], area[href]').slice(0, LINKS_PER_PAGE_MAX)) {
    const href = element.attribs.href ?? '';
    const target = normalizeUrl(href, base, job.spec.url);
    const url = target?.url ?? href;
    const reason = whole ?? (target ? reasonOf(element, target) : 'is not an http(s) URL');
    if (links.get(url) === null) continue;
    links.set(url, reason);
  }
  return [...links].map(([url, reason]) => ({ url, reason }));

  function reasonOf({ attribs }: Element, target: { url: string; host: string }): string | null {
    if (job.spec.politeness.nofollow === 'skip' && hasNofollow(attribs.rel ?? '')) return 'has rel=nofollow';
    if (isTrapUrl(target.url)) return 'looks like a crawler trap';
    // What speaks against the rule that comes closest says most.
    const against = rules.map((entry) => refusalOf(entry, attribs.href ?? '', target));
    return against.reduce((best, each) => (each.rank < best.rank ? each : best)).reason;
  }

  function refusalOf(
    entry: CompiledFollow,
    href: string,
    target: { url: string; host: string },
  ): { rank: number; reason: string | null } {
    const { rule } = entry;
    if (!isWithin(rule.within, target.host, host)) return { rank: 3, reason: outsideText(rule.within) };
    if (!inside.get(entry)!(href)) return { rank: 2, reason: `is outside of ${rule.css}` };
    return entry.fits(target.url)
      ? { rank: 0, reason: null }
      : { rank: 1, reason: 'matches no pattern of a follow rule' };
  }
}

function outsideText(within: FollowRule['within']): string {
  return within === 'site' ? 'leads to another site' : 'leads to another host';
}

/** What keeps the job from following any link of the page. */
function reasonForAll(
  page: Page,
  job: CompiledJob,
  route: CompiledRoute | null,
  depth: number,
): string | null {
  if (job.follow.length === 0) return 'the job follows no links';
  if (route?.follow === false) return `route '${route.name}' follows no links`;
  if (job.follow.every(({ rule }) => rule.from !== undefined && rule.from !== page.route))
    return `no follow rule is for pages of route '${page.route ?? ''}'`;
  const { depth: depthMax } = job.spec.limits;
  return depthMax !== null && depth >= depthMax ? `limits.depth is ${depthMax}` : null;
}

function hrefsInside(entry: CompiledFollow, page: Page, job: CompiledJob): (href: string) => boolean {
  if (entry.rule.css === undefined) return () => true;
  job.linkSelectors.begin();
  const hrefs = new Set(job.linkSelectors.hrefsOf(entry, page));
  return (href) => hrefs.has(href);
}
