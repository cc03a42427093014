import { gunzipSync } from 'node:zlib';
import { Coordinator, type RunResult } from '../../src/coordinator/coordinator.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import { messageOf } from '../../src/core/errors.ts';
import { LOSSES_MAX } from '../../src/core/suspicion/suspicion.ts';
import type { Source } from '../../src/ports/source.ts';
import type { Job, Store } from '../../src/ports/store.ts';
import type { Database } from '../../src/store/sqlite/connection/database.ts';
import { codeOf } from '../support/fixtures.ts';
import { Fleet } from './fleet.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { openMemoryStore, SharedJob } from './shared-store.ts';
import { type SimHost, Sites } from './sites.ts';
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

/** Faults that can be switched off by name; those in the second list wait for what they test. */
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
] as const;
export const LATER_FAULTS = ['bans', 'network'] as const;
export type FaultName = (typeof FAULTS)[number] | (typeof LATER_FAULTS)[number];

export interface SimulationOptions {
  seed: number;
  tasks: number;
  without?: readonly FaultName[];
  with?: readonly FaultName[];
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

/** One store serves many runs: each has a job and hosts of its own. A new one is opened when it has grown. */
interface Place {
  store: Store;
  db: Database;
  runs: number;
}

const RUNS_PER_STORE = 100;
let place: Place | null = null;

function openPlace(): Place {
  if (place && place.runs < RUNS_PER_STORE) return place;
  place?.db.close();
  place = { ...openMemoryStore(), runs: 0 };
  return place;
}

/** A whole job with its faults, on virtual time. The same seed always does the same. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { store, db } = openPlace();
  place!.runs++;
  const run = await SimulatedRun.open(store, db, options);
  try {
    await run.toItsEnd();
  } catch (error) {
    place!.db.close();
    place = null;
    return run.result(error instanceof Violation ? error.message : ((error as Error).stack ?? String(error)));
  }
  return run.result(null);
}

/** What the simulated store fails with. */
class StoreFault extends Error {}

const TRACE_MAX = 200;
/** Longer than the longest rests of all hosts and the retries of all tasks, one after the other. */
const VIRTUAL_MS_MAX = 12 * 3_600_000;
/** What healthy pages may take beside others: so many times their gaps, and some time to begin and to find out. */
const HEALTHY_TIMES = 6;
const HEALTHY_MS = 30_000;
const STEPS_MAX = 200_000;
const CALLS_MAX = 50_000;
const RECOUNT_STEPS = 1_000;
/** A host with work that is due is asked within this time. */
const IDLE_MS_MAX = 60_000;

class SimulatedRun {
  readonly #options: SimulationOptions;
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #db: Database;
  readonly #store: Store;
  readonly #job: Job;
  readonly #sites: Sites;
  readonly #fleet: Fleet;
  readonly #blobs = new MemoryBlobs();
  readonly #model: StoreModel;
  readonly #shared: SharedJob;
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
  #aliveSince = 0;
  #idleCheckAt = 0;
  #failure: unknown = null;
  #recountAt = RECOUNT_STEPS;

  static async open(store: Store, db: Database, options: SimulationOptions): Promise<SimulatedRun> {
    const random = new SeededRandom(options.seed);
    const follows = random.chance(0.5);
    const rate = random.pick(['max', 2, 5, 20, 50] as const);
    const spec = {
      sources: 'http://example.test/',
      follow: follows,
      politeness: { rate, adaptive: random.chance(0.7), robots: random.chance(0.7) },
      timeouts: { connectMs: 2_000, headersMs: 4_000, bodyMs: 4_000, taskMs: 8_000 },
      retry: { attempts: 4, baseMs: 1_000, maxMs: 30_000 },
      limits: { perTemplate: null, diskFreeBytes: 0 },
      batchSize: random.pick([5, 20, 120]),
    };
    const code = codeOf(`sim-${options.seed}`, spec);
    const job = await store.jobs.create({ ...code, name: `sim-${options.seed}`, now: 0 });
    return new SimulatedRun(store, db, job, random, options);
  }

