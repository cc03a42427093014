import { weightOfPriority } from '../../core/slots/fair-share.ts';
import { HeadStartCredit } from '../../core/slots/head-start.ts';
import { type Clock, startTimer } from '../../ports/ambient.ts';

/*
 * How many requests to hosts without a gap a worker has under way, over all its batches, and whose are next.
 *
 * A worker that always has an answer to read gains nothing from more requests: their answers only wait in line, and with
 * them everything that comes later, an urgent page as well as the timers of hosts that are paced. So the limit is where the
 * worker is just busy. It falls while the worker never rests, and rises as soon as it does while requests wait.
 *
 * The limit is shared by weight between the priorities that are there. One that has less than its share under way waits for
 * none of the others: its requests leave at once, and the others get no more until they are back at theirs. Answers are
 * shared, too: pages are processed a few at a time, beside a batch of higher priority fewer still, and what comes meanwhile
 * is taken between them.
 *
 * An urgent batch has a head start: for a moment the others stand still, so that a small job is done as if it were alone.
 * Whatever comes, they stand still for a tenth of the time at most.
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

/** Of a job that begins: until its first batch is there. */
const ANNOUNCED_MS = 100;
/** Of one priority, before what has come meanwhile is taken: some milliseconds. */
const ANSWERS_PER_TURN = 8;

interface Waiting {
  admit(): void;
  isGone: boolean;
}

/** Those of one priority, in their order; `pass` grows by one part of its weight with each that is let in. */
interface Line {
  readonly priority: number;
  readonly weight: number;
  waiting: Waiting[];
  pass: number;
  underWay: number;
  /** Batches of this priority on the worker. */
  batches: number;
  /** Answers that wait until others have had their turn. */
  answers: (() => void)[];
  /** Answers of this priority since the last turn of the event loop, and in that turn. */
  processed: number;
  inTurn: number;
}

interface GateOptions {
  clock: Clock;
  /** How long the worker has computed so far, in milliseconds. */
  busyMs: () => number;
  /** Calls back when all that has arrived meanwhile was taken. */
  afterArrivals?: (run: () => void) => void;
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
  readonly #afterArrivals: (run: () => void) => void;
  #isTurnAwaited = false;
  /** Those of lower priority stand still. */
  #headStart: { priority: number; stop(): void } | null = null;
  readonly #credit: HeadStartCredit;

  constructor({ clock, busyMs, afterArrivals = setImmediate }: GateOptions) {
    this.#clock = clock;
    this.#afterArrivals = (run) => void afterArrivals(run);
    this.#busyMs = busyMs;
    this.#sampledAt = clock.now();
    this.#credit = new HeadStartCredit(this.#sampledAt);
    this.#busyAt = busyMs();
  }

