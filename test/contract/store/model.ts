import { expect } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { Job, Store, TaskChange } from '../../../src/ports/store.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  FAR,
  recordOf,
  settlementOf,
  T0,
  taskOf,
  tasksOf,
} from '../../support/fixtures.ts';
import type { Step } from './model-steps.ts';
import { expectBooks, type OpenStore } from './store-desk.ts';

interface ModelTask {
  url: string;
  host: string;
  priority: number;
  order: number;
  state: 'ready' | 'waiting' | 'leased' | 'done' | 'unchanged' | 'skipped' | 'dead';
  dueAt: number;
  attempts: number;
  losses: number;
}

interface ModelBatch {
  id: number;
  job: number;
  tasks: Map<number, ModelTask>;
  open: boolean;
}

const hostName = (number: number) => `h${number % 3}.example`;

/** The store as a few maps: slow, in memory, and plain enough to be believed. */
export class StoreModel {
  readonly #open: OpenStore;
  readonly #place: string;
  readonly #jobs: Job[] = [];
  readonly #tasks: Map<string, ModelTask>[] = [new Map(), new Map()];
  readonly #lent = new Map<number, ModelTask>();
  readonly #batches: ModelBatch[] = [];
  #store: Store;
  #now = T0;
  #order = 0;

  private constructor(open: OpenStore, place: string, store: Store) {
    this.#open = open;
    this.#place = place;
    this.#store = store;
  }

