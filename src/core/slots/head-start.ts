/**
 * How long others may stand still for a job that is more urgent. A small job is done as if it were alone, and whatever comes,
 * the others stand still for a tenth of the time at most.
 */

/**
 * Enough for some hundred pages of hosts that answer at once, on a machine with other things to do as well; a longer job has
 * its share from then on.
 */
const HEAD_START_MS = 250;
/** Of the time, for all head starts together. */
const HEAD_START_SHARE = 0.1;
/** Less is not worth it. */
const HEAD_START_MS_MIN = 5;

export class HeadStartCredit {
  #ms = HEAD_START_MS;
  #at: number;
  #isUsed = false;

  constructor(now: number) {
    this.#at = now;
  }

  /** A head start begins, or goes on: how long it may last; null when there is nothing left for it. */
  begin(now: number): number | null {
    this.#pass(now);
    this.#isUsed = this.#ms >= HEAD_START_MS_MIN;
    return this.#isUsed ? this.#ms : null;
  }

  end(now: number): void {
    this.#pass(now);
    this.#isUsed = false;
  }

  /** A head start uses up what is there for it; else it grows. */
  #pass(now: number): void {
    const ms = Math.max(0, now - this.#at);
    this.#ms = Math.min(HEAD_START_MS, this.#ms + (this.#isUsed ? -ms : ms * HEAD_START_SHARE));
    this.#at = now;
  }
}
