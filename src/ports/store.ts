import type { HostBan } from '../core/bans/bans.ts';
import type { Permit, RobotsFetch, WorkerKind } from '../core/batch/batch.ts';
import type { OutcomeKind, QualityDelta, RecordDraft, StoredPage, Trace } from '../core/batch/outcome.ts';
import type { HostProfile } from '../core/calibration/host-profile.ts';
import type { CostLine } from '../core/cost/cost.ts';
import type { FetchMethod } from '../core/escalation/escalation.ts';
import type { FailureCode, SkipCode } from '../core/failures.ts';
import type { StoredLogEntry } from '../core/host-log/host-log.ts';
import type { SinkSpec } from '../core/job-schema/sink.ts';
import type { LastVisit, Meta, NewTask } from '../core/model.ts';
import type { HostPace } from '../core/pace/pace.ts';
import type { PriorityOf } from '../core/priority/priority.ts';
import type { RevisitBounds } from '../core/revisits/revisit-interval.ts';
import type { Blame } from '../core/suspicion/suspicion.ts';
import type { AlertStore } from './store/alert-store.ts';
import type { EscalationStore } from './store/escalation-store.ts';
import type { JobRemovals } from './store/job-removals.ts';
import type { JobStore, SourcePosition } from './store/job-store.ts';
import type { KeyStore } from './store/key-store.ts';
import type { ProxyStore } from './store/proxy-store.ts';
import type { ReadStore } from './store/read-store.ts';
import type { RequestStore } from './store/request-store.ts';
import type { RollupStore } from './store/rollup-store.ts';
import type { SlotTimeStore } from './store/slot-time-store.ts';
import type { WebhookStore } from './store/webhook-store.ts';
import type { WorkerStore } from './store/worker-store.ts';
import type { Views } from './views.ts';

export type { EscalationRow } from './store/escalation-store.ts';
export type { Job, JobCode, JobStore, SourcePosition } from './store/job-store.ts';
export type {
  ArchivedPage,
  AttemptFilter,
  DeadFilter,
  DeadGroup,
  NumberedAttempt,
  NumberedTask,
  Rewrite,
  RowStep,
  Since,
  TaskFilter,
  Views,
  VisitedPage,
} from './views.ts';

/** All state: jobs, frontier, hosts, records, logs. Each method is one transaction; none costs O(backlog). */
export interface Store {
  readonly jobs: JobStore;
  readonly frontier: Frontier;
  readonly hosts: HostStore;
  readonly escalations: EscalationStore;
  readonly proxies: ProxyStore;
  readonly keys: KeyStore;
  readonly webhooks: WebhookStore;
  readonly alerts: AlertStore;
  readonly rollups: RollupStore;
  readonly slotTimes: SlotTimeStore;
  readonly workers: WorkerStore;
  readonly requests: RequestStore;
  readonly removals: JobRemovals;
  readonly views: Views;
  /** Refuses a table that records cannot be written into; absent where the store has no tables of users. */
  checkSink?(sink: SinkSpec): Promise<void>;
  /** For whoever reads much beside the work; see there. */
  openReads?(): ReadStore;
  close(): Promise<void>;
}

/** A host as planning needs it: how much work it has, when it may be asked next, and how it has fared. */
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
  /** What was learned of how fast it may be asked; null when nothing was. */
  pace: HostPace | null;
  /** Whether it refuses everything since it last answered; null when nothing is known. */
  ban: HostBan | null;
  /** When it was last reached, to about a minute; null when it never was. */
  reachedAt: number | null;
}

export interface DueOptions {
  now: number;
  before: number;
  limit: number;
  /** Jobs that are less urgent: a host that both want is theirs only when they have waited for some seconds. */
  overtakes?: readonly number[];
}

export interface LeaseRequest {
  /**
   * Planned permits, by batch: how many tasks of which host, from when on, and until when the host is taken. A host
   * that turns out to be taken until later than `startAt`, or by another coordinator, is left out. A host with a
   * count of 0 is piggybacked: it joins the batch without tasks.
   */
  batches: {
    grants: { hostId: number; count: number; startAt?: number; nextAt: number }[];
    leaseMs: number;
  }[];
  now: number;
  /** Most batches of suspects that may come back; any number when absent. */
  suspectBatchesMax?: number;
}

export interface LeasedTask {
  id: number;
  url: string;
  hostId: number;
  depth: number;
  route: string | null;
  attempt: number;
  /** How often the host asked for fewer requests instead of answering; absent when it never did. */
  throttles?: number;
  hops: number;
  meta: Meta | null;
  lastVisit: LastVisit | null;
  referrer?: string;
}

