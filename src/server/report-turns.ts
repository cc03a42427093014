import { HeadStartCredit } from '../core/slots/head-start.ts';
import { type Clock, startTimer } from '../ports/ambient.ts';

/*
 * The order in which reports of all jobs reach their coordinators.
 *
 * Writing a report down takes milliseconds in which the process does nothing else. So they are taken one for each turn of the
 * event loop, the most urgent first, and whatever has come meanwhile is taken between them: a request, or a job that begins.
 * A job that begins has a head start: for a moment the reports of less urgent ones wait.
 */

interface TurnOptions {
  clock: Clock;
  /** Calls back when all that has arrived meanwhile was taken. */
  afterArrivals?: (run: () => void) => void;
  /** The others need not stand still any more. */
  onHeadStartEnd?: () => void;
}

interface Waiting {
  readonly priority: number;
  admit(): void;
  /** Called once when it has to wait for the head start of another. */
  onHeld: (() => void) | null;
}

export class ReportTurns {
  readonly #clock: Clock;
  readonly #afterArrivals: (run: () => void) => void;
  readonly #onHeadStartEnd: () => void;
  readonly #credit: HeadStartCredit;
  /** In their order. */
  readonly #waiting: Waiting[] = [];
  #isTurnTaken = false;
  #arrived: (() => void)[] = [];
  #headStart: { priority: number; stop(): void } | null = null;

  constructor({ clock, afterArrivals = setImmediate, onHeadStartEnd = () => {} }: TurnOptions) {
    this.#clock = clock;
    this.#onHeadStartEnd = onHeadStartEnd;
    this.#afterArrivals = (run) => void afterArrivals(run);
    this.#credit = new HeadStartCredit(clock.now());
  }

  /** Null when a report of a job of that priority may be taken at once. `onHeld`: it waits for the head start of another. */
  turn(priority: number, onHeld: () => void): Promise<void> | null {
    if (!this.#isTurnTaken && !this.standsStill(priority)) {
      this.#takeTurn();
      return null;
    }
    return new Promise((admit) => {
      this.#waiting.push({ priority, admit, onHeld });
      this.#tellHeld();
    });
  }

  /** What arrives together is taken together, so that who waits for it looks once. */
  afterArrivals(take: () => void): void {
    this.#arrived.push(take);
    if (this.#arrived.length > 1) return;
    this.#afterArrivals(() => {
      for (const each of this.#arrived.splice(0)) each();
    });
  }

  /** A job of that priority begins, beside others that are less urgent. */
  beginHeadStart(priority: number): void {
    const before = this.#headStart;
    if (before && before.priority > priority) return;
    before?.stop();
    this.#headStart = null;
    const ms = this.#credit.begin(this.#clock.now());
    if (ms === null) {
      if (!this.#isTurnTaken) this.#next();
      return;
    }
    const stop = startTimer(this.#clock, ms, () => this.endHeadStart(priority));
    this.#headStart = { priority, stop };
    this.#tellHeld();
  }

  endHeadStart(priority: number): void {
    if (this.#headStart?.priority !== priority) return;
    this.#headStart.stop();
    this.#headStart = null;
    this.#credit.end(this.#clock.now());
    if (!this.#isTurnTaken) this.#next();
    this.#onHeadStartEnd();
  }

  /** A job of that priority waits for the head start of another. */
  standsStill(priority: number): boolean {
    return this.#headStart !== null && priority < this.#headStart.priority;
  }

  #tellHeld(): void {
    for (const each of this.#waiting) {
      const { onHeld } = each;
      if (!onHeld || !this.standsStill(each.priority)) continue;
      each.onHeld = null;
      onHeld();
    }
  }

  #takeTurn(): void {
    this.#isTurnTaken = true;
    this.#afterArrivals(() => {
      this.#isTurnTaken = false;
      this.#next();
    });
  }

  #next(): void {
    let first: Waiting | null = null;
    for (const each of this.#waiting) if (first === null || each.priority > first.priority) first = each;
    if (!first || this.standsStill(first.priority)) return;
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    this.#takeTurn();
    first.admit();
  }
}
