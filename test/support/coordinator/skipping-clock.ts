import type { Clock } from '../../../src/ports/ambient.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { realClock } from '../real-clock.ts';

const LOOK_MS = 20;

/** A clock that goes on by leaps while `isIdle` says that nothing but time is to be waited for. Never while a batch is out. */
export class SkippingClock implements Clock {
  readonly #timer: NodeJS.Timeout;
  #skippedMs = 0;
  #out = 0;

  constructor(stepMs: number, isIdle: () => boolean) {
    this.#timer = setInterval(() => {
      if (this.#out === 0 && isIdle()) this.#skippedMs += stepMs;
    }, LOOK_MS);
  }

  now(): number {
    return realClock.now() + this.#skippedMs;
  }

  /** Counts the batches that are out. */
  watch = (dispatcher: Dispatcher): Dispatcher => ({
    ...dispatcher,
    get slots() {
      return dispatcher.slots;
    },
    get workers() {
      return dispatcher.workers;
    },
    dispatch: async (...args) => {
      this.#out++;
      try {
        return await dispatcher.dispatch(...args);
      } finally {
        this.#out--;
      }
    },
  });

  stop(): void {
    clearInterval(this.#timer);
  }
}
