import { LruMap } from '../../core/lru.ts';

/** Paths whose requests are counted one by one; a crawler may be led to any number. */
const PATHS_MAX = 50_000;
/** Times remembered for each address and case: more than any answer looks at. */
const TIMES_MAX = 1_000;
const ADDRESSES_MAX = 10_000;

/** Who asked for what, and when. */
export class VisitLog {
  requests = 0;
  readonly #counts = new LruMap<number>(PATHS_MAX);
  readonly #times = new LruMap<number[]>(ADDRESSES_MAX);

  /** Returns how often the path was asked for, this time included. */
  visit(path: string, base: string, address: string): number {
    this.requests++;
    const count = this.countOf(path) + 1;
    this.#counts.set(path, count);
    const key = `${address} ${base}`;
    const times = this.#times.get(key) ?? [];
    times.push(performance.now());
    if (times.length > TIMES_MAX) times.shift();
    this.#times.set(key, times);
    return count;
  }

  countOf(path: string): number {
    return this.#counts.get(path) ?? 0;
  }

  recent(base: string, address: string, withinMs: number): number {
    const since = performance.now() - withinMs;
    return (this.#times.get(`${address} ${base}`) ?? []).filter((at) => at > since).length;
  }
}
