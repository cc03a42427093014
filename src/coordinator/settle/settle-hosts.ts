import { type BanDecision, type HostBan, isBanLike, isBanned, nextBan } from '../../core/bans/bans.ts';
import type { Permit, PermitUse, Report } from '../../core/batch/batch.ts';
import type { Outcome, RobotsOutcome } from '../../core/batch/outcome.ts';
import {
  CLOSED,
  closedByAnswer,
  type HostBreaker,
  type HostBreakerPolicy,
  isFromHost,
  nextHostBreaker,
} from '../../core/circuit-breaker/circuit-breaker.ts';
import { isHostThrottling, isThrottling } from '../../core/failures.ts';
import { isPermanent } from '../../core/giving-up/giving-up.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { nextReachedAt } from '../../core/outage/outage.ts';
import { addressOf, permitAt } from '../../core/pace/address-pace.ts';
import type { HostPace } from '../../core/pace/pace.ts';
import { compileHostLimits, type HostLimiter } from '../../core/politeness/host-limits.ts';
import { freeAgainAt, guardedGapMs, refusalPauseMs } from '../../core/politeness/permits.ts';
import { backoffMs } from '../../core/retry/retry.ts';
import { isOrigin } from '../../core/robots/robots.ts';
import { originOf } from '../../core/url/url-shape.ts';
import type { HostChange, RobotsEntry } from '../../ports/store.ts';
import type { HostEntry, OpenPermits } from '../hosts/open-permits.ts';
import type { OpenBatch } from '../plan/open-batch.ts';

/** What a report says about the host of one permit. */
export interface HostReport {
  /** As its worker kept it: where the host has paces by address, with the gap of that one. */
  permit: Permit;
  /** Where the requests came from. */
  address?: string;
  use: PermitUse;
  outcomes: readonly Outcome[];
  /** How often the page of an outcome was requested, with this time. */
  attemptOf?: (outcome: Outcome) => number;
  urlOf?: (outcome: Outcome) => string;
  robots: readonly RobotsOutcome[];
  crawlDelayMs: number | null;
  /** The permit came back before: a part of the report that was overtaken, or the report of a job that has ended. */
  isLate?: boolean;
}

/** By permit of the batch. Those of which the report says nothing are left out. */
export function hostReportsOf(
  open: OpenBatch,
  report: Report,
  outcomes: readonly Outcome[],
  entries: readonly RobotsEntry[],
): Map<number, HostReport> {
  const reports = new Map<number, HostReport>();
  const taskOf = (outcome: Outcome) => open.tasks.get(outcome.taskId);
  const address = addressOf(report.worker);
  open.batch.permits.forEach((granted, index) => {
    const permit = permitAt(granted, address);
    const use = report.permits[index] ?? (report.final ? unusedOf(permit) : null);
    const isLate = open.released[index] === true;
    if (!use) return;
    const own = outcomes.filter(({ taskId }) => open.tasks.get(taskId)?.permit === index);
    // A part that comes twice has no tasks left, and what was sent is not to be counted again.
    if (own.length === 0 && (isLate || (use.sent === 0 && !use.finished))) return;
    const fetches = open.batch.robots.filter((fetch) => fetch.permit === index);
    const origins = new Set(fetches.map(({ origin }) => origin));
    reports.set(index, {
      permit,
      address,
      use,
      outcomes: own,
      attemptOf: (outcome) => taskOf(outcome)?.attempt ?? 1,
      urlOf: (outcome) => taskOf(outcome)?.url ?? '',
      robots: report.robots.filter(({ origin }) => origins.has(origin)),
      crawlDelayMs: crawlDelayOf(entries, permit.host),
      ...(isLate ? { isLate } : {}),
    });
  });
  return reports;
}

/** A last report that forgets a permit must not keep its host: nothing of it will be sent any more. */
function unusedOf({ host, endAt }: Permit): PermitUse {
  return { host, sent: 0, lastSentAt: endAt, finished: true };
}

