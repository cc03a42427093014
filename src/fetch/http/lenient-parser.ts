import { LIMITS } from '../../core/limits.ts';

/**
 * Reads one HTTP/1 response as browsers do: with bare line feeds, folded headers, names that are no names, equal lengths
 * said twice, a length beside chunks, and white space after the size of a chunk. Written by hand: Node's lenient parser
 * refuses repeated lengths and bad names too. Only for a connection that carries nothing else, where a response cannot be
 * taken for another one. Two lengths that differ are refused here as well.
 */

export interface LenientHead {
  version: '1.0' | '1.1';
  status: number;
  statusText: string;
  /** Alternating name and value; what has no name is left out. */
  rawHeaders: string[];
}

interface LenientEvents {
  onHead(head: LenientHead): void;
  onBody(chunk: Buffer): void;
  onEnd(): void;
}

/** The response cannot be read by any rule. The message is a fixed text. */
export class UnreadableResponse extends Error {}

/** More interim answers than any server has a use for, as in the strict reading. */
const INTERIM_MAX = 16;
/** Size and extensions of one chunk, or one trailer. */
const LINE_BYTES_MAX = 16 * 1024;
/** Line feed. */
const LF = 10;
const EMPTY = Buffer.alloc(0);

type State = 'head' | 'length' | 'close' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailers' | 'done';

export class LenientParser {
  readonly #events: LenientEvents;
  #state: State = 'head';
  /** Bytes that are not a whole line or head yet. */
  #rest: Buffer = EMPTY;
  /** Of the body or of the chunk, still to come. */
  #left = 0;
  #interim = 0;
  #trailerBytes = 0;
  /** Whether anything was not as the standard has it. */
  isOdd = false;

  constructor(events: LenientEvents) {
    this.#events = events;
  }

  get isDone(): boolean {
    return this.#state === 'done';
  }

  /** Throws `UnreadableResponse`. */
  push(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = EMPTY;
    while (bytes.length > 0 && this.#state !== 'done') {
      const used = this.#step(bytes);
      if (used === 0) {
        this.#rest = bytes;
        return;
      }
      bytes = bytes.subarray(used);
    }
  }

  /** The connection ended: whether the response is complete. */
  end(): boolean {
    if (this.#state === 'close') this.#finish();
    return this.#state === 'done';
  }

  /** Bytes that were used; 0 asks for more. */
  #step(bytes: Buffer): number {
    switch (this.#state) {
      case 'head':
        return this.#head(bytes);
      case 'close':
        this.#events.onBody(bytes);
        return bytes.length;
      case 'length':
      case 'chunk-data':
        return this.#body(bytes);
      case 'chunk-end':
        return this.#chunkEnd(bytes);
      default:
        return this.#line(bytes);
    }
  }

  #body(bytes: Buffer): number {
    const piece = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= piece.length;
    this.#events.onBody(piece);
    if (this.#left === 0) {
      if (this.#state === 'length') this.#finish();
      else this.#state = 'chunk-end';
    }
    return piece.length;
  }

