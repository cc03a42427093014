import { gunzipSync } from 'node:zlib';
import { Coordinator, type RunResult } from '../../src/coordinator/coordinator.ts';
import { OpenPermits } from '../../src/coordinator/hosts/open-permits.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import { messageOf } from '../../src/core/errors.ts';
import { LOSSES_MAX } from '../../src/core/suspicion/suspicion.ts';
import type { Source } from '../../src/ports/source.ts';
import type { Job, LeasedBatch, Store } from '../../src/ports/store.ts';
import { SlotAllocator } from '../../src/server/slot-allocator.ts';
import type { Database } from '../../src/store/sqlite/connection/database.ts';
import { codeOf } from '../support/fixtures.ts';
import { Fleet } from './fleet.ts';
import { IdlePolls, SourcePolls, StoreChanges } from './idle-polls.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { emptied, type MemoryStore, openMemoryStore, SharedJob } from './shared-store.ts';
import { sickPagesProblem } from './sick-pages.ts';
import { hostIn, type SimHost, Sites } from './sites.ts';
import { check, StoreModel, Violation } from './store-model.ts';
import { Process, SeededRandom, World } from './virtual-time.ts';

const OF_PROCESSES = [
  'crash',
  'messages',
  'store',
  'workers',
  'freeze',
  'clock',
  'second',
  'poison',
  'network',
] as const;

/** Faults that can be switched off by name. */
export const FAULTS = [
  'crash',
  'messages',
  'store',
  'workers',
  'freeze',
  'clock',
  'second',
  'limits',
  'stalls',
  'down',
  'gone',
  'redirects',
  'sick',
  'poison',
  'bans',
  'network',
] as const;
export type FaultName = (typeof FAULTS)[number];

export interface SimulationOptions {
  seed: number;
  /** At least so many; those that links lead to come on top. */
  tasks: number;
  without?: readonly FaultName[];
  /** As many jobs share their hosts, as those of a server do; as the seed says when absent. */
  jobs?: number;
  /** The same for the hosts, and for requests per second to each. */
  hosts?: number;
  rate?: number;
  /** A pace for each worker, as for hosts that count by address; as the seed says when absent. */
  perAddress?: boolean;
}

export interface SimulationResult {
  seed: number;
  tasks: number;
  faults: number;
  steps: number;
  virtualMs: number;
  failure: string | null;
  /** The last steps, for people. */
  trace: string[];
}

/** Of so many seeds, one also compares pages beside sick ones with the same pages alone: that takes two more runs. */
const SICK_PAGES_EVERY = 25;

/**
 * Of so many seeds, one keeps roll-ups and the logs of hosts. They decide nothing and nothing here is concluded from them, and
 * they are a fifth of all that is written.
 */
const STATISTICS_EVERY = 8;

/** Their tables serve one run after the other, each of which begins with none of what was there before. */
const used: { plain: MemoryStore | null; withStatistics: MemoryStore | null } = {
  plain: null,
  withStatistics: null,
};

/** Whole jobs with their faults, on virtual time. The same seed always does the same. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const hasStatistics = options.seed % STATISTICS_EVERY === 0;
  const kind = hasStatistics ? 'withStatistics' : 'plain';
  const before = used[kind];
  const { store, db } = before ? emptied(before) : openMemoryStore({ keepsRollups: hasStatistics });
  used[kind] = { store, db };
  const run = await SimulatedRun.open(store, db, options);
  try {
    await run.toItsEnd();
    const problem = options.seed % SICK_PAGES_EVERY === 0 ? await sickPagesProblem(options.seed) : null;
    if (problem !== null) throw new Violation(problem);
  } catch (error) {
    used[kind] = null;
    db.close();
    return run.result(error instanceof Violation ? error.message : ((error as Error).stack ?? String(error)));
  }
  return run.result(null);
}

/** What the simulated store fails with. */
class StoreFault extends Error {}

const TRACE_MAX = 200;
/** Longer than the longest rests of all hosts and the retries of all tasks, one after the other. */
const VIRTUAL_MS_MAX = 12 * 3_600_000;
/** What healthy pages may take beside others: so many times their gaps, and some time for each job to begin and to find out. */
const HEALTHY_TIMES = 6;
const HEALTHY_MS = 30_000;
/** A host that lets two requests in each half minute takes an hour for 200 pages, in as many small batches. */
const STEPS_MAX = 600_000;
const CALLS_MAX = 250_000;
const RECOUNT_STEPS = 1_000;
/** A host with work that is due is asked within this time. */
const IDLE_MS_MAX = 60_000;
/**
 * While no batch is open for so long. The work of a host that was free for an hour may be new: a task that was redirected
 * there, or came back from a lost batch, in the very step that closed the last batch. It is lent with the next look.
 */
