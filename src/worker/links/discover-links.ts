import type { Document, Element } from 'domhandler';
import type { Discovered } from '../../core/batch/outcome.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { type CompiledFollow, ruleFor } from '../../core/url/scope.ts';
import { isTrapUrl, normalizeUrl } from '../../core/url/url.ts';
import { hostOfOrigin, originOf } from '../../core/url/url-shape.ts';
import type { CompiledJob } from '../job/compiled-job.ts';
import { type LinkOrigin, linksOf, type NativeLinks } from '../native-links/native-links.ts';
import { baseUrlOf, type Page, resolveBase } from '../page/page.ts';
import { type TreeQuery, TreeSearch } from '../page/tree-search.ts';
import { hasNofollow, LINKS_PER_PAGE_MAX, scanLinks } from './link-scanner.ts';

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
  const remembered = job.links.of(origin);
  const skipsNofollow = job.spec.politeness.nofollow === 'skip';
  const bytes = page.textBytes;
  let links = linksOf(bytes);
  let scan = scanFresh(bytes, links, remembered, skipsNofollow);
  const baseUrl = resolveBase(scan.base, page.url);
  // What was remembered for this origin means something else under another's base.
  const foreign = scan.base !== null && new URL(baseUrl).origin !== origin;
  if (foreign) {
    links = linksOf(bytes);
    scan = scanFresh(bytes, links, null, skipsNofollow);
  }
  const found: Discovered[] = [];
  for (const [href, { start, end }] of scan.fresh) {
    const link = admit(href, baseUrl, host, job, rules);
    if (!link) continue;
    found.push(link);
    if (!foreign && isPlaceless(href)) links.remember(start, end, remembered);
  }
  return found;
}

/** Each href once, with its place in the page. */
function scanFresh(bytes: Buffer, links: NativeLinks, origin: LinkOrigin | null, skipsNofollow: boolean) {
  const fresh = new Map<string, { start: number; end: number }>();
  const { base } = scanLinks(bytes, links, {
    ...{ origin, skipsNofollow },
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
  const { linkSelectors } = job;
  linkSelectors.begin();
  for (const entry of rules) {
    for (const raw of linkSelectors.hrefsOf(entry, page)) {
      const link = admit(raw, baseUrl, host, job, [entry]);
      if (link && !found.has(link.url) && found.size < LINKS_PER_PAGE_MAX) found.set(link.url, link);
    }
  }
  return [...found.values()];
}

/** The `css` of follow rules. All of them together have the steps of one page: elements in elements could take n². */
export class LinkSelectors {
  readonly #search = new TreeSearch();
  readonly #link = this.#search.compile('a[href], area[href]', false);
  readonly #scopes = new Map<CompiledFollow, TreeQuery>();

  readonly #skipsNofollow: boolean;

  constructor(rules: readonly CompiledFollow[], skipsNofollow: boolean) {
    this.#skipsNofollow = skipsNofollow;
    for (const entry of rules)
      if (entry.rule.css !== undefined) this.#scopes.set(entry, this.#compile(entry.rule.css));
  }

  /** To be called for each page. */
  begin(): void {
    this.#search.begin();
  }

  /** Links at the elements of a rule and below them, in the order of the page. */
  *hrefsOf(entry: CompiledFollow, page: Page): Generator<string> {
    const query = this.#scopes.get(entry);
    if (query === undefined) {
      yield* this.#hrefsBelow(page.document);
      return;
    }
    const roots = new Set<unknown>();
    for (const root of this.#search.every(query, page.document)) {
      if (root.attribs.href !== undefined && this.#isFollowed(root)) yield root.attribs.href;
      // What is inside of another was found with that one: an outer element comes before its inner ones.
      if (!this.#isInside(root, roots)) yield* this.#hrefsBelow(root);
      roots.add(root);
    }
  }

  *#hrefsBelow(root: Document | Element): Generator<string> {
    for (const element of this.#search.every(this.#link, root))
      if (this.#isFollowed(element)) yield element.attribs.href ?? '';
  }

  #isFollowed({ attribs }: Element): boolean {
    return !this.#skipsNofollow || !hasNofollow(attribs.rel ?? '');
  }

  #isInside({ parent }: Element, roots: ReadonlySet<unknown>): boolean {
    for (let at = parent; at !== null; at = at.parent) {
      this.#search.spend(1);
      if (roots.has(at)) return true;
    }
    return false;
  }

  #compile(css: string): TreeQuery {
    try {
      return this.#search.compile(css, false);
    } catch (error) {
      throw new SeineError(
        `a follow rule has a selector that is not valid CSS: ${css} (${messageOf(error)})`,
        { written: css },
      );
    }
  }
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