export interface LeasedBatch {
  id: number;
  tasks: LeasedTask[];
  /** Piggybacked hosts: they have a permit and no tasks. */
  piggybacked?: number[];
  /** For tasks that may kill their worker: the planned batch whose grants they were lent under. */
  suspectsOf?: number;
  /** Hosts of which only suspects are ready, that were not lent because enough of them are out. */
  waiting?: number[];
  /** The hosts of its tasks and piggybacked hosts as they stand: reports may have changed them since they were due. */
  hosts: readonly HostHealth[];
}

export type HostHealth = Pick<
  DueHost,
  'id' | 'crawlDelayMs' | 'failuresInRow' | 'rests' | 'pace' | 'ban' | 'reachedAt'
>;

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
  /** For `pending`: until it ends, the task comes after all others of its host. */
  lowersPriority?: true;
  countsAsAttempt: boolean;
  /** For `pending`: the host asked for fewer requests, which is counted apart from attempts. */
  throttled?: true;
  /** For a redirect that the task follows: where it goes on. */
  moveTo: { url: string; host: string } | null;
  redirectTo: string | null;
  page: StoredPage | null;
  trace: Trace | null;
  links: NewTask[];
  records: RecordDraft[];
  /** URLs of media that the page shows. */
  shows: string[];
  /** Entries of a list that are of no use, to be counted. */
  rejected?: number;
}

/** How records of a job are written; see docs/records.md. */
export interface RecordRules {
  /** An unchanged record is confirmed again only after this long. */
  guardMs: number;
  history: boolean;
  /** A table of the user that gets them, too. */
  sink?: { spec: SinkSpec; job: string };
}

export interface ReopenOptions {
  now: number;
  visitedBefore: number;
  adapt?: RevisitBounds;
  limit: number;
  source: SourcePosition;
}

export interface HostChange {
  host: string;
  /** Requests sent, for the host's statistics. */
  sent: number;
  /** Null leaves it as it is. */
  nextAt: number | null;
  /**
   * The end of the host's last permit, as far as it was known when this was decided. If the store knows of a later
   * one by now, `nextAt` cannot bring the host's time forward.
   */
  takenUntil?: number;
  /** Only the gap of this job asks for `nextAt`: it may come forward when the job gets another pace. */
  isPaced?: boolean;
  failuresInRow: number;
  rests: number;
  /** Null leaves it as it is. */
  pace: HostPace | null;
  /** Absent or null leaves it as it is. */
  ban?: HostBan | null;
  /** Absent or null leaves it as it is. */
  reachedAt?: number | null;
  /** Shortest time between two requests that was seen; null when there were no two. */
  smallestGapMs: number | null;
  /** First and last request, where a gap is promised: the time since the host's last one before counts, too. */
  span?: { from: number; to: number } | null;
  /** Null leaves the former one. */
  lastError: { at: number; code: string; detail: string } | null;
  /** Text of an entry that is added to the host's log; absent when nothing was sent, or the job keeps no log. */
  log?: string;
}

/** A host that waits for nothing but the gap of a job. */
export interface PacedHost extends DueHost {
  lastSentAt: number;
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
  /** A shard of packed media, kept among the archives of the batch. */
  pack?: { key: string; bytes: number } | null;
  requests: number;
  /** Id of the API key that made the job: its requests are added to what the key has used today. */
  owner: string | null;
  /** Lines that are added to the bill of the job, and their dollars and browser seconds to what its key has used today. */
  costs?: readonly CostLine[];
  perTemplateMax: number | null;
  records: RecordRules;
  /** Absent where intervals do not adapt. */
  revisits?: RevisitBounds;
  quality: QualityDelta[];
  tasks: TaskChange[];
  /** Of tasks that the batch keeps for now: a long list comes in parts. */
  links?: NewTask[];
  hosts: HostChange[];
  robots: RobotsEntry[];
}

export interface SettleResult {
  /** False when the batch was closed or taken back before: nothing was changed. */
  applied: boolean;
  accepted: number;
}

/** What it takes to settle the reports of a batch whose coordinator is gone. No secrets. */
export interface Handover {
  epoch: string;
  needs: WorkerKind;
  permits: Permit[];
  robots: RobotsFetch[];
  /** By task: the index of its permit, and how it was asked for. */
  tasks: { id: number; permit: number; fetchMethod?: FetchMethod }[];
}