const FREE_MS_MAX = 10_000;
/** Jobs that want the same host take turns: none is passed over so often, and for so long. */
const PASSED_MAX = 4;
const PASSED_MS_MAX = 20_000;

/** One of the jobs, which all work on the same pages. */
interface SimJob {
  job: Job;
  model: StoreModel;
  isDone: boolean;
  /** By host: how often others got it since this job did, though it wanted it all the time. */
  passed: Map<string, { count: number; since: number }>;
}

/** Whose call of the store it is. */
interface Caller {
  process: Process;
  job: SimJob;
  polls: IdlePolls;
}

class SimulatedRun {
  readonly #options: SimulationOptions;
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #db: Database;
  readonly #store: Store;
  readonly #jobs: SimJob[];
  readonly #sites: Sites;
  readonly #fleet: Fleet;
  readonly #blobs = new MemoryBlobs();
  readonly #shared: SharedJob;
  readonly #changes = new StoreChanges();
  readonly #trace: string[] = [];
  #coordinators: Process[] = [];
  #started = 0;
  #faults = 0;
  #calls = 0;
  /** Only sites and pages have trouble: then times can be compared. */
  readonly #isCalm: boolean;
  /** Calls of the store at which something goes wrong. */
  readonly #brokenCalls = new Map<number, 'crash' | 'error'>();
  /** Coordinators that will start. */
  #starting = 0;
  /** Several coordinators may work on the job, as with PostgreSQL. */
  readonly #isShared: boolean;
  /** Answers of the store take time, as those of PostgreSQL do. */
  readonly #isDelayed: boolean;
  /** What each coordinator last said that it waits for. */
  readonly #reasons = new Map<Process, Map<SimJob, string | null>>();
  #aliveSince = 0;
  #idleCheckAt = 0;
  /** When a batch was last open. */
  #busyAt = 0;
  #failure: unknown = null;
  #recountAt = RECOUNT_STEPS;

  static async open(store: Store, db: Database, options: SimulationOptions): Promise<SimulatedRun> {
    const random = new SeededRandom(options.seed);
    const follows = random.chance(0.5);
    const drawn = random.pick(['max', 2, 5, 20, 50] as const);
    const rate = options.rate ?? drawn;
    const spec = {
      sources: 'http://example.test/',
      follow: follows,
      politeness: politenessOf(options, rate, random),
      timeouts: { connectMs: 2_000, headersMs: 4_000, bodyMs: 4_000, taskMs: 8_000 },
      retry: { attempts: 4, baseMs: 1_000, maxMs: 30_000 },
      limits: { perTemplate: null, diskFreeBytes: 0 },
      // Undefined: as many as the run finds out.
      batchSize: random.pick([5, 20, undefined]),
      // Not by chance, which would change all that comes after it. Fewer than 100 tasks have no tail.
      tail: options.seed % 3 === 0 ? 'repeat' : 'wait',
    } as const;
    const jobs: Job[] = [];
    for (let index = 0; index < (options.jobs ?? jobsOf(options.seed)); index++) {
      const name = `sim-${options.seed}${index === 0 ? '' : `-${index}`}`;
      jobs.push(await store.jobs.create({ ...codeOf(name, spec), name, now: 0 }));
    }
    return new SimulatedRun(store, db, jobs, random, options);
  }

