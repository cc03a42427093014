/**
 * MD5 of four bodies at once in AssemblyScript, compiled by scripts/build/build-native.ts and kept in
 * src/core/media/md5-code.ts; a test compiles it again and compares. Each step of MD5 waits for the one before, so that
 * one body leaves most of a core idle: four in the lanes of a vector take little longer than one.
 *
 * The caller owns the memory, see `LAYOUT` in md5.ts: the state of the four bodies, word by word, and whole blocks of
 * each of them.
 */
const STATE: usize = 0x0400;
const LANE: usize = 0x1000;
const LANE_BYTES: usize = 0x4000;

@inline
function rotate(x: v128, bits: i32): v128 {
  return v128.or(i32x4.shl(x, bits), i32x4.shr_u(x, 32 - bits));
}

@inline
function f(a: v128, b: v128, c: v128, d: v128, m: v128, k: i32, bits: i32): v128 {
  const sum = i32x4.add(i32x4.add(a, i32x4.add(m, i32x4.splat(k))), v128.bitselect(c, d, b));
  return i32x4.add(rotate(sum, bits), b);
}

@inline
function g(a: v128, b: v128, c: v128, d: v128, m: v128, k: i32, bits: i32): v128 {
  // The two parts have no bit in common, so that they can be added one after the other: what hangs on b comes last.
  const early = i32x4.add(i32x4.add(a, i32x4.add(m, i32x4.splat(k))), v128.andnot(c, d));
  return i32x4.add(rotate(i32x4.add(early, v128.and(b, d)), bits), b);
}

@inline
function h(a: v128, b: v128, c: v128, d: v128, m: v128, k: i32, bits: i32): v128 {
  const sum = i32x4.add(i32x4.add(a, i32x4.add(m, i32x4.splat(k))), v128.xor(v128.xor(c, d), b));
  return i32x4.add(rotate(sum, bits), b);
}

