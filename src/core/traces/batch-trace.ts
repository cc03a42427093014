import type { WorkerTimes } from '../explain/slot-states.ts';

/** What became of one batch and when; times are epoch milliseconds. */
export interface BatchTrace {
  job: string;
  batchId: number;
  needs: string;
  tasks: number;
  /** The plan that it belongs to began. */
  plannedAt: number;
  sentAt: number;
  endedAt: number;
  /** Null when no report came. */
  worker: string | null;
  /** By the clock of its worker. */
  startedAt: number | null;
  workedMs: number;
  /** What the worker spent its time with. */
  times: WorkerTimes;
  pages: TracedPage[];
  /** When parts of its report were written down. */
  settles: { from: number; to: number; outcomes: number }[];
  /** Why it was lost; null when it was not. */
  lost: string | null;
}

export interface TracedPage {
  url: string;
  attempt: number;
  /** By the clock of the worker. */
  startedAt: number;
  durationMs: number;
  httpStatus: number | null;
  bytes: number;
  fetcher: string;
  /** Code of the failure, if it is one. */
  error: string | null;
}

/** Requests of a batch that have spans of their own: enough to see a pattern, and a bound for what is sent. */
export const TRACED_PAGES_MAX = 100;
