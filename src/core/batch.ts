import type { JobSpec } from './job.ts';
import type { Meta } from './model.ts';
import type { Outcome, RobotsOutcome } from './outcome.ts';

/** The wire format between coordinator and workers: plain JSON, self-contained, no bodies. */
export const WIRE_VERSION = 1;

/**
 * The right to send requests to one host, good from `startAt` to `endAt` only.
 * The next permit for the host never starts before `endAt`, and the last request
 * under this one is sent at `endAt - gapMs` at the latest, so the gap holds between
 * permits without anyone asking anyone.
 */
export interface Permit {
  host: string;
  /** Epoch milliseconds. */
  startAt: number;
  endAt: number;
  /** Least time between two requests; 0 means only parallelism limits. */
  gapMs: number;
  parallel: number;
}

export interface BatchTask {
  id: number;
  url: string;
  /** Index into `permits`. */
  permit: number;
  depth: number;
  route: string | null;
  attempt: number;
  hops: number;
  meta: Meta | null;
}

/** robots.txt of `origin`, wanted before its pages; `url` differs after a redirect. */
export interface RobotsFetch {
  origin: string;
  url: string;
  permit: number;
}

export interface BatchJob {
  id: number;
  name: string;
  /** Workers compile a spec once and keep it by this hash. */
  specHash: string;
  spec: JobSpec;
  /** Blob key of the job's code, when it has handlers. */
  bundle: string | null;
  /**
   * Changes whenever a report was lost or refused. Workers do not report a link twice within
   * an epoch; a new one makes them forget, so links of a lost report are found again.
   */
  epoch: string;
}

export interface Batch {
  version: typeof WIRE_VERSION;
  id: number;
  job: BatchJob;
  /** The worker must have answered by then; what is left is deferred. */
  budgetMs: number;
  permits: Permit[];
  robots: RobotsFetch[];
  tasks: BatchTask[];
  /** Parts append their number and the file ending. */
  archiveKey: string;
}

/** What became of a permit since the last report: lets the coordinator hand out unused time again. */
export interface PermitUse {
  host: string;
  sent: number;
  /** Epoch milliseconds of the last request, or null when none was sent. */
  lastSentAt: number | null;
  /** No further request will be sent under this permit. */
  finished: boolean;
}

/**
 * What a worker says of a batch. A batch with a slow host in it answers in parts, so that
 * finished tasks need not wait for the slow ones; each task is in exactly one part.
 */
export interface Report {
  version: typeof WIRE_VERSION;
  batchId: number;
  part: number;
  final: boolean;
  worker: string;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  permits: PermitUse[];
  robots: RobotsOutcome[];
  outcomes: Outcome[];
  archive: { key: string; bytes: number } | null;
}
