import { LIMITS } from '../../core/limits.ts';
import { LruMap } from '../../core/lru.ts';

/** Origins whose links a worker remembers. */
export const ORIGINS_REMEMBERED_MAX = 10_000;

/** Slots of a new table, a power of two: most jobs of a server see few links, and each worker has a table for each. */
const SLOTS_FIRST = 1_024;

/** How full a table may be before it gets four times as many slots. */
const FULL_SHARE = 0.4;

/** Of each slot: where its text begins, its length, its hash, its origin. Side by side, for one look at memory. */
const STRIDE = 4;

/** Room for the texts of a new table. */
const BYTES_FIRST = 4_096;

/**
 * Open addressing over texts: looks at the bytes of a page in place, so a hit allocates nothing. That is why LinkMemory
 * keeps its two generations by itself: a RecentSet would need a string for each link of a page. The texts stand one after
 * the other, because each further place in memory is a wait: with 20,000 of them as strings, the links of a page took
 * 29 µs, and 26 this way. Bytes and not characters, because V8 asks for the kind of a string at each of its characters.
 */
class LinkTable {
  #slots = new Int32Array(SLOTS_FIRST * STRIDE);
  /** Number of slots - 1, which is what keeps a hash inside. */
  #mask = SLOTS_FIRST - 1;
  #texts = new Uint8Array(BYTES_FIRST);
  /** The first byte is left out: a slot whose text would begin there is free. */
  #textsEnd = 1;
  size = 0;

  has(hash: number, origin: number, page: Uint8Array, start: number, end: number): boolean {
    const slots = this.#slots;
    const mask = this.#mask;
    const length = end - start;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const at = slot * STRIDE;
      const place = slots[at]!;
      if (place === 0) return false;
      if (slots[at + 2] !== hash || slots[at + 1] !== length || slots[at + 3] !== origin) continue;
      if (this.#stands(place, page, start, length)) return true;
    }
  }

  /** Whether the text at `place` stands in the page. */
  #stands(place: number, page: Uint8Array, start: number, length: number): boolean {
    const texts = this.#texts;
    for (let index = 0; index < length; index++)
      if (texts[place + index] !== page[start + index]) return false;
    return true;
  }

  add(hash: number, origin: number, page: Uint8Array, start: number, end: number): void {
    if (this.size >= (this.#mask + 1) * FULL_SHARE) this.#grow();
    const length = end - start;
    const place = this.#textsEnd;
    if (place + length > this.#texts.length) this.#growTexts(place + length);
    for (let index = 0; index < length; index++) this.#texts[place + index] = page[start + index]!;
    this.#textsEnd += length;
    this.size++;
    const at = this.#freeSlot(hash);
    this.#slots[at] = place;
    this.#slots[at + 1] = length;
    this.#slots[at + 2] = hash;
    this.#slots[at + 3] = origin;
  }

  #freeSlot(hash: number): number {
    let slot = hash & this.#mask;
    while (this.#slots[slot * STRIDE] !== 0) slot = (slot + 1) & this.#mask;
    return slot * STRIDE;
  }

  #grow(): void {
    const before = this.#slots;
    this.#slots = new Int32Array(before.length * 4);
    this.#mask = this.#slots.length / STRIDE - 1;
    for (let at = 0; at < before.length; at += STRIDE)
      if (before[at] !== 0)
        this.#slots.set(before.subarray(at, at + STRIDE), this.#freeSlot(before[at + 2]!));
  }

  #growTexts(needed: number): void {
    const before = this.#texts;
    this.#texts = new Uint8Array(Math.max(needed, before.length * 2));
    this.#texts.set(before);
  }
}

function hashOf(page: Uint8Array, start: number, end: number, seed: number): number {
  let hash = seed;
  let at = start;
  for (; at + 3 < end; at += 4) {
    const four = page[at]! | (page[at + 1]! << 8) | (page[at + 2]! << 16) | (page[at + 3]! << 24);
    hash = Math.imul(hash ^ four, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; at < end; at++) hash = Math.imul(hash ^ page[at]!, 0x9e3779b1);
  return hash ^ (hash >>> 13);
}

/** The part of a memory that belongs to pages of one origin. */
export interface OriginLinks {
  /** Whether the attribute text at this place was remembered. Pages are in UTF-8. */
  knows(page: Uint8Array, start: number, end: number): boolean;
  remember(page: Uint8Array, start: number, end: number): void;
}

/**
 * Links that this worker has reported in this epoch, as they stand in pages, by origin.
 * Most links of a site repeat on every page: one look here, 0.1 µs, replaces parsing and checking a URL.
 * Exact in what it knows, bounded in size: the older half is forgotten at a time.
 */
export class LinkMemory {
  readonly epoch: string;
  /** An epoch is a random name, so a site cannot prepare collisions. */
  readonly #seed: number;
  #young = new LinkTable();
  #old: LinkTable | null = null;
  readonly #origins = new LruMap<number>(ORIGINS_REMEMBERED_MAX);

  constructor(epoch = '') {
    this.epoch = epoch;
    const bytes = Buffer.from(epoch);
    this.#seed = hashOf(bytes, 0, bytes.length, 0);
  }

  of(origin: string): OriginLinks {
    const id = this.#idOf(origin);
    const seed = this.#seed ^ id;
    return {
      knows: (page, start, end) => {
        const hash = hashOf(page, start, end, seed);
        return (
          this.#young.has(hash, id, page, start, end) || this.#old?.has(hash, id, page, start, end) === true
        );
      },
      remember: (page, start, end) => {
        if (this.#young.size >= LIMITS.recentUrlsMax) {
          this.#old = this.#young;
          this.#young = new LinkTable();
        }
        this.#young.add(hashOf(page, start, end, seed), id, page, start, end);
      },
    };
  }

  /** Ids are never given twice, so a forgotten origin cannot inherit another's links. */
  #idOf(origin: string): number {
    let id = this.#origins.get(origin);
    if (id === undefined) {
      id = ++this.#lastId;
      this.#origins.set(origin, id);
    }
    return id;
  }

  #lastId = 0;
}