export interface AdoptedBatch {
  id: number;
  leaseUntil: number;
  /** Where its reports go; see Dispatcher. */
  replyTo: string;
  handover: Handover | null;
  /** Those that it still holds. */
  tasks: LeasedTask[];
}

export interface ReleaseOptions {
  now: number;
  blame: Blame;
  reason: string;
  /** Hosts of the batch that are free earlier than its permits said; see HostChange. */
  hosts?: readonly { host: string; nextAt: number; takenUntil: number }[];
  /** Texts of entries that are added to the logs of hosts. */
  logs?: readonly HostLogText[];
}

/** An entry for the log of a host; see core/host-log. */
export interface HostLogText {
  host: string;
  text: string;
}

export interface Frontier {
  enqueue(
    jobId: number,
    tasks: NewTask[],
    options: {
      now: number;
      perTemplateMax: number | null;
      source: SourcePosition | null;
      /** They come from outside of the job's sources: a job that is done or waits runs again, if any is new. */
      added?: { rejected: number };
    },
  ): Promise<EnqueueResult>;
  /**
   * Makes finished tasks of earlier passes due again, in the order of their ids, at most `limit` looked at:
   * those last visited before `visitedBefore`, or with `adapt` longer than their own interval before the pass began, and
   * not those whose sitemap dates them before that visit.
   */
  reopen(jobId: number, options: ReopenOptions): Promise<{ reopened: number; source: SourcePosition }>;
  /**
   * Makes one finished task due again, as if it had never been tried, and its job run. False when it is not finished: then
   * it is fetched anyway.
   */
  revisit(jobId: number, taskId: number): Promise<boolean>;
  /** Hosts with ready tasks that may start before `before` and are not in others' hands, the longest waiting first. */
  dueHosts(jobId: number, options: DueOptions): Promise<DueHost[]>;
  /** Hosts as they stand, with tasks or without, unknown ones too; not those that another coordinator holds. */
  hostsNamed(hosts: readonly string[]): Promise<DueHost[]>;
  /**
   * Lends tasks, highest priority first: a batch for each that was planned, which may be smaller than asked, never
   * larger. Suspects are lent when nothing else of their host is ready, in batches of their own, which come after those.
   */
  lease(jobId: number, request: LeaseRequest): Promise<LeasedBatch[]>;
  settle(settlement: Settlement): Promise<SettleResult>;
  /**
   * Takes a batch back. Tasks that were lost too often are dead, see core/suspicion. `isOthers`: another coordinator has the
   * batch and is alive, and nothing was changed.
   */
  release(
    batchId: number,
    options: ReleaseOptions,
  ): Promise<{ returned: number; dead: number; isOthers?: true }>;
  /** Before a batch leaves for a worker that may outlive this coordinator. */
  noteSent(batchId: number, sent: { replyTo: string; handover: Handover | null }): Promise<void>;
  /** Makes an orphan a batch of this coordinator. Null when it is none any more, or was not noted as sent. */
  adopt(jobId: number, batchId: number): Promise<AdoptedBatch | null>;
  /** Batches of this coordinator whose lease ended before `now`. */
  expired(jobId: number, now: number): Promise<number[]>;
  /** Open batches of this coordinator's own former life, and those of others that are gone. For the start of a run. */
  orphans(jobId: number): Promise<number[]>;
  /** Open batches of other coordinators that are gone. */
  abandoned(jobId: number): Promise<number[]>;
  /** When the next host or waiting task becomes due; null when none will. */
  nextDueAt(jobId: number): Promise<number | null>;
  /** The same apart: the host with ready tasks that may be asked first, and when the first waiting task is due. */
  nextDue(jobId: number): Promise<{ host: { host: string; at: number } | null; taskAt: number | null }>;
  /** Makes every task of a host that is not lent a dead letter, at most `limit`; returns how many. */
  failTasksOfHost(
    jobId: number,
    options: { host: string; code: FailureCode; detail: string; now: number; limit: number },
  ): Promise<number>;
  /** Hosts that may not be asked before `until`, for reasons of the job: its hours are closed. */
  postpone(jobId: number, hosts: { hostId: number; until: number }[]): Promise<void>;
  /**
   * Hosts with ready tasks of this job that wait until after `after` for nothing but a gap, the first of them: the gap of this
   * job, or of another one that no longer runs.
   */
  pacedHosts(
    jobId: number,
    options: { gapOf: 'this-job' | 'ended-jobs'; after: number; limit: number },
  ): Promise<PacedHost[]>;
  /** They are due at `nextAt` already, unless something has changed their time since. */
  bringForward(hosts: readonly { hostId: number; from: number; nextAt: number }[]): Promise<void>;
  /**
   * Gives tasks that are not finished another priority, in the order of their ids from `after` on, at most `limit` looked
   * at; null leaves a task as it is. Those that come last because they keep failing still do.
   */
  setPriorities(
    jobId: number,
    options: { after: number; limit: number; priorityOf: PriorityOf },
  ): Promise<{ changed: number; after: number; isDone: boolean }>;
  /** Whether a URL is a task of the job already. */
  knows(jobId: number, url: string): Promise<boolean>;
}

