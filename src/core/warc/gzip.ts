import { constants, crc32, gzipSync } from 'node:zlib';
import { DEFLATE_CODE } from './deflate-code.ts';
import {
  CODED_START,
  DISTANCE_BASES,
  DISTANCE_SYMBOLS,
  DISTANCES,
  GZIP_HEADER,
  LENGTHS,
  LITERAL_BITS_MAX,
  LITERALS,
} from './deflate-tables.ts';

/**
 * One gzip member per record, fast. Compression is the largest single cost of a page: zlib at level 1
 * needs about 220 µs for 24 KB of HTML, this about 80 µs (docs/adr/0003-archive-compression.md).
 * It is a greedy LZ77 parse with one lookup per position, written in one pass with one fixed code.
 * What does not suit that code goes to zlib.
 */

/** Larger records are rare and go to zlib, so that the memory below stays small. */
export const FAST_BYTES_MAX = 512 * 1024;
const HASH_FACTOR = 0x9e3779b1 | 0;
const WINDOW = 32_768;
/** Pages in a Latin script take 6 to 7 bits a literal; other scripts and binary data take 8 to 12. */
const LITERAL_BITS_FIT = 7.5;
const SAMPLES = 128;
const STORED_BLOCK_MAX = 65_535;

/** Where the compiled loop (native/deflate.ts) finds its tables, the record, and room for the result. */
const LAYOUT = {
  literals: 0x0400,
  lengths: 0x0c00,
  distances: 0x1100,
  distanceBases: 0x1200,
  distanceSymbols: 0x1300,
  /** 16,384 places are 64 KB: more fall out of the cache, fewer lose matches. */
  recent: 0x2000,
  recentPlaces: 16_384,
  source: 0x14000,
  out: 0xa0000,
} as const;

type Deflate = (size: number, base: number, start: number, pending: number, pendingBits: number) => number;

const { exports: native } = new WebAssembly.Instance(
  new WebAssembly.Module(Buffer.from(DEFLATE_CODE, 'base64')),
);
const deflate = native.deflate as Deflate;
const { buffer: memory } = native.memory as WebAssembly.Memory;
const source = Buffer.from(memory, LAYOUT.source, FAST_BYTES_MAX);
const out = Buffer.from(memory, LAYOUT.out, 256 + (FAST_BYTES_MAX * LITERAL_BITS_MAX) / 8);
const recent = new Int32Array(memory, LAYOUT.recent, LAYOUT.recentPlaces);
const literals = new Int32Array(memory, LAYOUT.literals, LITERALS.length);
literals.set(LITERALS);
new Int32Array(memory, LAYOUT.lengths, LENGTHS.length).set(LENGTHS);
new Int32Array(memory, LAYOUT.distances, DISTANCES.length).set(DISTANCES);
new Int32Array(memory, LAYOUT.distanceBases, DISTANCE_BASES.length).set(DISTANCE_BASES);
new Uint8Array(memory, LAYOUT.distanceSymbols, DISTANCE_SYMBOLS.length).set(DISTANCE_SYMBOLS);

/** Positions count on from record to record, so old entries are out of the window and need no clearing. */
let origin = 2 * WINDOW;

/**
 * Where to write the bytes of one record before they are compressed: in the memory of the compiled loop, so that they are
 * not copied once more. Valid until the next call.
 */
export function roomFor(size: number): Buffer {
  return size > FAST_BYTES_MAX ? Buffer.allocUnsafe(size) : source.subarray(0, size);
}

/** Whether the code suits the bytes, judged by what a sample of them would cost as literals. */
function fitsCode(bytes: Uint8Array): boolean {
  if (bytes.length === 0) return true;
  let bits = 0;
  // Scattered, because even steps keep pace with the rows of a table.
  for (let i = 0; i < SAMPLES; i++)
    bits += literals[bytes[(Math.imul(i, HASH_FACTOR) >>> 0) % bytes.length]!]! >>> 24;
  return bits <= SAMPLES * LITERAL_BITS_FIT;
}

/**
 * A member that holds `bytes`, valid until the next call. Null when zlib should do it: the record is too large, or `body`,
 * which decides, is not the text that the code is made for.
 */
export function gzipFast(bytes: Buffer, body: Uint8Array): Buffer | null {
  const size = bytes.length;
  if (size > FAST_BYTES_MAX || !fitsCode(body)) return null;
  if (bytes.buffer !== memory) source.set(bytes);
  if (origin > 0x3fff_ffff) {
    recent.fill(0);
    origin = 2 * WINDOW;
  }
  const base = origin;
  origin += size + WINDOW + 1;
  out.set(CODED_START.bytes, 0);
  const { bytes: start, pending, pendingBits } = CODED_START;
  const end = deflate(size, base, start.length, pending, pendingBits);
  out.writeUInt32LE(crc32(source.subarray(0, size)), end);
  out.writeUInt32LE(size, end + 4);
  return out.subarray(0, end + 8);
}

/** A member that only wraps its bytes: for bodies that arrived compressed, where trying again gains nothing. */
export function gzipStored(bytes: Buffer): Buffer {
  const size = bytes.length;
  const blocks = Math.max(1, Math.ceil(size / STORED_BLOCK_MAX));
  const member = Buffer.allocUnsafe(GZIP_HEADER.length + 5 * blocks + size + 8);
  member.set(GZIP_HEADER, 0);
  let at = GZIP_HEADER.length;
  for (let block = 0; block < blocks; block++) {
    const piece = bytes.subarray(block * STORED_BLOCK_MAX, (block + 1) * STORED_BLOCK_MAX);
    member.writeUInt8(block === blocks - 1 ? 1 : 0, at);
    member.writeUInt16LE(piece.length, at + 1);
    member.writeUInt16LE(~piece.length & 0xffff, at + 3);
    member.set(piece, at + 5);
    at += 5 + piece.length;
  }
  member.writeUInt32LE(crc32(bytes), at);
  member.writeUInt32LE(size, at + 4);
  return member;
}

export function gzipWithZlib(bytes: Buffer): Buffer {
  return gzipSync(bytes, { level: constants.Z_BEST_SPEED });
}
