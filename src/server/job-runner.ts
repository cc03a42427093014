import { type AppSettings, openParsedRobots, openServices, type Run, startRun } from '../app/app.ts';
import type { Folder } from '../app/folder.ts';
import { OpenPermits } from '../coordinator/hosts/open-permits.ts';
import { type JobSummary, summarize } from '../coordinator/jobs.ts';
import type { WorkerView } from '../coordinator/reports/run-view.ts';
import { messageOf } from '../core/errors.ts';
import { mayRender } from '../core/escalation/escalation.ts';
import { BoundedMap } from '../core/lru.ts';
import { weightOfPriority } from '../core/slots/fair-share.ts';
import { checkSpec } from '../job-file/parse-job.ts';
import type { Dispatcher, WorkerHeartbeat } from '../ports/dispatcher.ts';
import type { KeyStore } from '../ports/store/key-store.ts';
import type { Job } from '../ports/store.ts';
import { systemClock } from '../worker/batch/system-clock.ts';
import { type JobClaim, SlotAllocator } from './slot-allocator.ts';

/** With more jobs than slots, threads carry this many batches for each slot: most of a batch is waiting. */
const OVERCOMMIT_MAX = 4;
const ENDS_KEPT = 1_000;
const RUNS_VIEWED_MAX = 50;
/** A job that is kept open often gets its next URLs soon: a run that is ready for them spares the start of another one. */
const LINGER_MS = 10_000;
type RunEnd = Awaited<Run['result']>;

interface RunnerOptions {
  folder: Folder;
  settings: AppSettings;
  onEnd(job: Job, summary: JobSummary): void;
  /** A failure of the store: no job can go on. */
  onBroken(error: unknown): void;
}

interface StartOptions {
  /** Also while another server of the same database runs the job: both do then, and never the same task. */
  evenIfTaken?: boolean;
}

/** A job that is at work here. */
interface Entry extends StartOptions {
  /** What its run was begun with. */
  specHash: string;
  run: Run | null;
  ended: Promise<void>;
}

