import type { Permit, PermitUse } from '../core/batch.ts';
import { failureKind } from '../core/failures.ts';
import type { JobSpec } from '../core/job.ts';
import type { Outcome, RobotsOutcome } from '../core/outcome.ts';
import { freeAgainAt, guardedGapMs, restMs } from '../core/politeness.ts';
import type { HostChange } from '../ports/store.ts';
import type { PermitBook } from './permit-book.ts';

export interface HostReport {
  permit: Permit;
  use: PermitUse;
  outcomes: readonly Outcome[];
  robots: readonly RobotsOutcome[];
  crawlDelayMs: number | null;
}

/** What a report says about a host: its health, and when it may be asked again. */
export function hostChangeOf(report: HostReport, book: PermitBook, spec: JobSpec, now: number): HostChange {
  const { permit, use } = report;
  const entry = book.entry(permit.host);
  const health = {
    failuresInRow: entry?.failuresInRow ?? 0,
    rests: entry?.rests ?? 0,
    restUntil: entry?.restUntil ?? 0,
  };
  let pauseUntil = 0;
  for (const result of [...report.robots, ...report.outcomes]) {
    if (result.kind === 'deferred' || result.kind === 'skipped') continue;
    if (result.kind !== 'failed' || !failureKind(result.code).hostFault) {
      health.failuresInRow = 0;
      health.rests = 0;
    } else {
      health.failuresInRow++;
    }
    if (result.kind === 'failed' && failureKind(result.code).retry === 'throttled') {
      const asked = 'retryAfterMs' in result ? result.retryAfterMs : null;
      pauseUntil = Math.max(pauseUntil, now + (asked ?? spec.retry.baseMs));
    }
  }
  // Batches that were out when the rest began must not lengthen it.
  if (health.failuresInRow >= spec.breaker.hostFailures && now >= health.restUntil) {
    health.rests++;
    health.restUntil = now + restMs(health.rests, spec.breaker.hostRestMs);
  }
  if (entry) Object.assign(entry, health);
  pauseUntil = Math.max(pauseUntil, health.restUntil);
  const last = use.finished && book.release(permit);
  const gapMs = guardedGapMs(0, report.crawlDelayMs);
  const takenUntil = permit.gapMs === 0 ? 0 : (entry?.takenUntil ?? permit.endAt);
  const freeAt = last ? freeAgainAt(permit, use.lastSentAt, gapMs) : takenUntil;
  return {
    host: permit.host,
    sent: use.sent,
    nextAt: last || pauseUntil > now ? Math.ceil(Math.max(freeAt, pauseUntil)) : null,
    failuresInRow: health.failuresInRow,
    rests: health.rests,
  };
}
