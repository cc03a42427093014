import { expect } from 'vitest';
import { balance, TASK_STATES } from '../../../src/core/model.ts';
import type { RevisitBounds } from '../../../src/core/revisits/revisit-interval.ts';
import type { Blame } from '../../../src/core/suspicion/suspicion.ts';
import { REOPENED_SOURCE } from '../../../src/ports/store/job-store.ts';
import type {
  Job,
  JobCode,
  LeasedTask,
  Settlement,
  SourcePosition,
  Store,
  TaskChange,
} from '../../../src/ports/store.ts';
import {
  codeOf,
  collect,
  createJob,
  enqueue,
  FAR,
  leaseOne,
  settlementOf,
  T0,
  tasksOf,
  temporaryFolder,
} from '../../support/fixtures.ts';

/** Opens the store at a place. A place that was never opened is empty; the same one again has what it had. */
export type OpenStore = (place: string) => Promise<Store>;
/** Nobody opens the place again, nor one below it; its stores are closed. */
export type ForgetStore = (place: string) => Promise<void>;

export const A = 'https://a.example';
export const B = 'https://b.example';

const START: SourcePosition = {
  source: REOPENED_SOURCE,
  position: null,
  done: false,
  rows: 0,
  rejected: 0,
};

/** A store with one job, new for each test, and short words for what tests do with it. */
export class StoreSetup {
  readonly open: OpenStore;
  readonly forget: ForgetStore;
  store!: Store;
  job!: Job;
  #folder!: Awaited<ReturnType<typeof temporaryFolder>>;

  constructor(open: OpenStore, forget: ForgetStore) {
    this.open = open;
    this.forget = forget;
  }

  get place(): string {
    return this.#folder.dir;
  }

  async setUp(): Promise<void> {
    this.#folder = await temporaryFolder();
    this.store = await this.open(this.place);
    this.job = await createJob(this.store);
  }

  async tearDown(): Promise<void> {
    await this.store.close();
    await this.forget(this.place);
    await this.#folder.remove();
  }

  reopen = async () => {
    await this.store.close();
    this.store = await this.open(this.place);
  };
  add = (...urls: string[]) => enqueue(this.store, this.job, tasksOf(...urls));
  due = (options: { now?: number; before?: number; limit?: number } = {}) =>
    this.store.frontier.dueHosts(this.job.id, { now: T0, before: FAR, limit: 100, ...options });
  hostsDue = async (options: { now?: number; before?: number; limit?: number } = {}) =>
    (await this.due(options)).map((host) => host.host);
  row = (url: string) => this.store.views.task(this.job.id, url);
  counters = () => this.store.jobs.counters(this.job.id);
  release = (batchId: number, blame: Blame = 'none', reason = 'gone') =>
    this.store.frontier.release(batchId, { now: T0, blame, reason });
  /** Lends everything that is due and settles it; the tasks as they were lent, by URL. */
  visit = async (
    make: (task: LeasedTask) => TaskChange,
    more: Partial<Settlement> = {},
  ): Promise<Map<string, LeasedTask>> => {
    const { id, tasks } = await leaseOne(this.store, this.job, more.now ? { now: more.now } : {});
    await this.settle(id, tasks.map(make), more);
    return new Map(tasks.map((task) => [task.url, task]));
  };
  beginPass = async (now: number, change: Partial<JobCode> = {}): Promise<void> => {
    this.job = await this.store.jobs.beginPass(this.job.id, { ...codeOf('test'), ...change, now });
  };
  /** Makes due what is, in steps of `limit`, from where the store says that it was; how many. */
  reopenTasks = async (visitedBefore: number, limit = 1_000, adapt?: RevisitBounds): Promise<number> => {
    let reopened = 0;
    for (let step = 0; step < 1_000; step++) {
      const sources = await this.store.jobs.sources(this.job.id);
      const source = sources.find((each) => each.source === REOPENED_SOURCE) ?? START;
      if (source.done) return reopened;
      const options = { now: T0, visitedBefore, limit, source, ...(adapt && { adapt }) };
      reopened += (await this.store.frontier.reopen(this.job.id, options)).reopened;
    }
    throw new Error('reopening does not end');
  };
  settle = (batchId: number, tasks: TaskChange[], more: Partial<Settlement> = {}) =>
    this.store.frontier.settle(settlementOf(this.job, batchId, tasks, more));
}

/** Counters are right only if they balance and agree with what a full count over the rows gives. */
export async function expectBalance(store: Store, ...jobs: Pick<Job, 'id'>[]): Promise<void> {
  for (const job of jobs) {
    const counters = await store.jobs.counters(job.id);
    const rows = await collect(store.views.tasks(job.id));
    expect(balance(counters)).toBe(0);
    const counted = {
      ...counters,
      accepted: rows.length,
      records: (await collect(store.views.records(job.id, { ownOnly: true }))).length,
    };
    for (const state of TASK_STATES) counted[state] = rows.filter((row) => row.state === state).length;
    expect(counters).toEqual(counted);
    expect(new Set(rows.map((row) => row.url)).size).toBe(rows.length);
    for (const value of Object.values(counters)) expect(value).toBeGreaterThanOrEqual(0);

    const tallied = new Map<string, number>();
    for (const row of rows) {
      if (row.state !== 'dead' && row.state !== 'skipped') continue;
      const key = `${row.state} ${row.failureCode}`;
      tallied.set(key, (tallied.get(key) ?? 0) + 1);
    }
    const tallies = await store.views.tallies(job.id);
    expect(new Map(tallies.map(({ state, code, count }) => [`${state} ${code}`, count]))).toEqual(tallied);
    const dead = await store.views.dead(job.id);
    expect(dead.reduce((sum, group) => sum + group.count, 0)).toBe(counters.dead);
  }
}
