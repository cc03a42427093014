/** Throttled calls come in flocks; one within this time after another tells nothing new. */
const FLOCK_MS = 1_000;
/** How often the limit grows while nothing is throttled, and by which share of its most. */
const GROW_MS = 5_000;
const GROW_SHARE = 1 / 20;

/**
 * How many calls may be under way. Halved when one is refused, and raised again slowly: other callers may use the
 * same account.
 */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #now: () => number;
  readonly #waiting: { resolve(entered: boolean): void }[] = [];
  #limit: number;
  #under = 0;
  #changedAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(most: number, now: () => number = () => performance.now()) {
    this.#most = most;
    this.#limit = most;
    this.#now = now;
  }

  get limit(): number {
    if (this.#limit === this.#most) return this.#limit;
    const steps = Math.floor((this.#now() - this.#changedAt) / GROW_MS);
    if (steps > 0) {
      this.#limit = Math.min(
        this.#most,
        this.#limit + steps * Math.max(1, Math.floor(this.#most * GROW_SHARE)),
      );
      this.#changedAt += steps * GROW_MS;
    }
    return this.#limit;
  }

  get under(): number {
    return this.#under;
  }

  /** False when no place came free within the time. Who enters must leave. */
  async enter(withinMs: number): Promise<boolean> {
    if (this.#closed) return false;
    if (this.#under < this.limit && this.#waiting.length === 0) {
      this.#under++;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiting = { resolve };
    this.#waiting.push(waiting);
    const timer = setTimeout(
      () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        resolve(false);
      },
      Math.max(0, withinMs),
    );
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  leave(): void {
    this.#under--;
    this.#admit();
  }

  /** To be called before the refused one leaves: it counts. */
  onThrottled(): void {
    const { limit } = this;
    if (this.#now() - this.#changedAt < FLOCK_MS) return;
    this.#limit = Math.max(1, Math.floor(Math.min(limit, this.#under) / 2));
    this.#changedAt = this.#now();
  }

  /** No call starts any more. */
  close(): void {
    this.#closed = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve(false);
  }

  #admit(): void {
    while (this.#under < this.limit && this.#waiting.length > 0) {
      this.#under++;
      this.#waiting.shift()!.resolve(true);
    }
  }
}
