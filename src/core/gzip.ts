import { constants, crc32, gzipSync } from 'node:zlib';
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
 * needs about 220 µs for 24 KB of HTML, this about 115 µs (docs/adr/0003-archive-compression.md).
 * It is a greedy LZ77 parse with one lookup per position, written in one pass with one fixed code.
 * What does not suit that code goes to zlib.
 */

/** Larger records are rare and go to zlib, so that the memory below stays small. */
export const FAST_BYTES_MAX = 512 * 1024;
/** 16,384 places are 64 KB: more fall out of the cache, fewer lose matches. */
const HASH_BITS = 14;
const HASH_SHIFT = 32 - HASH_BITS;
const HASH_FACTOR = 0x9e3779b1 | 0;
const WINDOW = 32_768;
const MATCH_MIN = 4;
const MATCH_MAX = 258;
/** Reads of four bytes may reach past the end of the record, never past the memory. */
const SLACK = 8;
/** Pages in a Latin script take 6 to 7 bits a literal; other scripts and binary data take 8 to 12. */
const LITERAL_BITS_FIT = 7.5;
const SAMPLES = 128;
const STORED_BLOCK_MAX = 65_535;

// Constants of this module, and not imports, parameters or fields: the compiler then knows their
// addresses, which is worth 15 µs a page; taking them as locals in the loop another 7.
const source = Buffer.allocUnsafeSlow(FAST_BYTES_MAX + SLACK);
const sourceView = new DataView(source.buffer);
const out = Buffer.allocUnsafeSlow(256 + (FAST_BYTES_MAX * LITERAL_BITS_MAX) / 8);
const outView = new DataView(out.buffer);
const recent = new Int32Array(1 << HASH_BITS);
const literals = LITERALS;
const lengths = LENGTHS;
const distances = DISTANCES;
const distanceSymbols = DISTANCE_SYMBOLS;
const distanceBases = DISTANCE_BASES;

/** Positions count on from record to record, so old entries are out of the window and need no clearing. */
let origin = 2 * WINDOW;

function sizeOf(parts: readonly Uint8Array[]): number {
  let size = 0;
  for (const part of parts) size += part.length;
  return size;
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
 * A member that holds `parts` one after the other, valid until the next call. Null when zlib should do
 * it: the record is too large, or `body`, which decides, is not the text that the code is made for.
 */
export function gzipFast(parts: readonly Uint8Array[], body: Uint8Array): Buffer | null {
  const size = sizeOf(parts);
  if (size > FAST_BYTES_MAX || !fitsCode(body)) return null;
  let at = 0;
  for (const part of parts) {
    source.set(part, at);
    at += part.length;
  }
  if (origin > 0x3fff_ffff) {
    recent.fill(0);
    origin = 2 * WINDOW;
  }
  const base = origin;
  origin += size + WINDOW + 1;
  const end = deflate(size, base);
  outView.setUint32(end, crc32(source.subarray(0, size)), true);
  outView.setUint32(end + 4, size, true);
  return out.subarray(0, end + 8);
}

/**
 * The hot loop, in one piece because calls cost 10 µs a page. Bits gather in `bits`; each write stores
 * four bytes and moves on by the full ones, without a branch. After a write at most 7 bits wait, and
 * nothing written at once has more than 24, so 32 are enough.
 */
function deflate(size: number, base: number): number {
  const bytes = source;
  const view = sourceView;
  const sink = outView;
  const table = recent;
  out.set(CODED_START.bytes, 0);
  let to = CODED_START.bytes.length;
  let bits = CODED_START.pending;
  let count = CODED_START.pendingBits;
  let i = 0;
  for (const last = size - SLACK; i < last; ) {
    const word = view.getInt32(i, true);
    const slot = Math.imul(word, HASH_FACTOR) >>> HASH_SHIFT;
    const from = table[slot]! - base;
    table[slot] = i + base;
    if (i - from > WINDOW || view.getInt32(from, true) !== word) {
      const literal = literals[bytes[i]!]!;
      bits |= (literal & 0xffffff) << count;
      count += literal >>> 24;
      sink.setInt32(to, bits, true);
      to += count >> 3;
      bits >>>= count & 24;
      count &= 7;
      i++;
      continue;
    }
    const most = Math.min(size - i, MATCH_MAX);
    let match = MATCH_MIN;
    while (match < most) {
      const differ = view.getInt32(i + match, true) ^ view.getInt32(from + match, true);
      if (differ !== 0) {
        match += (31 - Math.clz32(differ & -differ)) >> 3;
        break;
      }
      match += 4;
    }
    if (match > most) match = most;
    const length = lengths[match]!;
    bits |= (length & 0xffffff) << count;
    count += length >>> 24;
    sink.setInt32(to, bits, true);
    to += count >> 3;
    bits >>>= count & 24;
    count &= 7;
    const behind = i - from - 1;
    const symbol = distanceSymbols[behind < 256 ? behind : 256 + (behind >> 7)]!;
    const code = distances[symbol]!;
    bits |= ((code & 0xffff) | ((behind + 1 - distanceBases[symbol]!) << ((code >>> 16) & 0xff))) << count;
    count += code >>> 24;
    sink.setInt32(to, bits, true);
    to += count >> 3;
    bits >>>= count & 24;
    count &= 7;
    // Two places inside a match are enough to remember: fewer cost size, all of them time.
    const tail = i + match - 2;
    if (tail < last) {
      table[Math.imul(view.getInt32(i + 1, true), HASH_FACTOR) >>> HASH_SHIFT] = i + 1 + base;
      table[Math.imul(view.getInt32(tail, true), HASH_FACTOR) >>> HASH_SHIFT] = tail + base;
    }
    i += match;
  }
  for (; i <= size; i++) {
    const literal = literals[i === size ? 256 : bytes[i]!]!;
    bits |= (literal & 0xffffff) << count;
    count += literal >>> 24;
    sink.setInt32(to, bits, true);
    to += count >> 3;
    bits >>>= count & 24;
    count &= 7;
  }
  return count > 0 ? to + 1 : to;
}

/** A member that only wraps its bytes: for bodies that arrived compressed, where trying again gains nothing. */
export function gzipStored(parts: readonly Uint8Array[]): Buffer {
  const size = sizeOf(parts);
  const flat = Buffer.concat(parts, size);
  const blocks = Math.max(1, Math.ceil(size / STORED_BLOCK_MAX));
  const member = Buffer.allocUnsafe(GZIP_HEADER.length + 5 * blocks + size + 8);
  member.set(GZIP_HEADER, 0);
  let at = GZIP_HEADER.length;
  for (let block = 0; block < blocks; block++) {
    const piece = flat.subarray(block * STORED_BLOCK_MAX, (block + 1) * STORED_BLOCK_MAX);
    member.writeUInt8(block === blocks - 1 ? 1 : 0, at);
    member.writeUInt16LE(piece.length, at + 1);
    member.writeUInt16LE(~piece.length & 0xffff, at + 3);
    member.set(piece, at + 5);
    at += 5 + piece.length;
  }
  member.writeUInt32LE(crc32(flat), at);
  member.writeUInt32LE(size, at + 4);
  return member;
}

export function gzipWithZlib(parts: readonly Uint8Array[]): Buffer {
  return gzipSync(Buffer.concat(parts), { level: constants.Z_BEST_SPEED });
}
