import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import type { FailureCode } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';

/** Frames of one zstd body: each takes 40 µs however empty it is, and a megabyte has room for 100,000. */
const ZSTD_FRAMES_MAX = 256;

/** Undoes Content-Encoding. Remote bytes never make this throw, and never make it allocate far past the cap. */

export type Decoded = { ok: true; body: Buffer } | { ok: false; code: FailureCode; detail: string };

/** Above this many coded bytes the thread pool decodes, so that the event loop is not blocked. */
const SYNC_WIRE_BYTES_MAX = 256 * 1024;
/** A small body that grows past this is decoded again on the thread pool: 2 MB take about 4 ms. */
const SYNC_DECODED_BYTES_MAX = 2 * 1024 * 1024;
/** RFC 9659: a decoder for the web needs no window over 8 MB; zstd itself would take 128 MB. */
const ZSTD_WINDOW_LOG_MAX = 23;

interface Inflated {
  buffer: Buffer;
  engine: { bytesWritten: number };
}
/** A stream that decodes; `bytesWritten` is what it has used of its input. */
export type Decoder = Transform & { readonly bytesWritten: number };
type Callback = (error: Error | null, result: Inflated) => void;
interface Coding {
  sync(input: Buffer, options: object): Inflated;
  async(input: Buffer, options: object, callback: Callback): void;
  open(options: object): Decoder;
  options: object;
  /** Further frames may follow the first, and Node stops after one. */
  frames: boolean;
}

/** Node's types do not know the `info` option, which says how much input was used. */
function coding(
  sync: unknown,
  async: unknown,
  open: Coding['open'],
  options: object = {},
  frames = false,
): Coding {
  return { sync: sync as Coding['sync'], async: async as Coding['async'], open, options, frames };
}

const gzip = coding(zlib.gunzipSync, zlib.gunzip, zlib.createGunzip);
const deflateZlib = coding(zlib.inflateSync, zlib.inflate, zlib.createInflate);
const deflateRaw = coding(zlib.inflateRawSync, zlib.inflateRaw, zlib.createInflateRaw);
const brotli = coding(zlib.brotliDecompressSync, zlib.brotliDecompress, zlib.createBrotliDecompress);
const zstd = coding(
  zlib.zstdDecompressSync,
  zlib.zstdDecompress,
  zlib.createZstdDecompress,
  { params: { [zlib.constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } },
  true,
);

export const ACCEPTED_CODINGS = 'gzip, br, zstd, deflate';

/** What servers write where there is no coding: names of charsets, and of transfers of mail. */
const NOT_A_CODING = new Set(['', 'identity', 'none', 'utf-8', 'utf8', '7bit', '8bit', 'binary']);

/** The codings in the order in which they were applied, or null when there is none. */
export function parseContentEncoding(header: string | string[] | undefined): string[] | null {
  if (header === undefined) return null;
  const text = typeof header === 'string' ? header : header.join(',');
  const names = text
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !NOT_A_CODING.has(name));
  return names.length === 0 ? null : names;
}

/**
 * Returns at once for small bodies, with a promise for large ones.
 * An empty body stays empty whatever coding it claims: many servers label those too.
 */
export function decodeBody(wire: Buffer, names: string[], bodyBytesMax: number): Decoded | Promise<Decoded> {
  const refused = refusalOfNames(names, wire);
  if (refused === 'plain') return { ok: true, body: wire };
  if (refused !== null) return refused;
  if (wire.length === 0) return { ok: true, body: wire };
  const decodedMax = decodedBytesMax(wire.length, bodyBytesMax);
  if (wire.length > SYNC_WIRE_BYTES_MAX) return decodeSlowly(wire, names, decodedMax);
  const decoded = decodeNow(wire, names, Math.min(decodedMax, SYNC_DECODED_BYTES_MAX));
  const cutShort = !decoded.ok && decoded.code === 'too-large' && decodedMax > SYNC_DECODED_BYTES_MAX;
  return cutShort ? decodeSlowly(wire, names, decodedMax) : decoded;
}

/** The same for a body that is not kept in memory; `first` is its beginning. Gzip may have several members. */
export function openDecoders(names: string[], first: Buffer): Decoder[] | Decoded {
  const refused = refusalOfNames(names, first);
  if (refused === 'plain') return [];
  return (
    refused ??
    names.toReversed().map((name, at) => {
      const { open, options } = codingFor(name, at === 0 ? first : ZLIB_HEADER);
      return open(options);
    })
  );
}

/** `plain`: none of the names is a coding, and the body is text as it stands. */
function refusalOfNames(names: string[], first: Buffer): Decoded | 'plain' | null {
  if (names.length > LIMITS.contentCodingsMax) {
    return {
      ok: false,
      code: 'bad-encoding',
      detail: `more than ${LIMITS.contentCodingsMax} stacked codings`,
    };
  }
  if (names.every(isKnown)) return null;
  if (!names.some(isKnown) && isText(first)) return 'plain';
  return { ok: false, code: 'bad-encoding', detail: 'unknown Content-Encoding' };
}