  private constructor(
    store: Store,
    db: Database,
    jobs: Job[],
    random: SeededRandom,
    options: SimulationOptions,
  ) {
    this.#options = options;
    this.#random = random;
    this.#store = store;
    this.#db = db;
    this.#world = new World(random);
    this.#isCalm = random.chance(0.2) || OF_PROCESSES.every((kind) => options.without?.includes(kind));
    const { spec, id } = jobs[0]!;
    const rate = spec.politeness.rate;
    this.#sites = new Sites(
      this.#world,
      {
        tasks: Math.ceil(options.tasks / jobs.length),
        isOn: (kind) => this.#isOn(kind),
        follows: spec.follow.length > 0,
        gapMs: rate === 'max' ? 0 : 1_000 / rate,
        headersMs: spec.timeouts.headersMs,
        hosts: options.hosts,
        byAddress: spec.politeness.perAddress,
      },
      `r${id}`,
    );
    this.#sites.onRequest = (host, process) => this.#checkGap(host, process);
    this.#sites.onPoison = (process) => {
      this.#note(`a page kills ${process.name}`);
      this.#fleet.killWorker(process, false);
    };
    this.#jobs = jobs.map((job) => ({
      job,
      model: new StoreModel(db, job.id),
      isDone: false,
      passed: new Map(),
    }));
    this.#shared = new SharedJob(this.#world, this.#jobs[0]!.model.open);
    this.#fleet = new Fleet(
      this.#world,
      {
        workers: random.between(1, 4),
        slotsPerWorker: random.pick([2, 8]),
        areThreads: random.chance(0.5),
        haveAddresses: spec.politeness.perAddress,
        faults: this.#messageFaults(),
      },
      this.#sites,
      this.#blobs,
    );
    this.#isShared = this.#isOn('second') && random.chance(0.3) && jobs.length === 1;
    this.#isDelayed = random.chance(0.5);
    for (const { model } of this.#jobs) {
      model.areSeveral = this.#isShared;
      model.isPoisoned = (batchId) => this.#fleet.poisoned.has(batchId);
      model.isAtWorker = (batchId) => this.#fleet.has(batchId);
      model.now = () => this.#world.elapsedMs;
    }
    this.#fleet.trace = (text) => this.#note(text);
    this.#world.afterStep = () => this.#afterStep();
  }

  #isOn(kind: string): boolean {
    if (this.#isCalm && (OF_PROCESSES as readonly string[]).includes(kind)) return false;
    const name = kind as FaultName;
    if (this.#options.without?.includes(name)) return false;
    return (FAULTS as readonly string[]).includes(kind);
  }

  #note(text: string): void {
    this.#trace.push(`${(this.#world.elapsedMs / 1_000).toFixed(3)} s: ${text}`);
    if (this.#trace.length > 2 * TRACE_MAX) this.#trace.splice(0, TRACE_MAX);
  }

  async toItsEnd(): Promise<void> {
    this.#planFaults();
    this.#startSoon(0);
    await this.#world.run(() => this.#isOver || this.#failure !== null);
    if (this.#failure !== null) throw this.#failure;
    check(this.#isOver, () => `nothing is left to happen, and the job is not done: ${this.#waiting()}`);
    for (const each of this.#jobs) {
      each.model.compareCounters();
      each.model.recount();
      this.#checkFates(each);
      if (this.#isCalm) this.#checkHealthyPages(each);
      this.#checkArchive(each);
    }
  }

  result(failure: string | null): SimulationResult {
    return {
      seed: this.#options.seed,
      tasks: this.#jobs.reduce((sum, { model }) => sum + model.counts.accepted, 0),
      faults: this.#faults + this.#fleet.faults + this.#sites.faults,
      steps: this.#world.steps,
      virtualMs: this.#world.elapsedMs,
      failure,
      trace: failure === null ? [] : this.#trace.slice(-TRACE_MAX),
    };
  }

  get #isOver(): boolean {
    return this.#coordinators.length === 0 && this.#starting === 0;
  }

  #messageFaults(): { lost: number; doubled: number; late: number } {
    const { random } = this.#world;
    if (!this.#isOn('messages')) return { lost: 0, doubled: 0, late: 0 };
    return {
      lost: random.pick([0, 0, 0.02, 0.1]),
      doubled: random.pick([0, 0.05, 0.2]),
      late: random.pick([0, 0.02, 0.1]),
    };
  }

  /** Between any two steps: at a time, or at a call of the store. */
  #planFaults(): void {
    const random = this.#random;
    const kinds = (['crash', 'store', 'workers', 'freeze', 'clock', 'second'] as const).filter((kind) =>
      this.#isOn(kind),
    );
    if (kinds.length === 0) return;
    const count = random.between(0, 13);
    for (let index = 0; index < count; index++) {
      const kind = random.pick(kinds);
      const atMs = 100 * 1_000 ** random.next();
      const atCall = Math.floor(5 * 200 ** random.next());
      if (kind === 'store') this.#brokenCalls.set(atCall, 'error');
      else if (kind === 'crash' && random.chance(0.6)) this.#brokenCalls.set(atCall, 'crash');
      else this.#world.after(atMs, null, () => this.#strike(kind));
    }
  }

  #strike(kind: 'crash' | 'workers' | 'freeze' | 'clock' | 'second'): void {
    const random = this.#random;
    if (this.#coordinators.length === 0) return;
    const coordinator = random.pick(this.#coordinators);
    if (kind === 'crash') this.#crash(coordinator);
    else if (kind === 'workers') {
      const worker = random.pick(this.#fleet.processes);
      this.#fault(`${worker.name} is killed`);
      this.#fleet.killWorker(worker, true);
    } else if (kind === 'freeze') {
      const process = random.pick([coordinator, ...this.#fleet.processes]);
      const ms = random.pick([200, 5_000, 30_000, 90_000]);
      this.#shared.hear();
      this.#fault(`${process.name} stands still for ${ms} ms`);
      process.freeze(ms);
    } else if (kind === 'clock') {
      const ms = random.pick([-86_400_000, 86_400_000, -3_000, 3_000]);
      this.#world.wallOffset += ms;
      this.#fault(`the clock is set by ${ms} ms, and everything starts anew`);
      for (const each of this.#coordinators) this.#crash(each);
      this.#fleet.onCoordinatorEnd(true);
    } else if (this.#isShared && this.#coordinators.length + this.#starting < 3) {
      this.#fault('another coordinator joins');
      this.#startSoon(0);
    }
  }

  #fault(text: string): void {
    this.#faults++;
    this.#note(text);
  }

  #crash(process: Process): void {
    this.#fault(`${process.name} is killed`);
    this.#end(process);
    this.#startSoon(this.#random.pick([50, 1_000, 5_000, 40_000]));
  }

  #startSoon(ms: number): void {
    this.#starting++;
    this.#world.after(ms, null, () => {
      this.#starting--;
      this.#startCoordinator();
    });
  }

  #startCoordinator(): void {
    this.#aliveSince = this.#world.now;
    const process = new Process(this.#world, `coordinator-${++this.#started}`);
    this.#coordinators.push(process);
    this.#note(`${process.name} starts`);
    const permits = new OpenPermits({ isShared: this.#jobs.length > 1 });
    const allocator = new SlotAllocator({
      overcommitMax: 4,
      clock: process.clock,
      afterArrivals: (run) => this.#world.after(0, process, run),
    });
    const carrier = { dispatcher: this.#fleet.dispatcherFor(process), isShared: true };
    const claim = { owner: '', ownerWeight: 1, weight: 1 };
    const logger = {
      info: (text: string) => this.#note(`${process.name}: ${text}`),
      warn: (text: string) => this.#note(`${process.name}: ${text}`),
      error: (text: string) => this.#note(`${process.name}: ${text}`),
    };
    this.#reasons.set(process, new Map());
    for (const [priority, each] of this.#jobs.entries()) {
      if (each.isDone && this.#jobs.length > 1) continue;
      const { job } = each;
      const polls = new IdlePolls({
        ...{ db: this.#db, jobId: job.id, process, changes: this.#changes },
        probeAt: () => this.#probeAt(each, process),
        nextChangeAt: () => this.#shared.nextChangeAt(),
      });
      const clock = process.pollingClock(polls);
      const parts = { store: this.#viewOf({ process, job: each, polls }), job, clock, logger };
      const dispatcher =
        this.#jobs.length > 1 ? allocator.join(carrier, { ...claim, priority }, job.id) : carrier.dispatcher;
      const coordinator = new Coordinator({
        ...parts,
        blobs: this.#blobs,
        dispatcher,
        feeder: new SourceFeeder({
          ...parts,
          clock: process.pollingClock(new SourcePolls(process)),
          sources: [this.#source()],
        }),
        progress: createProgress({ startedAt: clock.now() }),
        random: this.#random,
        ...(this.#jobs.length > 1 ? { permits } : {}),
        diskFree: async () => null,
      });
      this.#reasons.get(process)!.set(each, null);
      coordinator
        .run()
        .finally(() => dispatcher.close())
        .then(
          (result) => this.#onEnd(process, each, result),
          (error: unknown) => this.#onFailure(process, error),
        );
    }
  }

  #source(): Source {
    const urls = [...this.#sites.pages.values()].filter(({ isListed }) => isListed).map(({ url }) => url);
    return {
      name: 'the list',
      priority: 0,
      async *rows(from) {
        for (let index = Number(from ?? 0); index < urls.length; index++)
          yield {
            place: `row ${index}`,
            position: String(index + 1),
            row: { url: urls[index]!, meta: null },
          };
      },
    };
  }

  /** The store as one coordinator sees it: every call is a step, may fail, and never comes back to a dead process. */
  #viewOf(caller: Caller): Store {
    const own = this.#isShared
      ? this.#shared.viewOf(caller.process, this.#store, this.#random.chance(0.5))
      : { jobs: {}, frontier: {} };
    const { jobs, frontier, hosts, escalations, proxies, keys, webhooks } = this.#store;
    const { alerts, rollups, slotTimes, workers, requests, removals, views } = this.#store;
    return {
      jobs: this.#wrap(caller, jobs, own.jobs),
      frontier: this.#wrap(caller, frontier, own.frontier),
      hosts: this.#wrap(caller, hosts, {}),
      escalations: this.#wrap(caller, escalations, {}),
      proxies: this.#wrap(caller, proxies, {}),
      keys: this.#wrap(caller, keys, {}),
      webhooks: this.#wrap(caller, webhooks, {}),
      alerts: this.#wrap(caller, alerts, {}),
      rollups: this.#wrap(caller, rollups, {}),
      slotTimes: this.#wrap(caller, slotTimes, {}),
      workers: this.#wrap(caller, workers, {}),
      requests: this.#wrap(caller, requests, {}),
      removals: this.#wrap(caller, removals, {}),
      views: this.#wrap(caller, views, {}),
      close: async () => {},
    };
  }

  #wrap<T extends object>(caller: Caller, real: T, own: Partial<T>): T {
    const wrapped = new Map<string | symbol, (...args: unknown[]) => unknown>();
    return new Proxy(real, {
      get: (target, name) => {
        const known = wrapped.get(name);
        if (known) return known;
        const method = (Reflect.get(own, name) ?? Reflect.get(target, name)) as (
          ...args: unknown[]
        ) => unknown;
        const called = String(name);
        const call = (...args: unknown[]) =>
          this.#call(caller, called, args, () => method.apply(target, args) as Promise<unknown>);
        wrapped.set(name, call);
        return call;
      },
    });
  }

  #call(caller: Caller, name: string, args: unknown[], execute: () => Promise<unknown>): Promise<unknown> {
    const { process, job, polls } = caller;
    if (!process.isAlive) return new Promise(() => {});
    if (++this.#calls > CALLS_MAX)
      this.#failure ??= new Violation(`more than ${CALLS_MAX} calls of the store`);
    if (this.#failure !== null) return new Promise(() => {});
    const reason = name === 'update' ? (args[1] as { reason?: string | null }).reason : undefined;
    if (reason !== undefined) this.#reasons.get(process)!.set(job, reason);
    if (name === 'dueHosts') polls.onLook();
    const trouble = this.#brokenCalls.get(this.#calls);
    if (trouble) return this.#breakCall(trouble, caller, name, args, execute);
    return this.#isDelayed
      ? this.#callLater(caller, name, args, execute)
      : this.#execute(job, name, args, execute);
  }

  /** The call is executed and answered at some later time each, whatever comes between. */
  #callLater(
    { process, job }: Caller,
    name: string,
    args: unknown[],
    execute: () => Promise<unknown>,
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answerIn = () =>
      this.#random.chance(0.02) ? this.#random.between(20, 800) : this.#random.next() * 3;
    const { wallOffset } = this.#world;
    const send = () => {
      // What a process has sent before its end may arrive, or not; never where the machine of the store started anew since.
      if (!process.isAlive && (this.#random.chance(0.5) || wallOffset !== this.#world.wallOffset)) return;
      this.#execute(job, name, args, execute).then(
        (result) => this.#world.quietlyAfter(answerIn(), process, () => resolve(result)),
        (error: unknown) => this.#world.quietlyAfter(answerIn(), process, () => reject(error)),
      );
    };
    this.#world.quietlyAfter(answerIn(), null, send);
    return promise;
  }

  /** The process dies at this very call, or the store fails, each before or after the call has been executed. */
  #breakCall(
    trouble: 'crash' | 'error',
    { process, job }: Caller,
    name: string,
    args: unknown[],
    execute: () => Promise<unknown>,
  ): Promise<unknown> {
    const isExecuted = this.#random.chance(0.5);
    const when = `${isExecuted ? 'after' : 'before'} '${name}'`;
    const executed = isExecuted ? this.#execute(job, name, args, execute) : Promise.resolve();
    if (trouble === 'crash') {
      this.#note(`killed ${when}`);
      this.#crash(process);
      return new Promise(() => {});
    }
    this.#fault(`${process.name}: the store fails ${when}`);
    return executed.then(() => {
      throw new StoreFault('disk I/O error');
    });
  }

  #execute(job: SimJob, name: string, args: unknown[], execute: () => Promise<unknown>): Promise<unknown> {
    this.#changes.onCall(name);
    return execute().then((result) => {
      try {
        job.model.observe(name, args, result);
        if (name === 'lease' && this.#jobs.length > 1) this.#checkTurns(job, result as LeasedBatch[]);
      } catch (error) {
        this.#failure ??= error;
      }
      return result;
    });
  }

  /** A server ends with its last job, and the next goes on with those that were stopped. */
  #onEnd(process: Process, job: SimJob, { state, stop }: RunResult): void {
    if (!process.isAlive) return;
    this.#note(
      `${process.name} ends ${this.#jobs.length > 1 ? job.job.name : ''}: ${state}${stop ? `, ${stop.message}` : ''}`,
    );
    job.isDone = state === 'done';
    const working = this.#reasons.get(process)!;
    working.delete(job);
    if (working.size > 0) return;
    this.#end(process);
    if (this.#jobs.some(({ isDone }) => !isDone)) this.#startSoon(this.#random.between(100, 5_000));
  }

  #onFailure(process: Process, error: unknown): void {
    if (!process.isAlive) return;
    this.#note(`${process.name} fails: ${messageOf(error)}`);
    this.#end(process);
    if (error instanceof StoreFault) this.#startSoon(this.#random.between(100, 5_000));
    else this.#failure ??= error;
  }

  #end(process: Process): void {
    this.#shared.hear();
    process.kill();
    // Which jobs are at work is known to their process alone.
    if (!this.#isShared) for (const { job } of this.#jobs) void this.#store.jobs.leave(job.id);
    this.#coordinators = this.#coordinators.filter((each) => each !== process);
    if (this.#coordinators.length === 0) this.#fleet.onCoordinatorEnd(false);
  }

  #afterStep(): void {
    if (this.#failure !== null) return;
    const { steps, elapsedMs } = this.#world;
    for (const { model } of this.#jobs) {
      model.compareCounters();
      if (model.open.size > 0) this.#busyAt = this.#world.now;
    }
    if (steps >= this.#recountAt) {
      this.#recountAt = steps + RECOUNT_STEPS;
      for (const { model } of this.#jobs) model.recount();
    }
    if (elapsedMs >= this.#idleCheckAt) {
      this.#idleCheckAt = elapsedMs + IDLE_MS_MAX / 2;
      this.#checkIdle();
    }
    check(
      elapsedMs < VIRTUAL_MS_MAX,
      () => `not done after ${VIRTUAL_MS_MAX / 3_600_000} h: ${this.#waiting()}`,
    );
    check(steps < STEPS_MAX, () => `not done after ${STEPS_MAX} steps: ${this.#waiting()}`);
  }

  /** No host waits without a reason: one with work that is due is asked soon, where there is a slot for it. */
  #checkIdle(): void {
    const { now } = this.#world;
    const coordinator = this.#coordinators[0];
    const isWorking = this.#coordinators.every(({ frozenUntil }) => frozenUntil + IDLE_MS_MAX < now);
    if (!coordinator || !isWorking || now - this.#aliveSince < 2 * IDLE_MS_MAX) return;
    if (now - this.#busyAt < FREE_MS_MAX) return;
    const dueBefore = now + coordinator.clockOffset - IDLE_MS_MAX;
    for (const each of this.#jobs) {
      // One that was stopped goes on with the next start of the server.
      const isAtWork = this.#coordinators.some((process) => this.#reasons.get(process)?.has(each));
      if (!isAtWork || this.#probeAt(each, ...this.#coordinators) + IDLE_MS_MAX > now) continue;
      const host = this.#db.get<{ host: string; ready: number; since: number }>(
        SELECT_IDLE,
        each.job.id,
        dueBefore,
      );
      check(host === undefined, () => {
        const waitedMs = now + coordinator.clockOffset - host!.since;
        return `${host!.host} has waited for ${waitedMs.toFixed(0)} ms with ${host!.ready} tasks of ${each.job.name}`;
      });
    }
  }

  /** Whoever wants a host that others get again and again has to get it, too. */
  #checkTurns(served: SimJob, batches: readonly LeasedBatch[]): void {
    const { now } = this.#world;
    const hosts = new Set(batches.flatMap(({ tasks }) => tasks.map(({ url }) => hostIn(url))));
    for (const host of hosts) {
      served.passed.delete(host);
      const facts = this.#sites.hostNamed(host);
      const isPlain =
        facts?.manner.kind === 'plain' && facts.robots !== 'fails' && facts.robots !== 'elsewhere';
      for (const each of this.#jobs) {
        if (each === served || !this.#isCalm || !isPlain) continue;
        const waits = this.#db.get<{ ready: number }>(SELECT_READY, each.job.id, host)?.ready ?? 0;
        // With its share of the slots at other hosts, it could not have taken this one.
        const isBusy = each.model.open.size * this.#jobs.length >= this.#fleet.slots;
        if (waits === 0) each.passed.delete(host);
        else if (!isBusy) {
          const { count, since } = each.passed.get(host) ?? { count: 0, since: now };
          each.passed.set(host, { count: count + 1, since });
          check(
            count < PASSED_MAX || now - since < PASSED_MS_MAX,
            () => `${each.job.name} was passed over ${count} times at ${host}, for ${now - since} ms`,
          );
        }
      }
    }
  }

  /** When the first of these coordinators sends again, if all of them say that no host can be reached; else long ago. */
  #probeAt(job: SimJob, ...coordinators: Process[]): number {
    let firstAt = Number.POSITIVE_INFINITY;
    for (const process of coordinators) {
      const reason = this.#reasons.get(process)?.get(job) ?? '';
      const at = reason === '' ? undefined : PROBE.exec(reason)?.[1];
      if (at === undefined) return Number.NEGATIVE_INFINITY;
      firstAt = Math.min(firstAt, Date.parse(at) - process.clockOffset);
    }
    return firstAt;
  }

  #waiting(): string {
    return JSON.stringify(this.#jobs.map(({ model }) => model.counts));
  }

  /** Per host, no gap is shorter than permitted, across workers and restarts. */
  #checkGap(host: SimHost, { clockOffset, name: address }: Process): void {
    const { now } = this.#world;
    const isSameClock = host.lastOffset === clockOffset;
    host.lastOffset = clockOffset;
    const { rate, perAddress } = this.#jobs[0]!.job.spec.politeness;
    const gapMs = now - host.lastSentAt;
    host.lastSentAt = now;
    try {
      if (rate !== 'max' && perAddress) checkCap(host, { rate, now, address, isSameClock });
      // What the store knows of times means something else once the clock was set.
      else if (rate !== 'max' && isSameClock)
        check(
          gapMs >= 1_000 / rate - 0.001,
          () => `${host.name} was asked after ${gapMs} ms, at a rate of ${rate} per second`,
        );
    } catch (error) {
      this.#failure ??= error;
    }
  }

  /** Every task has ended, and as its page deserves. */
  #checkFates({ job, model }: SimJob): void {
    for (const { id, url, state, code, isOver } of model.fates()) {
      check(isOver, () => `${url} is ${state} at the end`);
      const page = this.#sites.pages.get(url);
      check(page !== undefined, () => `${url} is a task, but no one named it`);
      const hosts = [url, page.to].filter((each) => each !== '').map((each) => this.#sites.hostOf(each)!);
      const isHostTrouble = hosts.some((host) => isTroubled(host));
      const isForbidden = url.includes('/private/') && job.spec.politeness.robots;
      if (isForbidden && state === 'skipped') continue;
      if (page.kind === 'ok' || page.kind === 'flaky' || page.kind === 'redirect') {
        if (state === 'done') continue;
        // Where no page has answered yet, those that fail are the host's probes, and one that would answer later goes with them.
        const hasAnswered = hosts.some(({ name }) => model.answered.has(name));
        if (page.kind === 'flaky' && code === 'host-down' && !hasAnswered) continue;
        const { losses, lossesAlone } = model;
        if (
          code === 'worker-lost' &&
          ((losses.get(id) ?? 0) >= LOSSES_MAX || (lossesAlone.get(id) ?? 0) >= 2)
        )
          continue;
        if (hosts.some((host) => this.#isCutOff(host, model))) continue;
        // A pace that does not adapt is refused for as long as the host counts, and refusals without end count as attempts.
        const isRefused = hosts.some(({ manner }) => manner.kind === 'limits');
        // The same holds for robots.txt, which is refused again and again while another job has all that the host lets in.
        const mayRefuse = code === 'throttled' || code === 'robots-unreachable' || page.kind === 'flaky';
        if (mayRefuse && isRefused && !job.spec.politeness.adaptive) continue;
        // Where it is not known that a host answered before, its refusals are no ban.
        if (code === 'forbidden' && !model.forbidden.has(id)) continue;
        check(isHostTrouble, () => `${url} (${page.kind}) is ${state}, ${code}`);
      } else check(state === 'dead', () => `${url} (${page.kind}) is ${state}, ${code}`);
    }
  }

  /** Whether the network went before the host was known to answer: then it may be taken for dead. */
  #isCutOff({ name }: SimHost, { reachedAt: reached }: StoreModel): boolean {
    const { offline } = this.#sites;
    if (offline === null) return false;
    const reachedAt = reached.get(name) ?? Number.POSITIVE_INFINITY;
    return reachedAt > offline.from || this.#world.wallOffset !== 0;
  }

  /** Pages that fail do not hold up the others of their host. */
  #checkHealthyPages({ job: { spec }, model }: SimJob): void {
    const { rate } = spec.politeness;
    const jobs = this.#jobs.length;
    // Few slots are a limit, too: what they take for the pages of all hosts, one after the other.
    const workMs = this.#sites.hosts.reduce((sum, host) => sum + host.pages.length * host.latencyMs, 0);
    const slotsMs = (jobs * workMs) / this.#fleet.slots;
    for (const { name, manner, robots, pages, latencyMs } of this.#sites.hosts) {
      if (manner.kind !== 'plain' || robots === 'fails' || robots === 'elsewhere') continue;
      const healthy = pages.filter(({ kind }) => kind === 'ok');
      if (healthy.length < pages.length * 0.8) continue;
      const gapMs = Math.max(rate === 'max' ? 0 : 1_000 / rate, robots === 'delays' ? 500 : 0, latencyMs / 4);
      const times = healthy.map(({ url }) => model.doneAt.get(url) ?? 0);
      const lastMs = Math.max(0, ...times);
      const boundMs = jobs * HEALTHY_MS + slotsMs + jobs * pages.length * gapMs * HEALTHY_TIMES;
      check(lastMs < boundMs, () => `the healthy pages of ${name} took ${lastMs} ms, more than ${boundMs}`);
    }
  }

  /** Each done page has one valid WARC record at its place. */
  #checkArchive({ job, model }: SimJob): void {
    const rows = this.#db.all<{ url: string; key: string; offset: number; length: number }>(
      SELECT_PAGES,
      job.id,
    );
    check(
      rows.length === model.counts.done,
      () => `${model.counts.done} tasks are done, and ${rows.length} pages are kept`,
    );
    const sample = this.#options.seed % 16 === 0 ? rows : rows.slice(0, 2);
    for (const { url, key, offset, length } of rows)
      check(
        offset + length <= (this.#blobs.blobs.get(key)?.length ?? -1),
        () => `the page of ${url} is not in ${key}`,
      );
    for (const { url, key, offset, length } of sample) {
      const record = gunzipSync(this.#blobs.blobs.get(key)!.subarray(offset, offset + length)).toString(
        'latin1',
      );
      check(record.includes('WARC-Type: response'), () => `${key} has no response at ${offset} for ${url}`);
    }
  }
}

/** Most runs have one job. Not of the numbers that decide all else, so that seeds of one job stay what they were. */
function jobsOf(seed: number): number {
  const random = new SeededRandom(seed ^ 0x10b5);
  return random.chance(0.25) ? random.between(2, 4) : 1;
}

/** Not by chance, which would change all that comes after it. */
function politenessOf(
  { seed, perAddress = seed % 7 === 2 }: SimulationOptions,
  rate: 'max' | number,
  random: SeededRandom,
) {
  const own = { rate, adaptive: random.chance(0.7), robots: random.chance(0.7) };
  const log = seed % STATISTICS_EVERY === 0;
  return { ...own, log, perAddress: perAddress && own.adaptive && rate !== 'max' };
}

const CAP_WINDOWS_MS = [1_000, 10_000];

/**
 * All addresses together get no more than the rate of the job: in no second, and in no longer time. Where several are used at
 * once, each may have sent one more: their gaps begin and end at other times.
 */
function checkCap(
  host: SimHost,
  { rate, now, address, isSameClock }: { rate: number; now: number; address: string; isSameClock: boolean },
): void {
  if (!isSameClock) host.sent = [];
  host.sent = [...host.sent.filter(({ at }) => at > now - CAP_WINDOWS_MS.at(-1)!), { at: now, address }];
  for (const ms of CAP_WINDOWS_MS) {
    const within = host.sent.filter(({ at }) => at > now - ms + 0.001);
    const count = within.length;
    const addresses = new Set(within.map((each) => each.address)).size;
    check(
      count <= Math.ceil((rate * ms) / 1_000) + (addresses > 1 ? addresses : 0),
      () =>
        `${host.name} was asked ${count} times in ${ms} ms from all addresses, at a rate of ${rate} per second`,
    );
  }
}

/** Hosts on which pages may die that would answer. */
function isTroubled({ manner, robots }: SimHost): boolean {
  if (robots === 'fails' || robots === 'elsewhere') return true;
  return manner.kind === 'stalls' || manner.kind === 'down' || manner.kind === 'gone';
}

const PROBE = /^no host can be reached since .*: next probe at (\S+)$/;
/** The host's own time counts as well: until then another job has had it, which may lose batch after batch there. */
const SELECT_IDLE = `
  SELECT hosts.host, queues.ready, max(queues.next_at, hosts.next_at) AS since
  FROM queues JOIN hosts ON hosts.id = queues.host_id
  WHERE job_id = ? AND ready > 0 AND max(queues.next_at, hosts.next_at) < ? LIMIT 1`;
const SELECT_READY = `
  SELECT ready FROM queues JOIN hosts ON hosts.id = queues.host_id WHERE queues.job_id = ? AND hosts.host = ?`;
const SELECT_PAGES = `
  SELECT tasks.url, archives.key, attempts.archive_offset AS offset, attempts.archive_length AS length
  FROM tasks JOIN attempts ON attempts.id = tasks.attempt_id JOIN archives ON archives.id = attempts.archive_id
  WHERE tasks.job_id = ? AND tasks.state = 4`;