  get limit(): number {
    return this.#limit;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** A batch of that priority is on the worker until `depart`. */
  arrive(priority: number): void {
    const line = this.#lineOf(priority);
    line.batches++;
    if (line.batches === 1) this.#beginHeadStart(priority);
  }

  /** A job of that priority begins: its first batch may be here in a moment. */
  announce(priority: number): void {
    this.#beginHeadStart(priority, ANNOUNCED_MS);
  }

  depart(priority: number): void {
    const line = this.#lineOf(priority);
    line.batches--;
    if (line.batches > 0) return;
    if (this.#headStart?.priority === priority) this.#endHeadStart();
    // The others may have its share.
    this.#admit();
  }

  #beginHeadStart(priority: number, msMax = Number.POSITIVE_INFINITY): void {
    const now = this.#clock.now();
    const before = this.#headStart;
    if (before && before.priority > priority) return;
    if (![...this.#lines.values()].some((line) => line.batches > 0 && line.priority < priority)) return;
    before?.stop();
    const creditMs = this.#credit.begin(now);
    if (creditMs === null) {
      this.#endHeadStart();
      return;
    }
    const ms = Math.min(msMax, creditMs);
    const stop = startTimer(this.#clock, ms, () => this.#endHeadStart());
    this.#headStart = { priority, stop };
  }

  #endHeadStart(): void {
    const ended = this.#headStart;
    if (!ended) return;
    ended.stop();
    const now = this.#clock.now();
    this.#credit.end(now);
    this.#headStart = null;
    // How busy the worker was meanwhile says nothing.
    this.#sampledAt = now;
    this.#busyAt = this.#busyMs();
    this.#admit();
    for (const { answers } of this.#lines.values()) if (answers.length > 0) this.#awaitTurn();
  }

  #standsStill({ priority }: Line): boolean {
    return this.#headStart !== null && priority < this.#headStart.priority;
  }

  /** Null when a request of that priority may begin at once. Whoever waits is let in when the signal fires, too. */
  enter(priority: number, signal: AbortSignal): Promise<void> | null {
    this.#sample();
    const line = this.#lineOf(priority);
    if (this.#hasRoomFor(line) || signal.aborted) {
      this.#begin(line);
      return null;
    }
    return this.#wait(line, signal);
  }

  leave(priority: number): void {
    const line = this.#lineOf(priority);
    line.underWay--;
    this.#underWay--;
    this.#sample();
    this.#admit();
  }

  /** Null when the answer to a request of that priority may be processed at once. */
  answered(priority: number): Promise<void> | null {
    const line = this.#lineOf(priority);
    const isFree = line.answers.length === 0 && line.processed + line.inTurn < ANSWERS_PER_TURN;
    if (isFree && !this.#isBehind(priority) && !this.#standsStill(line)) {
      // Counted until what has come meanwhile is taken.
      this.#awaitTurn();
      line.processed++;
      return null;
    }
    return new Promise((resolve) => {
      line.answers.push(resolve);
      this.#awaitTurn();
    });
  }

  /** A batch of higher priority is there. */
  #isBehind(priority: number): boolean {
    for (const line of this.#lines.values()) if (line.batches > 0 && line.priority > priority) return true;
    return false;
  }

  #awaitTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    this.#afterArrivals(() => this.#takeTurn());
  }

  /** Each priority gets its part of what those above it had since the last turn, and one answer at least. */
  #takeTurn(): void {
    this.#isTurnAwaited = false;
    const lines = [...this.#lines.values()]
      .filter((line) => !this.#standsStill(line))
      .sort((one, other) => other.priority - one.priority);
    let had = 0;
    for (const line of lines) {
      const part = Math.max(1, Math.floor(had * line.weight));
      const count = this.#isBehind(line.priority) ? Math.min(part, ANSWERS_PER_TURN) : ANSWERS_PER_TURN;
      const answers = line.answers.splice(0, count);
      had = Math.max(had, (line.processed + answers.length) / line.weight);
      line.processed = 0;
      line.inTurn = answers.length;
      for (const process of answers) process();
    }
    if (lines.some(({ answers }) => answers.length > 0)) this.#awaitTurn();
  }

  #begin(line: Line): void {
    line.underWay++;
    this.#underWay++;
  }

  /** Within its share of the limit, whatever others have under way; beyond it while there is room. */
  #hasRoomFor(line: Line): boolean {
    if (this.#standsStill(line)) return false;
    if (this.#underWay < this.#limit) return true;
    let weights = 0;
    for (const { batches, underWay, waiting, weight } of this.#lines.values())
      if (batches > 0 || underWay > 0 || waiting.length > 0) weights += weight;
    const share = weights === 0 ? 0 : (this.#limit * line.weight) / weights;
    return line.underWay < Math.max(1, Math.floor(share));
  }

  #wait(line: Line, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const gone = () => {
      waiting.isGone = true;
      waiting.admit();
    };
    const waiting: Waiting = {
      isGone: false,
      admit: () => {
        signal.removeEventListener('abort', gone);
        this.#waiting--;
        this.#begin(line);
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
    let line = this.#lines.get(priority);
    if (line) return line;
    const weight = weightOfPriority(priority);
    const empty = { waiting: [], pass: 0, underWay: 0, batches: 0, answers: [], processed: 0, inTurn: 0 };
    line = { priority, weight, ...empty };
    this.#lines.set(priority, line);
    return line;
  }

  #admit(): void {
    for (let next = this.#takeNext(); next; next = this.#takeNext()) next.admit();
  }

  #takeNext(): Waiting | null {
    let best: Line | null = null;
    for (const line of this.#lines.values()) {
      while (line.waiting[0]?.isGone) line.waiting.shift();
      if (line.waiting.length === 0 || !this.#hasRoomFor(line)) continue;
      if (best === null || line.pass < best.pass) best = line;
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
    if (ms < SAMPLE_MS || this.#headStart) return;
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
