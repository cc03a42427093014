/**
 * The words of Seine, and the one state machine behind them.
 *
 * Job      what to scrape and how; validated once, immutable afterwards.
 * Task     one URL of a job. Identity: its normalised URL.
 * Batch    tasks lent to one worker call. Its id is the fencing token: a task
 *          remembers the batch that holds it, and only that batch may settle it.
 * Host     `hostname[:port]`; what rates and parallelism are counted by.
 *
 * A task moves like this, and in no other way:
 *
 *   from     | event                              | to
 *   ---------|------------------------------------|----------------------------
 *   (none)   | enqueue                            | pending
 *   pending  | lease                              | leased
 *   leased   | fetched                            | done
 *   leased   | unchanged                          | unchanged
 *   leased   | skipped                            | skipped
 *   leased   | failed, attempts left, retryable   | pending (due later)
 *   leased   | failed otherwise                   | dead
 *   leased   | redirected, job follows            | pending (at the new URL)
 *   leased   | deferred, lease expired, recovered | pending (not an attempt)
 *   dead     | retry asked for                    | pending
 *   finished | due again in a later pass          | pending
 *
 * accepted = done + unchanged + skipped + dead + pending + leased, always.
 */

export const TASK_STATES = ['pending', 'leased', 'done', 'unchanged', 'skipped', 'dead'] as const;
export type TaskState = (typeof TASK_STATES)[number];

/**
 * `running` in the store with no coordinator alive means the process died: `resume` continues. `waiting`: all URLs are
 * finished, and the job is kept open for more. URLs that are added to a job that is `done` or `waiting` make it `running`.
 */
