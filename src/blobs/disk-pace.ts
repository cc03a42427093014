/**
 * A file takes 0.1 ms. Where the disk makes callers wait, they wait better in the thread pool: on a machine whose disk
 * others kept busy, 3,000 pictures took 16 to 33 s instead of 21 to 49 s.
 */
const SLOW_MS = 2;
const WEIGHT = 0.1;
/** Of files written beside, so many are in between two looks at how the disk is now. */
const LOOK_EVERY = 32;

/** Whether files of one folder are to be written within a call, by how long the last ones took. */
export class DiskPace {
  #meanMs = 0;
  #beside = 0;

  /** Asked once for each file. */
  isQuick(): boolean {
    if (this.#meanMs < SLOW_MS) return true;
    this.#beside = (this.#beside + 1) % LOOK_EVERY;
    return this.#beside === 0;
  }

  note(ms: number): void {
    this.#meanMs += (ms - this.#meanMs) * WEIGHT;
  }
}