  #chunkEnd(bytes: Buffer): number {
    this.#state = 'chunk-size';
    if (bytes[0] === LF) return 1;
    if (bytes[0] !== 13) throw new UnreadableResponse('a chunk is longer than its size');
    if (bytes.length === 1) {
      this.#state = 'chunk-end';
      return 0;
    }
    if (bytes[1] !== LF) throw new UnreadableResponse('a chunk is longer than its size');
    return 2;
  }

  #line(bytes: Buffer): number {
    const end = bytes.indexOf(LF);
    if (end > LINE_BYTES_MAX || (end < 0 && bytes.length > LINE_BYTES_MAX))
      throw new UnreadableResponse('the size of a chunk is too long');
    if (end < 0) return 0;
    const line = bytes.toString('latin1', 0, end).replace(/\r$/, '');
    if (this.#state === 'trailers') {
      this.#trailerBytes += end;
      if (line === '') this.#finish();
      else if (this.#trailerBytes > LIMITS.headerBytesMax)
        throw new UnreadableResponse('the trailers are too large');
      return end + 1;
    }
    const size = /^[ \t]*([0-9a-f]{1,12})[ \t]*(?:;.*)?$/i.exec(line)?.[1];
    if (size === undefined) throw new UnreadableResponse('the size of a chunk is no number');
    if (/^[ \t]|[ \t]$/.test(line)) this.isOdd = true;
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? 'trailers' : 'chunk-data';
    return end + 1;
  }

  #head(bytes: Buffer): number {
    const text = bytes.toString('latin1', 0, Math.min(bytes.length, LIMITS.headerBytesMax + 1));
    // Empty lines before the status line are left out, as RFC 9112 advises.
    const start = /^[\r\n]*/.exec(text)![0].length;
    const found = /\r?\n\r?\n/.exec(text.slice(start));
    if (!found) {
      if (bytes.length > LIMITS.headerBytesMax)
        throw new UnreadableResponse('the response headers are too large');
      const begins = text.slice(start, start + 5);
      if (!'HTTP/'.startsWith(begins)) throw new UnreadableResponse('the response has no status line');
      return 0;
    }
    const end = start + found.index;
    const used = end + found[0].length;
    const block = text.slice(start, end);
    if (/(?<!\r)\n/.test(`${block}${found[0]}`)) this.isOdd = true;
    const head = this.#parseHead(block);
    if (head.status >= 200) this.#begin(head);
    else if (head.status === 101) throw new UnreadableResponse('the response switches to another protocol');
    else if (++this.#interim > INTERIM_MAX) throw new UnreadableResponse('too many interim responses');
    else if (head.status === 100) this.isOdd = true;
    return used;
  }

  #parseHead(block: string): LenientHead {
    if (block.includes('\0')) throw new UnreadableResponse('a header has a NUL byte');
    const [first = '', ...lines] = block.split(/\r?\n/);
    const status = /^HTTP\/(?:1\.([01])|2\.0)[ \t]+([1-9]\d\d)(?:[ \t]+(.*))?$/.exec(first);
    if (!status) throw new UnreadableResponse('the response has no valid status line');
    const rawHeaders: string[] = [];
    let isKept = false;
    for (const line of lines) {
      if (/^[ \t]/.test(line)) {
        this.isOdd = true;
        const last = rawHeaders.length - 1;
        if (isKept) rawHeaders[last] = `${rawHeaders[last]} ${line.trim()}`.trim();
        continue;
      }
      const colon = line.indexOf(':');
      const name = line.slice(0, Math.max(colon, 0)).trimEnd();
      isKept = TOKEN.test(name);
      if (!isKept || name.length !== colon) this.isOdd = true;
      if (isKept) rawHeaders.push(name, line.slice(colon + 1).trim());
    }
    const version = status[1] === '0' ? '1.0' : '1.1';
    return { version, status: Number(status[2]), statusText: status[3] ?? '', rawHeaders };
  }

  #begin(head: LenientHead): void {
    const transfer = valuesOf(head, 'transfer-encoding');
    const said = valuesOf(head, 'content-length');
    const lengths = new Set(said);
    if (lengths.size > 1) throw new UnreadableResponse('the response has two Content-Lengths that differ');
    const [length] = lengths;
    if (length !== undefined && !/^\d{1,15}$/.test(length))
      throw new UnreadableResponse('the Content-Length of the response is invalid');
    const isChunked = transfer.some((coding) => coding.toLowerCase() === 'chunked');
    if (said.length > 1 || (isChunked && length !== undefined)) this.isOdd = true;
    const hasBody = head.status !== 204 && head.status !== 304;
    this.#left = Number(length ?? 0);
    if (!hasBody) this.#state = 'length';
    else if (isChunked) this.#state = 'chunk-size';
    else this.#state = length === undefined ? 'close' : 'length';
    this.#events.onHead(head);
    if (this.#state === 'length' && (!hasBody || this.#left === 0)) this.#finish();
  }

  #finish(): void {
    this.#state = 'done';
    this.#events.onEnd();
  }
}

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

/** All values of a header that is a list. */
export function valuesOf({ rawHeaders }: Pick<LenientHead, 'rawHeaders'>, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]!.toLowerCase() === name) values.push(...rawHeaders[index + 1]!.split(','));
  return values.map((value) => value.trim());
}
