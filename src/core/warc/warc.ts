import { hash } from 'node:crypto';
import { BoundedMap } from '../lru.ts';
import { hostOfOrigin, originOf } from '../url/url-shape.ts';

/** WARC/1.1 records (ISO 28500:2017), the writing half. Nothing here copies a body. */

export const WARC_VERSION = 'WARC/1.1';
/** Every record ends with two line ends that its Content-Length does not count. */
export const RECORD_END = Buffer.from('\r\n\r\n', 'latin1');

const SPECIFICATION = 'http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/';
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const LINE_BREAKERS = /[\r\n\0]+/g;
const NOT_TOKEN = /[^!#$%&'*+.^_`|~0-9A-Za-z-]+/g;
const BEYOND_LATIN1 = /[^\0-\xff]/;
/** Printable ASCII without `<` and `>`: what may stand in a WARC-Target-URI. */
const NOT_IN_URI = /[^\x21-\x3b\x3d\x3f-\x7e]+/gu;

/** Of every record: its date in epoch milliseconds, its id a UUID. */
interface RecordStart {
  url: string;
  date: number;
  recordId: string;
}

export interface ResponseHead {
  status: number;
  statusText: string;
  /** As served; 1.1 when absent. */
  httpVersion?: '1.0' | undefined;
  /** As received: alternating name and value. */
  rawHeaders: readonly string[];
}

export interface ResponseRecord extends RecordStart, ResponseHead {
  /** As received once chunking is undone; Content-Encoding still applies to it. */
  wireBody: Uint8Array;
  /** Of `wireBody`, in hex, when it is known already; it is computed otherwise. */
  wireSha256?: string | null;
  ip?: string | null;
  /** Whether the head and the body together get a digest, too. */
  blockDigest?: boolean | undefined;
}

/** What `recordBytes` makes a record of. */
export interface EncodedRecord {
  /** The lines of the record and, for HTTP, the head of the message: each letter is one octet (Latin-1). */
  head: string;
  body: Uint8Array;
  /** Where in `head` the block begins, of which `body` is the rest. */
  blockAt: number;
  /** Where in `head` the digest of the block goes; null when it has none. */
  digestAt: number | null;
  /** The body came with a Content-Encoding, so it is compressed already. */
  coded: boolean;
}

const NO_BODY = new Uint8Array(0);
/** Stands for the digest of a block until its bytes are together: one call over all of them is the cheapest. */
const DIGEST_HOLE = `sha256:${'0'.repeat(64)}`;

/** All of a record, in the room that it is given. */
export function recordBytes(
  { head, body, blockAt, digestAt }: EncodedRecord,
  roomFor: (size: number) => Buffer = Buffer.allocUnsafe,
): Buffer {
  const blockEnd = head.length + body.length;
  const bytes = roomFor(blockEnd + RECORD_END.length);
  bytes.write(head, 0, 'latin1');
  bytes.set(body, head.length);
  bytes.set(RECORD_END, blockEnd);
  if (digestAt !== null) bytes.write(digestOf(bytes.subarray(blockAt, blockEnd)), digestAt, 'latin1');
  return bytes;
}

/**
 * `lines`: of the record, up to its Content-Type. `text`: what the block begins with. The place of the digest is the first
 * that looks like it, so it comes before all that others wrote.
 */
function encoded(
  lines: string,
  text: string,
  body: Uint8Array,
  { coded = false, hasDigest = true } = {},
): EncodedRecord {
  const start = `${lines}Content-Length: ${text.length + body.length}\r\n\r\n`;
  const digestAt = hasDigest ? lines.indexOf(DIGEST_HOLE) : null;
  return { head: start + text, body, coded, blockAt: start.length, digestAt };
}

/**
 * The block is the response as received, except that its framing must agree with the stored bytes:
 * chunking has been undone, so Transfer-Encoding goes and Content-Length states the stored length.
 * Replay tools would otherwise try to undo the chunks again.
 */
export function encodeResponseRecord(record: ResponseRecord): EncodedRecord {
  const { wireBody } = record;
  const { httpHead, coded } = responseHead(record, wireBody.length);
  const hasDigest = record.blockDigest === true;
  let lines = startOf('response', record, hasDigest);
  if (record.ip) lines += `WARC-IP-Address: ${oneLine(record.ip)}\r\n`;
  lines += `WARC-Payload-Digest: ${record.wireSha256 ? labelled(record.wireSha256) : digestOf(wireBody)}\r\n`;
  return encoded(`${lines}Content-Type: application/http; msgtype=response\r\n`, httpHead, wireBody, {
    coded,
    hasDigest,
  });
}

/** `length`: of the body that follows; null where none does, and the headers stay what they are. */
function responseHead(
  { status, statusText, httpVersion, rawHeaders }: ResponseHead,
  length: number | null,
): { httpHead: string; coded: boolean } {
  let coded = false;
  let sawLength = length === null;
  let http = `HTTP/${httpVersion ?? '1.1'} ${String(status).padStart(3, '0')} ${oneLine(statusText)}\r\n`;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const { name, lower } = headerName(rawHeaders[i]!);
    if (name === '') continue;
    const value = oneLine(rawHeaders[i + 1]!);
    switch (lower) {
      case 'transfer-encoding':
        continue;
      case 'content-length':
        if (sawLength || value !== String(length)) continue;
        sawLength = true;
        break;
      case 'content-encoding':
        coded ||= value !== '' && value.toLowerCase() !== 'identity';
        break;
    }
    http += `${name}: ${value}\r\n`;
  }
  if (!sawLength) http += `Content-Length: ${length}\r\n`;
  return { httpHead: octets(`${http}\r\n`), coded };
}

