import type { Clock } from '../../ports/ambient.ts';

/**
 * An environment is frozen between two calls, and then the monotonic clock may stand still: a clock that has counted
 * since its start would be late by all the pauses, and permits would be used after their end. This one is set anew
 * with each call, and only then.
 */
export class InvocationClock implements Clock {
  #base = performance.timeOrigin;
  #last = 0;

  /** `offsetMs`: what the wall clock lacks to be the coordinator's. */
  begin(offsetMs: number): void {
    this.#base = Date.now() + offsetMs - performance.now();
    this.#last = 0;
  }

  now(): number {
    this.#last = Math.max(this.#last, this.#base + performance.now());
    return this.#last;
  }
}
