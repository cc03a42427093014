import { checkWorkerTimes } from '../explain/slot-states.ts';
import { FAILURES } from '../failures.ts';
import { type Batch, type PermitUse, type Report, WIRE_VERSION } from './batch.ts';
import type { Outcome, QualityDelta, RobotsOutcome } from './outcome.ts';

/**
 * A report with what nothing can be made of left out, and how much that was. Field names come from pages, and a report
 * comes through Redis or from a function: neither may end the run, or spoil its figures.
 */
export function checkReport(report: Report): { report: Report; problems: string[] } {
  const problems: string[] = [];
  const given: unknown = report.quality;
  const deltas: unknown[] = Array.isArray(given) ? given : [];
  const quality = deltas.filter(isQualityDelta);
  if (quality.length < deltas.length)
    problems.push(`ignored ${deltas.length - quality.length} quality figures that are not valid`);
  let unknownCodes = 0;
  const known = <T extends Outcome | RobotsOutcome>(outcome: T): T => {
    if (outcome.kind !== 'failed' || Object.hasOwn(FAILURES, outcome.code)) return outcome;
    unknownCodes++;
    return { ...outcome, code: 'internal', detail: 'the worker reported an unknown failure code' };
  };
  const checked = { ...report, quality };
  if (report.times !== undefined) checked.times = checkWorkerTimes(report.times);
  if (Array.isArray(report.outcomes)) checked.outcomes = report.outcomes.map(known);
  if (Array.isArray(report.robots)) checked.robots = report.robots.map(known);
  if (Array.isArray(report.permits)) checked.permits = report.permits.map(withKnownProbe);
  if (unknownCodes > 0) problems.push(`replaced ${unknownCodes} unknown failure codes by 'internal'`);
  return { report: checked, problems };
}

/** The probe has failed, for whatever reason. */
function withKnownProbe(use: PermitUse): PermitUse {
  const { probeFailure: failure } = use;
  if (!failure || Object.hasOwn(FAILURES, failure.code)) return use;
  return { ...use, probeFailure: { ...failure, code: 'internal' } };
}

function isQualityDelta(value: unknown): value is QualityDelta {
  if (typeof value !== 'object' || value === null) return false;
  const { route, records, invalid, blank = 0, filled } = value as Partial<QualityDelta>;
  if (typeof route !== 'string' || route.includes('\0')) return false;
  if (![records, invalid, blank].every(isCount)) return false;
  return typeof filled === 'object' && filled !== null && Object.values(filled).every(isCount);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * A report as several, for whoever answers once and not while working: each is settled in a transaction of its
 * own, so none may be huge. Finished tasks come first, those that were put off come with the last.
 */
export function splitReport(report: Report, itemsMax: number): Report[] {
  const groups = groupsOf(report.outcomes, itemsMax);
  if (groups.length === 1) return [report];
  const last = groups.length - 1;
  return groups.map((outcomes, index) => {
    const part: Report = {
      ...report,
      part: report.part + index,
      final: report.final && index === last,
      outcomes,
      archive: outcomes.some(isArchived) ? report.archive : null,
    };
    if (index < last)
      part.permits = report.permits.map(({ host, lastSentAt }) => ({
        host,
        sent: 0,
        lastSentAt,
        finished: false,
      }));
    if (index < last) Object.assign(part, { trouble: null, storageFull: false });
    return index === 0 ? part : withoutSideNotes(part);
  });
}

/** What concerns the whole batch is told once. */
function withoutSideNotes({ cookies: _, proxyFaults: __, times: ___, ...part }: Report): Report {
  return { ...part, robots: [], quality: [], pack: null };
}

function groupsOf(outcomes: readonly Outcome[], itemsMax: number): Outcome[][] {
  const groups: Outcome[][] = [];
  let items = Number.POSITIVE_INFINITY;
  for (const outcome of outcomes) {
    if (outcome.kind === 'deferred') continue;
    const count = itemsOf(outcome);
    if (items + count > itemsMax) {
      groups.push([]);
      items = 0;
    }
    groups.at(-1)!.push(outcome);
    items += count;
  }
  const deferred = outcomes.filter((outcome) => outcome.kind === 'deferred');
  if (deferred.length > 0 || groups.length === 0) groups.push(deferred);
  return groups;
}

/** Rows that the store writes for it. */
function itemsOf(outcome: Outcome): number {
  return outcome.kind === 'fetched' ? 1 + outcome.links.length + outcome.records.length : 1;
}

function isArchived(outcome: Outcome): boolean {
  return 'page' in outcome && outcome.page?.archive != null;
}

/** What is said of a batch that no worker has seen: nothing was asked, and every task goes back. */
export function deferredReport(batch: Batch, options: { worker: string; now: number }): Report {
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: true,
    worker: options.worker,
    startedAt: options.now,
    durationMs: 0,
    permits: batch.permits.map(({ host }) => ({ host, sent: 0, lastSentAt: null, finished: true })),
    robots: batch.robots.map(({ origin }) => ({ kind: 'deferred', origin })),
    outcomes: batch.tasks.map(({ id }) => ({ kind: 'deferred', taskId: id })),
    quality: [],
    archive: null,
  };
}

