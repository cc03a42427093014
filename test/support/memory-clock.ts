import type { Clock } from '../../src/ports/ambient.ts';

/** A clock that stands still until a test moves it. */
export class MemoryClock implements Clock {
  #now: number;

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  advance(ms: number): number {
    this.#now += ms;
    return this.#now;
  }
}

/** Real time, as workers use it. */
export const realClock: Clock = { now: () => performance.timeOrigin + performance.now() };
