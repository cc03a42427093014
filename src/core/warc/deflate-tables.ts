/**
 * The one Huffman code that the gzip encoder writes with, and the lookup tables made from it.
 *
 * A code fitted to each page would need a second pass and a new tree for every page. HTML is alike
 * enough that one code, fitted once to documentation and shop pages with their WARC headers, costs
 * 3 to 5 % in size instead. It is written into every member, so any gunzip reads it.
 */

/** Bits of each literal byte, of end-of-block (256) and of each length symbol, as hex digits. */
const LITERAL_BITS = [
  'cccccccccc8ccccccccccccccccccccc', // control characters
  '4c7ccccccccc866766666667777c887c', // space to ?
  'c9c8ccccc9cc99cccc998ccccccccccc', // @ to _
  'c576657775b867667c656688879ccccc', // ` to DEL
  'c'.repeat(128), // bytes of UTF-8 sequences: rare in the text this code is for, see `fitsCode`
  'cc3455677788988b8878c9c8cccccc',
].join('');
const DISTANCE_BITS = 'b8ba98776656554544444444444568';
/** Bits of the symbols that the two lists above are themselves written with. */
const BIT_LENGTH_BITS = '0007633334753000200';
/** RFC 1951, 3.2.7: the order in which those are written. */
const BIT_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** No literal is longer, so a record never grows beyond one and a half times its size. */
export const LITERAL_BITS_MAX = 12;
const MATCH_BYTES_MAX = 258;

function digits(text: string): number[] {
  return Array.from(text, (digit) => Number.parseInt(digit, 16));
}

/** Canonical codes (RFC 1951, 3.2.2), bits reversed because deflate writes codes from the top bit. */
function codesOf(lengths: number[]): number[] {
  const codes = new Array<number>(lengths.length).fill(0);
  let code = 0;
  for (let bits = 1; bits <= 15; bits++) {
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] === bits) codes[symbol] = reversed(code++, bits);
    }
    code <<= 1;
  }
  return codes;
}

function reversed(code: number, bits: number): number {
  let out = 0;
  for (let i = 0; i < bits; i++) out |= ((code >> i) & 1) << (bits - 1 - i);
  return out;
}

/** Extra bits of each length symbol and each distance symbol, RFC 1951, 3.2.5. */
const LENGTH_EXTRA = digits('00000000111122223333444455550');
const DISTANCE_EXTRA = [0, 0, ...digits('00112233445566778899aabbccdd')];

function basesOf(first: number, extra: number[]): number[] {
  let base = first;
  return extra.map((bits) => {
    const own = base;
    base += 1 << bits;
    return own;
  });
}

const literalLengths = digits(LITERAL_BITS);
const literalCodes = codesOf(literalLengths);
const distanceLengths = digits(DISTANCE_BITS);
const distanceCodes = codesOf(distanceLengths);

/** By byte, and end-of-block at 256: code in the low 24 bits, its bits above. */
export const LITERALS = Int32Array.from({ length: 257 }, (_, symbol) =>
  pack(literalCodes[symbol]!, literalLengths[symbol]!),
);

function pack(code: number, bits: number): number {
  return code | (bits << 24);
}

/** By match length: code and extra bits together, 17 bits at most, packed like `LITERALS`. */
export const LENGTHS = lengthTable();

function lengthTable(): Int32Array {
  const table = new Int32Array(MATCH_BYTES_MAX + 1);
  const bases = basesOf(3, LENGTH_EXTRA);
  // The last symbol stands for 258 alone, which the one before it would otherwise reach as well.
  bases[28] = MATCH_BYTES_MAX;
  for (let symbol = 0; symbol < 29; symbol++) {
    const bits = literalLengths[257 + symbol]!;
    const extra = LENGTH_EXTRA[symbol]!;
    for (let i = 0; i < 1 << extra; i++) {
      const packed = pack(literalCodes[257 + symbol]! | (i << bits), bits + extra);
      if (bases[symbol]! + i <= MATCH_BYTES_MAX) table[bases[symbol]! + i] = packed;
    }
  }
  return table;
}

const distanceBases = basesOf(1, DISTANCE_EXTRA);

/** Smallest distance of each distance symbol. */
export const DISTANCE_BASES = Int32Array.from(distanceBases);

/** By distance symbol: code in 16 bits, its bits in 8, with the extra bits in the top 8; 24 bits at most. */
export const DISTANCES = Int32Array.from(
  distanceCodes,
  (code, symbol) =>
    code | (distanceLengths[symbol]! << 16) | ((distanceLengths[symbol]! + DISTANCE_EXTRA[symbol]!) << 24),
);

/** Symbol of `distance - 1`: at that index below 256, else at 256 plus its high bits. */
export const DISTANCE_SYMBOLS = distanceSymbols();

function distanceSymbols(): Uint8Array {
  const table = new Uint8Array(512);
  for (let symbol = 0; symbol < 30; symbol++) {
    const from = distanceBases[symbol]! - 1;
    for (let i = from; i < from + (1 << DISTANCE_EXTRA[symbol]!); i++)
      table[i < 256 ? i : 256 + (i >> 7)] = symbol;
  }
  return table;
}

/** What every member begins with: whole bytes, then the bits of a byte not yet full. */
interface MemberStart {
  bytes: Uint8Array;
  pending: number;
  pendingBits: number;
}

/** No flags, no time, unknown system: the same bytes give the same member. */
export const GZIP_HEADER = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
export const CODED_START = codedStart();

/** The gzip header, then the header of a single dynamic block with the code above. */
function codedStart(): MemberStart {
  const bytes = [...GZIP_HEADER];
  let pending = 0;
  let pendingBits = 0;
  const put = (value: number, bits: number) => {
    pending |= value << pendingBits;
    pendingBits += bits;
    for (; pendingBits >= 8; pendingBits -= 8, pending >>>= 8) bytes.push(pending & 0xff);
  };
  const lengths = digits(BIT_LENGTH_BITS);
  const codes = codesOf(lengths);
  const all = [...literalLengths, ...distanceLengths];
  put(1, 1); // the last block
  put(2, 2); // with its own code
  put(literalLengths.length - 257, 5);
  put(distanceLengths.length - 1, 5);
  put(lengths.length - 4, 4);
  for (const symbol of BIT_LENGTH_ORDER) put(lengths[symbol]!, 3);
  for (let i = 0; i < all.length; ) {
    const length = all[i]!;
    put(codes[length]!, lengths[length]!);
    for (i++; ; ) {
      let run = 0;
      while (run < 6 && all[i + run] === length) run++;
      if (run < 3) break;
      put(codes[16]!, lengths[16]!);
      put(run - 3, 2);
      i += run;
    }
  }
  return { bytes: Uint8Array.from(bytes), pending, pendingBits };
}
