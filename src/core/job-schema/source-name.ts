import { hideCredentials } from '../text/redact.ts';
import { MEDIA_ROUTE, SITEMAP_ROUTE } from './job.ts';
import type { FileSourceSpec, QuerySourceSpec, SitemapSourceSpec } from './source.ts';
import type { WebSocketSourceSpec } from './websocket.ts';

/** How the name of a source is understood: the same in job files, on the command line and when it is read. */

const SITEMAP_PREFIX = 'sitemap:';
/** Parsed to the end by number of rows, so an http(s) URL with this ending is never a page. */
const TABLE_ENDING = '.parquet';

interface UrlSourceSpec {
  url: string;
}

export type SourceObject =
  | UrlSourceSpec
  | FileSourceSpec
  | SitemapSourceSpec
  | QuerySourceSpec
  | WebSocketSourceSpec;

export function isHttpUrl(name: string): boolean {
  return /^https?:\/\//i.test(name);
}

/** Read over the network; anything else is a path. */
export function isRemote(name: string): boolean {
  return isHttpUrl(name) || /^s3:\/\//i.test(name);
}

/** `shop.example`: a site may be named without its scheme where only a site or a file can be meant. */
function isHost(name: string): boolean {
  return /^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?\/?$/i.test(name) && !/\.(xml|rss|atom|txt|gz)$/i.test(name);
}

/** Fetched politely like a page, and not read as a file. */
export function isWebSitemap(name: string): boolean {
  return isHttpUrl(name) || isHost(name);
}

/** The part of a name that has the ending: the path of an http(s) URL, without its query. */
export function pathOf(name: string): string {
  return isHttpUrl(name) && URL.canParse(name) ? new URL(name).pathname : name;
}

/** Standard input is kept under such a name, in `inputs/`. */
export function stdinFileName(now: number, processId: number, ending: string): string {
  return `stdin-${now}-${processId}.${ending}`;
}

/** What people call a file that URLs are read from. */
export function shownName(file: string): string {
  return /[\\/]inputs[\\/]stdin-\d+-\d+\.[a-z]+$/.test(file) ? 'standard input' : hideCredentials(file);
}

/** The object that a source written as a string stands for. */
export function sourceObjectOf(source: string | SourceObject): SourceObject {
  if (typeof source !== 'string') return source;
  if (source.startsWith(SITEMAP_PREFIX))
    return { sitemap: source.slice(SITEMAP_PREFIX.length), within: 'site', priority: 0 };
  if (isHttpUrl(source) && !pathOf(source).toLowerCase().endsWith(TABLE_ENDING)) return { url: source };
  return { file: source, priority: 0 };
}

/** The same source with every path in it changed. */
export function withPath(source: string, change: (path: string) => string): string;
export function withPath<T extends SourceObject>(source: T, change: (path: string) => string): T;
export function withPath<T extends SourceObject>(
  source: string | T,
  change: (path: string) => string,
): string | T;
export function withPath(
  source: string | SourceObject,
  change: (path: string) => string,
): string | SourceObject {
  const changed = (name: string) => (isRemote(name) || name === '-' ? name : change(name));
  if (typeof source === 'string') {
    if (!source.startsWith(SITEMAP_PREFIX)) return changed(source);
    const target = source.slice(SITEMAP_PREFIX.length);
    return isWebSitemap(target) ? source : `${SITEMAP_PREFIX}${changed(target)}`;
  }
  if ('file' in source) return { ...source, file: changed(source.file) };
  if (!('sitemap' in source) || isWebSitemap(source.sitemap)) return source;
  return { ...source, sitemap: changed(source.sitemap) };
}

/** A route that sources of the job name and the job does not have. */
export function unknownRouteOf(job: {
  sources: readonly (string | SourceObject)[];
  routes: readonly { name: string }[];
}): string | null {
  const known = new Set([...job.routes.map(({ name }) => name), MEDIA_ROUTE, SITEMAP_ROUTE]);
  const named = job.sources.flatMap((source) => {
    if (typeof source === 'string' || 'url' in source || 'websocket' in source) return [];
    const columns = 'file' in source ? Object.values(source.columns ?? {}) : [];
    return source.route === undefined ? columns : [...columns, source.route];
  });
  return named.find((name) => !known.has(name)) ?? null;
}
