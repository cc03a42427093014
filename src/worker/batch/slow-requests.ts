import type { BatchTask, Permit } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import type { Clock } from '../../ports/ambient.ts';

/** So much longer than other pages of the host, and never less than this, takes a request that may not answer at all. */
const SLOW_TIMES = 10;
const SLOW_MS_MIN = 1_000;
const LATENCY_WEIGHT = 0.2;

interface Request {
  sentAt: number | null;
}

/**
 * Keeps pages that never answer from holding up the others of their host. While other pages answer, slow requests hold at
 * most half of the permit's parallel requests, the oldest of them; and a permit does not end later because of them. Those
 * that must go end as a timeout, and are tried again after all other pages: alone, they get their whole time.
 */
export class SlowRequests {
  readonly #heldMax: number;
  readonly #clock: Clock;
  /** In the order in which they began. */
  readonly #requests = new Set<Request>();
  /** What pages of the host take to answer; null while it is not known whether it answers at all. */
  #usualMs: number | null = null;

  constructor(
    { parallel, usualMs }: Pick<Permit, 'parallel' | 'usualMs'>,
    tasks: readonly Pick<BatchTask, 'attempt'>[],
    clock: Clock,
  ) {
    this.#heldMax = Math.floor(parallel / 2);
    this.#clock = clock;
    // Where all pages failed before, there may be none that answers, and nothing to hold up.
    if (usualMs !== undefined && tasks.some(({ attempt }) => attempt === 1)) this.#usualMs = usualMs;
  }

  add(): Request {
    const request: Request = { sentAt: null };
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

  onOutcome(outcome: Outcome): void {
    if (outcome.kind === 'deferred' || outcome.trace?.httpStatus == null) return;
    const { durationMs } = outcome.trace;
    const before = this.#usualMs;
    this.#usualMs = before === null ? durationMs : before + (durationMs - before) * LATENCY_WEIGHT;
  }

  /** How long the head of its response is waited for. `isAllSent`: the permit has nothing else to send. */
  headersMs(request: Request, isAllSent: boolean): number {
    if (this.#usualMs === null) return Number.POSITIVE_INFINITY;
    const slowMs = Math.max(SLOW_MS_MIN, this.#usualMs * SLOW_TIMES);
    const slowSince = this.#clock.now() - slowMs;
    let slow = 0;
    let older = 0;
    let isOlder = true;
    for (const other of this.#requests) {
      if (other === request) isOlder = false;
      if (other.sentAt === null || other.sentAt > slowSince) continue;
      slow++;
      if (isOlder) older++;
    }
    const isHeldUp = isAllSent && slow === this.#requests.size;
    return isHeldUp || older >= this.#heldMax ? slowMs : Number.POSITIVE_INFINITY;
  }
}
