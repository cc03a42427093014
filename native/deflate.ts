/**
 * The hot loop of src/core/warc/gzip.ts in AssemblyScript, compiled to 749 bytes of WebAssembly by
 * scripts/build/build-native.ts and kept in src/core/warc/deflate-code.ts; a test compiles it again and compares.
 * The same loop in JavaScript takes 121 µs for a page of 24 KB, this 78: no bounds are checked, and
 * 64 bits gather before they are stored.
 *
 * The caller owns the memory: tables and record are there before the call, see `LAYOUT` in gzip.ts.
 */
const LITERALS: usize = 0x0400;
const LENGTHS: usize = 0x0c00;
const DISTANCES: usize = 0x1100;
const DISTANCE_BASES: usize = 0x1200;
const DISTANCE_SYMBOLS: usize = 0x1300;
const RECENT: usize = 0x2000;
const SOURCE: usize = 0x14000;
const OUT: usize = 0xa0000;

const WINDOW: i32 = 32768;
const MATCH_MIN: i32 = 4;
const MATCH_MAX: i32 = 258;
/** Reads of eight bytes may reach past the end of the record, never past the memory. */
const SLACK: i32 = 8;

@inline
function slotOf(word: i32): usize {
  return RECENT + (<usize>(<u32>(word * 0x9e3779b1) >>> 18) << 2);
}

/** A greedy LZ77 parse with one lookup per position. Returns where the coded bytes end. */
export function deflate(size: i32, base: i32, start: i32, pending: i32, pendingBits: i32): i32 {
  let to: usize = OUT + <usize>start;
  let bits: u64 = pending;
  let count: u64 = pendingBits;
  let i: i32 = 0;
  const last = size - SLACK;
  while (i < last) {
    const at: usize = SOURCE + <usize>i;
    const word = load<i32>(at);
    const slot = slotOf(word);
    const from = load<i32>(slot) - base;
    store<i32>(slot, i + base);
    if (i - from > WINDOW || load<i32>(SOURCE + <usize>from) != word) {
      const literal = load<u32>(LITERALS + (<usize>load<u8>(at) << 2));
      bits |= (<u64>(literal & 0xffffff)) << count;
      count += literal >>> 24;
      store<u64>(to, bits);
      to += <usize>(count >> 3);
      bits >>= count & 56;
      count &= 7;
      i++;
      continue;
    }
    const most = min(size - i, MATCH_MAX);
    let match = MATCH_MIN;
    while (match < most) {
      const differ = load<u64>(at + <usize>match) ^ load<u64>(SOURCE + <usize>(from + match));
      if (differ != 0) {
        match += <i32>(ctz(differ) >> 3);
        break;
      }
      match += 8;
    }
    if (match > most) match = most;
    const length = load<u32>(LENGTHS + (<usize>match << 2));
    bits |= (<u64>(length & 0xffffff)) << count;
    count += length >>> 24;
    const behind = i - from - 1;
    const symbol = <usize>load<u8>(DISTANCE_SYMBOLS + <usize>(behind < 256 ? behind : 256 + (behind >> 7)));
    const code = load<u32>(DISTANCES + (symbol << 2));
    const rest = behind + 1 - load<i32>(DISTANCE_BASES + (symbol << 2));
    bits |= (<u64>((code & 0xffff) | (rest << ((code >>> 16) & 0xff)))) << count;
    count += code >>> 24;
    store<u64>(to, bits);
    to += <usize>(count >> 3);
    bits >>= count & 56;
    count &= 7;
    // Two places inside a match are enough to remember: fewer cost size, all of them time.
    const tail = i + match - 2;
    if (tail < last) {
      store<i32>(slotOf(load<i32>(at + 1)), i + 1 + base);
      store<i32>(slotOf(load<i32>(SOURCE + <usize>tail)), tail + base);
    }
    i += match;
  }
  for (; i <= size; i++) {
    const symbol: usize = i == size ? 256 : <usize>load<u8>(SOURCE + <usize>i);
    const literal = load<u32>(LITERALS + (symbol << 2));
    bits |= (<u64>(literal & 0xffffff)) << count;
    count += literal >>> 24;
    store<u64>(to, bits);
    to += <usize>(count >> 3);
    bits >>= count & 56;
    count &= 7;
  }
  return <i32>(to - OUT) + (count > 0 ? 1 : 0);
}
