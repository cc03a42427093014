import type { JobSpec } from '../job-schema/job-schema.ts';

/**
 * How long a page may wait for its next visit, from what its visits found: pages that change often are visited often,
 * pages that never change seldom, within two bounds.
 *
 * A visit says only whether the page changed since the one before, not how often. If changes come at random with a rate,
 * a visit after t finds none with probability exp(-rate × t). Of n visits x found a change: the rate is estimated as
 * ln((n + 0.5) / (n - x + 0.5)) per mean time between them, which neither is infinite when all visits found one nor
 * counts several changes between two visits as one (the estimator of Cho and Garcia-Molina, "Estimating frequency of
 * change", 2003).
 */
export interface VisitHistory {
  /** Last visit that told whether the page changed. */
  visitedAt: number;
  /** Visits after the first, those that found a change, and the time between them: each visit makes older ones count less. */
  visits: number;
  changes: number;
  watchedMs: number;
  intervalMs: number;
  /** The page was not there (status 404 or 410). */
  isGone: boolean;
}

export interface RevisitBounds {
  minMs: number;
  maxMs: number;
}

/** Null where intervals do not adapt: the default. */
export function revisitBoundsOf({ revisit }: Pick<JobSpec, 'revisit'>): RevisitBounds | null {
  const { adapt } = revisit;
  return adapt ? { minMs: adapt.minSeconds * 1_000, maxMs: adapt.maxSeconds * 1_000 } : null;
}

/** What a visit found. `changed`: other content, or other records where the page has records. */
export interface Visit {
  at: number;
  finding: 'changed' | 'same' | 'gone';
}

/** Weight of what was known before, at each visit: some ten visits count, so that a page may take up another habit. */
const MEMORY = 0.9;
/** Chance of a change at which the next visit is due: with a quarter, few changes are missed, and three visits of four are in vain. */
const CHANGE_CHANCE = 0.25;
/** A refresh of every day reaches a page some time after it starts: a page that is not quite due may not wait for the next. */
const DUE_SHARE = 0.9;
/** One visit more than doubles no interval: few visits that found nothing say little. */
const GROWTH_MAX = 2;

/** The history with one visit more. The first visit of a page tells nothing: its interval is the shortest. */
export function addVisit(history: VisitHistory | null, visit: Visit, bounds: RevisitBounds): VisitHistory {
  const isGone = visit.finding === 'gone';
  if (history === null)
    return { visitedAt: visit.at, visits: 0, changes: 0, watchedMs: 0, intervalMs: bounds.minMs, isGone };
  // Clocks of workers differ, and may be set back.
  const elapsedMs = Math.max(1, visit.at - history.visitedAt);
  const isChange = visit.finding === 'changed' || isGone !== history.isGone;
  const next = {
    visitedAt: visit.at,
    visits: history.visits * MEMORY + 1,
    changes: history.changes * MEMORY + (isChange ? 1 : 0),
    watchedMs: history.watchedMs * MEMORY + elapsedMs,
    isGone,
  };
  const longest = GROWTH_MAX * Math.max(history.intervalMs, elapsedMs);
  const wanted = Math.min(longest, Math.log(1 / (1 - CHANGE_CHANCE)) / changesPerMs(next));
  return { ...next, intervalMs: withinBounds(wanted, bounds) };
}

/** Whether a refresh that starts now is to visit a page; bounds may have changed since its interval was chosen. */
export function isIntervalOver(
  { history, visitedAt, now }: { history: VisitHistory | null; visitedAt: number; now: number },
  bounds: RevisitBounds,
): boolean {
  const intervalMs = withinBounds(history?.intervalMs ?? bounds.minMs, bounds);
  return now - visitedAt >= intervalMs * DUE_SHARE;
}

function changesPerMs({ visits, changes, watchedMs }: Omit<VisitHistory, 'intervalMs'>): number {
  return (Math.log((visits + 0.5) / (visits - changes + 0.5)) * visits) / watchedMs;
}

function withinBounds(ms: number, { minMs, maxMs }: RevisitBounds): number {
  return Math.round(Math.min(maxMs, Math.max(minMs, ms)));
}
