/** 512 bits, one line of the processor's cache: a key looks at one block of each level. */
const BLOCK_WORDS = 16;
/** About 1 % of unknown keys pass a full level. */
const BITS_PER_KEY = 12;
const FIRST_CAPACITY = 1_048_576;
/** A level is written whole after each load of the index: 13 MB, which takes 20 ms. */
const CAPACITY_MAX = 8 * FIRST_CAPACITY;
/** Few levels, as each costs a look: 40.9 million keys in 61 MB. */
const LEVELS_MAX = 7;

export interface FilterLevel {
  capacity: number;
  count: number;
  bits: Uint32Array;
}

/**
 * A Bloom filter over the keys of the dedupe index. "No" is exact and spares a look into the index, which for most
 * new URLs would read another page of it. It grows by levels, each twice as large as the one before, up to a size.
 */
export class SeenFilter {
  readonly #levels: FilterLevel[];

  constructor(levels: FilterLevel[] = []) {
    this.#levels = levels;
  }

  mayHave(key: number): boolean {
    const [first, second] = [hashOnce(key), hashAgain(key)];
    for (const { bits } of this.#levels) if (hasBits(bits, first, second)) return true;
    return false;
  }

  /** The levels that changed, or null when so many keys are not worth their memory. */
  addAll(keys: Float64Array): FilterLevel[] | null {
    const changed = new Set<FilterLevel>();
    for (const key of keys) {
      const level = this.#openLevel();
      if (!level) return null;
      setBits(level.bits, hashOnce(key), hashAgain(key));
      level.count++;
      changed.add(level);
    }
    return [...changed];
  }

  #openLevel(): FilterLevel | null {
    const last = this.#levels.at(-1);
    if (last && last.count < last.capacity) return last;
    if (this.#levels.length >= LEVELS_MAX) return null;
    const capacity = capacityOf(this.#levels.length);
    const blocks = Math.ceil((capacity * BITS_PER_KEY) / 32 / BLOCK_WORDS);
    const level = { capacity, count: 0, bits: new Uint32Array(blocks * BLOCK_WORDS) };
    this.#levels.push(level);
    return level;
  }
}

/** No two are equal: levels are kept by their capacity. */
function capacityOf(level: number): number {
  const doubled = FIRST_CAPACITY * 2 ** level;
  return doubled <= CAPACITY_MAX ? doubled : CAPACITY_MAX + level;
}

/** Five bits of a block: which block and one and a half of them come from the first hash, the rest from the second. */
function hasBits(bits: Uint32Array, first: number, second: number): boolean {
  const block = blockOf(bits, first);
  const found =
    (bits[block + (second & 15)]! >>> ((second >>> 4) & 31)) &
    (bits[block + ((second >>> 9) & 15)]! >>> ((second >>> 13) & 31)) &
    (bits[block + ((second >>> 18) & 15)]! >>> ((second >>> 22) & 31)) &
    (bits[block + ((second >>> 27) & 15)]! >>> (first & 31)) &
    (bits[block + ((first >>> 5) & 15)]! >>> ((first >>> 9) & 31));
  return (found & 1) === 1;
}

function setBits(bits: Uint32Array, first: number, second: number): void {
  const block = blockOf(bits, first);
  bits[block + (second & 15)]! |= 1 << ((second >>> 4) & 31);
  bits[block + ((second >>> 9) & 15)]! |= 1 << ((second >>> 13) & 31);
  bits[block + ((second >>> 18) & 15)]! |= 1 << ((second >>> 22) & 31);
  bits[block + ((second >>> 27) & 15)]! |= 1 << (first & 31);
  bits[block + ((first >>> 5) & 15)]! |= 1 << ((first >>> 9) & 31);
}

function blockOf(bits: Uint32Array, hash: number): number {
  return Math.floor((hash / 0x1_0000_0000) * (bits.length / BLOCK_WORDS)) * BLOCK_WORDS;
}

function hashOnce(key: number): number {
  return scramble(key ^ Math.imul(Math.floor(key / 0x1_0000_0000), 0x9e3779b1), 0x85ebca6b, 0xc2b2ae35);
}

function hashAgain(key: number): number {
  return scramble(key ^ Math.imul(Math.floor(key / 0x1_0000_0000), 0x27d4eb2f), 0x165667b1, 0x9e3779b1);
}

function scramble(value: number, one: number, other: number): number {
  let hash = Math.imul(value ^ (value >>> 16), one);
  hash = Math.imul(hash ^ (hash >>> 13), other);
  return (hash ^ (hash >>> 16)) >>> 0;
}
