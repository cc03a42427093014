/**
 * MD5 of up to sixteen bodies at once in AssemblyScript, compiled by scripts/build/build-native.ts and kept in
 * src/core/media/md5-code.ts; a test compiles it again and compares.
 *
 * Each step of MD5 waits for the one before, so that one body leaves most of a core idle. Four bodies are in the lanes of a
 * vector, and up to four vectors take turns of four steps: few enough that a core sees the steps of all vectors at once, and
 * computes them beside each other. Sixteen bodies take 1.2 times as long as four.
 *
 * The caller owns the memory, see `LAYOUT` in md5.ts: the state of the bodies, and whole blocks of each of them.
 */

/** What is added in each step. */
const CONSTANTS = memory.data<u32>([
  0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
  0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
  0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
  0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
  0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
  0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
  0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
  0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
]);

/** Which word of the block each step takes. */
const WORD_OF_STEP = memory.data<u8>([
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
  1, 6, 11, 0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12,
  5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2,
  0, 7, 14, 5, 12, 3, 10, 1, 8, 15, 6, 13, 4, 11, 2, 9,
]);

/** Each vector: the state of its four bodies, word by word; the same while a block is under way; the words of the block. */
const VECTORS: usize = 0x0400;
const VECTOR_BYTES: usize = 0x0200;
const A: usize = 0x40;
const B: usize = 0x50;
const C: usize = 0x60;
const D: usize = 0x70;
const WORDS: usize = 0x80;

const LANES: usize = 0x20000;
const LANE_BYTES: usize = 0x1000;

@inline
function word(vector: usize, step: usize): v128 {
  return v128.load(vector + (<usize>load<u8>(WORD_OF_STEP + step) << 4), WORDS);
}

/** The rest of every step, once its function of b, c and d is part of the sum. */
@inline
function turn(sum: v128, b: v128, bits: i32): v128 {
  return i32x4.add(v128.or(i32x4.shl(sum, bits), i32x4.shr_u(sum, 32 - bits)), b);
}

/** What does not wait for the step before. */
@inline
function early(a: v128, vector: usize, step: usize): v128 {
  return i32x4.add(a, i32x4.add(word(vector, step), v128.load32_splat(CONSTANTS + (step << 2))));
}

@inline
function f(a: v128, b: v128, c: v128, d: v128, vector: usize, step: usize, bits: i32): v128 {
  return turn(i32x4.add(early(a, vector, step), v128.xor(d, v128.and(b, v128.xor(c, d)))), b, bits);
}

@inline
function g(a: v128, b: v128, c: v128, d: v128, vector: usize, step: usize, bits: i32): v128 {
  // The two parts have no bit in common, so that they can be added one after the other: what hangs on b comes last.
  const sum = i32x4.add(early(a, vector, step), v128.andnot(c, d));
  return turn(i32x4.add(sum, v128.and(b, d)), b, bits);
}

@inline
function h(a: v128, b: v128, c: v128, d: v128, vector: usize, step: usize, bits: i32): v128 {
  return turn(i32x4.add(early(a, vector, step), v128.xor(v128.xor(c, d), b)), b, bits);
}

@inline
function i(a: v128, b: v128, c: v128, d: v128, vector: usize, step: usize, bits: i32): v128 {
  return turn(i32x4.add(early(a, vector, step), v128.xor(c, v128.or(b, v128.not(d)))), b, bits);
}

function fourF(vector: usize, step: usize): void {
  let a = v128.load(vector, A);
  let b = v128.load(vector, B);
  let c = v128.load(vector, C);
  let d = v128.load(vector, D);
  a = f(a, b, c, d, vector, step, 7);
  d = f(d, a, b, c, vector, step + 1, 12);
  c = f(c, d, a, b, vector, step + 2, 17);
  b = f(b, c, d, a, vector, step + 3, 22);
  store(vector, a, b, c, d);
}

function fourG(vector: usize, step: usize): void {
  let a = v128.load(vector, A);
  let b = v128.load(vector, B);
  let c = v128.load(vector, C);
  let d = v128.load(vector, D);
  a = g(a, b, c, d, vector, step, 5);
  d = g(d, a, b, c, vector, step + 1, 9);
  c = g(c, d, a, b, vector, step + 2, 14);
  b = g(b, c, d, a, vector, step + 3, 20);
  store(vector, a, b, c, d);
}