  private constructor(
    store: Store,
    db: Database,
    job: Job,
    random: SeededRandom,
    options: SimulationOptions,
  ) {
    this.#options = options;
    this.#random = random;
    this.#store = store;
    this.#db = db;
    this.#job = job;
    this.#world = new World(random);
    this.#isCalm = random.chance(0.2);
    const { spec } = job;
    const rate = spec.politeness.rate;
    this.#sites = new Sites(
      this.#world,
      {
        tasks: options.tasks,
        isOn: (kind) => this.#isOn(kind),
        follows: spec.follow.length > 0,
        gapMs: rate === 'max' ? 0 : 1_000 / rate,
        headersMs: spec.timeouts.headersMs,
      },
      `r${job.id}`,
    );
    this.#sites.onRequest = (host, process) => this.#checkGap(host, process);
    this.#sites.onPoison = (process) => {
      this.#note(`a page kills ${process.name}`);
      this.#fleet.killWorker(process, false);
    };
    this.#model = new StoreModel(db, job.id);
    this.#shared = new SharedJob(this.#world, this.#model.open);
    this.#fleet = new Fleet(
      this.#world,
      {
        workers: random.between(1, 4),
        slotsPerWorker: random.pick([2, 8]),
        areThreads: random.chance(0.5),
        faults: this.#messageFaults(),
      },
      this.#sites,
      this.#blobs,
    );
    this.#model.isPoisoned = (batchId) => this.#fleet.poisoned.has(batchId);
    this.#isShared = this.#isOn('second') && random.chance(0.3);
    this.#isDelayed = random.chance(0.5);
    this.#model.now = () => this.#world.elapsedMs;
    this.#fleet.trace = (text) => this.#note(text);
    this.#world.afterStep = () => this.#afterStep();
    this.#world.nextDueAt = () => this.#nextDueAt();
  }

  #isOn(kind: string): boolean {
    if (this.#isCalm && (OF_PROCESSES as readonly string[]).includes(kind)) return false;
    const name = kind as FaultName;
    if (this.#options.without?.includes(name)) return false;
    return (FAULTS as readonly string[]).includes(kind) || (this.#options.with ?? []).includes(name);
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
    this.#model.compareCounters();
    this.#model.recount();
    this.#checkFates();
    if (this.#isCalm) this.#checkHealthyPages();
    this.#checkArchive();
  }

  result(failure: string | null): SimulationResult {
    return {
      seed: this.#options.seed,
      tasks: this.#model.counts.accepted,
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
    const store = this.#viewOf(process);
    const { clock } = process;
    const logger = {
      info: (text: string) => this.#note(`${process.name}: ${text}`),
      warn: (text: string) => this.#note(`${process.name}: ${text}`),
      error: (text: string) => this.#note(`${process.name}: ${text}`),
    };
    const parts = { store, job: this.#job, clock, logger };
    const coordinator = new Coordinator({
      ...parts,
      blobs: this.#blobs,
      dispatcher: this.#fleet.dispatcherFor(process),
      feeder: new SourceFeeder({ ...parts, sources: [this.#source()] }),
      progress: createProgress({ startedAt: clock.now() }),
      random: this.#random,
      diskFree: async () => null,
    });
    coordinator.run().then(
      (result) => this.#onEnd(process, result),
      (error: unknown) => this.#onFailure(process, error),
    );
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
  #viewOf(process: Process): Store {
    const own = this.#isShared
      ? this.#shared.viewOf(process, this.#store, this.#random.chance(0.5))
      : { jobs: {}, frontier: {} };
    const { jobs, frontier, hosts, escalations, proxies, views } = this.#store;
    return {
      jobs: this.#wrap(process, jobs, own.jobs),
      frontier: this.#wrap(process, frontier, own.frontier),
      hosts: this.#wrap(process, hosts, {}),
      escalations: this.#wrap(process, escalations, {}),
      proxies: this.#wrap(process, proxies, {}),
      views: this.#wrap(process, views, {}),
      close: async () => {},
    };
  }

  #wrap<T extends object>(process: Process, real: T, own: Partial<T>): T {
    return new Proxy(real, {
      get: (target, name) => {
        const method = (Reflect.get(own, name) ?? Reflect.get(target, name)) as (
          ...args: unknown[]
        ) => unknown;
        return (...args: unknown[]) =>
          this.#call(process, String(name), args, () => method.apply(target, args) as Promise<unknown>);
      },
    });
  }

  #call(process: Process, name: string, args: unknown[], execute: () => Promise<unknown>): Promise<unknown> {
    if (!process.isAlive) return new Promise(() => {});
    if (++this.#calls > CALLS_MAX)
      this.#failure ??= new Violation(`more than ${CALLS_MAX} calls of the store`);
    if (this.#failure !== null) return new Promise(() => {});
    const trouble = this.#brokenCalls.get(this.#calls);
    if (trouble) return this.#breakCall(trouble, process, name, args, execute);
    return this.#isDelayed
      ? this.#callLater(process, name, args, execute)
      : this.#execute(name, args, execute);
  }

  /** The call is executed and answered at some later time each, whatever comes between. */
  #callLater(
    process: Process,
    name: string,
    args: unknown[],
    execute: () => Promise<unknown>,
  ): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answerIn = () =>
      this.#random.chance(0.02) ? this.#random.between(20, 800) : this.#random.next() * 3;
    const send = () => {
      // What a process has sent before its end may arrive, or not.
      if (!process.isAlive && this.#random.chance(0.5)) return;
      this.#execute(name, args, execute).then(
        (result) => this.#world.after(answerIn(), process, () => resolve(result), 'quiet'),
        (error: unknown) => this.#world.after(answerIn(), process, () => reject(error), 'quiet'),
      );
    };
    this.#world.after(answerIn(), null, send, 'quiet');
    return promise;
  }

  /** The process dies at this very call, or the store fails, each before or after the call has been executed. */
  #breakCall(
    trouble: 'crash' | 'error',
    process: Process,
    name: string,
    args: unknown[],
    execute: () => Promise<unknown>,
  ): Promise<unknown> {
    const isExecuted = this.#random.chance(0.5);
    const when = `${isExecuted ? 'after' : 'before'} '${name}'`;
    const executed = isExecuted ? this.#execute(name, args, execute) : Promise.resolve();
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

  #execute(name: string, args: unknown[], execute: () => Promise<unknown>): Promise<unknown> {
    return execute().then((result) => {
      try {
        this.#model.observe(name, args, result);
      } catch (error) {
        this.#failure ??= error;
      }
      return result;
    });
  }

  #onEnd(process: Process, { state, stop }: RunResult): void {
    if (!process.isAlive) return;
    this.#note(`${process.name} ends: ${state}${stop ? `, ${stop.message}` : ''}`);
    this.#end(process);
    if (state !== 'done') this.#startSoon(this.#random.between(100, 5_000));
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
    this.#coordinators = this.#coordinators.filter((each) => each !== process);
    if (this.#coordinators.length === 0) this.#fleet.onCoordinatorEnd(false);
  }

  #afterStep(): void {
    if (this.#failure !== null) return;
    const { steps, elapsedMs } = this.#world;
    this.#model.compareCounters();
    if (steps >= this.#recountAt) {
      this.#recountAt = steps + RECOUNT_STEPS;
      this.#model.recount();
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
    if (this.#model.open.size > 0) return;
    const dueBefore = now + coordinator.clockOffset - IDLE_MS_MAX;
    const host = this.#db.get<{ host: string; ready: number }>(SELECT_IDLE, this.#job.id, dueBefore);
    check(
      host === undefined,
      () => `${host!.host} has waited for ${IDLE_MS_MAX} ms with ${host!.ready} tasks`,
    );
  }

  #waiting(): string {
    return JSON.stringify(this.#model.counts);
  }

  /** When a poll of the coordinator could find something: a host or task that is due, or a lease that ends. */
  #nextDueAt(): number {
    const coordinator = this.#coordinators[0];
    if (!coordinator) return Number.POSITIVE_INFINITY;
    const row = this.#db.get<{ host: number | null; task: number | null; lease: number | null }>(
      SELECT_NEXT,
      this.#job.id,
      this.#job.id,
      this.#job.id,
    )!;
    const times = [row.host, row.task].filter((at) => at !== null).map((at) => at - 400);
    if (row.lease !== null) times.push(row.lease + 1);
    return Math.min(Math.min(...times) - coordinator.clockOffset, this.#shared.nextChangeAt());
  }

  /** Per host, no gap is shorter than permitted, across workers and restarts. */
  #checkGap(host: SimHost, { clockOffset }: Process): void {
    const { now } = this.#world;
    const isSameClock = host.lastOffset === clockOffset;
    host.lastOffset = clockOffset;
    const { rate } = this.#job.spec.politeness;
    const gapMs = now - host.lastSentAt;
    host.lastSentAt = now;
    try {
      // What the store knows of times means something else once the clock was set.
      if (rate !== 'max' && isSameClock)
        check(
          gapMs >= 1_000 / rate - 0.001,
          () => `${host.name} was asked after ${gapMs} ms, at a rate of ${rate} per second`,
        );
    } catch (error) {
      this.#failure ??= error;
    }
  }

  /** Every task has ended, and as its page deserves. */
  #checkFates(): void {
    for (const { id, url, state, code, isOver } of this.#model.fates()) {
      check(isOver, () => `${url} is ${state} at the end`);
      const page = this.#sites.pages.get(url);
      check(page !== undefined, () => `${url} is a task, but no one named it`);
      const hosts = [url, page.to].filter((each) => each !== '').map((each) => this.#sites.hostOf(each)!);
      const isHostTrouble = hosts.some((host) => isTroubled(host));
      const isForbidden = url.includes('/private/') && this.#job.spec.politeness.robots;
      if (isForbidden && state === 'skipped') continue;
      if (page.kind === 'ok' || page.kind === 'flaky' || page.kind === 'redirect') {
        if (state === 'done') continue;
        // Where only pages that fail are left, they are the host's probes, and one that would answer later goes with them.
        if (page.kind === 'flaky' && code === 'host-down') continue;
        // A 429 uses up an attempt of its page, or of robots.txt.
        if (hosts.some(({ manner }) => manner.kind === 'limits')) continue;
        if (code === 'worker-lost' && (this.#model.losses.get(id) ?? 0) >= LOSSES_MAX) continue;
        check(isHostTrouble, () => `${url} (${page.kind}) is ${state}, ${code}`);
      } else check(state === 'dead', () => `${url} (${page.kind}) is ${state}, ${code}`);
    }
  }

  /** Pages that fail do not hold up the others of their host. */
  #checkHealthyPages(): void {
    const { spec } = this.#job;
    const { rate } = spec.politeness;
    for (const { name, manner, robots, pages, latencyMs } of this.#sites.hosts) {
      if (manner.kind !== 'plain' || robots === 'fails' || robots === 'elsewhere') continue;
      const healthy = pages.filter(({ kind }) => kind === 'ok');
      if (healthy.length < pages.length * 0.8) continue;
      const gapMs = Math.max(rate === 'max' ? 0 : 1_000 / rate, robots === 'delays' ? 500 : 0, latencyMs / 4);
      const times = healthy.map(({ url }) => this.#model.doneAt.get(url) ?? 0);
      const lastMs = Math.max(0, ...times);
      const boundMs = HEALTHY_MS + pages.length * gapMs * HEALTHY_TIMES;
      check(lastMs < boundMs, () => `the healthy pages of ${name} took ${lastMs} ms, more than ${boundMs}`);
    }
  }

  /** Each done page has one valid WARC record at its place. */
  #checkArchive(): void {
    const rows = this.#db.all<{ url: string; key: string; offset: number; length: number }>(
      SELECT_PAGES,
      this.#job.id,
    );
    check(
      rows.length === this.#model.counts.done,
      () => `${this.#model.counts.done} tasks are done, and ${rows.length} pages are kept`,
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

/** Hosts on which pages may die that would answer. */
function isTroubled({ manner, robots }: SimHost): boolean {
  if (robots === 'fails' || robots === 'elsewhere') return true;
  return manner.kind === 'stalls' || manner.kind === 'down' || manner.kind === 'gone';
}

const SELECT_IDLE = `
  SELECT hosts.host, queues.ready FROM queues JOIN hosts ON hosts.id = queues.host_id
  WHERE job_id = ? AND ready > 0 AND queues.next_at < ? LIMIT 1`;
const SELECT_NEXT = `
  SELECT (SELECT min(next_at) FROM queues WHERE job_id = ? AND ready > 0) AS host,
    (SELECT min(due_at) FROM tasks WHERE job_id = ? AND state = 8) AS task,
    (SELECT min(lease_until) FROM batches WHERE job_id = ? AND state = 'open') AS lease`;
const SELECT_PAGES = `
  SELECT tasks.url, archives.key, attempts.archive_offset AS offset, attempts.archive_length AS length
  FROM tasks JOIN attempts ON attempts.id = tasks.attempt_id JOIN archives ON archives.id = attempts.archive_id
  WHERE tasks.job_id = ? AND tasks.state = 4`;
