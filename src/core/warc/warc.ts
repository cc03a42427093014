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

export interface ResponseRecord {
  url: string;
  /** When the request was sent, epoch milliseconds. */
  date: number;
  /** A UUID. */
  recordId: string;
  status: number;
  statusText: string;
  /** As served; 1.1 when absent. */
  httpVersion?: '1.0' | undefined;
  /** As received: alternating name and value. */
  rawHeaders: readonly string[];
  /** As received once chunking is undone; Content-Encoding still applies to it. */
  wireBody: Uint8Array;
  /** Of `wireBody`, in hex, when it is known already; it is computed otherwise. */
  wireSha256?: string | null;
  ip?: string | null;
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
  const { wireBody, rawHeaders } = record;
  const lengthText = String(wireBody.length);
  let coded = false;
  let sawLength = false;
  let http = `HTTP/${record.httpVersion ?? '1.1'} ${String(record.status).padStart(3, '0')} ${oneLine(record.statusText)}\r\n`;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = tokenOf(rawHeaders[i]!);
    if (name === '') continue;
    const value = oneLine(rawHeaders[i + 1]!);
    switch (name.toLowerCase()) {
      case 'transfer-encoding':
        continue;
      case 'content-length':
        if (sawLength || value !== lengthText) continue;
        sawLength = true;
        break;
      case 'content-encoding':
        coded ||= value !== '' && value.toLowerCase() !== 'identity';
        break;
    }
    http += `${name}: ${value}\r\n`;
  }
  if (!sawLength) http += `Content-Length: ${lengthText}\r\n`;
  http += '\r\n';
  // Headers are octets; what cannot have come from one octet each was decoded as UTF-8.
  const encoding = BEYOND_LATIN1.test(http) ? 'utf8' : 'latin1';
  const httpHead = Buffer.from(http, encoding);

  let warc = `${WARC_VERSION}\r\nWARC-Type: response\r\n`;
  warc += `WARC-Record-ID: <urn:uuid:${record.recordId}>\r\nWARC-Date: ${new Date(record.date).toISOString()}\r\n`;
  warc += `WARC-Target-URI: ${uriOf(record.url)}\r\n`;
  if (record.ip) warc += `WARC-IP-Address: ${oneLine(record.ip)}\r\n`;
  warc += `WARC-Payload-Digest: ${record.wireSha256 ? labelled(record.wireSha256) : digestOf(wireBody)}\r\n`;
  warc += `Content-Type: application/http; msgtype=response\r\nContent-Length: ${httpHead.length + wireBody.length}\r\n\r\n`;
  return { head: Buffer.concat([Buffer.from(warc, 'latin1'), httpHead]), body: wireBody, coded };
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