function fourH(vector: usize, step: usize): void {
  let a = v128.load(vector, A);
  let b = v128.load(vector, B);
  let c = v128.load(vector, C);
  let d = v128.load(vector, D);
  a = h(a, b, c, d, vector, step, 4);
  d = h(d, a, b, c, vector, step + 1, 11);
  c = h(c, d, a, b, vector, step + 2, 16);
  b = h(b, c, d, a, vector, step + 3, 23);
  store(vector, a, b, c, d);
}

function fourI(vector: usize, step: usize): void {
  let a = v128.load(vector, A);
  let b = v128.load(vector, B);
  let c = v128.load(vector, C);
  let d = v128.load(vector, D);
  a = i(a, b, c, d, vector, step, 6);
  d = i(d, a, b, c, vector, step + 1, 10);
  c = i(c, d, a, b, vector, step + 2, 15);
  b = i(b, c, d, a, vector, step + 3, 21);
  store(vector, a, b, c, d);
}

@inline
function store(vector: usize, a: v128, b: v128, c: v128, d: v128): void {
  v128.store(vector, a, A);
  v128.store(vector, b, B);
  v128.store(vector, c, C);
  v128.store(vector, d, D);
}

/** The first halves of two vectors, word by word in turns. */
@inline
function zipLow(one: v128, other: v128): v128 {
  return v128.shuffle<i32>(one, other, 0, 4, 1, 5);
}

@inline
function zipHigh(one: v128, other: v128): v128 {
  return v128.shuffle<i32>(one, other, 2, 6, 3, 7);
}

/** Takes four words of a block from each of four lanes, and puts those with the same number beside each other. */
@inline
function gather(vector: usize, block: usize, quarter: usize): void {
  const from = block + (quarter << 4);
  const p = v128.load(from);
  const q = v128.load(from + LANE_BYTES);
  const r = v128.load(from + 2 * LANE_BYTES);
  const s = v128.load(from + 3 * LANE_BYTES);
  const prLow = zipLow(p, r);
  const qsLow = zipLow(q, s);
  const prHigh = zipHigh(p, r);
  const qsHigh = zipHigh(q, s);
  const to = vector + WORDS + (quarter << 6);
  v128.store(to, zipLow(prLow, qsLow));
  v128.store(to, zipHigh(prLow, qsLow), 16);
  v128.store(to, zipLow(prHigh, qsHigh), 32);
  v128.store(to, zipHigh(prHigh, qsHigh), 48);
}

function begin(vector: usize, block: usize): void {
  gather(vector, block, 0);
  gather(vector, block, 1);
  gather(vector, block, 2);
  gather(vector, block, 3);
  store(vector, v128.load(vector), v128.load(vector, 16), v128.load(vector, 32), v128.load(vector, 48));
}

function end(vector: usize): void {
  v128.store(vector, i32x4.add(v128.load(vector), v128.load(vector, A)));
  v128.store(vector, i32x4.add(v128.load(vector, 16), v128.load(vector, B)), 16);
  v128.store(vector, i32x4.add(v128.load(vector, 32), v128.load(vector, C)), 32);
  v128.store(vector, i32x4.add(v128.load(vector, 48), v128.load(vector, D)), 48);
}

/** Takes as many blocks of 64 bytes from each lane of the first vectors into its state. */
export function md5(blocks: i32, vectors: i32): void {
  const last = VECTORS + <usize>vectors * VECTOR_BYTES;
  for (let at: usize = LANES, stop = LANES + (<usize>blocks << 6); at < stop; at += 64) {
    let block = at;
    for (let vector = VECTORS; vector < last; vector += VECTOR_BYTES) {
      begin(vector, block);
      block += 4 * LANE_BYTES;
    }
    for (let step: usize = 0; step < 16; step += 4)
      for (let vector = VECTORS; vector < last; vector += VECTOR_BYTES) fourF(vector, step);
    for (let step: usize = 16; step < 32; step += 4)
      for (let vector = VECTORS; vector < last; vector += VECTOR_BYTES) fourG(vector, step);
    for (let step: usize = 32; step < 48; step += 4)
      for (let vector = VECTORS; vector < last; vector += VECTOR_BYTES) fourH(vector, step);
    for (let step: usize = 48; step < 64; step += 4)
      for (let vector = VECTORS; vector < last; vector += VECTOR_BYTES) fourI(vector, step);
    for (let vector = VECTORS; vector < last; vector += VECTOR_BYTES) end(vector);
  }
}
