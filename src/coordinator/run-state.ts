import { randomBytes } from 'node:crypto';
import type { WorkerKind } from '../core/batch/batch.ts';
import type { Outcome } from '../core/batch/outcome.ts';
import { addBatchTime, type BatchTimes, NO_BATCH_TIMES } from '../core/batch-size/batch-size.ts';
import { addSize, NO_SIZES, type PageSizes } from '../core/byte-limit/byte-limit.ts';
import { defaultUserAgent } from '../core/identity/identity.ts';
import { productToken } from '../core/robots/robots.ts';
import { type Clock, type Logger, type Random, startTimer } from '../ports/ambient.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { Job, Store } from '../ports/store.ts';
import type { TraceSink } from '../ports/trace-sink.ts';
import { BanLog } from './bans/ban-log.ts';
import { BudgetWatch, type CostRules } from './budget/budget-watch.ts';
import { JobBreaker } from './circuit-breaker/job-breaker.ts';
import { type EscalationPolicy, openEscalationPolicy } from './escalation/escalation-policy.ts';
import { SlotAccountant } from './explain/slot-accountant.ts';
import { GivenUp } from './giving-up/giving-up.ts';
import { HostGroups } from './hosts/host-groups.ts';
import { OpenPermits } from './hosts/open-permits.ts';
import { OutageWatch } from './outage/outage-watch.ts';
import type { OpenBatch } from './plan/open-batch.ts';
import { TaskPriorities } from './priority/task-priorities.ts';
import { AccessAssigner } from './proxies/access-assigner.ts';
import type { JobAccess } from './proxies/job-access.ts';
import type { Progress } from './reports/progress.ts';
import type { ParsedRobots } from './robots/parsed-robots.ts';
import { RobotsCache } from './robots/robots-cache.ts';
import { HostRollups } from './rollups/host-rollups.ts';
import { ScalingWatch } from './scaling/scaling-watch.ts';
import type { SourceFeeder } from './sources/source-feeder.ts';
import { StoragePause } from './storage/storage-pause.ts';
import type { StoreRoom } from './storage/store-room.ts';
import { TailWatch } from './tail/tail-watch.ts';
import { TimeoutLearner } from './timeouts/timeout-learner.ts';
import { BatchTracer } from './traces/batch-tracer.ts';

export interface CoordinatorOptions {
  store: Store;
  blobs: Blobs;
  dispatcher: Dispatcher;
  job: Job;
  feeder: SourceFeeder;
  progress: Progress;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** For jobs with proxies or a remote scraping API. */
  access?: JobAccess | null;
  /** What rates are counted by; by names alone when absent. */
  groups?: HostGroups;
  /** Shared with what feeds the sources; of the job alone when absent. */
  priorities?: TaskPriorities;
  /** What is out for which host, where several jobs of this process share their hosts. */
  permits?: OpenPermits;
  /** Shared in the same way; of the job alone when absent. */
  parsedRobots?: ParsedRobots;
  /** Where the store waits for room: a run that is asked to stop does not wait any longer. */
  room?: StoreRoom;
  /** How long a job that is kept open stays ready for more URLs before its run ends. */
  lingerMs?: number;
  /** Free bytes where the job writes; null when not known. */
  diskFree(): Promise<number | null>;
  /** What costs are counted by; the default prices when absent. */
  costs?: CostRules;
  /** How long entries of host logs are kept; a year when absent. */
  hostLogMs?: number;
  /** Where traces of batches go; absent when nobody asked for them. */
  traces?: TraceSink | undefined;
  /** Another part of this process writes down how the workers are. */
  isHealthNoted?: boolean;
}

/**
 * What is under way: the only state that a coordinator keeps in memory, and may lose. One for each run of a job, made of
 * parts; each class of the coordinator takes those that it uses.
 */
export interface RunState {
  batches: OpenBatches;
  permits: OpenPermits;
  storage: StoragePause;
  breaker: JobBreaker;
  pageSizes: LearnedSizes;
  batchTimes: LearnedBatchTimes;
  wake: Wake;
  robots: RobotsCache;
  groups: HostGroups;
  givenUp: GivenUp;
  priorities: TaskPriorities;
  bans: BanLog;
  outages: OutageWatch;
  rollups: HostRollups;
  accountant: SlotAccountant;
  tracer: BatchTracer;
  budget: BudgetWatch;
  scaling: ScalingWatch;
  /** Null when the job waits for its last tasks. */
  tail: TailWatch | null;
  /** Null unless the job wants its timeouts learned. */
  timeouts: TimeoutLearner | null;
  /** Null when every request goes the plain way. */
  escalation: EscalationPolicy | null;
  /** Null when the job has no proxies and no remote scraping API. */
  access: AccessAssigner | null;
}

