/** While every thread has a batch, another is looked for after so long for each batch that they have. */
const BUSY_MS = 5;
const BUSY_MS_MAX = 100;
const PAUSE_MS = 1_000;

/**
 * When to ask for the next batch. Whoever waits longest in Redis gets it, not who has least to do: so only a process
 * with an idle thread waits there, and one that is busy comes by now and then to see whether anything was left.
 */
export class Turns {
  readonly #threads: { workers: number; slots: number };
  readonly #work = new Set<Promise<void>>();
  readonly #sleepers = new Set<() => void>();
  #inVain = 0;
  #ended = false;

  constructor(threads: { workers: number; slots: number }) {
    this.#threads = threads;
  }

  /** Resolves when it is time to ask; `block`: to wait for a batch as long as it takes. */
  async next(): Promise<{ block: boolean }> {
    const { workers, slots } = this.#threads;
    while (!this.#ended && this.#work.size >= slots) await this.#sleep(PAUSE_MS);
    if (this.#work.size < workers) return { block: true };
    const waitMs = Math.min(BUSY_MS_MAX, ((BUSY_MS * this.#work.size) / workers) * 2 ** this.#inVain);
    await this.#sleep(waitMs);
    return { block: this.#work.size < workers };
  }

  took(something: boolean): void {
    this.#inVain = something ? 0 : Math.min(6, this.#inVain + 1);
  }

  async hold(work: Promise<void>): Promise<void> {
    this.#work.add(work);
    try {
      await work;
    } finally {
      this.#work.delete(work);
      this.#wake();
    }
  }

  async pause(): Promise<void> {
    if (!this.#ended) await this.#sleep(PAUSE_MS);
  }

  /** No loop waits for a turn any more. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async untilIdle(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work);
  }

  #wake(): void {
    for (const wake of this.#sleepers) wake();
  }

  /** Ends early when a batch is done. */
  async #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#sleepers.add(resolve);
    await promise;
    this.#sleepers.delete(resolve);
    clearTimeout(timer);
  }
}