/** Both caps in one number, so that a bomb is left at the first byte over. */
export function decodedBytesMax(wireBytes: number, bodyBytesMax: number): number {
  const byRatio = Math.max(LIMITS.decodedRatioFloorBytes, wireBytes * LIMITS.decodedRatioMax);
  return Math.min(bodyBytesMax, byRatio);
}

/** Bytes at the beginning that tell text from anything else. */
const TEXT_SAMPLE_BYTES = 1024;

/** Whether there are no control characters but those of text, as browsers sniff it. */
function isText(body: Buffer): boolean {
  return !/[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(body.toString('latin1', 0, TEXT_SAMPLE_BYTES));
}

function isKnown(name: string): boolean {
  return name === 'gzip' || name === 'x-gzip' || name === 'deflate' || name === 'br' || name === 'zstd';
}

function codingFor(name: string, input: Buffer): Coding {
  if (name === 'br') return brotli;
  if (name === 'zstd') return zstd;
  if (name === 'deflate') return hasZlibHeader(input) ? deflateZlib : deflateRaw;
  return gzip;
}

/** What a coding below another one is taken for: raw deflate is known only by servers that apply nothing else. */
const ZLIB_HEADER = Buffer.from([0x78, 0x9c]);

/** RFC 9110 says zlib, some servers send raw deflate: method 8 and a header divisible by 31 tell them apart. */
function hasZlibHeader(input: Buffer): boolean {
  return input.length >= 2 && (input[0]! & 0x0f) === 8 && input.readUInt16BE(0) % 31 === 0;
}

interface Step {
  use: Coding;
  input: Buffer;
  options: object;
}

/** One walk through codings and frames for both drivers below; each step wants its input inflated. */
function* decodeSteps(wire: Buffer, names: string[], decodedMax: number): Generator<Step, Decoded, Inflated> {
  let body = wire;
  for (let at = names.length - 1; at >= 0; at -= 1) {
    const parts: Buffer[] = [];
    let left = decodedMax;
    for (let input = body; input.length > 0; ) {
      if (parts.length === ZSTD_FRAMES_MAX) return TOO_MANY_FRAMES;
      const use = codingFor(names[at]!, input);
      // zlib takes no limit of 0, so the byte over is caught here.
      const options = { ...use.options, maxOutputLength: Math.max(left, 1), info: true };
      const result = yield { use, input, options };
      parts.push(result.buffer);
      left -= result.buffer.length;
      if (left < 0) return TOO_LARGE;
      input = rest(use, input, result);
    }
    body = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }
  return { ok: true, body };
}

function decodeNow(wire: Buffer, names: string[], decodedMax: number): Decoded {
  const steps = decodeSteps(wire, names, decodedMax);
  try {
    let step = steps.next();
    while (!step.done) step = steps.next(step.value.use.sync(step.value.input, step.value.options));
    return step.value;
  } catch (error) {
    return refusalOf(error);
  }
}

async function decodeSlowly(wire: Buffer, names: string[], decodedMax: number): Promise<Decoded> {
  const steps = decodeSteps(wire, names, decodedMax);
  try {
    let step = steps.next();
    while (!step.done) step = steps.next(await inflate(step.value));
    return step.value;
  } catch (error) {
    return refusalOf(error);
  }
}

function inflate({ use, input, options }: Step): Promise<Inflated> {
  return new Promise((resolve, reject) => {
    use.async(input, options, (error, result) => (error === null ? resolve(result) : reject(error)));
  });
}

/** What follows a whole gzip, zlib or brotli stream is padding, as browsers see it; zstd frames simply follow each other. */
function rest(use: Coding, input: Buffer, result: Inflated): Buffer {
  return use.frames ? input.subarray(result.engine.bytesWritten) : input.subarray(input.length);
}

const TOO_MANY_FRAMES: Decoded = {
  ok: false,
  code: 'bad-encoding',
  detail: `the body has more than ${ZSTD_FRAMES_MAX} zstd frames`,
};

export const TOO_LARGE: Decoded = {
  ok: false,
  code: 'too-large',
  detail: 'the decoded body is over the size or ratio limit',
};

export function refusalOf(error: unknown): Decoded {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ERR_BUFFER_TOO_LARGE') return TOO_LARGE;
  if (code === 'Z_BUF_ERROR')
    return { ok: false, code: 'truncated', detail: 'the encoded body ends too early' };
  return { ok: false, code: 'bad-encoding', detail: 'the body does not match its Content-Encoding' };
}