  static async start(open: OpenStore, place: string): Promise<StoreModel> {
    const store = await open(place);
    const model = new StoreModel(open, place, store);
    for (const name of ['one', 'two']) model.#jobs.push(await createJob(store, name));
    return model;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'enqueue':
        await this.#enqueue(step);
        break;
      case 'lease':
        await this.#lease(step);
        break;
      case 'settle':
        await this.#settle(step);
        break;
      case 'release':
        await this.#release(step);
        break;
      case 'condemn':
        await this.#condemn(step);
        break;
      case 'retry':
        await this.#retry(step);
        break;
      case 'reopen':
        await this.#store.close();
        this.#store = await this.#open(this.#place);
    }
    await this.#compare();
  }

  async #enqueue(step: Extract<Step, { kind: 'enqueue' }>): Promise<void> {
    const tasks = this.#tasks[step.job]!;
    const drafts = step.urls.map((number) =>
      taskOf(`https://${hostName(number)}/${number % 30}`, { priority: step.priority }),
    );
    const fresh = new Set(drafts.map((draft) => draft.url).filter((url) => !tasks.has(url)));
    const result = await enqueue(this.#store, this.#jobs[step.job]!, drafts);
    expect(result).toEqual({ accepted: fresh.size, duplicates: drafts.length - fresh.size, dropped: 0 });
    for (const draft of drafts) if (!tasks.has(draft.url)) this.#add(step.job, draft.url, step.priority);
  }

  #add(job: number, url: string, priority: number): void {
    const order = this.#order++;
    const host = new URL(url).host;
    this.#tasks[job]!.set(url, {
      url,
      host,
      priority,
      order,
      state: 'ready',
      dueAt: 0,
      attempts: 0,
      losses: 0,
    });
  }

  /** Ready tasks of a host in the order in which they must be lent. */
  #ready(job: number, host: string): ModelTask[] {
    return [...this.#tasks[job]!.values()]
      .filter((task) => task.host === host && task.state === 'ready')
      .sort((a, b) => b.priority - a.priority || a.order - b.order);
  }

  async #lease(step: Extract<Step, { kind: 'lease' }>): Promise<void> {
    const { frontier } = this.#store;
    const jobId = this.#jobs[step.job]!.id;
    this.#now += step.waitMs;
    for (const task of this.#tasks[step.job]!.values()) {
      if (task.state === 'waiting' && task.dueAt <= this.#now) task.state = 'ready';
    }
    const due = await frontier.dueHosts(jobId, { now: this.#now, before: FAR, limit: 100 });
    const hosts = [...new Set([...this.#tasks[step.job]!.values()].map((task) => task.host))];
    const expected = hosts.map((host) => [host, this.#ready(step.job, host).length] as const);
    expect(new Map(due.map((host) => [host.host, host.ready]))).toEqual(
      new Map(expected.filter(([, ready]) => ready > 0)),
    );
    const grants = due.map((host) => ({ hostId: host.id, count: step.count, nextAt: this.#now }));
    const batches = Array.from({ length: step.parts }, () => ({ grants, leaseMs: 100 }));
    for (const { id, tasks } of await frontier.lease(jobId, { batches, now: this.#now })) {
      if (tasks.length > 0) this.#lend(step, id, tasks);
    }
  }

  #lend(step: { job: number; count: number }, id: number, leased: { id: number; url: string }[]): void {
    expect(this.#batches.some((batch) => batch.id === id)).toBe(false);
    const held = new Map<number, ModelTask>();
    for (const { id: taskId, url } of leased) {
      // A task that followed a redirect comes with another URL, but has been lent before.
      const task = this.#lent.get(taskId) ?? this.#tasks[step.job]!.get(url)!;
      this.#lent.set(taskId, task);
      expect(this.#ready(step.job, task.host)[0]).toBe(task);
      task.state = 'leased';
      held.set(taskId, task);
    }
    expect(held.size).toBe(leased.length);
    const lent = [...held.values()];
    for (const task of lent) {
      expect(lent.filter((other) => other.host === task.host).length).toBeLessThanOrEqual(step.count);
      if (task.losses > 0) expect(lent).toHaveLength(1);
    }
    this.#batches.push({ id, job: step.job, tasks: held, open: true });
  }

  async #settle(step: Extract<Step, { kind: 'settle' }>): Promise<void> {
    const batch = this.#batches[step.batch % Math.max(1, this.#batches.length)];
    if (!batch) return;
    // Tasks of all batches are named, also those that this one never held or has settled.
    const foreign = this.#batches.flatMap((other) => [...other.tasks]);
    const all = step.final ? [...batch.tasks, ...foreign] : [...foreign, ...batch.tasks];
    const named = all.slice(0, step.outcomes.length);
    const changes = named.map(([id], at) => this.#change(step.outcomes[at]!, id, batch.job));
    const settlement = settlementOf(this.#jobs[batch.job]!, batch.id, changes, {
      now: this.#now,
      final: step.final,
    });
    const result = await this.#store.frontier.settle(settlement);
    expect(result.applied).toBe(batch.open);
    if (!batch.open) return;
    for (const each of changes) {
      const task = batch.tasks.get(each.id);
      if (task?.state !== 'leased') continue;
      batch.tasks.delete(each.id);
      this.#apply(task, each);
      for (const link of each.links) {
        if (!this.#tasks[batch.job]!.has(link.url)) this.#add(batch.job, link.url, link.priority);
      }
    }
    if (!step.final) return;
    batch.open = false;
    for (const task of batch.tasks.values()) task.state = 'ready';
    batch.tasks.clear();
  }

  #change(outcome: number, id: number, job: number): TaskChange {
    const link = `https://${hostName(id)}/found-${id % 7}`;
    const elsewhere = `https://${hostName(id + 1)}/moved-${job}`;
    const kinds = [
      () => change.fetched(id, { links: tasksOf(link), records: [recordOf(`r${id % 5}`, { id })] }),
      () => change.unchanged(id),
      () => change.skipped(id),
      () => change.dead(id),
      () => change.dead(id, { code: 'tls' }),
      () => change.again(id, this.#now + 100),
      () => change.again(id, this.#now - 1),
      () => change.deferred(id),
      () => change.moved(id, elsewhere),
    ];
    return kinds[outcome % kinds.length]!();
  }

  #apply(task: ModelTask, each: TaskChange): void {
    if (each.countsAsAttempt) task.attempts++;
    if (each.moveTo) task.host = each.moveTo.host;
    if (each.to !== 'pending') {
      task.state = each.to;
      return;
    }
    task.dueAt = each.dueAt ?? 0;
    task.state = task.dueAt > this.#now ? 'waiting' : 'ready';
  }

  async #release(step: Extract<Step, { kind: 'release' }>): Promise<void> {
    const batch = this.#batches[step.batch % Math.max(1, this.#batches.length)];
    if (!batch) return;
    const options = { now: this.#now, suspect: step.suspect, reason: 'lost' };
    const result = await this.#store.frontier.release(batch.id, options);
    let dead = 0;
    for (const task of batch.tasks.values()) {
      if (step.suspect) task.losses++;
      task.state = task.losses >= LIMITS.lossesMax ? 'dead' : 'ready';
      if (task.state === 'dead') dead++;
    }
    expect(result).toEqual({ returned: batch.tasks.size - dead, dead });
    batch.open = false;
    batch.tasks.clear();
  }

  async #condemn(step: Extract<Step, { kind: 'condemn' }>): Promise<void> {
    const ready = this.#ready(step.job, hostName(step.host));
    const options = { host: hostName(step.host), code: 'host-down' as const, detail: 'down', now: this.#now };
    const count = await this.#store.frontier.condemn(this.#jobs[step.job]!.id, {
      ...options,
      limit: step.limit,
    });
    expect(count).toBe(Math.min(ready.length, step.limit));
    for (const task of ready.slice(0, count)) task.state = 'dead';
  }

  async #retry(step: Extract<Step, { kind: 'retry' }>): Promise<void> {
    const filter = step.host === null ? {} : { host: hostName(step.host) };
    const dead = [...this.#tasks[step.job]!.values()].filter(
      (task) => task.state === 'dead' && (filter.host === undefined || task.host === filter.host),
    );
    expect(await this.#store.views.retryDead(this.#jobs[step.job]!.id, filter, this.#now)).toBe(dead.length);
    for (const task of dead) Object.assign(task, { state: 'ready', attempts: 0, losses: 0 });
  }

  async #compare(): Promise<void> {
    await expectBooks(this.#store, ...this.#jobs);
    for (const [at, job] of this.#jobs.entries()) {
      const rows = await collect(this.#store.views.tasks(job.id));
      const pending = new Set(['ready', 'waiting']);
      const expected = [...this.#tasks[at]!.values()].map((task) => ({
        url: task.url,
        host: task.host,
        state: pending.has(task.state) ? 'pending' : task.state,
        attempts: task.attempts,
      }));
      expect(rows.map(({ url, host, state, attempts }) => ({ url, host, state, attempts }))).toEqual(
        expected,
      );
      const open = this.#batches.filter((batch) => batch.job === at && batch.open).map((batch) => batch.id);
      expect((await this.#store.frontier.orphans(job.id)).sort((a, b) => a - b)).toEqual(open);
    }
  }
}
