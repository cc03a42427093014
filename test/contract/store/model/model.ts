import { expect } from 'vitest';
import {
  LOSSES_MAX,
  nextSuspicion,
  SUSPECT_LOSSES,
  suspectsTogether,
} from '../../../../src/core/suspicion/suspicion.ts';
import { REOPENED_SOURCE } from '../../../../src/ports/store/job-store.ts';
import type { Job, LeasedBatch, SourcePosition, Store } from '../../../../src/ports/store.ts';
import {
  codeOf,
  collect,
  createJob,
  enqueue,
  FAR,
  settlementOf,
  T0,
  taskOf,
} from '../../../support/fixtures.ts';
import { expectBalance, type OpenStore } from '../store-setup.ts';
import { hostName, makeChange } from './model-changes.ts';
import { ModelRecords } from './model-records.ts';
import type { Step } from './model-steps.ts';
import { ModelPass, ModelTask } from './model-task.ts';

interface ModelBatch {
  id: number;
  job: number;
  tasks: Map<number, ModelTask>;
  open: boolean;
}

/** The store as a few maps: slow, in memory, and plain enough to be believed. */
export class StoreModel {
  readonly #open: OpenStore;
  readonly #place: string;
  readonly #jobs: Job[] = [];
  readonly #tasks: Map<string, ModelTask>[] = [new Map(), new Map()];
  readonly #passes = [new ModelPass(1, T0, -1), new ModelPass(1, T0, -1)];
  readonly #records = [new ModelRecords(), new ModelRecords()];
  readonly #lent = new Map<number, ModelTask>();
  readonly #batches: ModelBatch[] = [];
  #store: Store;
  #now = T0;
  #order = 0;
  #pages = 0;

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
      case 'fail-host':
        await this.#failTasksOfHost(step);
        break;
      case 'retry':
        await this.#retry(step);
        break;
      case 'pass':
        await this.#beginPass(step);
        break;
      case 'revisit':
        await this.#revisit(step);
        break;
      case 'restart':
        await this.#store.close();
        this.#store = await this.#open(this.#place);
    }
    await this.#compare();
  }

  async #enqueue(step: Extract<Step, { kind: 'enqueue' }>): Promise<void> {
    const modifiedAt = step.age === null ? null : this.#now - step.age;
    const drafts = step.urls.map((number) =>
      taskOf(`https://${hostName(number)}/${number % 30}`, { priority: step.priority, modifiedAt }),
    );
    const result = await enqueue(this.#store, this.#jobs[step.job]!, drafts);
    const expected = { accepted: 0, duplicates: 0, dropped: 0 };
    for (const { url } of drafts) {
      const known = this.#tasks[step.job]!.get(url);
      if (!known) {
        this.#add(step.job, url, step.priority, modifiedAt);
        expected.accepted++;
      } else if (modifiedAt === null || !this.#passes[step.job]!.renew(known, modifiedAt)) {
        expected.duplicates++;
      }
    }
    expect(result).toEqual(expected);
  }

  #add(job: number, url: string, priority: number, modifiedAt: number | null = null): void {
    this.#tasks[job]!.set(url, new ModelTask(url, this.#order++, priority, modifiedAt));
  }

  async #beginPass({ job }: Extract<Step, { kind: 'pass' }>): Promise<void> {
    this.#now += 10;
    const { id, name } = this.#jobs[job]!;
    const begun = await this.#store.jobs.beginPass(id, { ...codeOf(name), now: this.#now });
    this.#passes[job] = new ModelPass(this.#passes[job]!.number + 1, this.#now, this.#order - 1);
    expect(begun.pass).toBe(this.#passes[job]!.number);
  }

  /** Steps of any size reopen the same tasks. */
  async #revisit(step: Extract<Step, { kind: 'revisit' }>): Promise<void> {
    const pass = this.#passes[step.job]!;
    if (pass.isReopened) return;
    pass.isReopened = true;
    const visitedBefore = this.#now - step.age;
    const due = [...this.#tasks[step.job]!.values()].filter((task) => pass.reopens(task, visitedBefore));
    let source: SourcePosition = {
      source: REOPENED_SOURCE,
      position: null,
      done: false,
      rows: 0,
      rejected: 0,
    };
    let reopened = 0;
    while (!source.done) {
      const options = { now: this.#now, visitedBefore, limit: step.limit, source };
      const result = await this.#store.frontier.reopen(this.#jobs[step.job]!.id, options);
      source = result.source;
      reopened += result.reopened;
      await expectBalance(this.#store, this.#jobs[step.job]!);
    }
    expect(reopened).toBe(due.length);
    for (const task of due) task.reopen();
  }

  /** Ready tasks of a host in the order in which they must be lent, or those that wait. */
  #ready(job: number, host: string, state: 'ready' | 'waiting' = 'ready'): ModelTask[] {
    return [...this.#tasks[job]!.values()]
      .filter((task) => task.host === host && task.state === state)
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
    const { suspectBatchesMax } = step;
    const leased = await frontier.lease(jobId, { batches, now: this.#now, suspectBatchesMax });
    expect(leased.filter(({ suspectsOf }) => suspectsOf !== undefined).length).toBeLessThanOrEqual(
      suspectBatchesMax,
    );
    for (const batch of leased) {
      if (batch.tasks.length > 0) this.#lend(step, batch);
    }
  }

  #lend(step: { job: number; count: number }, { id, tasks: leased, suspectsOf }: LeasedBatch): void {
    expect(this.#batches.some((batch) => batch.id === id)).toBe(false);
    const held = new Map<number, ModelTask>();
    const isFirstPass = this.#passes[step.job]!.number === 1;
    for (const { id: taskId, url, lastVisit } of leased) {
      // A task that followed a redirect comes with another URL, but has been lent before.
      const task = this.#lent.get(taskId) ?? this.#tasks[step.job]!.get(url)!;
      this.#lent.set(taskId, task);
      const ready = this.#ready(step.job, task.host);
      const ordinary = ready.filter(({ losses }) => losses < SUSPECT_LOSSES);
      expect(suspectsOf === undefined ? ordinary[0] : ready[0]).toBe(task);
      if (suspectsOf !== undefined) expect(ordinary).toEqual([]);
      expect(lastVisit?.sha256 ?? null).toBe(isFirstPass ? null : task.comparedWith);
      task.state = 'leased';
      held.set(taskId, task);
    }
    expect(held.size).toBe(leased.length);
    const lent = [...held.values()];
    for (const task of lent) {
      expect(lent.filter((other) => other.host === task.host).length).toBeLessThanOrEqual(step.count);
    }
    if (suspectsOf !== undefined) expect(suspectsTogether(lent, lent.length)).toBe(lent.length);
    this.#batches.push({ id, job: step.job, tasks: held, open: true });
  }

  async #settle(step: Extract<Step, { kind: 'settle' }>): Promise<void> {
    const batch = this.#batches[step.batch % Math.max(1, this.#batches.length)];
    if (!batch) return;
    // Tasks of all batches are named, also those that this one never held or has settled.
    const foreign = this.#batches.flatMap((other) => [...other.tasks]);
    const all = step.final ? [...batch.tasks, ...foreign] : [...foreign, ...batch.tasks];
    const named = all.slice(0, step.outcomes.length);
    const changes = named.map(([id], at) =>
      makeChange(step.outcomes[at]!, { id, job: batch.job, now: this.#now, page: this.#pages++ }),
    );
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
      task.apply(each, this.#now, this.#passes[batch.job]!.number);
      this.#records[batch.job]!.apply(each, this.#now);
      for (const link of each.links) {
        if (!this.#tasks[batch.job]!.has(link.url)) this.#add(batch.job, link.url, link.priority);
      }
    }
    if (!step.final) return;
    batch.open = false;
    for (const task of batch.tasks.values()) task.state = 'ready';
    batch.tasks.clear();
  }

  async #release(step: Extract<Step, { kind: 'release' }>): Promise<void> {
    const batch = this.#batches[step.batch % Math.max(1, this.#batches.length)];
    if (!batch) return;
    const options = { now: this.#now, blame: step.blame, reason: 'lost' };
    const result = await this.#store.frontier.release(batch.id, options);
    let dead = 0;
    for (const task of batch.tasks.values()) {
      Object.assign(task, nextSuspicion(task, step.blame, 0));
      task.state = task.losses >= LOSSES_MAX ? 'dead' : 'ready';
      if (task.state === 'dead') dead++;
    }
    expect(result).toEqual({ returned: batch.tasks.size - dead, dead });
    batch.open = false;
    batch.tasks.clear();
  }

  async #failTasksOfHost(step: Extract<Step, { kind: 'fail-host' }>): Promise<void> {
    const host = hostName(step.host);
    const open = [...this.#ready(step.job, host), ...this.#ready(step.job, host, 'waiting')];
    const options = { host, code: 'host-down' as const, detail: 'down', now: this.#now };
    const count = await this.#store.frontier.failTasksOfHost(this.#jobs[step.job]!.id, {
      ...options,
      limit: step.limit,
    });
    expect(count).toBe(Math.min(open.length, step.limit));
    for (const task of open.slice(0, count)) task.state = 'dead';
  }

  async #retry(step: Extract<Step, { kind: 'retry' }>): Promise<void> {
    const filter = step.host === null ? {} : { host: hostName(step.host) };
    const dead = [...this.#tasks[step.job]!.values()].filter(
      (task) => task.state === 'dead' && (filter.host === undefined || task.host === filter.host),
    );
    expect(await this.#store.views.retryDead(this.#jobs[step.job]!.id, filter, this.#now)).toBe(dead.length);
    for (const task of dead) Object.assign(task, { state: 'ready', attempts: 0, losses: 0, crashes: 0 });
  }

  async #compare(): Promise<void> {
    await expectBalance(this.#store, ...this.#jobs);
    for (const [at, job] of this.#jobs.entries()) {
      const rows = await collect(this.#store.views.tasks(job.id));
      const pending = new Set(['ready', 'waiting']);
      const expected = [...this.#tasks[at]!.values()].map((task) => ({
        url: task.url,
        host: task.host,
        state: pending.has(task.state) ? 'pending' : task.state,
        attempts: task.attempts,
        sha256: task.page?.sha256 ?? null,
      }));
      const actual = rows.map(({ url, host, state, attempts, sha256 }) => ({
        ...{ url, host, state, attempts, sha256 },
      }));
      expect(actual).toEqual(expected);
      const { attempted } = await this.#store.jobs.counters(job.id);
      expect(attempted).toBe(rows.filter(({ attempts }) => attempts > 0).length);
      const records = await collect(this.#store.views.records(job.id));
      expect(new Map(records.map(({ key, data }) => [key, data]))).toEqual(this.#records[at]!.data());
      const open = this.#batches.filter((batch) => batch.job === at && batch.open).map((batch) => batch.id);
      expect((await this.#store.frontier.orphans(job.id)).sort((a, b) => a - b)).toEqual(open);
    }
  }
}
