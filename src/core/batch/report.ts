import { type Batch, type Report, WIRE_VERSION } from './batch.ts';
import type { Outcome } from './outcome.ts';

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
    if (index < last) part.trouble = null;
    return index === 0 ? part : withoutSideNotes(part);
  });
}

/** What concerns the whole batch is told once. */
function withoutSideNotes({ cookies: _, proxyFaults: __, ...part }: Report): Report {
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
