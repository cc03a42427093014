import { LIMITS } from '../core/limits.ts';
import { unsliced } from '../core/recent.ts';

/**
 * Links that this worker has reported in this epoch, as they stand in pages, by origin.
 * Most links of a site repeat on every page: one look here replaces parsing and checking a URL.
 */
export class LinkMemory {
  readonly epoch: string;
  #young = new Map<string, Set<string>>();
  #old = new Map<string, Set<string>>();
  #size = 0;

  constructor(epoch = '') {
    this.epoch = epoch;
  }

  /** What is remembered for pages of one origin. */
  of(origin: string): { has(raw: string): boolean; add(raw: string): void } {
    const old = this.#old.get(origin);
    return {
      has: (raw) => this.#young.get(origin)?.has(raw) === true || old?.has(raw) === true,
      add: (raw) => this.#add(origin, raw),
    };
  }

  #add(origin: string, raw: string): void {
    if (this.#size >= LIMITS.recentUrlsMax) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#size = 0;
    }
    let set = this.#young.get(origin);
    if (!set) {
      set = new Set();
      this.#young.set(origin, set);
    }
    set.add(unsliced(raw));
    this.#size++;
  }
}
