import {
  type Batch,
  type Permit,
  type PermitUse,
  type Report,
  WIRE_VERSION,
} from '../../core/batch/batch.ts';
import type { Discovered, Outcome, QualityDelta, StoredPage } from '../../core/batch/outcome.ts';

/** Links in one part of a report: a sitemap may have 50,000, which would keep all others waiting for seconds. */
export const LINKS_PER_REPORT = 5_000;

/**
 * The links of an outcome that go ahead of it, in parts; no more than one part carries stay with it. Null when it has no
 * more than that. Should the worker die in between, the task is done again, and its links are known by then.
 */
export function splitLinks(outcome: Outcome): { ahead: Discovered[][]; rest: Outcome } | null {
  const max = LINKS_PER_REPORT;
  if (outcome.kind !== 'fetched' || outcome.links.length <= max) return null;
  const { links } = outcome;
  const ahead: Discovered[][] = [];
  let at = 0;
  for (; links.length - at > max; at += max) ahead.push(links.slice(at, at + max));
  return { ahead, rest: { ...outcome, links: links.slice(at) } };
}

/** A part that says nothing but what a task has found so far. */
export function linksPart(
  batch: Batch,
  about: Pick<Report, 'part' | 'worker' | 'startedAt' | 'durationMs'>,
  taskId: number,
  links: Discovered[],
): Report {
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    ...about,
    final: false,
    permits: [],
    robots: [],
    outcomes: [],
    found: [{ taskId, links }],
    quality: [],
    archive: null,
  };
}

/** For a batch that could not be started: no request was sent under its permits. */
export function unused({ host }: Permit): PermitUse {
  return { host, sent: 0, lastSentAt: null, finished: true };
}

/** Nothing may be done without its page: these tasks go back. The new epoch finds their links again. */
export function deferUnstored(outcomes: Outcome[], isLost: (page: StoredPage) => boolean): Outcome[] {
  return outcomes.map((outcome) => {
    const page = 'page' in outcome ? outcome.page : null;
    if (page === null || !isLost(page)) return outcome;
    return { kind: 'deferred', taskId: outcome.taskId };
  });
}

/** Adds up what the records of a batch look like, until the next report takes the sums. */
export class QualitySum {
  #routes = new Map<string, QualityDelta>();

  add({ route, records, invalid, blank = 0, filled }: QualityDelta): void {
    let sum = this.#routes.get(route);
    if (!sum) {
      sum = { route, records: 0, invalid: 0, filled: Object.create(null) as QualityDelta['filled'] };
      this.#routes.set(route, sum);
    }
    sum.records += records;
    sum.invalid += invalid;
    if (blank > 0) sum.blank = (sum.blank ?? 0) + blank;
    for (const [field, count] of Object.entries(filled)) sum.filled[field] = (sum.filled[field] ?? 0) + count;
  }

  take(): QualityDelta[] {
    const taken = [...this.#routes.values()];
    this.#routes = new Map();
    return taken;
  }
}