/** A part that says nothing but how much is still under way, by permit, at hosts where nothing more begins. */
export function givenBackPart(
  batch: Batch,
  { part, worker, startedAt, durationMs }: Pick<Report, 'part' | 'worker' | 'startedAt' | 'durationMs'>,
  underWay: ReadonlyMap<number, number>,
): Report {
  const permits = batch.permits.map(({ host }, index): PermitUse => {
    const use = { host, sent: 0, lastSentAt: null, finished: false };
    const count = underWay.get(index);
    return count === undefined ? use : { ...use, underWay: count };
  });
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part,
    worker,
    startedAt,
    durationMs,
    final: false,
    permits,
    robots: [],
    outcomes: [],
    quality: [],
    archive: null,
  };
}

/**
 * A part ahead of the last report, which waits to be taken: nothing is under way at these hosts any more. Null when that is
 * true of none. What failed may be the host's trouble: who learns of it must read the report.
 */
export function aheadOfReport(batch: Batch, report: Report): Report | null {
  const permitOf = new Map(batch.tasks.map(({ id, permit }) => [id, permit]));
  const troubled = new Set(
    report.outcomes.flatMap(({ kind, taskId }) => (kind === 'failed' ? [permitOf.get(taskId)] : [])),
  );
  const free = batch.permits.flatMap(({ gapMs }, index) =>
    gapMs === 0 && !troubled.has(index) ? [[index, 0] as const] : [],
  );
  return free.length === 0 ? null : givenBackPart(batch, report, new Map(free));
}

/** Whether a part says nothing but what is under way at hosts where nothing more begins. */
export function isGivenBackPart({ final, permits, outcomes, robots, found }: Report): boolean {
  const isAll = !final && outcomes.length === 0 && robots.length === 0 && found === undefined;
  return isAll && permits.some(({ underWay }) => underWay !== undefined);
}

/** A part that says of one task that its code failed, for a worker that cannot say so itself any more. */
export function failureReport(
  batch: Batch,
  { worker, now, taskId, detail }: { worker: string; now: number; taskId: number; detail: string },
): Report {
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: false,
    worker,
    startedAt: now,
    durationMs: 0,
    permits: [],
    robots: [],
    outcomes: [
      { kind: 'failed', taskId, code: 'parse-error', detail, page: null, retryAfterMs: null, trace: null },
    ],
    quality: [],
    archive: null,
  };
}

/**
 * What a report says of tasks that are still to be settled. Cookies and proxies are left out: whoever sent the batch knew
 * what it said about them.
 */
export function unsettledOf(batch: Batch, report: Report): Report {
  if (!Array.isArray(report?.outcomes)) return report;
  const held = new Set(batch.tasks.map(({ id }) => id));
  const { cookies: _, proxyFaults: __, ...rest } = report;
  return {
    ...rest,
    outcomes: report.outcomes.filter((outcome) => held.has(outcome?.taskId)),
    ...(Array.isArray(report.found) ? { found: report.found.filter((each) => held.has(each?.taskId)) } : {}),
  };
}

/** The last part of a batch whose worker ended: what no part tells of goes back. It sent its last request by now. */
export function lostReport(
  batch: Batch,
  parts: readonly Report[],
  { worker, now }: { worker: string; now: number },
): Report {
  const told = new Set(parts.flatMap(({ outcomes }) => outcomes.map(({ taskId }) => taskId)));
  const asked = new Set(parts.flatMap(({ robots }) => robots.map(({ origin }) => origin)));
  const { outcomes, robots, ...rest } = deferredReport(batch, { worker, now });
  return {
    ...rest,
    permits: batch.permits.map(({ host }) => ({ host, sent: 0, lastSentAt: now, finished: true })),
    robots: robots.filter(({ origin }) => !asked.has(origin)),
    outcomes: outcomes.filter(({ taskId }) => !told.has(taskId)),
  };
}

/** Parts of one batch that go out together, none of them huge. */
export function numberParts(parts: readonly Report[], itemsMax: number): Report[] {
  const all = parts.flatMap((part) => splitReport(part, itemsMax));
  return all.map((part, index) => ({ ...part, part: index, final: index === all.length - 1 }));
}
