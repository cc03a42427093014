import type { FailureCode } from '../core/failures.ts';
import { RecentMap } from '../core/lru.ts';

interface Reason {
  code: FailureCode;
  detail: string;
}

const REMEMBERED_MAX = 20_000;

/**
 * Hosts and origins that were given up among others that are counted together with them. Their tasks cannot be told
 * from the others in the store, so they are refused one by one when their turn comes, without a request. A new run
 * tries them again.
 */
export class GivenUp {
  readonly #places = new RecentMap<Reason>(REMEMBERED_MAX);
  #count = 0;

  /** `place` is a host, or an origin whose robots.txt is not to be had. */
  add(place: string, reason: Reason): void {
    this.#places.set(place, reason);
    this.#count++;
  }

  reasonFor(url: string): Reason | null {
    if (this.#count === 0) return null;
    const { origin, host } = new URL(url);
    return this.#places.get(host) ?? this.#places.get(origin) ?? null;
  }
}