interface RequestRecord extends RecordStart {
  /** As sent: alternating name and value. */
  requestHeaders: readonly string[];
  /** The record of the response. */
  concurrentTo: string;
}

/** Headers that speak for somebody: what an archive is given away with must not be of use to others. */
const CREDENTIALS = new Set(['authorization', 'cookie', 'proxy-authorization']);

/** Requests of a batch have the same headers, most of them the same list: 1 µs instead of 6. */
const requestLines = new WeakMap<readonly string[], { lines: string; hasHost: boolean }>();

function linesOf(requestHeaders: readonly string[]): { lines: string; hasHost: boolean } {
  const known = requestLines.get(requestHeaders);
  if (known) return known;
  let lines = '';
  let hasHost = false;
  for (let i = 0; i + 1 < requestHeaders.length; i += 2) {
    const { name, lower } = headerName(requestHeaders[i]!);
    if (name === '' || CREDENTIALS.has(lower)) continue;
    if (lower === 'host') hasHost = true;
    lines += `${name}: ${oneLine(requestHeaders[i + 1]!)}\r\n`;
  }
  const made = { lines, hasHost };
  requestLines.set(requestHeaders, made);
  return made;
}

/** URLs of tasks are normalised and need no parser; those that a browser loads may have more in them. */
const NOT_NORMALISED = /[@#\\]/;

function placeOf(url: string): { path: string; host: string } {
  if (NOT_NORMALISED.test(url)) {
    const { pathname, search, host } = new URL(url);
    return { path: pathname + search, host };
  }
  const origin = originOf(url);
  return { path: url.slice(origin.length), host: hostOfOrigin(origin) };
}

/** What was asked, as it was sent, without credentials. */
export function encodeRequest(record: RequestRecord): EncodedRecord {
  const { path, host } = placeOf(record.url);
  const { lines, hasHost } = linesOf(record.requestHeaders);
  const text = octets(`GET ${path} HTTP/1.1\r\n${hasHost ? '' : `Host: ${host}\r\n`}${lines}\r\n`);
  let start = startOf('request', record);
  start += `WARC-Concurrent-To: <urn:uuid:${record.concurrentTo}>\r\n`;
  return encoded(`${start}Content-Type: application/http; msgtype=request\r\n`, text, NO_BODY);
}

/** `not-modified`: the server said so (304). `same-bytes`: it sent the bytes that the archive has. */
export type RevisitKind = 'not-modified' | 'same-bytes';

const PROFILES: Record<RevisitKind, string> = {
  'not-modified': 'http://netpreserve.org/warc/1.1/revisit/server-not-modified',
  'same-bytes': 'http://netpreserve.org/warc/1.1/revisit/identical-payload-digest',
};

interface RevisitRecord extends RecordStart, ResponseHead {
  kind: RevisitKind;
  /** The record that has the page: its date, the SHA-256 of the bytes in it, and its URL where that is another. */
  refersTo: { at: number; sha256: string; url?: string };
}

/** Stands for a page that is in the archive already: the head of the response, and where the page is. */
export function encodeRevisit(record: RevisitRecord): EncodedRecord {
  const { refersTo, kind } = record;
  const { httpHead } = responseHead(record, null);
  let lines = startOf('revisit', record);
  lines += `WARC-Profile: ${PROFILES[kind]}\r\nWARC-Refers-To-Target-URI: ${uriOf(refersTo.url ?? record.url)}\r\n`;
  lines += `WARC-Refers-To-Date: ${new Date(refersTo.at).toISOString()}\r\n`;
  lines += `WARC-Payload-Digest: ${labelled(refersTo.sha256)}\r\n`;
  return encoded(`${lines}Content-Type: application/http; msgtype=response\r\n`, httpHead, NO_BODY);
}

function startOf(type: string, { url, date, recordId }: RecordStart, hasDigest = true): string {
  const digest = hasDigest ? `WARC-Block-Digest: ${DIGEST_HOLE}\r\n` : '';
  return `${WARC_VERSION}\r\nWARC-Type: ${type}\r\nWARC-Record-ID: <urn:uuid:${recordId}>\r\n${digest}WARC-Date: ${new Date(date).toISOString()}\r\nWARC-Target-URI: ${uriOf(url)}\r\n`;
}

/** Headers are octets; what cannot have come from one octet each was decoded as UTF-8. */
function octets(text: string): string {
  return BEYOND_LATIN1.test(text) ? utf8Octets(text) : text;
}

function utf8Octets(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

interface WarcinfoRecord {
  date: number;
  recordId: string;
  filename: string;
  /** Such as software, isPartOf, robots, operator. */
  fields: Readonly<Record<string, string>>;
}

/** The first record of a file: what wrote it, and why. */
export function encodeWarcinfo(record: WarcinfoRecord): EncodedRecord {
  const fields = { format: 'WARC File Format 1.1', conformsTo: SPECIFICATION, ...record.fields };
  let text = '';
  for (const [name, value] of Object.entries(fields)) text += `${tokenOf(name)}: ${oneLine(value)}\r\n`;
  let lines = `${WARC_VERSION}\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:${record.recordId}>\r\n`;
  lines += `WARC-Block-Digest: ${DIGEST_HOLE}\r\nWARC-Date: ${new Date(record.date).toISOString()}\r\n`;
  lines += `WARC-Filename: ${utf8Octets(oneLine(record.filename))}\r\n`;
  return encoded(`${lines}Content-Type: application/warc-fields\r\n`, utf8Octets(text), NO_BODY);
}

interface ResourceRecord {
  /** The page that it is of. */
  url: string;
  date: number;
  recordId: string;
  /** Says in the URI what it is: `screenshot`. */
  kind: string;
  type: string;
  body: Uint8Array;
  /** The record of the page. */
  concurrentTo: string;
}

/** What was made of a page besides its response. Pictures and prints are compressed by themselves. */
export function encodeResource(record: ResourceRecord): EncodedRecord {
  const { body } = record;
  let lines = `${WARC_VERSION}\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:${record.recordId}>\r\n`;
  lines += `WARC-Block-Digest: ${DIGEST_HOLE}\r\nWARC-Date: ${new Date(record.date).toISOString()}\r\n`;
  lines += `WARC-Target-URI: ${uriOf(`urn:${record.kind}:${record.url}`)}\r\n`;
  lines += `WARC-Concurrent-To: <urn:uuid:${record.concurrentTo}>\r\n`;
  return encoded(`${lines}Content-Type: ${octets(oneLine(record.type))}\r\n`, '', body, { coded: true });
}

/**
 * SHA-256 in hex: the hash that the store has, so that a page is hashed once. In base32 it ends with `=`, which the grammar
 * of digests does not allow, and warcio (Python) fails on one without.
 */
export function digestOf(bytes: Uint8Array): string {
  return labelled(hash('sha256', bytes, 'hex'));
}

function labelled(sha256: string): string {
  return `sha256:${sha256}`;
}

/** As before this form: such archives are still read. */
export function formerDigestOf(bytes: Uint8Array): string {
  return `sha256:${base32(hash('sha256', bytes, 'buffer'))}====`;
}

function base32(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let count = 0;
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    for (count += 8; count >= 5; ) {
      count -= 5;
      text += BASE32[(bits >>> count) & 31];
    }
    bits &= (1 << count) - 1;
  }
  return count === 0 ? text : text + BASE32[(bits << (5 - count)) & 31];
}

function oneLine(value: string): string {
  return value.replace(LINE_BREAKERS, ' ').trim();
}

function tokenOf(name: string): string {
  return name.replace(NOT_TOKEN, '_');
}

/** Servers have a few dozen names; a site that invents more must not fill the memory. */
const HEADER_NAMES_MAX = 500;
const headerNames = new BoundedMap<string, { name: string; lower: string }>(HEADER_NAMES_MAX);

/** As it may stand in a record, and in lower case. */
function headerName(raw: string): { name: string; lower: string } {
  const known = headerNames.get(raw);
  if (known) return known;
  const name = tokenOf(raw);
  const made = { name, lower: name.toLowerCase() };
  headerNames.set(raw, made);
  return made;
}

/** Task URLs are normalised and pass unchanged; anything else must not break the line it stands in. */
function uriOf(url: string): string {
  return url.replace(NOT_IN_URI, (found) => encodeURIComponent(found.toWellFormed()));
}
