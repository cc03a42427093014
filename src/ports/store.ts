import type { FailureCode, SkipCode } from '../core/failures.ts';
import type { JobSpec } from '../core/job.ts';
import type {
  AttemptRow,
  Counters,
  JobState,
  JobWish,
  Meta,
  NewTask,
  RecordRow,
  TaskRow,
} from '../core/model.ts';
import type { OutcomeKind, RecordDraft, StoredPage, Trace } from '../core/outcome.ts';

/** All state: jobs, frontier, hosts, records, logs. Each method is one transaction; none costs O(backlog). */
export interface Store {
  readonly jobs: JobStore;
  readonly frontier: Frontier;
  readonly hosts: HostStore;
  readonly views: Views;
  close(): Promise<void>;
}

export interface Job {
  id: number;
  name: string;
  /** Counts the runs of this name from 1; `name-run` names one of them. */
  run: number;
  spec: JobSpec;
  specHash: string;
  /** Blob key of the job's code. */
  bundle: string | null;
  state: JobState;
  wish: JobWish;
  /** Why the job is stopped or tripped, for people. */
  reason: string | null;
  createdAt: number;
  endedAt: number | null;
  /** Time spent working, over all resumes. */
  workedMs: number;
}

export interface JobStore {
  create(job: {
    name: string;
    spec: JobSpec;
    specHash: string;
    bundle: string | null;
    now: number;
  }): Promise<Job>;
  get(id: number): Promise<Job>;
  /** By name (its newest run) or `name-run`; null asks for the newest job. */
  find(name: string | null): Promise<Job | null>;
  list(limit: number): Promise<Job[]>;
  counters(jobId: number): Promise<Counters>;
  update(
    jobId: number,
    change: Partial<Pick<Job, 'state' | 'wish' | 'reason' | 'endedAt' | 'workedMs' | 'spec'>>,
  ): Promise<void>;
  wish(jobId: number): Promise<JobWish>;
  /** How far each source of the job has been read. */
  sources(jobId: number): Promise<SourcePosition[]>;
}

/** `position` is opaque to the store: the source alone knows how to continue from it. */
export interface SourcePosition {
  source: number;
  position: string | null;
  done: boolean;
  rows: number;
  rejected: number;
}

/** A task that waits for a slot of its host. */
export interface DueHost {
  id: number;
  host: string;
  /** Tasks that could run now. */
  ready: number;
  /** No permit may start earlier: the end of the last one, or of a rest. */
  nextAt: number;
  crawlDelayMs: number | null;
  failuresInRow: number;
  /** Rests in a row without a success in between. */
  rests: number;
}

export interface LeaseRequest {
  /** Planned permits, by batch: how many tasks of which host, and until when the host is taken. */
  batches: { grants: { hostId: number; count: number; nextAt: number }[]; leaseMs: number }[];
  now: number;
}

export interface LeasedTask {
  id: number;
  url: string;
  hostId: number;
  depth: number;
  route: string | null;
  attempt: number;
  hops: number;
  meta: Meta | null;
}

export interface LeasedBatch {
  id: number;
  tasks: LeasedTask[];
}

export interface EnqueueResult {
  accepted: number;
  duplicates: number;
  /** Refused by the budget of their URL template. */
  dropped: number;
}

/** What becomes of one task; applied only while the batch still holds it. */
export interface TaskChange {
  id: number;
  outcome: OutcomeKind;
  to: 'done' | 'unchanged' | 'skipped' | 'dead' | 'pending';
  code: FailureCode | SkipCode | null;
  detail: string | null;
  /** For `pending`: not before. */
  dueAt: number | null;
  countsAsAttempt: boolean;
  /** For a redirect that the task follows: where it goes on. */
  moveTo: { url: string; host: string } | null;
  redirectTo: string | null;
  page: StoredPage | null;
  trace: Trace | null;
  links: NewTask[];
  records: RecordDraft[];
}

export interface HostChange {
  host: string;
  /** Requests sent, for the host's statistics. */
  sent: number;
  /** Null leaves it as it is. */
  nextAt: number | null;
  failuresInRow: number;
  rests: number;
}

export interface Settlement {
  jobId: number;
  batchId: number;
  now: number;
  worker: string;
  /** The last report of the batch: closes it. Tasks it does not mention go back. */
  final: boolean;
  durationMs: number;
  archive: { key: string; bytes: number } | null;
  requests: number;
  perTemplateMax: number | null;
  tasks: TaskChange[];
  hosts: HostChange[];
  robots: RobotsEntry[];
}

export interface SettleResult {
  /** False when the batch was closed or taken back before: nothing was changed. */
  applied: boolean;
  accepted: number;
}

export interface Frontier {
  enqueue(
    jobId: number,
    tasks: NewTask[],
    options: { now: number; perTemplateMax: number | null; source: SourcePosition | null },
  ): Promise<EnqueueResult>;
  /** Hosts with ready tasks that may start before `before`, the longest waiting first. */
  dueHosts(jobId: number, options: { now: number; before: number; limit: number }): Promise<DueHost[]>;
  /** Lends tasks, highest priority first. A batch may come back smaller than asked, never larger. */
  lease(jobId: number, request: LeaseRequest): Promise<LeasedBatch[]>;
  settle(settlement: Settlement): Promise<SettleResult>;
  /** Takes a batch back. `suspect`: its worker died, so each task that has died often enough is dead. */
  release(
    batchId: number,
    options: { now: number; suspect: boolean; reason: string },
  ): Promise<{ returned: number; dead: number }>;
  /** Batches whose lease ended before `now`. */
  expired(jobId: number, now: number): Promise<number[]>;
  /** All open batches of a coordinator that is gone. Only for the owner of the folder or job. */
  orphans(jobId: number): Promise<number[]>;
  /** When the next host or waiting task becomes due; null when none will. */
  nextDueAt(jobId: number): Promise<number | null>;
  /** Makes every ready task of a host a dead letter, at most `limit`; returns how many. */
  condemn(
    jobId: number,
    options: { host: string; code: FailureCode; detail: string; now: number; limit: number },
  ): Promise<number>;
  /** Whether a URL is a task of the job already. */
  knows(jobId: number, url: string): Promise<boolean>;
}

export interface RobotsEntry {
  origin: string;
  host: string;
  /** Text as served; empty allows everything. Null: not to be had, see `failures`. */
  text: string | null;
  fetchedAt: number;
  failures: number;
  detail: string | null;
  crawlDelayMs: number | null;
}

export interface HostStore {
  robots(origin: string): Promise<RobotsEntry | null>;
  /** A clock that was set back must not freeze hosts: no rest may end later than `latest`. */
  clampNextAt(latest: number): Promise<void>;
}

export interface DeadFilter {
  code?: string;
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

/** For people: listings and exports, streamed in bounded pieces, readable while a job runs. */
export interface Views {
  tasks(jobId: number): AsyncIterable<TaskRow>;
  records(jobId: number): AsyncIterable<RecordRow>;
  attempts(jobId: number): AsyncIterable<AttemptRow>;
  task(jobId: number, url: string): Promise<TaskRow | null>;
  dead(jobId: number, filter?: DeadFilter): Promise<DeadGroup[]>;
  retryDead(jobId: number, filter: DeadFilter, now: number): Promise<number>;
  /** Dead and skipped tasks by reason, in constant time. */
  tallies(jobId: number): Promise<{ state: string; code: string; count: number }[]>;
  hasArchive(jobId: number, key: string): Promise<boolean>;
}
