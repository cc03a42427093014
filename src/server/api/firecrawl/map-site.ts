import { parseRobotsSitemaps, parseSitemap } from '../../../core/sitemap/sitemap.ts';
import { isWithin } from '../../../core/url/scope.ts';
import type { Page } from '../../../worker/page/page.ts';
import { admit } from '../keys/page-limits.ts';
import type { ApiContext, Caller } from '../requests/access.ts';
import { parseAs, scrapeSchema } from '../requests/options.ts';
import { formatOf, storedPage } from '../scrape/results.ts';
import { type FirecrawlMap, startUrl } from './options.ts';

/** A map is answered while its caller waits: an index of more sitemaps than this is for a crawl. */
const SITEMAPS_MAX = 20;

interface MapLink {
  url: string;
  title?: string;
}

/** URLs of a site: those that its sitemaps name, and those that its first page links to. */
export async function mapSite(context: ApiContext, asked: FirecrawlMap, caller: Caller): Promise<MapLink[]> {
  const url = startUrl(asked.url);
  const until = context.now() + asked.timeout;
  const fetch = (address: string) => fetchPage(context, { url: address, until, caller });
  const found = new LinkList(asked, url);
  if (asked.sitemap !== 'only') {
    const page = await fetch(url);
    if (page) {
      found.add({ url, ...titleOf(page) });
      for (const link of formatOf(page, 'links') as string[]) found.add({ url: link });
    }
  }
  if (asked.sitemap !== 'skip') await readSitemaps(new URL('/robots.txt', url).href, fetch, found);
  return found.links;
}

/** Null when there is no such page, or not in time. */
async function fetchPage(
  context: ApiContext,
  { url, until, caller }: { url: string; until: number; caller: Caller },
): Promise<Page | null> {
  await admit(context.access, caller, 1);
  const asked = parseAs(scrapeSchema, { url });
  const { task } = await context.scrapes.scrape(asked, caller, Math.max(0, until - context.now()));
  return task?.state === 'done' || task?.state === 'unchanged' ? storedPage(context.blobs, task) : null;
}

function titleOf(page: Page): { title?: string } {
  const title = page.textOf('title');
  return title === null ? {} : { title };
}

async function readSitemaps(
  robotsUrl: string,
  fetch: (url: string) => Promise<Page | null>,
  found: LinkList,
): Promise<void> {
  const robots = await fetch(robotsUrl);
  const named = parseRobotsSitemaps(robots?.text ?? '', robotsUrl).entries.map(({ url }) => url);
  const known = new Set(named);
  let read = 0;
  for (const sitemapUrl of known) {
    if (read++ === SITEMAPS_MAX || found.isFull) return;
    const sitemap = await fetch(sitemapUrl);
    for (const { kind, url } of sitemap ? entriesOf(sitemap) : [])
      if (kind === 'sitemap') known.add(url);
      else found.add({ url });
  }
}

/** A file that is no sitemap names no pages. */
function entriesOf(sitemap: Page) {
  try {
    return parseSitemap(sitemap.text, sitemap.url).entries;
  } catch {
    return [];
  }
}

class LinkList {
  readonly #asked: FirecrawlMap;
  readonly #host: string;
  readonly #links = new Map<string, MapLink>();

  constructor(asked: FirecrawlMap, start: string) {
    this.#asked = asked;
    this.#host = new URL(start).hostname;
  }

  get links(): MapLink[] {
    return [...this.#links.values()];
  }

  get isFull(): boolean {
    return this.#links.size >= this.#asked.limit;
  }

  add(link: MapLink): void {
    const { search, includeSubdomains, ignoreQueryParameters } = this.#asked;
    const url = URL.parse(link.url);
    if (!url || !/^https?:$/.test(url.protocol) || this.isFull) return;
    if (!isWithin(includeSubdomains ? 'site' : 'host', url.hostname, this.#host)) return;
    url.hash = '';
    if (ignoreQueryParameters) url.search = '';
    if (search !== undefined && !url.href.toLowerCase().includes(search.toLowerCase())) return;
    if (!this.#links.has(url.href)) this.#links.set(url.href, { ...link, url: url.href });
  }
}
