import type { Explanation } from '../../core/explain/explain.ts';
import type { FailureCode } from '../../core/failures.ts';
import type { Counters, JobState } from '../../core/model.ts';

/** What dashboards show of a run. */

export type HostActivity = 'active' | 'throttled' | 'failing' | 'idle';

export interface HostView {
  host: string;
  state: HostActivity;
  requests: number;
  done: number;
  failed: number;
  /** What it failed with last, and how often in a row: `503`, or a failure code. */
  failing?: { what: string; count: number } | null;
  requestsPerSecond: number;
  p50Ms: number | null;
  p95Ms: number | null;
}

export interface WorkerView {
  name: string;
  batches: number;
  tasks: number;
  tasksPerSecond: number;
  lastSeenAt: number;
}

export interface Tally<Code extends string = string> {
  code: Code;
  count: number;
}

/** A share that fell by ten points or more since the last pass or run. */
export interface QualityDrop {
  /** Null: the share of pages that pass their checks. */
  field: string | null;
  before: number;
  now: number;
}

/** How complete the records of a route are in the present pass. */
export interface RouteQuality {
  route: string;
  /** 0 to 100. */
  score: number;
  records: number;
  invalid: number;
  /** Share of the records in which a field has a value, 0 to 1. */
  fields: Record<string, number>;
  drops: QualityDrop[];
}

export interface Notice {
  at: number;
  level: 'info' | 'warn' | 'error';
  text: string;
}

/** What the tasks of a job are called. */
export type PageUnit = 'pages' | 'images' | 'files';

/** A run as people see it: plain JSON, made anew for each look. */
export interface RunView {
  job: { name: string; state: JobState | 'stopping'; dir: string | null; unit: PageUnit };
  /** Why nothing moves, in one line; null while something does. */
  waitingFor: string | null;
  /** Why it is not faster, in one sentence; null or absent when that is not known. */
  explanation?: string | null;
  at: number;
  startedAt: number;
  elapsedMs: number;
  counters: Counters;
  /** Finished tasks among those accepted so far, 0 to 1. */
  fraction: number;
  pagesPerSecond: number;
  averagePagesPerSecond: number;
  bytesPerSecond: number;
  /** Pages per second in steps of `historyStepMs`, oldest first. */
  history: number[];
  historyStepMs: number;
  /** Null until there is a rate, and when the job does not run; a lower bound while `discovering`. */
  etaMs: number | null;
  /** Between what it may be, as far as the rate has varied; null or absent when that is not known. */
  etaBandMs?: { low: number; high: number } | null;
  /** New tasks still come in. */
  discovering: boolean;
  openBatches: number;
  hosts: HostView[];
  hostsTotal: number;
  /** Failed attempts by code, also those that were tried again with success. */
  failures: Tally<FailureCode>[];
  skips: Tally[];
  /** Dead letters by reason, when the store was asked. */
  dead: Tally[];
  workers: WorkerView[];
  workersTotal: number;
  recent: Notice[];
  /** The last few warnings of the program itself. */
  warnings: Notice[];
}

export interface ViewInput {
  now: number;
  counters: Counters;
  job: { name: string; state: RunView['job']['state']; dir?: string | null; unit?: PageUnit };
  /** Why no batch goes out, as the coordinator and its dispatcher know it. */
  waitingFor?: string | null;
  /** Where the job ends by itself. */
  limits?: { pages: number | null; seconds: number | null };
  sourcesDone: boolean;
  /** How much of the sources is read, by bytes, 0 to 1; null where it is not known. */
  sourcesRead?: number | null;
  /** Dead and skipped tasks by reason, as the store's views have them. */
  tallies?: { state: string; code: string; count: number }[];
  /** When the next waiting task may start, if none can now: the run lasts at least until then. */
  nextDueAt?: number | null;
  /** Why it is not faster, and when it is done. */
  explanation?: Pick<Explanation, 'sentence' | 'eta'> | null;
  hostsMax?: number;
}
