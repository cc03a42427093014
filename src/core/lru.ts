/**
 * Memory of bounded size. They differ in what is forgotten when full:
 * - `LruMap` and `RecentSet`: the half that was not used, or was added, the longest ago. For many entries: no bookkeeping
 *   for each.
 * - `BoundedMap` and `BoundedSet`: the one entry that was written the longest ago. For few entries, or where each one
 *   forgotten must be known. Finding the oldest takes some 10 µs in a map of 10,000.
 */

/** A map of bounded size: what was not asked for is forgotten, the oldest half at a time. */
export class LruMap<V> {
  readonly #max: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  constructor(max: number) {
    this.#max = Math.ceil(max / 2);
  }

  get(key: string): V | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  getOr(key: string, make: () => V): V {
    const known = this.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.set(key, made);
    return made;
  }

  set(key: string, value: V): void {
    if (this.#young.size >= this.#max && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }
}

/**
 * A set of strings of bounded size that forgets the oldest half at a time: the prefilter in
 * front of the exact index. "Yes" is exact; "no" only means "ask the index".
 */
export class RecentSet {
  readonly #max: number;
  #young = new Set<string>();
  #old = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(text: string): boolean {
    return this.#young.has(text) || this.#old.has(text);
  }

  add(text: string): void {
    if (this.#young.size >= this.#max) {
      this.#old = this.#young;
      this.#young = new Set();
    }
    this.#young.add(unsliced(text));
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }
}

/**
 * A map that forgets the entry written the longest ago when a new key finds it full. Writing a key again makes it the
 * newest, so a reader that writes back what it used makes this a strict LRU.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number;
  readonly #onForget: ((value: V) => void) | null;

  constructor(max: number, onForget: ((value: V) => void) | null = null) {
    super();
    this.#max = max;
    this.#onForget = onForget;
  }

  override set(key: K, value: V): this {
    if (!this.delete(key) && this.size >= this.#max) this.#forgetOldest();
    return super.set(key, value);
  }

  #forgetOldest(): void {
    for (const [key, value] of this) {
      this.delete(key);
      this.#onForget?.(value);
      return;
    }
  }
}

/** A set that forgets the member added the longest ago when a new one finds it full. Adding it again makes it the newest. */
export class BoundedSet<T> extends Set<T> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override add(value: T): this {
    if (!this.delete(value) && this.size >= this.#max) this.delete(this.values().next().value as T);
    return super.add(value);
  }
}

/**
 * V8 keeps the whole page alive behind a substring of it. Going through bytes makes a string
 * of its own: without this, 100,000 links of 24 KB pages would hold 2.4 GB.
 */
export function unsliced(text: string): string {
  const copy = Buffer.from(text, 'utf8').toString('utf8');
  // A lone surrogate has no UTF-8 form.
  return copy === text ? copy : Buffer.from(text, 'utf16le').toString('utf16le');
}
