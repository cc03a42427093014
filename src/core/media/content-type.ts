import { getOwn } from '../values/own-property.ts';

/** How objects that are stored are described to whoever opens them, by their name. */

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  parquet: 'application/vnd.apache.parquet',
  gz: 'application/gzip',
  zst: 'application/zstd',
  zip: 'application/zip',
  tar: 'application/x-tar',
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mp3: 'audio/mpeg',
};

/** What a browser would run, were it called by its name. */
const ACTIVE = new Set(['html', 'xhtml', 'svg', 'xml', 'rss', 'atom']);
const OWN_PAGES = /^sheets\//;

/**
 * Bytes of strangers are never described as a page: their scripts would run with the rights of whoever looks at the
 * bucket. Only the pages that Seine itself writes are. Archives keep the type of their packing, so that nothing on the
 * way unpacks them. Null: nothing is known.
 */
export function contentTypeOf(key: string): string | null {
  const [, extension = ''] = /\.([a-z0-9]+)$/.exec(key) ?? [];
  if (ACTIVE.has(extension)) return (OWN_PAGES.test(key) && TYPES[extension]) || TYPES.txt!;
  return getOwn(TYPES, extension) ?? null;
}