export function openRunState(options: CoordinatorOptions): RunState {
  const { store, job, random } = options;
  const { identity, retry } = job.spec;
  const product = productToken(identity.userAgent ?? defaultUserAgent(identity.contact));
  return {
    batches: new OpenBatches(),
    permits: options.permits ?? new OpenPermits(),
    storage: new StoragePause({ ...options, diskFreeBytes: job.spec.limits.diskFreeBytes }),
    breaker: new JobBreaker(),
    pageSizes: new LearnedSizes(),
    batchTimes: new LearnedBatchTimes(),
    wake: new Wake(options.clock),
    robots: new RobotsCache(store.hosts, product, retry, options.parsedRobots),
    groups: options.groups ?? new HostGroups(options),
    givenUp: new GivenUp(),
    priorities: options.priorities ?? new TaskPriorities(job),
    bans: new BanLog(options),
    outages: new OutageWatch(options),
    rollups: new HostRollups(),
    accountant: new SlotAccountant(options),
    tracer: new BatchTracer(options),
    budget: new BudgetWatch(options),
    scaling: new ScalingWatch(options),
    tail: job.spec.tail === 'repeat' || job.spec.tail === 'defer' ? new TailWatch(options) : null,
    timeouts: job.spec.timeouts.adaptive ? new TimeoutLearner(options) : null,
    escalation: openEscalationPolicy(job.spec, job.name, () => random.next(), options.costs?.prices),
    access: options.access ? new AccessAssigner(options.access, options) : null,
  };
}

/** Batches that are out, by id, and the epoch that the next ones belong to. */
export class OpenBatches {
  readonly #batches = new Map<number, OpenBatch>();
  readonly #epochBase = randomBytes(6).toString('hex');
  #epoch = 0;

  get size(): number {
    return this.#batches.size;
  }

  add(open: OpenBatch): void {
    this.#batches.set(open.batch.id, open);
  }

  get(batchId: number): OpenBatch | undefined {
    return this.#batches.get(batchId);
  }

  delete(batchId: number): void {
    this.#batches.delete(batchId);
  }

  all(): Iterable<OpenBatch> {
    return this.#batches.values();
  }

  count(kind: WorkerKind): number {
    let count = 0;
    for (const { batch } of this.#batches.values()) if (batch.needs === kind) count++;
    return count;
  }

  get suspects(): number {
    let count = 0;
    for (const { batch } of this.#batches.values()) if (batch.suspects) count++;
    return count;
  }

  /** Within one, workers report a link once. */
  get epoch(): string {
    return `${this.#epochBase}.${this.#epoch}`;
  }

  /** A report was lost or refused: workers must report its links again. */
  beginEpoch(): void {
    this.#epoch++;
  }
}

/** How large the pages of this run are, for a limit of bytes. */
export class LearnedSizes {
  #sizes: PageSizes = NO_SIZES;

  get sizes(): PageSizes {
    return this.#sizes;
  }

  learn(outcomes: readonly Outcome[]): void {
    for (const outcome of outcomes)
      if (outcome.kind !== 'deferred' && outcome.trace !== null && outcome.trace.bytes > 0)
        this.#sizes = addSize(this.#sizes, outcome.trace.bytes);
  }
}

/** How long the last batches of this run took whose hosts have no gap, for the size of the next ones. */
export class LearnedBatchTimes {
  #times: BatchTimes = NO_BATCH_TIMES;

  get times(): BatchTimes {
    return this.#times;
  }

  /** Of a batch whose last report has come; `now`: when that was. */
  learn(
    { batch, plannedAt, succeeded, failed }: Pick<OpenBatch, 'batch' | 'plannedAt' | 'succeeded' | 'failed'>,
    now: number,
  ): void {
    if (plannedAt === undefined || batch.permits.some(({ gapMs }) => gapMs > 0)) return;
    // What came back undone took no time.
    this.#times = addBatchTime(this.#times, { tasks: succeeded + failed, durationMs: now - plannedAt });
  }
}

/** Lets a loop sleep until something happens or a time comes. */
export class Wake {
  readonly #clock: Clock;
  #resolve: (() => void) | null = null;
  #pending = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(): void {
    this.#pending = true;
    this.#resolve?.();
  }

  /** At once when something has happened since the last wait. */
  async wait(ms: number): Promise<void> {
    if (!this.#pending) {
      await new Promise<void>((resolve) => {
        const cancel = startTimer(this.#clock, ms, resolve);
        this.#resolve = () => {
          cancel();
          resolve();
        };
      });
      this.#resolve = null;
    }
    this.#pending = false;
  }
}