function crawlDelayOf(entries: readonly RobotsEntry[], host: string): number | null {
  const delays = entries.map((entry) => (entry.host === host ? (entry.crawlDelayMs ?? 0) : 0));
  return Math.max(0, ...delays) || null;
}

/** Whether the host bans us, and what that means for the tasks of the report. Null when nothing is known of the host. */
export function banDecisionOf(
  { permit, use, outcomes, attemptOf, urlOf, isLate = false }: HostReport,
  permits: OpenPermits,
  spec: Pick<JobSpec, 'retry'>,
  now: number,
): BanDecision | null {
  const entry = permits.entry(permit.host);
  if (!entry) return null;
  const evidence = {
    outcomes,
    attemptOf: attemptOf ?? (() => 1),
    urlOf: urlOf ?? (() => ''),
    isProbe: permit.probe !== undefined,
    probe: permit.probe ? (use.probe ?? null) : null,
    ownProbe: permit.probe ? null : (use.probe ?? null),
    isByAddress: permit.addresses !== undefined,
    areOthersOut: entry.permits > 1,
    isLate,
    isOver: use.finished && use.sent > 0,
  };
  return nextBan(entry.ban, evidence, spec.retry, now);
}

/** What a report means for a host: its health, and when it may be asked again. Notes it with the open permits. */
export function hostChangeOf(
  report: HostReport,
  permits: OpenPermits,
  spec: JobSpec,
  now: number,
  limitsOf: HostLimiter = compileHostLimits(spec),
  decision: BanDecision | null = null,
): HostChange {
  const { permit, use } = report;
  const entry = permits.entry(permit.host);
  const before = entry?.ban ?? null;
  const ban = decision?.ban ?? null;
  if (report.isLate) return lateChangeOf(report, entry, ban, now);
  const health = healthOf(report, entry, ban, { spec, limitsOf, now });
  const { breaker, pace, pauseUntil, reachedAt, failedProbe } = health;
  if (entry)
    Object.assign(entry, breaker, { pauseUntil }, ban && { ban }, reachedAt !== null && { reachedAt });
  const gapMs = guardedGapMs(0, report.crawlDelayMs);
  // Jobs take turns at a host from when it is free, and one without a gap may have been held for long.
  const turnAt = permits.isShared && permit.gapMs === 0 ? now : 0;
  const releasedAt = Math.max(freeAgainAt(permit, use.lastSentAt, gapMs), turnAt);
  const freeAt = use.finished ? permits.release(permit, releasedAt) : null;
  const takenUntil = entry?.takenUntil ?? permit.endAt;
  const quietUntil = Math.max(pauseUntil, breaker.restUntil, ban && isBanned(ban) ? ban.restUntil : 0);
  return {
    host: permit.host,
    sent: use.sent,
    nextAt: nextAtOf({ freeAt, takenUntil: permit.gapMs === 0 ? 0 : takenUntil, quietUntil, now }),
    takenUntil,
    ...(freeAt !== null && permit.gapMs > 0 && quietUntil <= now ? { isPaced: true } : {}),
    failuresInRow: breaker.failuresInRow,
    rests: breaker.rests,
    pace,
    smallestGapMs: use.smallestGapMs ?? null,
    span: spanOf(permit, use),
    lastError: lastErrorOf([...(failedProbe ? [failedProbe] : []), ...report.robots, ...report.outcomes]),
    ...(ban && isNews(before, ban) ? { ban } : {}),
    ...(reachedAt === null ? {} : { reachedAt }),
  };
}

