import type { Permit } from '../../core/batch/batch.ts';
import { jitteredGapMs } from '../../core/politeness/permits.ts';
import { type Clock, startTimer } from '../../ports/ambient.ts';

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

/** Of the time in which requests can be sent. */
const MARGIN_SHARE_MAX = 0.3;

/** The right to send one request now. */
interface Turn {
  /** The request is about to leave: the next turn is counted from here. False when it may not any more. */
  left(): boolean;
  /** Call when done with the turn, whether or not anything left. Harmless when repeated. */
  end(): void;
}

/**
 * Keeps one permit. Gaps are measured from the moment a request really leaves, not from a
 * grid: after a late request the next one is late too, never early.
 */
export class Pace {
  readonly #permit: Permit;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #random: () => number;
  readonly #lateness: Lateness | null;
  #gapMs: number;
  /** This gap with its jitter. */
  #nextGapMs: number;
  #smallestGapMs: number | null = null;
  #firstLeftAt: number | null = null;
  #closed = false;
  #tail: Promise<void> = Promise.resolve();
  #lastLeftAt: number | null = null;
  #sent = 0;

  constructor(
    permit: Permit,
    clock: Clock,
    signal: AbortSignal,
    random: () => number = () => 0,
    lateness: Lateness | null = null,
  ) {
    this.#random = random;
    this.#lateness = lateness;
    this.#nextGapMs = permit.gapMs;
    this.#permit = permit;
    this.#clock = clock;
    this.#signal = signal;
    this.#gapMs = permit.gapMs;
  }

  get sent(): number {
    return this.#sent;
  }

  get lastLeftAt(): number | null {
    return this.#lastLeftAt;
  }

  /** Between two requests since the last call. */
  takeSmallestGapMs(): number | null {
    const smallest = this.#smallestGapMs;
    this.#smallestGapMs = null;
    return smallest;
  }

  /** Since the last call. */
  takeFirstLeftAt(): number | null {
    const first = this.#firstLeftAt;
    this.#firstLeftAt = null;
    return first;
  }

  /** robots.txt may ask for more time than the permit gave. */
  slowDown(gapMs: number): void {
    this.#gapMs = Math.max(this.#gapMs, gapMs);
    this.#nextGapMs = Math.max(this.#nextGapMs, gapMs);
  }

  /** The host asked for less: no further turns under this permit. */
  close(): void {
    this.#closed = true;
  }

  /** One more turn may be taken, after a gap like all others. */
  reopen(): void {
    this.#closed = false;
  }

  /** Null when the permit or the batch is over before a turn comes. Not a promise where nothing is waited for. */
  turn(): Turn | null | Promise<Turn | null> {
    if (this.#closed) return null;
    const now = this.#clock.now();
    if (this.#gapMs > 0 || now < this.#permit.startAt) return this.#nextTurn();
    return this.#signal.aborted || now > this.#freeEndAt ? null : this.#freeTurn;
  }

  async #nextTurn(): Promise<Turn | null> {
    const before = this.#tail;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tail = this.#gapMs > 0 ? promise : Promise.resolve();
    if (this.#gapMs > 0) await before;
    if (
      this.#closed ||
      this.#signal.aborted ||
      this.#nextAt() > this.#latestAt() ||
      !(await this.#waitForTurn())
    ) {
      resolve();
      return null;
    }
    return { left: () => this.#leave(resolve), end: resolve };
  }

  /** Without a gap all turns are alike. */
  readonly #freeTurn: Turn = {
    left: () => {
      const now = this.#clock.now();
      if (now > this.#freeEndAt) return false;
      this.#lastLeftAt = now;
      this.#sent++;
      return true;
    },
    end: () => {},
  };

  /** A connection may have taken long, or broken and asked for a second try: the gap holds for that too. */
  #leave(endTurn: () => void): boolean {
    const now = this.#clock.now();
    if (
      now > this.#latestAt() ||
      (this.#gapMs > 0 && this.#lastLeftAt !== null && now < this.#lastLeftAt + this.#gapMs)
    ) {
      return false;
    }
    if (this.#lastLeftAt !== null) {
      const gapMs = now - this.#lastLeftAt;
      this.#smallestGapMs = Math.min(this.#smallestGapMs ?? gapMs, gapMs);
    }
    this.#firstLeftAt ??= now;
    this.#nextGapMs = jitteredGapMs(this.#gapMs, this.#permit.jitter ?? 0, this.#random(), this.#random());
    this.#lastLeftAt = now;
    this.#sent++;
    // The bytes are written within this very turn of the loop, which takes milliseconds while the code is
    // cold: the gap is counted from afterwards.
    queueMicrotask(() => {
      this.#lastLeftAt = this.#clock.now();
      endTurn();
    });
    return true;
  }

  #nextAt(): number {
    const earliest = this.#lastLeftAt === null ? this.#permit.startAt : this.#lastLeftAt + this.#nextGapMs;
    return Math.max(earliest, this.#clock.now());
  }

  /**
   * The gap is kept free at the end too: the next permit may begin with a request. So is what the machine may be late,
   * within reason: a permit that cannot be used would be handed out again and again.
   */
  #latestAt(): number {
    const latest = this.#permit.endAt - this.#gapMs;
    const spareMs = Math.max(0, latest - this.#permit.startAt);
    return Math.min(
      latest - Math.min(this.#lateness?.marginMs ?? 0, spareMs * MARGIN_SHARE_MAX),
      this.#permit.closesAt ?? latest,
    );
  }

  /** Without a gap. */
  get #freeEndAt(): number {
    return Math.min(this.#permit.endAt, this.#permit.closesAt ?? this.#permit.endAt);
  }

  /**
   * False when the batch or the permit ended first. Looks again after each sleep: timers may
   * fire a little early, and a request on a stale connection leaves twice.
   */
  async #waitForTurn(): Promise<boolean> {
    for (
      let waitMs = this.#nextAt() - this.#clock.now();
      waitMs > 0;
      waitMs = this.#nextAt() - this.#clock.now()
    ) {
      const dueAt = this.#clock.now() + Math.ceil(waitMs);
      await abortableDelay(this.#clock, Math.ceil(waitMs), this.#signal);
      if (this.#signal.aborted || this.#closed) return false;
      this.#lateness?.note(this.#clock.now() - dueAt);
    }
    return this.#clock.now() <= this.#latestAt();
  }
}

function abortableDelay(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stopTimer();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const stopTimer = startTimer(clock, ms, done);
    signal.addEventListener('abort', done);
  });
}
