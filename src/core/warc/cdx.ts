import type { MemberRecord } from './members.ts';
import { readHead } from './warc-reader.ts';

/** Index lines of a WARC file, in the format CDXJ: what replay tools look a URL up in. */

/** Records that stand for a page or an answer. */
const INDEXED = new Set(['response', 'revisit', 'resource']);

/** Null for a record that is not looked up. */
export function cdxLine({ record, offset, length }: MemberRecord, filename: string): string | null {
  const { url, type, headers } = record;
  if (url === null || !INDEXED.has(type)) return null;
  const head = type === 'resource' ? null : readHead(record);
  const contentType = head ? headerOf(head.headers, 'content-type') : headers.get('content-type');
  const entry = {
    url,
    mime: type === 'revisit' ? 'warc/revisit' : mimeOf(contentType),
    ...(head ? { status: head.status } : {}),
    digest: headers.get('warc-payload-digest') ?? headers.get('warc-block-digest'),
    length,
    offset,
    filename,
  };
  return `${sortKeyOf(url)} ${timestampOf(record.date)} ${JSON.stringify(entry)}`;
}

function headerOf(headers: readonly string[], wanted: string): string | undefined {
  for (let i = 0; i + 1 < headers.length; i += 2)
    if (headers[i]!.toLowerCase() === wanted) return headers[i + 1];
  return undefined;
}

function mimeOf(type: string | undefined): string {
  const mime = (type ?? '').split(';', 1)[0]!.trim().toLowerCase();
  return mime === '' ? 'unk' : mime;
}

/** UTC: 20260105123456. */
function timestampOf(date: number): string {
  return new Date(date).toISOString().replace(/\D/g, '').slice(0, 14);
}

const WWW = /^www\d*\./;

/** A URL with its host the other way round, so that the pages of a domain lie together; without what seldom matters. */
export function sortKeyOf(url: string): string {
  const parsed = URL.parse(url.toLowerCase());
  if (!parsed || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) return url;
  const host = parsed.hostname.replace(WWW, '').split('.').reverse().join(',');
  const port = parsed.port === '' ? '' : `:${parsed.port}`;
  const query = parsed.search === '' ? '' : `?${parsed.search.slice(1).split('&').sort().join('&')}`;
  return `${host}${port})${parsed.pathname}${query}`;
}