/** What is too late to say how the host is now: that it answered, and what was sent. Its time, rests and pace stay as they are. */
function lateChangeOf(
  { permit, use, robots, outcomes }: HostReport,
  entry: HostEntry | null,
  ban: HostBan | null,
  now: number,
): HostChange {
  const before = entry?.ban ?? null;
  const reachedAt = nextReachedAt(entry?.reachedAt ?? null, [...robots, ...outcomes], now);
  if (entry) Object.assign(entry, ban && { ban }, reachedAt !== null && { reachedAt });
  return {
    host: permit.host,
    sent: use.sent,
    nextAt: null,
    failuresInRow: entry?.failuresInRow ?? 0,
    rests: entry?.rests ?? 0,
    pace: null,
    smallestGapMs: use.smallestGapMs ?? null,
    span: spanOf(permit, use),
    lastError: null,
    ...(ban && isNews(before, ban) ? { ban } : {}),
    ...(reachedAt === null ? {} : { reachedAt }),
  };
}

interface HostHealth {
  breaker: HostBreaker;
  pace: HostPace | null;
  /** Nothing is sent before, because the host asked for fewer requests. */
  pauseUntil: number;
  reachedAt: number | null;
  failedProbe: RobotsOutcome | null;
}

/** What the answers say of the host: whether it works, and which rate it takes. The entry is as it was before them. */
function healthOf(
  report: HostReport,
  entry: HostEntry | null,
  ban: HostBan | null,
  { spec, limitsOf, now }: { spec: JobSpec; limitsOf: HostLimiter; now: number },
): HostHealth {
  const { permit, use, robots } = report;
  const before = entry?.ban ?? null;
  // Where a ban is waited out, refusals say nothing of the health of the host, nor of the rate that it takes.
  const outcomes = ban?.known ? report.outcomes.filter((outcome) => !isBanLike(outcome)) : report.outcomes;
  const results = [...robots, ...outcomes];
  const failedProbe = isBanned(before) ? null : failedProbeOf(permit, use);
  const hasAnswered = use.probe === 'answered' || use.probe === 'refused';
  const breaker = nextHostBreaker(
    hasAnswered ? closedByAnswer(entry ?? CLOSED) : (entry ?? CLOSED),
    failedProbe ? [failedProbe, ...results] : results,
    breakerPolicyOf(spec),
    now,
    (result) => 'taskId' in result && (report.attemptOf?.(result) ?? 1) > 1,
  );
  const cap = limitsOf(permit.host).rate;
  const isNewBan = (ban?.rests ?? 0) > 0 && before?.rests === 0;
  const { pace, blocked, wasUnavailable } =
    spec.politeness.adaptive && entry
      ? learnPace(entry, { ...report, outcomes }, { cap, now, isNewBan })
      : NOTHING_LEARNED;
  const refusal = { blocked, firstMs: spec.retry.baseMs, isUnavailable: wasUnavailable };
  return {
    breaker,
    pace,
    pauseUntil: Math.max(entry?.pauseUntil ?? 0, pauseUntilOf(results, refusal, now)),
    reachedAt: nextReachedAt(entry?.reachedAt ?? null, [...robots, ...report.outcomes], now),
    failedProbe,
  };
}

interface LearnedPace {
  pace: HostPace | null;
  blocked: number;
  wasUnavailable: boolean;
}

const NOTHING_LEARNED: LearnedPace = { pace: null, blocked: 0, wasUnavailable: false };

/** After a ban the host gets less, whatever else the report says. */
function learnPace(
  { learning, addresses, crawlDelayMs }: Pick<HostEntry, 'learning' | 'addresses' | 'crawlDelayMs'>,
  about: HostReport,
  { cap, now, isNewBan }: { cap: number; now: number; isNewBan: boolean },
): LearnedPace {
  // A delay that the report brings is kept from the next permit on.
  const report = { ...about, crawlDelayMs };
  if (report.permit.addresses && report.address !== undefined) {
    const learned = addresses.learn(report, report.address, cap, now);
    const pace = isNewBan ? addresses.slowDown(cap, now) : learned;
    if (pace === null) return NOTHING_LEARNED;
    return { pace, blocked: addresses.blocked, wasUnavailable: addresses.wasUnavailable };
  }
  const learned = learning.learn(report, cap, now);
  const pace = isNewBan ? learning.slowDown(cap, now) : learned;
  if (pace === null) return NOTHING_LEARNED;
  return { pace, blocked: pace.blocked ?? 0, wasUnavailable: learning.wasUnavailable };
}

