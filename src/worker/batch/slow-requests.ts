import type { BatchTask, Permit } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { Lateness } from './pace.ts';

/** So much longer than other pages of the host, and never less than this, takes a request that may not answer at all. */
const SLOW_TIMES = 10;
const SLOW_MS_MIN = 1_000;
/** The same of one that later requests have overtaken. */
const OVERTAKEN_TIMES = 5;
const OVERTAKEN_MS_MIN = 300;
/** And of one of which nothing is said yet but that it holds a place for longer than most. */
const LATE_TIMES = 3;
const LATE_MS_MIN = 100;
/** Pages that were requested later and have answered: fewer may be chance, as when all answer at once after a stall. */
const OVERTAKEN_BY = 3;
const LATENCY_WEIGHT = 0.2;

interface Request {
  sentAt: number | null;
  /** Later requests that have answered. */
  overtakenBy: number;
}

/**
 * Keeps pages that never answer from holding up the others of their host. While other pages answer, slow requests hold at
 * most half of the permit's parallel requests, and a permit does not end later because of them. Those that must go, the
 * oldest first, end as a timeout and are tried again after all other pages: alone, they get their whole time.
 *
 * A request is slow after a second, or sooner where several later ones have answered: then it is not the host that is
 * slow, and not this machine. Such a one goes also when all others are late as well, and nothing can be sent.
 */
export class SlowRequests {
  readonly #parallel: number;
  readonly #heldMax: number;
  readonly #clock: Clock;
  readonly #lateness: Pick<Lateness, 'marginMs'> | null;
  /** In the order in which they began. */
  readonly #requests = new Set<Request>();
  /** What pages of the host take to answer; null while it is not known whether it answers at all. */
  #usualMs: number | null = null;

  constructor(
    { parallel, usualMs }: Pick<Permit, 'parallel' | 'usualMs'>,
    tasks: readonly Pick<BatchTask, 'attempt'>[],
    clock: Clock,
    lateness: Pick<Lateness, 'marginMs'> | null = null,
  ) {
    this.#parallel = parallel;
    this.#heldMax = Math.floor(parallel / 2);
    this.#clock = clock;
    this.#lateness = lateness;
    // Where all pages failed before, there may be none that answers, and nothing to hold up.
    if (usualMs !== undefined && tasks.some(({ attempt }) => attempt === 1)) this.#usualMs = usualMs;
  }

  /** Without an answer for so long, a request is late; null while it is not known whether the host answers at all. */
  get lateMs(): number | null {
    return this.#usualMs === null ? null : Math.max(LATE_MS_MIN, this.#usualMs * LATE_TIMES);
  }

  add(): Request {
    const request: Request = { sentAt: null, overtakenBy: 0 };
    this.#requests.add(request);
    return request;
  }

  /** It may be sent twice, when a connection was stale. */
  onSent(request: Request): void {
    request.sentAt = this.#clock.now();
  }

  delete(request: Request): void {
    this.#requests.delete(request);
  }

  onOutcome(request: Request, outcome: Outcome): void {
    if (outcome.kind === 'deferred' || outcome.trace?.httpStatus == null) return;
    const { durationMs } = outcome.trace;
    const before = this.#usualMs;
    this.#usualMs = before === null ? durationMs : before + (durationMs - before) * LATENCY_WEIGHT;
    for (const other of this.#requests)
      if (other.sentAt !== null && request.sentAt !== null && other.sentAt < request.sentAt)
        other.overtakenBy++;
  }

  /** How long the head of its response is waited for. `isAllSent`: the permit has nothing else to send. */
  headersMs(request: Request, isAllSent: boolean): number {
    if (this.#usualMs === null) return Number.POSITIVE_INFINITY;
    const slowMs = Math.max(SLOW_MS_MIN, this.#usualMs * SLOW_TIMES);
    if (request.overtakenBy >= OVERTAKEN_BY) {
      const marginMs = this.#lateness?.marginMs ?? 0;
      const overtakenMs = Math.max(OVERTAKEN_MS_MIN, this.#usualMs * OVERTAKEN_TIMES) + marginMs;
      const lateMs = Math.max(LATE_MS_MIN, this.#usualMs * LATE_TIMES) + marginMs;
      const heldMax = this.#isFull(lateMs, isAllSent) ? 0 : this.#heldMax;
      if (overtakenMs < slowMs && this.#isTooMany(request, overtakenMs, heldMax)) return overtakenMs;
    }
    const isHeldUp = isAllSent && this.#slowerThan(slowMs).length === this.#requests.size;
    return isHeldUp || this.#isTooMany(request, slowMs, this.#heldMax) ? slowMs : Number.POSITIVE_INFINITY;
  }

  /** Whether it is one of the oldest of more slow requests than may be held. */
  #isTooMany(request: Request, slowMs: number, heldMax: number): boolean {
    const slow = this.#slowerThan(slowMs);
    const rank = slow.indexOf(request);
    return rank >= 0 && rank < slow.length - heldMax;
  }

  /** Whether what is left to be sent waits for a place, and none will be free soon. */
  #isFull(lateMs: number, isAllSent: boolean): boolean {
    return (
      !isAllSent &&
      this.#requests.size >= this.#parallel &&
      this.#slowerThan(lateMs).length === this.#requests.size
    );
  }

  #slowerThan(ms: number): Request[] {
    const since = this.#clock.now() - ms;
    return [...this.#requests].filter(({ sentAt }) => sentAt !== null && sentAt <= since);
  }
}