@inline
function i(a: v128, b: v128, c: v128, d: v128, m: v128, k: i32, bits: i32): v128 {
  const sum = i32x4.add(i32x4.add(a, i32x4.add(m, i32x4.splat(k))), v128.xor(c, v128.or(b, v128.not(d))));
  return i32x4.add(rotate(sum, bits), b);
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

/** Takes as many blocks of 64 bytes from each lane into its state. */
export function md5(blocks: i32): void {
  let a = v128.load(STATE);
  let b = v128.load(STATE, 16);
  let c = v128.load(STATE, 32);
  let d = v128.load(STATE, 48);
  for (let at: usize = LANE, end: usize = LANE + (<usize>blocks << 6); at < end; at += 64) {
    const p0 = v128.load(at);
    const q0 = v128.load(at + LANE_BYTES);
    const r0 = v128.load(at + 2 * LANE_BYTES);
    const s0 = v128.load(at + 3 * LANE_BYTES);
    const pr0 = zipLow(p0, r0);
    const qs0 = zipLow(q0, s0);
    const PR0 = zipHigh(p0, r0);
    const QS0 = zipHigh(q0, s0);
    const m0 = zipLow(pr0, qs0);
    const m1 = zipHigh(pr0, qs0);
    const m2 = zipLow(PR0, QS0);
    const m3 = zipHigh(PR0, QS0);
    const p1 = v128.load(at, 16);
    const q1 = v128.load(at + LANE_BYTES, 16);
    const r1 = v128.load(at + 2 * LANE_BYTES, 16);
    const s1 = v128.load(at + 3 * LANE_BYTES, 16);
    const pr1 = zipLow(p1, r1);
    const qs1 = zipLow(q1, s1);
    const PR1 = zipHigh(p1, r1);
    const QS1 = zipHigh(q1, s1);
    const m4 = zipLow(pr1, qs1);
    const m5 = zipHigh(pr1, qs1);
    const m6 = zipLow(PR1, QS1);
    const m7 = zipHigh(PR1, QS1);
    const p2 = v128.load(at, 32);
    const q2 = v128.load(at + LANE_BYTES, 32);
    const r2 = v128.load(at + 2 * LANE_BYTES, 32);
    const s2 = v128.load(at + 3 * LANE_BYTES, 32);
    const pr2 = zipLow(p2, r2);
    const qs2 = zipLow(q2, s2);
    const PR2 = zipHigh(p2, r2);
    const QS2 = zipHigh(q2, s2);
    const m8 = zipLow(pr2, qs2);
    const m9 = zipHigh(pr2, qs2);
    const m10 = zipLow(PR2, QS2);
    const m11 = zipHigh(PR2, QS2);
    const p3 = v128.load(at, 48);
    const q3 = v128.load(at + LANE_BYTES, 48);
    const r3 = v128.load(at + 2 * LANE_BYTES, 48);
    const s3 = v128.load(at + 3 * LANE_BYTES, 48);
    const pr3 = zipLow(p3, r3);
    const qs3 = zipLow(q3, s3);
    const PR3 = zipHigh(p3, r3);
    const QS3 = zipHigh(q3, s3);
    const m12 = zipLow(pr3, qs3);
    const m13 = zipHigh(pr3, qs3);
    const m14 = zipLow(PR3, QS3);
    const m15 = zipHigh(PR3, QS3);
    const a0 = a;
    const b0 = b;
    const c0 = c;
    const d0 = d;
    a = f(a, b, c, d, m0, 0xd76aa478, 7);
    d = f(d, a, b, c, m1, 0xe8c7b756, 12);
    c = f(c, d, a, b, m2, 0x242070db, 17);
    b = f(b, c, d, a, m3, 0xc1bdceee, 22);
    a = f(a, b, c, d, m4, 0xf57c0faf, 7);
    d = f(d, a, b, c, m5, 0x4787c62a, 12);
    c = f(c, d, a, b, m6, 0xa8304613, 17);
    b = f(b, c, d, a, m7, 0xfd469501, 22);
    a = f(a, b, c, d, m8, 0x698098d8, 7);
    d = f(d, a, b, c, m9, 0x8b44f7af, 12);
    c = f(c, d, a, b, m10, 0xffff5bb1, 17);
    b = f(b, c, d, a, m11, 0x895cd7be, 22);
    a = f(a, b, c, d, m12, 0x6b901122, 7);
    d = f(d, a, b, c, m13, 0xfd987193, 12);
    c = f(c, d, a, b, m14, 0xa679438e, 17);
    b = f(b, c, d, a, m15, 0x49b40821, 22);
    a = g(a, b, c, d, m1, 0xf61e2562, 5);
    d = g(d, a, b, c, m6, 0xc040b340, 9);
    c = g(c, d, a, b, m11, 0x265e5a51, 14);
    b = g(b, c, d, a, m0, 0xe9b6c7aa, 20);
    a = g(a, b, c, d, m5, 0xd62f105d, 5);
    d = g(d, a, b, c, m10, 0x02441453, 9);
    c = g(c, d, a, b, m15, 0xd8a1e681, 14);
    b = g(b, c, d, a, m4, 0xe7d3fbc8, 20);
    a = g(a, b, c, d, m9, 0x21e1cde6, 5);
    d = g(d, a, b, c, m14, 0xc33707d6, 9);
    c = g(c, d, a, b, m3, 0xf4d50d87, 14);
    b = g(b, c, d, a, m8, 0x455a14ed, 20);
    a = g(a, b, c, d, m13, 0xa9e3e905, 5);
    d = g(d, a, b, c, m2, 0xfcefa3f8, 9);
    c = g(c, d, a, b, m7, 0x676f02d9, 14);
    b = g(b, c, d, a, m12, 0x8d2a4c8a, 20);
    a = h(a, b, c, d, m5, 0xfffa3942, 4);
    d = h(d, a, b, c, m8, 0x8771f681, 11);
    c = h(c, d, a, b, m11, 0x6d9d6122, 16);
    b = h(b, c, d, a, m14, 0xfde5380c, 23);
    a = h(a, b, c, d, m1, 0xa4beea44, 4);
    d = h(d, a, b, c, m4, 0x4bdecfa9, 11);
    c = h(c, d, a, b, m7, 0xf6bb4b60, 16);
    b = h(b, c, d, a, m10, 0xbebfbc70, 23);
    a = h(a, b, c, d, m13, 0x289b7ec6, 4);
    d = h(d, a, b, c, m0, 0xeaa127fa, 11);
    c = h(c, d, a, b, m3, 0xd4ef3085, 16);
    b = h(b, c, d, a, m6, 0x04881d05, 23);
    a = h(a, b, c, d, m9, 0xd9d4d039, 4);
    d = h(d, a, b, c, m12, 0xe6db99e5, 11);
    c = h(c, d, a, b, m15, 0x1fa27cf8, 16);
    b = h(b, c, d, a, m2, 0xc4ac5665, 23);
    a = i(a, b, c, d, m0, 0xf4292244, 6);
    d = i(d, a, b, c, m7, 0x432aff97, 10);
    c = i(c, d, a, b, m14, 0xab9423a7, 15);
    b = i(b, c, d, a, m5, 0xfc93a039, 21);
    a = i(a, b, c, d, m12, 0x655b59c3, 6);
    d = i(d, a, b, c, m3, 0x8f0ccc92, 10);
    c = i(c, d, a, b, m10, 0xffeff47d, 15);
    b = i(b, c, d, a, m1, 0x85845dd1, 21);
    a = i(a, b, c, d, m8, 0x6fa87e4f, 6);
    d = i(d, a, b, c, m15, 0xfe2ce6e0, 10);
    c = i(c, d, a, b, m6, 0xa3014314, 15);
    b = i(b, c, d, a, m13, 0x4e0811a1, 21);
    a = i(a, b, c, d, m4, 0xf7537e82, 6);
    d = i(d, a, b, c, m11, 0xbd3af235, 10);
    c = i(c, d, a, b, m2, 0x2ad7d2bb, 15);
    b = i(b, c, d, a, m9, 0xeb86d391, 21);
    a = i32x4.add(a, a0);
    b = i32x4.add(b, b0);
    c = i32x4.add(c, c0);
    d = i32x4.add(d, d0);
  }
  v128.store(STATE, a);
  v128.store(STATE, b, 16);
  v128.store(STATE, c, 32);
  v128.store(STATE, d, 48);
}
