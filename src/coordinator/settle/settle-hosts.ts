import type { Permit, PermitUse } from '../../core/batch/batch.ts';
import type { Outcome, RobotsOutcome } from '../../core/batch/outcome.ts';
import { failureKind, isOwnFailure, isThrottling } from '../../core/failures.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { compileHostLimits, type HostLimiter } from '../../core/politeness/host-limits.ts';
import { freeAgainAt, guardedGapMs, refusalPauseMs, restMs } from '../../core/politeness/permits.ts';
import type { HostChange } from '../../ports/store.ts';
import type { OpenPermits } from '../hosts/open-permits.ts';

export interface HostReport {
  permit: Permit;
  use: PermitUse;
  outcomes: readonly Outcome[];
  robots: readonly RobotsOutcome[];
  crawlDelayMs: number | null;
}

/** What a report says about a host: its health, and when it may be asked again. */
export function hostChangeOf(
  report: HostReport,
  book: OpenPermits,
  spec: JobSpec,
  now: number,
  limitsOf: HostLimiter = compileHostLimits(spec),
): HostChange {
  const { permit, use } = report;
  const entry = book.entry(permit.host);
  const health = {
    failuresInRow: entry?.failuresInRow ?? 0,
    rests: entry?.rests ?? 0,
    restUntil: entry?.restUntil ?? 0,
    pauseUntil: entry?.pauseUntil ?? 0,
  };
  let isSilent = false;
  for (const result of [...report.robots, ...report.outcomes]) {
    if (result.kind === 'deferred' || result.kind === 'skipped') continue;
    // Given up without a request.
    if (result.kind === 'failed' && (result.code === 'host-down' || result.code === 'robots-unreachable'))
      continue;
    // Our own failures say nothing about the host.
    if (result.kind === 'failed' && isOwnFailure(result.code)) continue;
    if (result.kind !== 'failed' || !failureKind(result.code).hostFault) {
      health.failuresInRow = 0;
      health.rests = 0;
    } else {
      health.failuresInRow++;
    }
    if (result.kind === 'failed' && isThrottling(result.code, result.trace?.httpStatus ?? null)) {
      const asked = 'retryAfterMs' in result ? result.retryAfterMs : null;
      health.pauseUntil = Math.max(health.pauseUntil, now + (asked ?? spec.retry.baseMs));
      isSilent ||= asked === null;
    }
  }
  // Batches that were out when the rest began must not lengthen it.
  if (health.failuresInRow >= spec.breaker.hostFailures && now >= health.restUntil) {
    const { hostProbes, hostRestMs } = spec.breaker;
    const isOneOfMany = spec.politeness.groupBy !== 'host' && health.rests >= hostProbes;
    health.rests = isOneOfMany ? hostProbes + 1 : health.rests + 1;
    // One of the hosts that are counted together is given up: the next of them is not to wait for long.
    health.restUntil = now + restMs(isOneOfMany ? 1 : health.rests, hostRestMs);
  }
  const pace = spec.politeness.adaptive
    ? (entry?.learning.learn(report, limitsOf(permit.host).rate, now) ?? null)
    : null;
  // A host that refuses without saying for how long.
  if (isSilent && pace?.blocked)
    health.pauseUntil = Math.max(health.pauseUntil, now + refusalPauseMs(pace.blocked, spec.retry.baseMs));
  if (entry) Object.assign(entry, health);
  const pauseUntil = Math.max(health.pauseUntil, health.restUntil);
  const gapMs = guardedGapMs(0, report.crawlDelayMs);
  const freeAt = use.finished ? book.release(permit, freeAgainAt(permit, use.lastSentAt, gapMs)) : null;
  const takenUntil = permit.gapMs === 0 ? 0 : (entry?.takenUntil ?? permit.endAt);
  const nextAt = freeAt ?? (pauseUntil > now ? takenUntil : null);
  return {
    host: permit.host,
    sent: use.sent,
    nextAt: nextAt === null ? null : Math.ceil(Math.max(nextAt, pauseUntil)),
    takenUntil: entry?.takenUntil ?? permit.endAt,
    failuresInRow: health.failuresInRow,
    rests: health.rests,
    pace,
    smallestGapMs: use.smallestGapMs ?? null,
    span: spanOf(permit, use),
    lastError: lastErrorOf(report),
  };
}

/** Without a gap, requests of several permits mingle. */
function spanOf({ gapMs }: Permit, { firstSentAt, lastSentAt }: PermitUse): HostChange['span'] {
  if (gapMs === 0 || firstSentAt == null || lastSentAt === null) return null;
  return { from: firstSentAt, to: lastSentAt };
}

/** The newest failure that a request of this report met. */
function lastErrorOf({ outcomes, robots }: HostReport): HostChange['lastError'] {
  let last: HostChange['lastError'] = null;
  for (const result of [...robots, ...outcomes]) {
    if (result.kind !== 'failed' || result.trace === null) continue;
    const at = Math.round(result.trace.startedAt);
    if (last === null || at >= last.at) last = { at, code: result.code, detail: result.detail };
  }
  return last;
}
