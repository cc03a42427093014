import { digestOf, formerDigestOf, WARC_VERSION } from './warc.ts';

/** WARC/1.1 records, the reading half: strict, because a reader that forgives hides a broken archive. */

export class WarcError extends Error {
  override readonly name = 'WarcError';
}

interface WarcRecord {
  type: string;
  id: string;
  /** Epoch milliseconds. */
  date: number;
  /** Null for records that stand for no page, such as warcinfo. */
  url: string | null;
  /** By lower-case name. */
  headers: Map<string, string>;
  block: Buffer;
}

interface HttpResponse {
  status: number;
  statusText: string;
  /** Alternating name and value, in the order received. */
  headers: string[];
  /** As received: Content-Encoding is not undone. */
  body: Buffer;
}

const RECORD_ID = /^<[a-z][a-z0-9+.-]*:[^\s<>]+>$/i;
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: (.*))?$/;
/** Far more than Seine writes: 64 KB of HTTP headers, and its own. */
const HEAD_BYTES_MAX = 1024 * 1024;

/** Reads exactly one uncompressed record; throws `WarcError` on any defect. */
export function parseRecord(bytes: Buffer): WarcRecord {
  const { lines, end } = headOf(bytes, 'record');
  if (lines[0] !== WARC_VERSION) fail(`the version is not ${WARC_VERSION}`);
  const headers = new Map<string, string>();
  for (const line of lines.slice(1)) {
    const [name, value] = fieldOf(line);
    const key = name.toLowerCase();
    if (headers.has(key)) fail(`${name} occurs twice`);
    headers.set(key, value);
  }
  const type = need(headers, 'WARC-Type');
  const id = need(headers, 'WARC-Record-ID');
  if (!RECORD_ID.test(id)) fail('WARC-Record-ID is not a URI in angle brackets');
  const dateText = need(headers, 'WARC-Date');
  const date = DATE.test(dateText) ? Date.parse(dateText) : Number.NaN;
  if (Number.isNaN(date)) fail('WARC-Date is not a UTC time');
  const length = lengthOf(need(headers, 'Content-Length'));
  if (end + length + 4 !== bytes.length) {
    fail(`Content-Length says ${length} bytes, the record has ${bytes.length - end - 4}`);
  }
  if (bytes.toString('latin1', end + length) !== '\r\n\r\n')
    fail('the record does not end with two line ends');
  const record = {
    type,
    id,
    date,
    url: headers.get('warc-target-uri') ?? null,
    headers,
    block: bytes.subarray(end, end + length),
  };
  verify(record);
  return record;
}

function verify(record: WarcRecord): void {
  const { headers, block } = record;
  if (block.length > 0) need(headers, 'Content-Type');
  const blockDigest = headers.get('warc-block-digest');
  if (blockDigest !== undefined) compare('WARC-Block-Digest', blockDigest, block);
  if (record.type !== 'response') return;
  need(headers, 'WARC-Target-URI');
  const payloadDigest = headers.get('warc-payload-digest');
  if (payloadDigest !== undefined) compare('WARC-Payload-Digest', payloadDigest, readResponse(record).body);
}

function compare(name: string, digest: string, bytes: Buffer): void {
  if (!digest.startsWith('sha256:')) fail(`${name} is not a sha256`);
  const isFormer = digest.endsWith('=');
  if (digest !== (isFormer ? formerDigestOf(bytes) : digestOf(bytes))) fail(`${name} does not fit the bytes`);
}

/** The HTTP response in a response record; throws `WarcError` when it is not a whole one. */
export function readResponse(record: WarcRecord): HttpResponse {
  if (record.type !== 'response') fail('the record is not an HTTP response');
  const response = readHead(record);
  const { headers, body } = response;
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1]!;
    if (headers[i]!.toLowerCase() === 'content-length' && lengthOf(value) !== body.length)
      fail(`the response's Content-Length says ${value} bytes, there are ${body.length}`);
  }
  return response;
}

/** The same for a record that may have the head of a response only, as one of a page that is elsewhere. */
export function readHead(record: WarcRecord): HttpResponse {
  if (!/^application\/http\b/i.test(record.headers.get('content-type') ?? ''))
    fail('the record is not an HTTP response');
  const { lines, end } = headOf(record.block, 'response', 'latin1');
  const status = STATUS_LINE.exec(lines[0] ?? '');
  if (!status) fail('the response has no status line');
  const headers = lines.slice(1).flatMap(fieldOf);
  return {
    status: Number(status[1]),
    statusText: status[2] ?? '',
    headers,
    body: record.block.subarray(end),
  };
}

function headOf(
  bytes: Buffer,
  what: string,
  encoding: 'utf8' | 'latin1' = 'utf8',
): { lines: string[]; end: number } {
  const at = bytes.subarray(0, HEAD_BYTES_MAX).indexOf('\r\n\r\n');
  if (at < 0) fail(`the header of the ${what} has no end`);
  return { lines: bytes.toString(encoding, 0, at).split('\r\n'), end: at + 4 };
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(0, colon));
  if (!NAME.test(name)) fail(`not a header line: ${JSON.stringify(line.slice(0, 80))}`);
  const value = line.slice(colon + 1).trim();
  if (/[\r\n\0]/.test(value)) fail(`${name} holds a control character`);
  return [name, value];
}

function need(headers: Map<string, string>, name: string): string {
  const value = headers.get(name.toLowerCase());
  if (value === undefined || value === '') fail(`${name} is missing`);
  return value;
}

function lengthOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) fail('Content-Length is not a number');
  return Number(text);
}

function fail(defect: string): never {
  throw new WarcError(`broken WARC record: ${defect}`);
}
