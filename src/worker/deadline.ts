import type { Clock } from '../ports/ambient.ts';

/** A batch's budget as a signal: whoever works under it returns what it has when it fires. */
export class Deadline {
  readonly #clock: Clock;
  readonly #endAt: number;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock, budgetMs: number) {
    this.#clock = clock;
    this.#endAt = clock.now() + budgetMs;
    this.#timer = setTimeout(() => this.cut(), budgetMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get over(): boolean {
    return this.#controller.signal.aborted;
  }

  remainingMs(): number {
    return Math.max(0, this.#endAt - this.#clock.now());
  }

  /** Ends the budget now: on drain, or when the time is up. */
  cut(): void {
    this.#controller.abort();
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
