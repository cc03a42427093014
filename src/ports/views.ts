import type { QualityDelta, RecordDraft } from '../core/batch/outcome.ts';
import type {
  ArchiveRef,
  AttemptRow,
  MediaRow,
  Meta,
  QualityRow,
  RecordRow,
  RecordVersionRow,
  ShotRow,
  TaskRow,
  TaskState,
} from '../core/model.ts';
import type { RecordChanges } from '../core/record-changes/record-changes.ts';

export interface DeadFilter {
  /** One code, or any of several. */
  code?: string | readonly string[];
  host?: string;
  urlContains?: string;
}

export interface DeadGroup {
  code: string;
  host: string;
  count: number;
  sampleUrl: string;
  sampleDetail: string | null;
}

/** Rows that changed at that time or later: fetched, written, started. Epoch milliseconds. */
export interface Since {
  since?: number;
}

/** A task with its number, which later pages of a list begin after. */
export interface NumberedTask extends TaskRow {
  id: number;
}

export interface NumberedAttempt extends AttemptRow {
  id: number;
}

export interface TaskFilter {
  states?: readonly TaskState[];
  host?: string;
  code?: string;
  urlContains?: string;
}

export interface AttemptFilter {
  outcome?: string;
  host?: string;
  code?: string;
  urlContains?: string;
}

/** Rows with higher numbers than `after`. A step looks at a bounded number of rows, so it may bring fewer than `limit`. */
export interface RowStep<T> {
  rows: T[];
  /** Where the next step begins. */
  after: number;
  /** No row is left. */
  isEnd: boolean;
}

/** A page that can be parsed again. */
export interface ArchivedPage {
  taskId: number;
  url: string;
  /** The route that the task was given by name; null lets the URL decide. */
  route: string | null;
  state: TaskState;
  failureCode: string | null;
  depth: number;
  archive: ArchiveRef;
  /** Of the decoded body, as it was fetched. */
  sha256: string | null;
  fetchedAt: number;
  meta: Meta | null;
}

/** A page of a task as one of its visits found it. */
export type VisitedPage = Pick<ArchivedPage, 'taskId' | 'archive' | 'sha256' | 'fetchedAt'>;

/** What today's code makes of archived pages: replaces what these tasks had written. */
export interface Rewrite {
  now: number;
  history: boolean;
  tasks: {
    taskId: number;
    /** When the page was fetched. */
    at: number;
    records: RecordDraft[];
    /** `done`: a former parse-error or validation failure is lifted; `dead`: the page does not parse now. */
    to: 'done' | 'dead';
    code: 'parse-error' | 'validation' | null;
    detail: string | null;
  }[];
  /** Media that pages show, where today's code looks for some: in the place of those they showed before. */
  shown?: { taskId: number; urls: string[] }[];
  quality: QualityDelta[];
  /** The first piece replaces the quality of the present pass, the others add to it. */
  first: boolean;
}

export interface QueryOptions {
  /** Ends the query: it fails with the signal's reason. */
  signal?: AbortSignal;
  /** How long it may take until its first row; ten minutes when absent. */
  timeMs?: number;
}

/** For people: listings and exports, streamed in bounded pieces, readable while a job runs. */
export interface Views {
  tasks(jobId: number, options?: Since): AsyncIterable<TaskRow>;
  /** Of the job's name, over all its runs; `ownOnly`: those that this run wrote last. */
  records(jobId: number, options?: Since & { ownOnly?: boolean }): AsyncIterable<RecordRow>;
  /** Former states of records, where the job keeps them, oldest first within a key. */
  history(jobId: number, options?: Since): AsyncIterable<RecordVersionRow>;
  attempts(jobId: number, options?: Since): AsyncIterable<AttemptRow>;
  media(jobId: number, options?: Since): AsyncIterable<MediaRow>;
  /** Pictures of pages, as a browser made them, the newest first. */
  shots(jobId: number, options?: Since): AsyncIterable<ShotRow>;
  /** Newest archived page of each task that has one and is finished. */
  pages(jobId: number): AsyncIterable<ArchivedPage>;
  /** Every archived page of every visit, the oldest first: tasks have one for each visit at which they had changed. */
  visitedPages(jobId: number): AsyncIterable<VisitedPage>;
  record(jobId: number, key: string): Promise<RecordRow | null>;
  /** Records whose data a task wrote last. */
  recordsOf(taskId: number): Promise<RecordRow[]>;
  task(jobId: number, url: string): Promise<TaskRow | null>;
  /** The number of the task of a URL. */
  taskId(jobId: number, url: string): Promise<number | null>;
  numberedTask(taskId: number): Promise<NumberedTask | null>;
  taskStep(
    jobId: number,
    options: TaskFilter & { after: number; limit: number },
  ): Promise<RowStep<NumberedTask>>;
  /**
   * Attempts of a task, the newest first: those that failed, were lost or redirected, the last one, and the one that brought the page.
   * Earlier ones that succeeded, in former passes, are in `attempts` alone.
   */
  attemptsOf(taskId: number, limit: number): Promise<NumberedAttempt[]>;
  attemptStep(
    jobId: number,
    options: AttemptFilter & { after: number; limit: number },
  ): Promise<RowStep<NumberedAttempt>>;
  /** Records by key, from the one after `after` on. */
  recordStep(
    jobId: number,
    options: { after: string | null; limit: number },
  ): Promise<{ rows: RecordRow[]; after: string | null }>;
  /** Former states of one record, the newest first. */
  versionsOf(jobId: number, key: string, limit: number): Promise<RecordVersionRow[]>;
  dead(jobId: number, filter?: DeadFilter): Promise<DeadGroup[]>;
  retryDead(jobId: number, filter: DeadFilter, now: number): Promise<number>;
  /** Dead and skipped tasks by reason, in constant time. */
  tallies(jobId: number): Promise<{ state: string; code: string; count: number }[]>;
  /** By route, of one pass of a run; constant time. */
  quality(jobId: number, pass: number): Promise<QualityRow[]>;
  /** The newest pass of the run that has any: one in which nothing changed has none. */
  lastQualityPass(jobId: number): Promise<number | null>;
  /** What one pass of the run changed among the records; constant time. */
  recordChanges(jobId: number, pass: number): Promise<RecordChanges>;
  hasArchive(jobId: number, key: string): Promise<boolean>;
  rewrite(jobId: number, rewrite: Rewrite): Promise<void>;
  /**
   * Rows of a SQL query of a person over the documented views `seine_tasks` and `seine_records`. It can read nothing
   * else, change nothing, and keep nothing else waiting.
   */
  query(sql: string, options?: QueryOptions): AsyncIterable<Record<string, unknown>>;
}
