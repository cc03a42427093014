import { BATCH_TASKS_MAX } from '../batch-size/batch-size.ts';
import type { HostPace } from '../pace/pace.ts';
import { unguardedGapMs } from '../politeness/permits.ts';
import { type Runtime, tailBound, timeoutFor } from '../timeouts/task-timeout.ts';
import type { CalibrationResult, EndReason, RunEvidence } from './calibration.ts';

/** What calibration found out about a host. Times are epoch milliseconds. */
export interface HostProfile {
  host: string;
  /** Requests per second that it takes; null when no rate held. */
  rate: number | null;
  parallel: number;
  /** Tasks of this host in one batch. */
  batchSize: number;
  /** For one task, and for a batch or the Lambda function that works on one. */
  timeoutMs: number | null;
  batchTimeoutMs: number | null;
  requests: number;
  refusals: number;
  /** The lowest rate that was refused, and over how long the host counts; 0 when within seconds. */
  refusedRate: number | null;
  windowMs: number;
  end: EndReason;
  measuredAt: number;
  expiresAt: number;
  evidence: RunEvidence[];
}

const DAY_MS = 86_400_000;
/** Sites change their limits; what was measured is measured again after this. */
const PROFILE_DAYS = 14;
/** The function of Lambda ends after 15 minutes, and a batch that is lost is repeated as a whole: far less than that. */
const BATCH_MS_MAX = 60_000;
const TASK_TIMEOUT_MS_MAX = 300_000;
/** What a batch takes besides its requests: the archive, the report. */
const BATCH_EXTRA_MS = 5_000;
const RATE_MIN = 0.01;

export function profileOf(
  host: string,
  result: CalibrationResult,
  runtimes: readonly Runtime[],
  now: number,
): HostProfile {
  const { requests, refusals, refusedRate, windowMs, end, evidence, parallel } = result;
  const timeoutMs = timeoutFor(runtimes, TASK_TIMEOUT_MS_MAX);
  const tailMs = tailBound(runtimes)?.ms ?? TASK_TIMEOUT_MS_MAX;
  const rate = result.rate === null ? null : Math.floor(result.rate * 1_000) / 1_000;
  const batchSize = batchSizeFor(rate ?? RATE_MIN, tailMs);
  return {
    ...{ host, rate, parallel, batchSize, timeoutMs },
    batchTimeoutMs: timeoutMs === null ? null : batchTimeoutFor(batchSize, rate ?? RATE_MIN, timeoutMs),
    ...{ requests, refusals, refusedRate, windowMs, end },
    measuredAt: now,
    expiresAt: now + PROFILE_DAYS * DAY_MS,
    evidence,
  };
}

/** The largest batch whose requests, at this rate, fit with their tail into the time of a batch, with half as much to spare. */
function batchSizeFor(rate: number, tailMs: number): number {
  const fitting = Math.floor(((BATCH_MS_MAX / 1.5 - tailMs) * rate) / 1_000);
  return Math.max(1, Math.min(BATCH_TASKS_MAX, fitting));
}

/** For a batch, and for the Lambda function: all its requests at the rate, and the last of them may take its whole time. */
function batchTimeoutFor(tasks: number, rate: number, timeoutMs: number): number {
  return Math.ceil((tasks * 1_000 * 1.5) / rate + timeoutMs + BATCH_EXTRA_MS);
}

/** Tries for more come as seldom as they can: the limit is known better than tries could tell. */
const REFUSALS_NOTED = 6;
const CLOSE = 1.05;
/** Between two tries, before the doublings; and for each request under way, because a try that fails costs all of them. */
const TRY_REQUESTS = 600;
const TRY_REQUESTS_UNDER_WAY = 300;

/**
 * The pace of a host that was calibrated; null when no rate held. Permits grant a longer gap than a rate asks for, because
 * timers and the network move requests. What calibration sent was moved just the same, so that is taken back here.
 */
export function paceOfProfile(profile: HostProfile): HostPace | null {
  const { rate, parallel, windowMs, measuredAt, expiresAt } = profile;
  if (rate === null) return null;
  const granted = 1_000 / unguardedGapMs(1_000 / rate);
  const clean = granted / 0.93;
  const tryRequests = Math.max(TRY_REQUESTS, TRY_REQUESTS_UNDER_WAY * parallel);
  return {
    ...{ rate: granted, clean, refused: clean * CLOSE, refusals: REFUSALS_NOTED, latencyMs: null },
    tryAt: measuredAt + (tryRequests * 2 ** REFUSALS_NOTED * 1_000) / clean,
    tryRequests,
    since: 600,
    proofMs: Math.min(120_000, windowMs),
    knownUntil: expiresAt,
  };
}

/** A pace that came from a profile is forgotten with it. */
export function isExpired(pace: HostPace | null, now: number): boolean {
  return pace?.knownUntil !== undefined && pace.knownUntil <= now;
}

/** A calibration that ended before any rate held says nothing against one that did. Only refusals do. */
export function replacesProfile(profile: HostProfile, known: HostProfile | null, now: number): boolean {
  if (known === null || known.rate === null || known.expiresAt <= now) return true;
  return profile.rate !== null || profile.end === 'refusals';
}

/** Where nothing is known of a host, its calibration begins here, or at half of what the job allows. */
const START_RATE = 1;
const START_SHARE = 0.5;

/**
 * The rate that a calibration begins with: the pace of the host, where a rate has held. All lower ones need not be tried: that
 * takes half a minute and 162 requests each. A host that is closed, or whose pace has expired, is begun with like a new one.
 */
export function startRateFor(pace: HostPace | null, cap: number, now: number): number {
  const lowest = Math.min(START_RATE, cap * START_SHARE);
  if (pace === null || pace.clean === null || (pace.blocked ?? 0) > 0 || isExpired(pace, now)) return lowest;
  const known = Math.min(pace.rate, pace.clean, cap);
  // Slower than that only where more was refused: answers that were slow for a while are no limit.
  return pace.refused === null ? Math.max(lowest, known) : known;
}