/** The known page that did not answer, as far as it says something of the host. */
function failedProbeOf({ probe }: Permit, { probeFailure }: PermitUse): RobotsOutcome | null {
  if (!probeFailure || probe?.url == null) return null;
  return { kind: 'failed', origin: originOf(probe.url), ...probeFailure };
}

/**
 * What is counted while the host is unknown stays here: of two reports at the same time, the one that knew nothing may be written
 * last, and made an unknown host of one that had answered.
 */
function isNews(before: HostBan | null, ban: HostBan): boolean {
  return ban.known !== null && (before === null || JSON.stringify(before) !== JSON.stringify(ban));
}

function breakerPolicyOf({ breaker, politeness }: JobSpec): HostBreakerPolicy {
  return { ...breaker, isGroup: politeness.groupBy !== 'host' };
}

/**
 * Until when a host that asked for fewer requests gets none; 0 when it did not ask. A page with status 503 asks only for
 * itself, unless the host is unavailable as a whole.
 */
function pauseUntilOf(
  results: readonly (Outcome | RobotsOutcome)[],
  { blocked, firstMs, isUnavailable }: { blocked: number; firstMs: number; isUnavailable: boolean },
  now: number,
): number {
  let until = 0;
  for (const result of results) {
    if (result.kind !== 'failed' || !isFromHost(result)) continue;
    const status = result.trace?.httpStatus ?? null;
    const askedMs = 'retryAfterMs' in result ? result.retryAfterMs : null;
    const isAsking =
      isUnavailable || !('taskId' in result)
        ? isThrottling(result.code, status)
        : isHostThrottling(result.code, status, askedMs);
    if (!isAsking) continue;
    until = Math.max(until, now + (askedMs ?? refusalPauseMs(blocked, firstMs)));
  }
  return until;
}

/** Null leaves the time as it is: another permit of the host is out, and no pause begins. */
function nextAtOf(times: {
  freeAt: number | null;
  takenUntil: number;
  quietUntil: number;
  now: number;
}): number | null {
  const { freeAt, takenUntil, quietUntil, now } = times;
  const nextAt = freeAt ?? (quietUntil > now ? takenUntil : null);
  return nextAt === null ? null : Math.ceil(Math.max(nextAt, quietUntil));
}

/** A host whose robots.txt fails is asked again after a backoff; null when it does not fail, or will not be asked again. */
export function robotsRetryAt(
  { permit, robots }: HostReport,
  entries: readonly RobotsEntry[],
  context: { retry: JobSpec['retry']; now: number; random: () => number },
): number | null {
  const own = entries.filter(({ host, origin }) => host === permit.host && isOrigin(origin));
  const failures = Math.max(0, ...own.map((entry) => entry.failures));
  if (failures === 0 || robots.some((answer) => answer.kind === 'failed' && isPermanent(answer.code)))
    return null;
  return context.now + backoffMs(failures, context.retry, context.random());
}

/** Without a gap, or from several addresses, requests of several permits mingle. */
function spanOf({ gapMs, addresses }: Permit, { firstSentAt, lastSentAt }: PermitUse): HostChange['span'] {
  if (gapMs === 0 || (addresses?.lanes ?? 1) > 1 || firstSentAt == null || lastSentAt === null) return null;
  return { from: firstSentAt, to: lastSentAt };
}

/** The newest failure that a request of this report met. */
function lastErrorOf(results: readonly (Outcome | RobotsOutcome)[]): HostChange['lastError'] {
  let last: HostChange['lastError'] = null;
  for (const result of results) {
    if (result.kind !== 'failed' || result.trace === null) continue;
    const at = Math.round(result.trace.startedAt);
    if (last === null || at >= last.at) last = { at, code: result.code, detail: result.detail };
  }
  return last;
}
