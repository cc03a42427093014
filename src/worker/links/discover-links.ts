import { selectAll } from 'css-select';
import type { Document, Element } from 'domhandler';
import type { Discovered } from '../../core/batch/outcome.ts';
import { type CompiledFollow, ruleFor } from '../../core/url/scope.ts';
import { isTrapUrl, normalizeUrl } from '../../core/url/url.ts';
import { hostOfOrigin, originOf } from '../../core/url/url-shape.ts';
import type { CompiledJob } from '../job/compiled-job.ts';
import type { OriginLinks } from '../job/link-memory.ts';
import { baseUrlOf, type Page, resolveBase } from '../page/page.ts';
import { LINKS_PER_PAGE_MAX, scanLinks } from './link-scanner.ts';

/** Absolute links and those that start at the root mean the same on every page of an origin. */
function isPlaceless(raw: string): boolean {
  return raw.charCodeAt(0) === 47 || raw.startsWith('http://') || raw.startsWith('https://');
}

/** Links of a page that the job wants and that this worker has not reported yet. */
export function discoverLinks(page: Page, job: CompiledJob, depth: number): Discovered[] {
  const rules = job.follow.filter(({ rule }) => rule.from === undefined || rule.from === page.route);
  const { depth: depthMax } = job.spec.limits;
  if (rules.length === 0 || (depthMax !== null && depth >= depthMax)) return [];
  return rules.some(({ rule }) => rule.css !== undefined)
    ? discoverInDom(page, job, rules)
    : discoverByScan(page, job, rules);
}

function discoverByScan(page: Page, job: CompiledJob, rules: CompiledFollow[]): Discovered[] {
  const origin = originOf(page.url);
  const host = hostOfOrigin(origin);
  const memory = job.links.of(origin);
  let scan = scanFresh(page.text, memory);
  const baseUrl = resolveBase(scan.base, page.url);
  // What was remembered for this origin means something else under another's base.
  const foreign = scan.base !== null && new URL(baseUrl).origin !== origin;
  if (foreign) scan = scanFresh(page.text, null);
  const found: Discovered[] = [];
  for (const [href, { start, end }] of scan.fresh) {
    const link = admit(href, baseUrl, host, job, rules);
    if (!link) continue;
    found.push(link);
    if (!foreign && isPlaceless(href)) memory.remember(page.text, start, end);
  }
  return found;
}

function scanFresh(html: string, memory: OriginLinks | null) {
  const fresh = new Map<string, { start: number; end: number }>();
  const { base } = scanLinks(html, {
    ...(memory ? { knows: memory.knows } : {}),
    onHref: (href, start, end) => {
      if (!fresh.has(href)) fresh.set(href, { start, end });
    },
  });
  return { base, fresh };
}

function discoverInDom(page: Page, job: CompiledJob, rules: CompiledFollow[]): Discovered[] {
  const host = hostOfOrigin(originOf(page.url));
  const baseUrl = baseUrlOf(page);
  const found = new Map<string, Discovered>();
  for (const entry of rules) {
    const scope = entry.rule.css === undefined ? [page.document] : page.all(entry.rule.css);
    for (const root of scope) {
      for (const raw of hrefsIn(root)) {
        const link = admit(raw, baseUrl, host, job, [entry]);
        if (link && !found.has(link.url) && found.size < LINKS_PER_PAGE_MAX) found.set(link.url, link);
      }
    }
  }
  return [...found.values()];
}

function hrefsIn(root: Document | Element): string[] {
  const own = 'attribs' in root && root.attribs.href !== undefined ? [root.attribs.href] : [];
  const below = selectAll<Document | Element, Element>('a[href], area[href]', root);
  return [...own, ...below.map((element) => element.attribs.href ?? '')];
}

/** Links that a handler asked for by name: only the depth limit holds. */
export function discoverFollowed(page: Page, job: CompiledJob, depth: number): Discovered[] {
  const { depth: depthMax } = job.spec.limits;
  if (page.followed.length === 0 || (depthMax !== null && depth >= depthMax)) return [];
  const found: Discovered[] = [];
  for (const { url, options } of page.followed) {
    const target = normalizeUrl(url, page.url, job.spec.url);
    if (!target) continue;
    const { priority = 0, route = null, meta } = options;
    found.push({ ...target, priority, route, ...(meta ? { meta } : {}) });
  }
  return found;
}

function admit(
  raw: string,
  base: string,
  pageHost: string,
  job: CompiledJob,
  rules: CompiledFollow[],
): Discovered | null {
  const target = normalizeUrl(raw, base, job.spec.url);
  if (!target || isTrapUrl(target.url)) return null;
  const rule = ruleFor(rules, target.url, target.host, pageHost);
  return rule && { url: target.url, host: target.host, priority: rule.priority, route: rule.route ?? null };
}
