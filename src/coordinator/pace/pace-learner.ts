import type { Permit, PermitUse } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { failureKind, isOwnFailure, isThrottling } from '../../core/failures.ts';
import { adaptPace, type HostPace, startPace } from '../../core/pace/pace.ts';
import { unguardedGapMs } from '../../core/politeness/permits.ts';

/** Over less time no rate can be told. */
const SHORTEST_MS = 100;
/** Latencies of one permit that are looked at; more would not move the median. */
const LATENCIES_MAX = 200;

/** Gathers how a host answers under its permits, and says what pace follows; how, is decided in `core/pace/`. */
export class PaceLearner {
  #pace: HostPace | null;
  #answers = 0;
  #refused = 0;
  #unavailable = 0;
  #faults = 0;
  #latencies: number[] = [];
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(pace: HostPace | null) {
    this.#pace = pace;
  }

  /** The new pace, or null when nothing was learned yet. */
  learn(
    report: { permit: Permit; use: PermitUse; outcomes: readonly Outcome[] },
    cap: number,
    now: number,
  ): HostPace | null {
    const { permit, use, outcomes } = report;
    for (const outcome of outcomes) this.#look(outcome);
    if (this.#answers === 0 || (!use.finished && this.#refused === 0)) return null;
    const seen = {
      rate: rateOf(permit, cap),
      answers: this.#answers,
      refused: this.#refused,
      unavailable: this.#unavailable,
      faults: this.#faults,
      latencyMs: median(this.#latencies),
      sentRate: this.#sentRate(),
    };
    this.#pace = adaptPace(this.#pace ?? startPace(cap), seen, cap, now);
    this.#forget();
    // A host without a limit needs no note.
    return Number.isFinite(this.#pace.rate) ? this.#pace : null;
  }

  #look(outcome: Outcome): void {
    if (outcome.kind === 'deferred' || outcome.trace === null) return;
    // Our own failures say nothing about the host.
    if (outcome.kind === 'failed' && isOwnFailure(outcome.code)) return;
    this.#answers++;
    if (outcome.kind === 'failed') {
      if (isThrottling(outcome.code, outcome.trace.httpStatus)) {
        this.#refused++;
        if (outcome.code === 'unavailable' && outcome.retryAfterMs === null) this.#unavailable++;
      } else if (failureKind(outcome.code).hostFault) this.#faults++;
    }
    this.#firstAt = Math.min(this.#firstAt, outcome.trace.startedAt);
    this.#lastAt = Math.max(this.#lastAt, outcome.trace.startedAt);
    if (this.#latencies.length < LATENCIES_MAX) this.#latencies.push(outcome.trace.durationMs);
  }

  /** Between the first request and the last; a permit may have waited for its worker before. */
  #sentRate(): number {
    return ((this.#answers - 1) / Math.max(SHORTEST_MS, this.#lastAt - this.#firstAt)) * 1_000;
  }

  #forget(): void {
    this.#firstAt = Number.POSITIVE_INFINITY;
    this.#lastAt = Number.NEGATIVE_INFINITY;
    this.#answers = this.#refused = this.#unavailable = this.#faults = 0;
    this.#latencies = [];
  }
}

/** A crawl delay may have made the permit slower than the pace: then it says nothing of faster ones. */
function rateOf({ gapMs }: Permit, cap: number): number {
  return gapMs === 0 ? cap : 1_000 / unguardedGapMs(gapMs);
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
