import { createHash } from 'node:crypto';

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

/** A record is `head`, then `body`, then `RECORD_END`. */
export interface EncodedRecord {
  head: Buffer;
  body: Uint8Array;
  /** The body came with a Content-Encoding, so it is compressed already. */
  coded: boolean;
}

/**
 * The block is the response as received, except that its framing must agree with the stored bytes:
 * chunking has been undone, so Transfer-Encoding goes and Content-Length states the stored length.
 * Replay tools would otherwise try to undo the chunks again.
 */
export function encodeResponseRecord(record: ResponseRecord): EncodedRecord {
  const { wireBody } = record;
  const { httpHead, coded } = responseHead(record, wireBody.length);
  let warc = startOf('response', record);
  if (record.ip) warc += `WARC-IP-Address: ${oneLine(record.ip)}\r\n`;
  if (record.blockDigest) {
    const digest = createHash('sha256').update(httpHead).update(wireBody).digest('hex');
    warc += `WARC-Block-Digest: ${labelled(digest)}\r\n`;
  }
  warc += `WARC-Payload-Digest: ${record.wireSha256 ? labelled(record.wireSha256) : digestOf(wireBody)}\r\n`;
  warc += `Content-Type: application/http; msgtype=response\r\nContent-Length: ${httpHead.length + wireBody.length}\r\n\r\n`;
  return { head: Buffer.concat([Buffer.from(warc, 'latin1'), httpHead]), body: wireBody, coded };
}

/** `length`: of the body that follows; null where none does, and the headers stay what they are. */
function responseHead(
  { status, statusText, httpVersion, rawHeaders }: ResponseHead,
  length: number | null,
): { httpHead: Buffer; coded: boolean } {
  let coded = false;
  let sawLength = length === null;
  let http = `HTTP/${httpVersion ?? '1.1'} ${String(status).padStart(3, '0')} ${oneLine(statusText)}\r\n`;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = tokenOf(rawHeaders[i]!);
    if (name === '') continue;
    const value = oneLine(rawHeaders[i + 1]!);
    switch (name.toLowerCase()) {
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
  return { httpHead: headBytes(`${http}\r\n`), coded };
}

interface RequestRecord extends RecordStart {
  /** As sent: alternating name and value. */
  requestHeaders: readonly string[];
  /** The record of the response. */
  concurrentTo: string;
}

/** Headers that speak for somebody: what an archive is given away with must not be of use to others. */
const CREDENTIALS = new Set(['authorization', 'cookie', 'proxy-authorization']);

/** What was asked, as it was sent, without credentials. */
export function encodeRequest(record: RequestRecord): EncodedRecord {
  const { pathname, search, host } = new URL(record.url);
  const { requestHeaders } = record;
  let lines = '';
  let hasHost = false;
  for (let i = 0; i + 1 < requestHeaders.length; i += 2) {
    const name = tokenOf(requestHeaders[i]!);
    const lower = name.toLowerCase();
    if (name === '' || CREDENTIALS.has(lower)) continue;
    if (lower === 'host') hasHost = true;
    lines += `${name}: ${oneLine(requestHeaders[i + 1]!)}\r\n`;
  }
  const body = headBytes(
    `GET ${pathname}${search} HTTP/1.1\r\n${hasHost ? '' : `Host: ${host}\r\n`}${lines}\r\n`,
  );
  let warc = startOf('request', record);
  warc += `WARC-Concurrent-To: <urn:uuid:${record.concurrentTo}>\r\nWARC-Block-Digest: ${digestOf(body)}\r\n`;
  warc += `Content-Type: application/http; msgtype=request\r\nContent-Length: ${body.length}\r\n\r\n`;
  return { head: Buffer.from(warc, 'latin1'), body, coded: false };
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
  let warc = startOf('revisit', record);
  warc += `WARC-Profile: ${PROFILES[kind]}\r\nWARC-Refers-To-Target-URI: ${uriOf(refersTo.url ?? record.url)}\r\n`;
  warc += `WARC-Refers-To-Date: ${new Date(refersTo.at).toISOString()}\r\n`;
  warc += `WARC-Block-Digest: ${digestOf(httpHead)}\r\nWARC-Payload-Digest: ${labelled(refersTo.sha256)}\r\n`;
  warc += `Content-Type: application/http; msgtype=response\r\nContent-Length: ${httpHead.length}\r\n\r\n`;
  return { head: Buffer.from(warc, 'latin1'), body: httpHead, coded: false };
}

function startOf(type: string, { url, date, recordId }: RecordStart): string {
  return `${WARC_VERSION}\r\nWARC-Type: ${type}\r\nWARC-Record-ID: <urn:uuid:${recordId}>\r\nWARC-Date: ${new Date(date).toISOString()}\r\nWARC-Target-URI: ${uriOf(url)}\r\n`;
}

/** Headers are octets; what cannot have come from one octet each was decoded as UTF-8. */
function headBytes(http: string): Buffer {
  return Buffer.from(http, BEYOND_LATIN1.test(http) ? 'utf8' : 'latin1');
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
  const body = Buffer.from(text, 'utf8');
  let warc = `${WARC_VERSION}\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:uuid:${record.recordId}>\r\n`;
  warc += `WARC-Date: ${new Date(record.date).toISOString()}\r\nWARC-Filename: ${oneLine(record.filename)}\r\n`;
  warc += `WARC-Block-Digest: ${digestOf(body)}\r\n`;
  warc += `Content-Type: application/warc-fields\r\nContent-Length: ${body.length}\r\n\r\n`;
  return { head: Buffer.from(warc, 'utf8'), body, coded: false };
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
  let warc = `${WARC_VERSION}\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:${record.recordId}>\r\n`;
  warc += `WARC-Date: ${new Date(record.date).toISOString()}\r\nWARC-Target-URI: ${uriOf(`urn:${record.kind}:${record.url}`)}\r\n`;
  warc += `WARC-Concurrent-To: <urn:uuid:${record.concurrentTo}>\r\nWARC-Block-Digest: ${digestOf(body)}\r\n`;
  warc += `Content-Type: ${oneLine(record.type)}\r\nContent-Length: ${body.length}\r\n\r\n`;
  return { head: Buffer.from(warc, 'latin1'), body, coded: true };
}

/**
 * SHA-256 in hex: the hash that the store has, so that a page is hashed once. In base32 it ends with `=`, which the grammar
 * of digests does not allow, and warcio (Python) fails on one without.
 */
export function digestOf(bytes: Uint8Array): string {
  return labelled(createHash('sha256').update(bytes).digest('hex'));
}

function labelled(sha256: string): string {
  return `sha256:${sha256}`;
}

/** As before this form: such archives are still read. */
export function formerDigestOf(bytes: Uint8Array): string {
  return `sha256:${base32(createHash('sha256').update(bytes).digest())}====`;
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

/** Task URLs are normalised and pass unchanged; anything else must not break the line it stands in. */
function uriOf(url: string): string {
  return url.replace(NOT_IN_URI, (found) => encodeURIComponent(found.toWellFormed()));
}
