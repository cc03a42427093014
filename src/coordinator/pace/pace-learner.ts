import type { Permit, PermitUse } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { failureKind, isHostThrottling, isOwnFailure } from '../../core/failures.ts';
import {
  adaptPace,
  type HostPace,
  notedCap,
  noteRetries,
  paceUnder,
  pagesRecover,
  slowedByBan,
} from '../../core/pace/pace.ts';
import { unguardedGapMs } from '../../core/politeness/permits.ts';

/** Over less time no rate can be told. */
const SHORTEST_MS = 100;
/** Latencies of one permit that are looked at; more would not move the median. */
const LATENCIES_MAX = 200;

/** A third of different pages that fail are the host's trouble, but not with fewer than this. */
const FAILED_PAGES_MIN = 3;
const FAILED_PAGES_SHARE = 1 / 3;

/** Gathers how a host answers under its permits, and says what pace follows; how, is decided in `core/pace/`. */
export class PaceLearner {
  #pace: HostPace | null;
  #answers = 0;
  #refused = 0;
  #unavailable = 0;
  #faults = 0;
  /** Pages that were requested for the first time, and how many of those failed. */
  #pages = 0;
  #failedPages = 0;
  /** Pages that failed before: how many answered now, and how many failed again. */
  #recovered = 0;
  #relapsed = 0;
  #latencies: number[] = [];
  #wasUnavailable = false;
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(pace: HostPace | null) {
    this.#pace = pace;
  }

  /** The new pace, or null when nothing was learned yet. */
  learn(
    report: {
      permit: Permit;
      use: PermitUse;
      outcomes: readonly Outcome[];
      /** How often the page of an outcome was requested, with this time. */
      attemptOf?: (outcome: Outcome) => number;
      /** Of the robots.txt that the permit was granted under. */
      crawlDelayMs?: number | null;
    },
    cap: number,
    now: number,
    /** The pace was another one than is known here, which is no old one; null when it was not. */
    keptRate: number | null = null,
  ): HostPace | null {
    const { permit, use, outcomes, attemptOf } = report;
    for (const outcome of outcomes) this.#look(outcome, attemptOf?.(outcome) ?? 1);
    if (this.#answers === 0 || (!use.finished && this.#refused === 0)) return null;
    this.#pace = noteRetries(paceUnder(this.#pace, cap), this.#recovered, this.#relapsed);
    if (keptRate !== null) this.#pace = { ...this.#pace, rate: keptRate };
    const isHostsTrouble =
      this.#failedPages >= FAILED_PAGES_MIN && this.#failedPages > this.#pages * FAILED_PAGES_SHARE;
    // Pages that answer the next time were refused by the host; pages that never do are sick themselves.
    const unavailable = isHostsTrouble || pagesRecover(this.#pace) ? this.#unavailable : 0;
    this.#wasUnavailable = unavailable > 0;
    const seen = {
      rate: rateOf(permit, cap),
      answers: this.#answers,
      refused: this.#refused + unavailable,
      unavailable,
      faults: isHostsTrouble ? this.#faults : 0,
      latencyMs: median(this.#latencies),
      sentRate: this.#sentRate(),
    };
    const limit = Math.min(cap, 1_000 / (report.crawlDelayMs ?? 0));
    const pace = seen.refused > 0 ? refusedBelow(this.#pace, seen.rate, limit) : this.#pace;
    this.#pace = notedCap(adaptPace(pace, seen, pace.rate > limit ? cap : limit, now), cap);
    this.#forget();
    // A host without a limit needs no note.
    return Number.isFinite(this.#pace.rate) ? this.#pace : null;
  }

  /** The host bans us: the new pace, or null when it has no limit. */
  slowDown(cap: number, now: number): HostPace | null {
    this.#pace = slowedByBan(paceUnder(this.#pace, cap), cap, now);
    return Number.isFinite(this.#pace.rate) ? this.#pace : null;
  }

  /** Whether what was learned last says that the host itself was unavailable, and not only some of its pages. */
  get wasUnavailable(): boolean {
    return this.#wasUnavailable;
  }

  #look(outcome: Outcome, attempt: number): void {
    if (outcome.kind === 'deferred' || outcome.trace === null) return;
    // Our own failures say nothing about the host.
    if (outcome.kind === 'failed' && isOwnFailure(outcome.code)) return;
    this.#answers++;
    const isRefused =
      outcome.kind === 'failed' &&
      isHostThrottling(outcome.code, outcome.trace.httpStatus, outcome.retryAfterMs);
    const isFault = outcome.kind === 'failed' && !isRefused && failureKind(outcome.code).hostFault;
    if (isRefused) this.#refused++;
    else if (isFault && outcome.code === 'unavailable') this.#unavailable++;
    else if (isFault) this.#faults++;
    if (attempt === 1) {
      this.#pages++;
      if (isFault) this.#failedPages++;
    } else if (isFault) this.#relapsed++;
    else if (!isRefused) this.#recovered++;
    this.#firstAt = Math.min(this.#firstAt, outcome.trace.startedAt);
    this.#lastAt = Math.max(this.#lastAt, outcome.trace.startedAt);
    // What never came says how long was waited for it, and not what the host takes.
    if (this.#latencies.length < LATENCIES_MAX && outcome.trace.httpStatus !== null)
      this.#latencies.push(outcome.trace.durationMs);
  }

  /** Between the first request and the last; a permit may have waited for its worker before. */
  #sentRate(): number | null {
    if (this.#answers < 2) return null;
    return ((this.#answers - 1) / Math.max(SHORTEST_MS, this.#lastAt - this.#firstAt)) * 1_000;
  }

  #forget(): void {
    this.#firstAt = Number.POSITIVE_INFINITY;
    this.#lastAt = Number.NEGATIVE_INFINITY;
    this.#answers = this.#refused = this.#unavailable = this.#faults = 0;
    this.#pages = this.#failedPages = this.#recovered = this.#relapsed = 0;
    this.#latencies = [];
  }
}

/**
 * A crawl delay, or the lower cap of this job, holds a permit below the pace. An answer to it says nothing of the pace, and a
 * refusal everything: what was refused is the rate that it kept. It passed for a permit of before, so the host was asked again
 * every second, until its pages had no attempts left.
 */
function refusedBelow(pace: HostPace, keptRate: number, limit: number): HostPace {
  return pace.rate > limit && keptRate < pace.rate ? { ...pace, rate: keptRate } : pace;
}

/** A crawl delay may have made the permit slower than the pace: then it says nothing of faster ones. */
function rateOf({ gapMs }: Permit, cap: number): number {
  return gapMs === 0 ? cap : 1_000 / unguardedGapMs(gapMs);
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
