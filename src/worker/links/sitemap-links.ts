import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BatchTask } from '../../core/batch/batch.ts';
import type { Discovered, RejectedEntries } from '../../core/batch/outcome.ts';
import { SITEMAP_ROUTE } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { decodeRobots } from '../../core/robots/robots.ts';
import { sitemapPieces, unpackSitemap } from '../../core/sitemap/bytes.ts';
import { modifiedBy } from '../../core/sitemap/dates.ts';
import type { SitemapContent, SitemapEntry } from '../../core/sitemap/entry.ts';
import { parseRobotsSitemaps, SitemapReader } from '../../core/sitemap/sitemap.ts';
import { isRobotsUrl, SITEMAP_PRIORITY, sitemapMeta, sitemapOrder } from '../../core/sitemap/task.ts';
import { isWithin } from '../../core/url/scope.ts';
import { normalizeUrl, whyUnusable } from '../../core/url/url.ts';
import { type CompiledJob, routeOf } from '../job/compiled-job.ts';
import type { Page } from '../page/page.ts';

/** The protocol allows index files one level deep; real sites nest them deeper. */
export const SITEMAP_DEPTH_MAX = 3;

export interface SitemapLinks {
  links: Discovered[];
  /** What of the list was left out, for people; null when nothing was. */
  note: string | null;
  /** Entries that are of no use. Null when there are none. */
  rejected: RejectedEntries | null;
}

/** For people; a list of nothing else must not make a long report. */
const REJECTS_SHOWN = 20;

/** Sitemaps may be larger than pages; a site without robots.txt may still have one at the usual place. */
export function sitemapVisit(url: string): { bodyBytesMax: number; accepts?: (status: number) => boolean } {
  const bodyBytesMax = LIMITS.sitemapBytesMax;
  if (!isRobotsUrl(url)) return { bodyBytesMax };
  return { bodyBytesMax, accepts: (status) => status >= 400 && status < 500 && status !== 429 };
}

/** What a sitemap, an index of sitemaps, a feed or a robots.txt names. Throws when the page is none of these. */
export async function sitemapLinks(
  page: Page,
  task: BatchTask,
  job: CompiledJob,
  now: number,
): Promise<SitemapLinks> {
  const content = isRobotsUrl(page.url) ? readRobots(page) : await readList(page);
  const selection = new Selection(page, task, job, now);
  for (const entry of content.entries) selection.add(entry);
  return selection.result(content.trouble);
}

function readRobots(page: Page): SitemapContent {
  const text = page.status < 400 ? decodeRobots(page.body) : '';
  return parseRobotsSitemaps(text, page.url);
}

/** Other tasks of the worker get their turn between two pieces. */
async function readList(page: Page): Promise<SitemapContent> {
  const bytes = await unpackSitemap(page.body);
  const contentType = bytes === page.body ? page.header('content-type') : null;
  const reader = new SitemapReader(page.url);
  for (const piece of sitemapPieces(bytes, contentType)) {
    if (!reader.write(piece)) break;
    if (piece !== '') await nextTurn();
  }
  return reader.end();
}

/** Entries that the source wants, each once. */
class Selection {
  readonly #page: Page;
  readonly #job: CompiledJob;
  readonly #now: number;
  readonly #order: ReturnType<typeof sitemapOrder>;
  /** What the scope is counted from: a sitemap elsewhere cannot lead the job elsewhere. */
  readonly #host: string;
  /** A site may keep its sitemaps where it likes, when its robots.txt says so. */
  readonly #fromRobots: boolean;
  readonly #hasSitemapRoutes: boolean;
  readonly #links = new Map<string, Discovered>();
  #outOfScope = 0;
  #unusable = 0;
  #deep = 0;
  #entries = 0;
  readonly #rejects: RejectedEntries['first'] = [];

  constructor(page: Page, task: BatchTask, job: CompiledJob, now: number) {
    this.#page = page;
    this.#job = job;
    this.#now = Math.floor(now);
    this.#order = sitemapOrder(task.meta);
    this.#host = this.#order.host ?? new URL(page.url).host;
    this.#fromRobots = isRobotsUrl(page.url);
    this.#hasSitemapRoutes = job.spec.routes.some((route) => route.kind === 'sitemap');
  }

  add(entry: SitemapEntry): void {
    this.#entries++;
    const target = entry.url === '' ? null : normalizeUrl(entry.url, this.#page.url, this.#job.spec.url);
    if (target === null) {
      this.#unusable++;
      this.#reject(this.#entries, whyUnusable(entry.url));
      return;
    }
    if (this.#links.has(target.url) || target.url === this.#page.url) return;
    if (!this.#fromRobots && !isWithin(this.#order.within, target.host, this.#host)) {
      this.#outOfScope++;
      return;
    }
    const modifiedAt = modifiedBy(entry.modified, this.#now);
    const base = { ...target, listed: true as const, ...(modifiedAt === undefined ? {} : { modifiedAt }) };
    const link = this.#isSitemap(entry, target.url) ? this.#sitemap(base) : this.#pageLink(base, entry);
    if (link !== null) this.#links.set(link.url, link);
  }

  result(trouble: string | null): SitemapLinks {
    const { within } = this.#order;
    const left = [
      trouble,
      this.#outOfScope > 0
        ? `URLs out of scope (within: ${within} of ${this.#host}): ${this.#outOfScope}`
        : null,
      this.#unusable > 0 ? `unusable URLs: ${this.#unusable}` : null,
      this.#deep > 0 ? `sitemaps nested deeper than ${SITEMAP_DEPTH_MAX}: ${this.#deep}` : null,
    ].filter((note) => note !== null);
    if (trouble !== null) this.#reject(this.#entries + 1, trouble);
    const count = this.#unusable + (trouble === null ? 0 : 1);
    return {
      links: [...this.#links.values()],
      note: left.length > 0 ? left.join('; ') : null,
      rejected: count > 0 ? { count, first: this.#rejects } : null,
    };
  }

  #reject(entry: number, reason: string): void {
    if (this.#rejects.length < REJECTS_SHOWN) this.#rejects.push({ place: `entry ${entry}`, reason });
  }

  /** A route may make sitemaps of pages; their level counts too, or a chain of them would never end. */
  #isSitemap(entry: SitemapEntry, url: string): boolean {
    if (entry.kind === 'sitemap') return true;
    return this.#hasSitemapRoutes && routeOf(this.#job, url, this.#order.route)?.kind === 'sitemap';
  }

  #sitemap(base: Pick<Discovered, 'url' | 'host' | 'listed' | 'modifiedAt'>): Discovered | null {
    const level = this.#order.level + 1;
    if (level > SITEMAP_DEPTH_MAX) {
      this.#deep++;
      return null;
    }
    const meta = sitemapMeta(this.#order, level, this.#host);
    return { ...base, priority: SITEMAP_PRIORITY, route: SITEMAP_ROUTE, meta };
  }

  #pageLink(
    base: Pick<Discovered, 'url' | 'host' | 'listed' | 'modifiedAt'>,
    entry: SitemapEntry,
  ): Discovered {
    const { priority, route } = this.#order;
    return { ...base, priority, route, ...(entry.meta === null ? {} : { meta: entry.meta }) };
  }
}