/** Runs many jobs in one process, each by a coordinator of its own. What breaks one of them ends that one alone. */
export class JobRunner {
  readonly #options: RunnerOptions;
  readonly #permits = new OpenPermits({ isShared: true });
  readonly #parsedRobots = openParsedRobots();
  readonly #allocator: SlotAllocator;
  readonly #hasThreads: boolean;
  readonly #runs = new Map<number, Entry>();
  /** How the newest runs ended, for those who follow them. */
  readonly #ends = new BoundedMap<number, RunEnd>(ENDS_KEPT);
  #threads: Promise<Dispatcher> | null = null;
  #isClosing = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    const targets = options.settings.dispatch ?? [];
    this.#hasThreads = targets.every(({ kind }) => kind === 'threads');
    this.#allocator = new SlotAllocator({
      overcommitMax: this.#hasThreads ? OVERCOMMIT_MAX : 1,
      clock: systemClock,
    });
  }

  get size(): number {
    return this.#runs.size;
  }

  has(jobId: number): boolean {
    return this.#runs.has(jobId);
  }

  run(jobId: number): Run | null {
    return this.#runs.get(jobId)?.run ?? null;
  }

  end(jobId: number): RunEnd | null {
    return this.#ends.get(jobId) ?? null;
  }

  get slots(): { slots: number; spare: number; busy: number } {
    return this.#allocator.use;
  }

  /** Workers of the runs of this process, some of those when there are many; one that works for several is one. */
  async workers(): Promise<WorkerView[]> {
    const runs = [...this.#runs.values()].flatMap(({ run }) => run ?? []).slice(0, RUNS_VIEWED_MAX);
    const byName = new Map<string, WorkerView>();
    for (const { workers } of await Promise.all(runs.map((run) => run.view())))
      for (const worker of workers) {
        const known = byName.get(worker.name);
        byName.set(worker.name, known ? together(known, worker) : worker);
      }
    return [...byName.values()];
  }

  /** The processes that work for the runs of this one, each once. */
  async heartbeats(): Promise<WorkerHeartbeat[]> {
    const runs = [...this.#runs.values()].flatMap(({ run }) => run ?? []).slice(0, RUNS_VIEWED_MAX);
    const threads = await this.#threads?.catch(() => null);
    const all = await Promise.all([threads?.heartbeats?.() ?? [], ...runs.map((run) => run.heartbeats())]);
    return [...new Map(all.flat().map((heartbeat) => [heartbeat.worker, heartbeat])).values()];
  }

  /**
   * Tasks of a job that is at work here are looked for at once; one that has changed goes on as it is now. One that another
   * server of the same database runs is left to that.
   */
  start(job: Job, options: StartOptions = {}): void {
    this.#runs.get(job.id)?.run?.wake();
    this.followChange(job);
    if (this.#isClosing || this.#runs.has(job.id)) return;
    this.#ends.delete(job.id);
    const entry: Entry = { ...options, specHash: job.specHash, run: null, ended: Promise.resolve() };
    this.#runs.set(job.id, entry);
    entry.ended = this.#work(job, entry).finally(() => this.#runs.delete(job.id));
  }

  /** A run reads its job when it begins. If that has changed since, another run goes on at once, and nothing is lost. */
  followChange({ id, specHash }: Pick<Job, 'id' | 'specHash'>): void {
    const entry = this.#runs.get(id);
    if (entry && entry.specHash !== specHash)
      entry.run?.stop({ state: 'stopped', cause: 'restart', message: 'the job was changed' });
  }

  /** Ends all runs so that the next server continues them. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const runs = [...this.#runs.values()];
    for (const { run } of runs)
      run?.stop({ state: 'stopped', cause: 'restart', message: 'the server ended' });
    await Promise.all(runs.map(({ ended }) => ended));
    await (await this.#threads)?.close();
  }

  async #work(job: Job, entry: Entry): Promise<void> {
    const { folder, onEnd } = this.#options;
    const { store } = folder;
    try {
      // Before anything that takes time: other servers of the same database leave the job alone from now on.
      if (entry.evenIfTaken) await store.jobs.join(job.id);
      else if (!(await store.jobs.claim(job.id))) return;
      // A request that was sent again, or added nothing, may start a job that is over: its end would be told twice.
      if (isOver(await store.jobs.get(job.id))) return void (await store.jobs.leave(job.id));
      // What is stored may be broken: that is said before anything is opened for it.
      const checked = { ...job, spec: checkSpec(job.spec, `${job.name}-${job.run}`) };
      const end = await this.#run(checked, entry);
      if (end.stop?.cause === 'restart' && !this.#isClosing) {
        const changed = await store.jobs.get(job.id);
        return await this.#work(changed, Object.assign(entry, { specHash: changed.specHash, run: null }));
      }
      this.#ends.set(job.id, end);
    } catch (error) {
      await this.#fail(job, error);
    }
    try {
      await store.jobs.leave(job.id);
      const ended = await store.jobs.get(job.id);
      onEnd(ended, await summarize(store, ended, { alive: this.#isClosing }));
    } catch (error) {
      this.#options.onBroken(error);
    }
  }

  async #run(job: Job, entry: Entry): Promise<RunEnd> {
    const { folder, settings } = this.#options;
    const dispatcher = await this.#dispatcherFor(job);
    // Closes the dispatcher when it ends, and also when it cannot begin.
    entry.run = await startRun(folder, NO_LOCK, job, settings, {
      dispatcher,
      permits: this.#permits,
      parsedRobots: this.#parsedRobots,
      lingerMs: LINGER_MS,
      isHealthNoted: true,
    });
    if (this.#isClosing) entry.run.stop({ state: 'stopped', cause: 'restart', message: 'the server ended' });
    return await entry.run.result;
  }

  /** The job is stopped with the reason, so that it is not begun again and again. */
  async #fail(job: Job, error: unknown): Promise<void> {
    const { folder, settings, onBroken } = this.#options;
    const name = `${job.name}-${job.run}`;
    settings.logger.error(`${name} failed: ${messageOf(error)}`, { job: name });
    try {
      const { state } = await folder.store.jobs.get(job.id);
      if (state !== 'running') return;
      const change = { state: 'stopped', reason: messageOf(error), endedAt: Date.now() } as const;
      await folder.store.jobs.update(job.id, change);
    } catch (cause) {
      onBroken(cause);
    }
  }

  /** Threads are shared by all jobs. What reaches other processes is opened for each. */
  async #dispatcherFor(job: Job): Promise<Dispatcher> {
    const { folder, settings } = this.#options;
    const claim = await claimOf(job, folder.store.keys);
    if (!this.#hasThreads) {
      const dispatcher = await openServices(folder, job.spec, settings);
      return this.#allocator.join({ dispatcher, isShared: false }, claim, job.id);
    }
    this.#threads ??= openServices(folder, null, settings);
    const dispatcher = await this.#threads.catch((error: unknown) => {
      this.#threads = null;
      throw error;
    });
    const refusal = job.spec.routes.some(mayRender) ? dispatcher.refusal?.('browser') : null;
    if (refusal) throw refusal;
    return this.#allocator.join({ dispatcher, isShared: true }, claim, job.id);
  }
}

/** Each API key is an owner, and so is the folder itself: slots are shared between them first. */
export async function claimOf(
  { owner, spec }: Pick<Job, 'owner' | 'spec'>,
  keys: Pick<KeyStore, 'byId'>,
): Promise<JobClaim> {
  const key = owner === null ? null : await keys.byId(owner);
  const { priority = 0 } = spec;
  return {
    owner: owner ?? '',
    ownerWeight: key?.limits.weight ?? 1,
    weight: weightOfPriority(priority),
    priority,
  };
}

function together(one: WorkerView, other: WorkerView): WorkerView {
  return {
    name: one.name,
    batches: one.batches + other.batches,
    tasks: one.tasks + other.tasks,
    tasksPerSecond: one.tasksPerSecond + other.tasksPerSecond,
    lastSeenAt: Math.max(one.lastSeenAt, other.lastSeenAt),
  };
}

/** Whoever lets a job go on says so in the store first. */
function isOver({ state }: Pick<Job, 'state'>): boolean {
  return state !== 'running' && state !== 'waiting';
}

/** The server holds the lock of the folder for all of them. */
const NO_LOCK = { release() {} };