export interface RobotsEntry {
  /** Or the URL of a file to which the robots.txt of an origin redirects. */
  origin: string;
  host: string;
  /** Text as served; empty allows everything. Null: elsewhere, or unreachable, see `failures`. */
  text: string | null;
  fetchedAt: number;
  failures: number;
  detail: string | null;
  crawlDelayMs: number | null;
  redirectTo: string | null;
}

/** Tasks of a host that wait: to be tried again, or for what a worker has to have for them. */
export interface WaitingTasks {
  /** So many at most are counted. */
  count: number;
  /** When the first of them is looked at again. */
  until: number;
  /** Why the first of them failed; null where it has not. */
  code: string | null;
}

/** A host of a job, as it stands now. Times are epoch milliseconds. */
export interface HostFacts {
  host: string;
  /** Tasks that could run now. */
  ready: number;
  /** Tasks that wait for a later time; null where none does. */
  waiting: WaitingTasks | null;
  /** Requests so far, over all jobs. */
  requests: number;
  /** Not asked again before. */
  nextAt: number;
  failuresInRow: number;
  rests: number;
  pace: HostPace | null;
  ban: HostBan | null;
  smallestGapMs: number | null;
  lastError: { at: number; code: string; detail: string } | null;
  robots: RobotsEntry[];
  /** What calibration found; null when it was never calibrated. */
  profile: HostProfile | null;
  /** Other jobs that run and have tasks waiting for it, some of them: they take turns. */
  sharedWith: string[];
}

/** A host by itself, over all jobs. */
export type HostSummary = Omit<
  HostFacts,
  'ready' | 'waiting' | 'smallestGapMs' | 'robots' | 'sharedWith' | 'profile'
>;

export interface CheckpointOptions {
  now: number;
  keepMs: number;
  /** Entries between two checkpoints, at least; a thousand when absent. */
  entries?: number;
}

export interface LogCheckpoint {
  isWritten: boolean;
  /** Entries that were cut. */
  cut: number;
}

export interface HostStore {
  /** Hosts of all jobs by name, those after `after`. */
  listAfter(options: { after: string; limit: number }): Promise<HostSummary[]>;
  /** Hosts of a job by name, those after `after`. */
  listStep(jobId: number, options: { after: string; limit: number }): Promise<HostFacts[]>;
  /** All of them, in bounded steps. */
  list(jobId: number): AsyncIterable<HostFacts>;
  robots(origin: string): Promise<RobotsEntry | null>;
  /** Notes what calibration found, and the pace that follows from it; null leaves the pace as it is. */
  saveProfile(profile: HostProfile, pace: HostPace | null): Promise<void>;
  /** Those that were noted last. */
  profiles(limit: number): Promise<HostProfile[]>;
  /** Adds entries to the logs of hosts, at most one for each. */
  appendLogs(logs: readonly HostLogText[]): Promise<void>;
  /** Writes a checkpoint where it is time for one, and cuts what is before one that is older than `keepMs`. */
  checkpointLog(host: string, options: CheckpointOptions): Promise<LogCheckpoint>;
  /** Entries of a host's log in their order, those after `after`. */
  logStep(host: string, options: { after: number; limit: number }): Promise<StoredLogEntry[]>;
  /** What hosts of a job are counted by, where that was noted. */
  groupsOf(jobId: number, hosts: readonly string[]): Promise<Map<string, string>>;
  /** Notes it. What was noted before stays, so that a host is never counted twice; returns what holds. */
  noteGroups(jobId: number, groups: ReadonlyMap<string, string>): Promise<Map<string, string>>;
  /**
   * A clock that was ahead, and is right again, must not freeze hosts: what was to wait until after `latest` waits until
   * `to`. Returns how many hosts and tasks that were.
   */
  clampNextAt(options: { latest: number; to: number }): Promise<number>;
}