export const JOB_STATES = ['running', 'waiting', 'done', 'stopped', 'tripped', 'cancelled'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** What an operator wants of a running job; the coordinator looks at it often. */
export type RequestedState = 'run' | 'stop' | 'cancel';

export type Meta = Record<string, unknown>;

/** Kept per job and changed in the transaction that changes the rows, so reading them is O(1). */
export interface Counters {
  accepted: number;
  done: number;
  unchanged: number;
  skipped: number;
  dead: number;
  pending: number;
  leased: number;
  /** Tasks that were requested at least once; those that are put back to be requested anew are not among them. */
  attempted: number;
  records: number;
  bytes: number;
  requests: number;
  batches: number;
  retries: number;
  duplicates: number;
  /** Links refused by a trap budget, and source rows that could not be read as URLs. */
  dropped: number;
  rejected: number;
}

export const COUNTER_NAMES = [
  'accepted',
  'done',
  'unchanged',
  'skipped',
  'dead',
  'pending',
  'leased',
  'attempted',
  'records',
  'bytes',
  'requests',
  'batches',
  'retries',
  'duplicates',
  'dropped',
  'rejected',
] as const satisfies readonly (keyof Counters)[];

export function zeroCounters(): Counters {
  return {
    ...{ accepted: 0, done: 0, unchanged: 0, skipped: 0, dead: 0, pending: 0, leased: 0, attempted: 0 },
    ...{ records: 0, bytes: 0, requests: 0, batches: 0, retries: 0, duplicates: 0, dropped: 0, rejected: 0 },
  };
}

/** The counters must balance at every instant; a store that breaks this has a bug. */
export function balance(counters: Counters): number {
  const { accepted, done, unchanged, skipped, dead, pending, leased } = counters;
  return accepted - done - unchanged - skipped - dead - pending - leased;
}

/** Where a page lies in the archive: gunzip `length` bytes at `offset` of the blob `key`. */
export interface ArchiveRef {
  key: string;
  offset: number;
  length: number;
}

/** A stored object: an image, a video, a file. Its key comes from its bytes. */
export interface MediaRef {
  key: string;
  md5: string;
  /** Name inside a packed shard; null when the object is a blob of its own. */
  member: string | null;
}

/** What is kept of a page besides its text, by the hash of its bytes. A snapshot is of a page that failed, for people. */
export interface ShotRef {
  kind: 'screenshot' | 'pdf' | 'snapshot' | 'snapshot-html';
  key: string;
  type: string;
  bytes: number;
}

/** What the last visit of a URL left behind, to be compared with the next. */
export interface LastVisit {
  etag: string | null;
  lastModified: string | null;
  sha256: string;
  /** The record of the page in the archive: its date, and the SHA-256 of the bytes that it has. */
  archived?: { at: number; sha256: string };
}

/** A URL on its way into the frontier. */
export interface NewTask {
  url: string;
  host: string;
  depth: number;
  priority: number;
  /** Name of the route; null lets the job's routes decide by URL. */
  route: string | null;
  meta: Meta | null;
  /** Redirect hops taken to get here. */
  hops: number;
  /** Set for followed links, whose number per template is limited; null for sources. */
  template: string | null;
  /** When the page last changed, as a sitemap says: a known URL visited before that is due again. */
  modifiedAt: number | null;
  /** The page that links here, where the job wants to know. */
  referrer?: string;
}

/** A task as read back for people: what `export` and the library show. */
export interface TaskRow {
  url: string;
  state: TaskState;
  httpStatus: number | null;
  failureCode: string | null;
  failureDetail: string | null;
  attempts: number;
  bytes: number | null;
  sha256: string | null;
  contentType: string | null;
  archive: ArchiveRef | null;
  media: MediaRef | null;
  /** Pictures of the page, made by a browser. */
  shots: ShotRef[];
  /** X-Robots-Tag and meta robots, as words: `noindex, nofollow`. */
  robotsTags: string | null;
  redirectTo: string | null;
  depth: number;
  priority: number;
  route: string | null;
  host: string;
  fetchedAt: string | null;
  /** How long after that the URL is due for a refresh, where the job adapts these times. */
  revisitSeconds: number | null;
  meta: Meta | null;
}

/** Records belong to the name of a job, over all its runs. */
export interface RecordRow {
  key: string;
  url: string;
  route: string | null;
  data: Record<string, unknown>;
  hash: string;
  createdAt: string;
  /** When its data last changed. */
  updatedAt: string;
  /** When a page last confirmed it; not written more often than the guard interval. */
  checkedAt: string;
  /** When its page was found to be gone (status 404 or 410), as of the last visit; null while it is there. */
  goneAt: string | null;
  /** Of the source row that led to its page. */
  meta: Meta | null;
}

/** One former state of a record. */
export interface RecordVersionRow {
  key: string;
  url: string;
  data: Record<string, unknown>;
  hash: string;
  /** From when to when it held. */
  from: string;
  until: string;
  /** As in RecordRow, of the page that said so. */
  goneAt: string | null;
}

export interface MediaRow {
  /** Where it was fetched from. */
  url: string;
  key: string;
  member: string | null;
  bytes: number;
  md5: string;
  sha256: string;
  contentType: string | null;
  fetchedAt: string;
  /** Pages that show it. */
  referrers: string[];
  meta: Meta | null;
}

/** One picture or print of a page, as a browser made it. */
export interface ShotRow {
  /** The page. */
  url: string;
  kind: ShotRef['kind'];
  key: string;
  type: string;
  bytes: number;
  /** What became of the request, with its status and failure. */
  outcome: string;
  httpStatus: number | null;
  failureCode: string | null;
  route: string | null;
  takenAt: string;
  /** Whether it is of the last visit to the page. */
  latest: boolean;
}

/** How complete the records of a route are, in one pass of a job. */
export interface QualityRow {
  pass: number;
  route: string;
  /** Records that were made, and pages whose record was refused by its checks. */
  records: number;
  invalid: number;
  /** Pages in which nothing was found for a record; absent when there was none. */
  blank?: number;
  /** Records in which a field has a value, by field. */
  filled: Record<string, number>;
}

export interface AttemptRow {
  url: string;
  batch: number;
  worker: string;
  startedAt: string;
  durationMs: number;
  httpStatus: number | null;
  /** `lost`: the worker died or did not answer, so the request may have been sent or not. */
  outcome: string;
  failureCode: string | null;
  /**
   * Why it failed or was lost: for code of the job with file and line, for Lambda with the id of the request, which is in the
   * log of the function.
   */
  detail: string | null;
  bytes: number;
  /** How it was asked for, where that was not the plain way: see docs/identity.md. */
  fetcher: string | null;
  rung: number | null;
  identity: string | null;
  proxy: string | null;
}
