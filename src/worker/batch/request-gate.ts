import { weightOfPriority } from '../../core/slots/fair-share.ts';
import { type Clock, startTimer } from '../../ports/ambient.ts';

/*
 * How many requests to hosts without a gap a worker has under way, over all its batches, and whose are next.
 *
 * A worker that always has an answer to read gains nothing from more requests: their answers only wait in line, and with
 * them everything that comes later, an urgent page as well as the timers of hosts that are paced. So the limit is where the
 * worker is just busy. It falls while the worker never rests, and rises as soon as it does while requests wait.
 */

/**
 * Keeps a worker busy whose hosts answer at once, and is read within some 50 ms. Not less: on a machine with other things
 * to do a worker seems busy while it only waits for a core, and hosts that take long to answer would stand still.
 */
const LIMIT_MIN = 48;
/** Where it begins; hosts that take long to answer have it risen tenfold within half a second. */
const LIMIT_START = 128;
/** More than the connections of a worker. */
const LIMIT_MAX = 8_192;
const SAMPLE_MS = 50;
/** Shares of the time in which the worker computed. */
const BUSY_ABOVE = 0.98;
const RESTS_BELOW = 0.95;
const FALL = 0.9;
const RISE = 1.5;

interface Waiting {
  admit(): void;
  isGone: boolean;
}

/** Those of one priority, in their order; `pass` grows by one part of its weight with each that is let in. */
interface Line {
  readonly weight: number;
  waiting: Waiting[];
  pass: number;
}

interface GateOptions {
  clock: Clock;
  /** How long the worker has computed so far, in milliseconds. */
  busyMs: () => number;
}

export class RequestGate {
  readonly #clock: Clock;
  readonly #busyMs: () => number;
  readonly #lines = new Map<number, Line>();
  #limit = LIMIT_START;
  #underWay = 0;
  #waiting = 0;
  /** Of the line that was served last: who comes later begins there, and catches up with nothing. */
  #pass = 0;
  #sampledAt: number;
  #busyAt: number;
  #stopTimer: (() => void) | null = null;

  constructor({ clock, busyMs }: GateOptions) {
    this.#clock = clock;
    this.#busyMs = busyMs;
    this.#sampledAt = clock.now();
    this.#busyAt = busyMs();
  }

  get limit(): number {
    return this.#limit;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** Null when a request of that priority may begin at once. Whoever waits is let in when the signal fires, too. */
  enter(priority: number, signal: AbortSignal): Promise<void> | null {
    this.#sample();
    if (this.#underWay < this.#limit || signal.aborted) {
      this.#underWay++;
      return null;
    }
    return this.#wait(priority, signal);
  }

  leave(): void {
    this.#underWay--;
    this.#sample();
    this.#admit();
  }

  #wait(priority: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const line = this.#lineOf(priority);
    const gone = () => {
      waiting.isGone = true;
      waiting.admit();
    };
    const waiting: Waiting = {
      isGone: false,
      admit: () => {
        signal.removeEventListener('abort', gone);
        this.#waiting--;
        this.#underWay++;
        resolve();
      },
    };
    signal.addEventListener('abort', gone);
    if (line.waiting.length === 0) line.pass = Math.max(line.pass, this.#pass);
    line.waiting.push(waiting);
    this.#waiting++;
    this.#watch();
    return promise;
  }

  #lineOf(priority: number): Line {
    const line = this.#lines.get(priority) ?? { weight: weightOfPriority(priority), waiting: [], pass: 0 };
    this.#lines.set(priority, line);
    return line;
  }

  #admit(): void {
    while (this.#underWay < this.#limit) {
      const next = this.#takeNext();
      if (!next) return;
      next.admit();
    }
  }

  #takeNext(): Waiting | null {
    let best: Line | null = null;
    for (const line of this.#lines.values()) {
      while (line.waiting[0]?.isGone) line.waiting.shift();
      if (line.waiting.length > 0 && (best === null || line.pass < best.pass)) best = line;
    }
    if (best === null) return null;
    this.#pass = best.pass;
    best.pass += 1 / best.weight;
    return best.waiting.shift()!;
  }

  /** While requests wait and no answer comes, nothing else would look. */
  #watch(): void {
    this.#stopTimer ??= startTimer(this.#clock, SAMPLE_MS, () => {
      this.#stopTimer = null;
      this.#sample();
      this.#admit();
      if (this.#waiting > 0) this.#watch();
    });
  }

  #sample(): void {
    const now = this.#clock.now();
    const ms = now - this.#sampledAt;
    if (ms < SAMPLE_MS) return;
    const busyAt = this.#busyMs();
    const busy = (busyAt - this.#busyAt) / ms;
    this.#sampledAt = now;
    this.#busyAt = busyAt;
    if (busy > BUSY_ABOVE)
      this.#limit = Math.max(LIMIT_MIN, Math.floor(Math.min(this.#limit, this.#underWay + 1) * FALL));
    else if (busy < RESTS_BELOW && this.#waiting > 0)
      this.#limit = Math.min(LIMIT_MAX, Math.ceil(this.#limit * RISE));
  }
}
