/** More is not a busy machine but one that stood still, and nothing helps against that. */
const MARGIN_MS_MAX = 300;
/** Until it is known better; code that runs for the first time is slow. */
const MARGIN_MS_START = 15;
const FADING = 0.97;

/**
 * How late things happen on this machine, told by its timers. Between the look at the clock and the bytes of a request a
 * busy machine may do something else for a tenth of a second; the last request of a permit must keep clear of that.
 */
export class Lateness {
  #ms = MARGIN_MS_START;

  /** A timer fired this much after its time. */
  note(ms: number): void {
    this.#ms = Math.max(ms, this.#ms * FADING);
  }

  /** Twice what was seen lately. */
  get marginMs(): number {
    return Math.min(this.#ms * 2, MARGIN_MS_MAX);
  }
}
