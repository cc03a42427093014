import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { balance, TASK_STATES, zeroCounters } from '../../src/core/model.ts';
import type { Job, Settlement, Store, TaskChange } from '../../src/ports/store.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  FAR,
  hostChange,
  leaseOne,
  pageOf,
  recordOf,
  robotsEntry,
  settlementOf,
  specOf,
  T0,
  taskOf,
  tasksOf,
  temporaryFolder,
  traceOf,
} from '../support/fixtures.ts';

/** Opens the store at a place. A place that was never opened is empty; the same one again has what it had. */
export type OpenStore = (place: string) => Promise<Store>;

/** Counters are right only if they balance and agree with what a full count over the rows gives. */
export async function expectBooks(store: Store, ...jobs: Pick<Job, 'id'>[]): Promise<void> {
  for (const job of jobs) {
    const counters = await store.jobs.counters(job.id);
    const rows = await collect(store.views.tasks(job.id));
    expect(balance(counters)).toBe(0);
    const counted = {
      ...counters,
      accepted: rows.length,
      records: (await collect(store.views.records(job.id))).length,
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

const A = 'https://a.example';
const B = 'https://b.example';

export function runStoreContract(name: string, open: OpenStore): void {
  describe(`store: ${name}`, () => {
    let store: Store;
    let job: Job;
    let place: string;
    let runs = 0;
    let folder: Awaited<ReturnType<typeof temporaryFolder>>;
    beforeEach(async () => {
      folder = await temporaryFolder();
      place = folder.dir;
      store = await open(place);
      job = await createJob(store);
    });
    afterEach(async () => {
      await store.close();
      await folder.remove();
    });

    const reopen = async () => {
      await store.close();
      store = await open(place);
    };
    const add = (...urls: string[]) => enqueue(store, job, tasksOf(...urls));
    const due = (options: { now?: number; before?: number; limit?: number } = {}) =>
      store.frontier.dueHosts(job.id, { now: T0, before: FAR, limit: 100, ...options });
    const hostsDue = async (options: Parameters<typeof due>[0] = {}) =>
      (await due(options)).map((host) => host.host);
    const row = (url: string) => store.views.task(job.id, url);
    const counters = () => store.jobs.counters(job.id);
    const release = (batchId: number, suspect = false, reason = 'gone') =>
      store.frontier.release(batchId, { now: T0, suspect, reason });
    const settle = (batchId: number, tasks: TaskChange[], more: Partial<Settlement> = {}) =>
      store.frontier.settle(settlementOf(job, batchId, tasks, more));

    describe('jobs', () => {
      test('a new job runs, and everything it was given comes back', async () => {
        const spec = specOf({
          name: 'shop',
          routes: [{ name: 'p', match: '/p/*', select: { title: 'h1' } }],
        });
        const made = await store.jobs.create({
          name: 'shop',
          spec,
          specHash: 'x',
          bundle: 'bundles/1.mjs',
          now: T0,
        });
        expect(made).toMatchObject({ name: 'shop', run: 1, specHash: 'x', bundle: 'bundles/1.mjs' });
        expect(made).toMatchObject({
          state: 'running',
          wish: 'run',
          reason: null,
          endedAt: null,
          workedMs: 0,
        });
        expect(made.createdAt).toBe(T0);
        expect(made.spec).toEqual(spec);
        expect(await store.jobs.find('shop')).toEqual(made);
        expect(await store.jobs.counters(made.id)).toEqual(zeroCounters());
        await reopen();
        expect(await store.jobs.find('shop')).toEqual(made);
      });

      test('runs of a name are counted, each name for itself', async () => {
        expect((await createJob(store, 'x')).run).toBe(1);
        expect((await createJob(store, 'x')).run).toBe(2);
        expect((await createJob(store, 'y')).run).toBe(1);
        await reopen();
        expect((await createJob(store, 'x')).run).toBe(3);
      });

      test('found by name, by name and run, and as the newest', async () => {
        const first = await createJob(store, 'x');
        const second = await createJob(store, 'x');
        const other = await createJob(store, 'dash-ed');
        expect((await store.jobs.find('x'))?.id).toBe(second.id);
        expect((await store.jobs.find('x-1'))?.id).toBe(first.id);
        expect((await store.jobs.find('x-2'))?.id).toBe(second.id);
        expect((await store.jobs.find('dash-ed'))?.id).toBe(other.id);
        expect((await store.jobs.find('dash-ed-1'))?.id).toBe(other.id);
        expect((await store.jobs.find(null))?.id).toBe(other.id);
        for (const unknown of ['x-3', 'x-0', 'x-', '-1', '', 'X', 'x%', 'x-99999999999999999999']) {
          expect(await store.jobs.find(unknown)).toBeNull();
        }
      });

      test('no job in an empty store', async () => {
        const empty = await open(`${place}/empty`);
        expect(await empty.jobs.find(null)).toBeNull();
        expect(await empty.jobs.list(10)).toEqual([]);
        await empty.close();
      });

      test('a list has the newest first and no more than asked', async () => {
        for (const each of ['x', 'y', 'z']) await createJob(store, each);
        expect((await store.jobs.list(2)).map((each) => each.name)).toEqual(['z', 'y']);
        expect(await store.jobs.list(100)).toHaveLength(4);
      });

      test('an update changes what it names and nothing else', async () => {
        const other = await createJob(store, 'other');
        await store.jobs.update(job.id, {
          state: 'stopped',
          reason: 'because',
          endedAt: T0 + 5,
          workedMs: 17,
        });
        await store.jobs.update(job.id, {});
        expect(await store.jobs.find('test')).toEqual({
          ...job,
          state: 'stopped',
          reason: 'because',
          endedAt: T0 + 5,
          workedMs: 17,
        });
        const spec = { ...job.spec, batchSize: 7 };
        await store.jobs.update(job.id, { spec, reason: null, endedAt: null });
        expect(await store.jobs.find('test')).toMatchObject({
          spec,
          reason: null,
          endedAt: null,
          state: 'stopped',
        });
        expect(await store.jobs.find('other')).toEqual(other);
      });

      test('a wish is read back', async () => {
        expect(await store.jobs.wish(job.id)).toBe('run');
        await store.jobs.update(job.id, { wish: 'cancel' });
        expect(await store.jobs.wish(job.id)).toBe('cancel');
      });
    });

    describe('enqueue', () => {
      test('each URL once: within a call, over calls and after a restart', async () => {
        expect(await add(`${A}/1`, `${A}/2`, `${A}/1`)).toEqual({ accepted: 2, duplicates: 1, dropped: 0 });
        expect(await add(`${A}/2`, `${A}/3`)).toEqual({ accepted: 1, duplicates: 1, dropped: 0 });
        await reopen();
        expect(await add(`${A}/1`, `${A}/4`, `${A}/3`)).toEqual({ accepted: 1, duplicates: 2, dropped: 0 });
        expect(await counters()).toMatchObject({ accepted: 4, pending: 4, duplicates: 4 });
        await expectBooks(store, job);
      });

      test('a URL is what it is to the letter', async () => {
        const urls = [
          `${A}/x`,
          `${A}/X`,
          `${A}/x/`,
          `${A}/x?`,
          `${A}/x?a`,
          `${A}/x%20`,
          'http://a.example/x',
        ];
        expect((await add(...urls)).accepted).toBe(urls.length);
      });

      test('each job has its own URLs', async () => {
        const other = await createJob(store, 'other');
        await add(`${A}/1`, `${A}/2`);
        expect(await enqueue(store, other, tasksOf(`${A}/1`, `${A}/3`))).toMatchObject({
          accepted: 2,
          duplicates: 0,
        });
        expect(await store.frontier.knows(job.id, `${A}/3`)).toBe(false);
        expect(await store.frontier.knows(other.id, `${A}/3`)).toBe(true);
        expect(await store.views.task(job.id, `${A}/3`)).toBeNull();
        await expectBooks(store, job, other);
      });

      test('a task has everything it was given', async () => {
        const meta = { sku: 'ü"1', nested: { list: [1, null, '€'] }, __proto__x: true };
        await enqueue(store, job, [taskOf(`${A}/1`, { depth: 3, priority: -7, route: 'p', meta, hops: 2 })]);
        expect(await row(`${A}/1`)).toEqual({
          url: `${A}/1`,
          state: 'pending',
          host: 'a.example',
          depth: 3,
          priority: -7,
          route: 'p',
          meta,
          httpStatus: null,
          failureCode: null,
          failureDetail: null,
          attempts: 0,
          bytes: null,
          sha256: null,
          contentType: null,
          archive: null,
          redirectTo: null,
          fetchedAt: null,
        });
        const { tasks } = await leaseOne(store, job);
        expect(tasks).toMatchObject([{ url: `${A}/1`, depth: 3, route: 'p', meta, hops: 2, attempt: 1 }]);
      });

      test('twenty thousand URLs in uneven calls stay exact', async () => {
        const urls = Array.from(
          { length: 20_000 },
          (_, index) => `https://h${index % 97}.example/p/${index}`,
        );
        const seen = new Set<string>();
        for (let at = 0, size = 1; at < urls.length; at += size, size = (size * 3) % 4_099) {
          const piece = urls.slice(Math.max(0, at - 50), at + size);
          const fresh = new Set(piece.filter((url) => !seen.has(url)));
          expect(await add(...piece)).toMatchObject({
            accepted: fresh.size,
            duplicates: piece.length - fresh.size,
          });
          for (const url of fresh) seen.add(url);
        }
        await reopen();
        expect(await add(...urls)).toEqual({
          accepted: 20_000 - seen.size,
          duplicates: seen.size,
          dropped: 0,
        });
        expect(await store.frontier.knows(job.id, urls[777]!)).toBe(true);
        expect(await store.frontier.knows(job.id, `${urls[777]}x`)).toBe(false);
        await expectBooks(store, job);
      });

      test('a template takes no more than its budget, over calls and restarts; sources are not limited', async () => {
        const link = (n: number, template = 't1') => taskOf(`${A}/cal/${template}/${n}`, { template });
        const many = Array.from({ length: 5 }, (_, n) => link(n));
        expect(await enqueue(store, job, many, 3)).toEqual({ accepted: 3, duplicates: 0, dropped: 2 });
        await reopen();
        const more = [link(0), link(4), link(0, 't2'), taskOf(`${A}/cal/t1/9`)];
        expect(await enqueue(store, job, more, 3)).toEqual({ accepted: 2, duplicates: 1, dropped: 1 });
        expect(await counters()).toMatchObject({ accepted: 5, dropped: 3, duplicates: 1 });
        expect(await store.frontier.knows(job.id, `${A}/cal/t1/4`)).toBe(false);
        expect(await enqueue(store, job, [link(4)], null)).toMatchObject({ accepted: 1 });
        await expectBooks(store, job);
      });

      test('the position of a source is kept with its rows', async () => {
        expect(await store.jobs.sources(job.id)).toEqual([]);
        const put = (
          source: number,
          position: string | null,
          done: boolean,
          rows: number,
          rejected: number,
          url: string,
        ) =>
          store.frontier.enqueue(job.id, tasksOf(url), {
            now: T0,
            perTemplateMax: null,
            source: { source, position, done, rows, rejected },
          });
        await put(1, '{"offset":10}', false, 5, 2, `${A}/1`);
        await put(0, null, true, 1, 1, `${A}/2`);
        await put(1, '{"offset":20}', true, 9, 3, `${A}/3`);
        await reopen();
        expect(await store.jobs.sources(job.id)).toEqual([
          { source: 0, position: null, done: true, rows: 1, rejected: 1 },
          { source: 1, position: '{"offset":20}', done: true, rows: 9, rejected: 3 },
        ]);
        expect(await counters()).toMatchObject({ accepted: 3, rejected: 4 });
      });

      test('an enqueue that fails leaves neither tasks nor a position, and can be done again', async () => {
        const broken = { ...taskOf(`${A}/2`), url: null as unknown as string };
        const source = { source: 0, position: '5', done: true, rows: 2, rejected: 0 };
        const options = { now: T0, perTemplateMax: null, source };
        await expect(store.frontier.enqueue(job.id, [taskOf(`${A}/1`), broken], options)).rejects.toThrow();
        expect(await store.jobs.sources(job.id)).toEqual([]);
        expect(await counters()).toEqual(zeroCounters());
        expect(await store.frontier.knows(job.id, `${A}/1`)).toBe(false);
        expect(await add(`${A}/1`)).toMatchObject({ accepted: 1, duplicates: 0 });
        expect(await hostsDue()).toEqual(['a.example']);
        await expectBooks(store, job);
      });
    });

    describe('due hosts', () => {
      test('have their ready tasks counted, and come in the order of their next time', async () => {
        await add(`${A}/1`, `${A}/2`, `${B}/1`, 'https://c.example/1', 'https://c.example/2');
        const ready = await due();
        expect(new Map(ready.map((host) => [host.host, host.ready]))).toEqual(
          new Map([
            ['a.example', 2],
            ['b.example', 1],
            ['c.example', 2],
          ]),
        );
        expect(ready[0]).toMatchObject({ crawlDelayMs: null, failuresInRow: 0, rests: 0 });
        const times: Record<string, number> = { 'a.example': 300, 'b.example': 100, 'c.example': 200 };
        const grants = ready.map((host) => ({ hostId: host.id, count: 1, nextAt: T0 + times[host.host]! }));
        await store.frontier.lease(job.id, { batches: [{ grants, leaseMs: 1_000 }], now: T0 });
        expect(await hostsDue()).toEqual(['c.example', 'a.example']);
        expect(await hostsDue({ limit: 1 })).toEqual(['c.example']);
      });

      test('a host is seen ahead of its time only as far as asked', async () => {
        await add(`${A}/1`, `${A}/2`);
        await leaseOne(store, job, { count: 1, nextAt: T0 + 1_000 });
        expect(await hostsDue({ before: T0 + 999 })).toEqual([]);
        const [host] = await due({ before: T0 + 1_000 });
        expect(host).toMatchObject({ host: 'a.example', ready: 1, nextAt: T0 + 1_000 });
        await reopen();
        expect(await hostsDue({ before: T0 + 999 })).toEqual([]);
        expect((await due({ before: T0 + 1_000 }))[0]?.nextAt).toBe(T0 + 1_000);
      });

      test('a host in use by one job is not due for another before its time', async () => {
        const other = await createJob(store, 'other');
        await add(`${A}/1`);
        await enqueue(store, other, tasksOf(`${A}/1`));
        await leaseOne(store, job, { nextAt: T0 + 5_000 });
        const look = (before: number) => store.frontier.dueHosts(other.id, { now: T0, before, limit: 9 });
        expect(await look(T0 + 4_999)).toEqual([]);
        expect(await look(T0 + 5_000)).toMatchObject([{ host: 'a.example', nextAt: T0 + 5_000 }]);
      });

      test('a host with all tasks lent, done or waiting is not due', async () => {
        await add(`${A}/1`, `${B}/1`, 'https://c.example/1');
        const { id, tasks } = await leaseOne(store, job);
        expect(await due()).toEqual([]);
        await settle(id, [change.fetched(tasks[0]!.id), change.again(tasks[1]!.id, T0 + 100)], {
          final: false,
        });
        expect(await due()).toEqual([]);
        expect((await due({ now: T0 + 99 })).length).toBe(0);
        expect(await due({ now: T0 + 100 })).toMatchObject([{ ready: 1 }]);
      });

      test('the next due time is the earliest of hosts and waiting tasks', async () => {
        expect(await store.frontier.nextDueAt(job.id)).toBeNull();
        await add(`${A}/1`, `${A}/2`, `${B}/1`);
        const a = (await due()).find((host) => host.host === 'a.example')!;
        const b = (await due()).find((host) => host.host === 'b.example')!;
        const lease = (hostId: number, count: number, nextAt: number) =>
          store.frontier.lease(job.id, {
            batches: [{ grants: [{ hostId, count, nextAt }], leaseMs: 9 }],
            now: T0,
          });
        const [first] = await lease(b.id, 1, T0 + 50);
        await lease(a.id, 1, T0 + 700);
        expect(await store.frontier.nextDueAt(job.id)).toBe(T0 + 700);
        await settle(first!.id, [change.again(first!.tasks[0]!.id, T0 + 300)]);
        expect(await store.frontier.nextDueAt(job.id)).toBe(T0 + 300);
        const [second] = await lease(a.id, 1, T0 + 900);
        expect(await store.frontier.nextDueAt(job.id)).toBe(T0 + 300);
        expect(second!.tasks).toHaveLength(1);
        const other = await createJob(store, 'other');
        expect(await store.frontier.nextDueAt(other.id)).toBeNull();
      });

      test('no time lies further ahead than the clamp, for what is ready and what returns later', async () => {
        await add(`${A}/1`, `${A}/2`, `${B}/1`);
        const batch = await leaseOne(store, job, { count: 1, nextAt: FAR });
        await store.hosts.clampNextAt(T0 + 1_000);
        expect((await due({ before: T0 + 1_000 })).map((host) => host.nextAt)).toEqual([T0 + 1_000]);
        await release(batch.id);
        expect((await hostsDue({ before: T0 + 1_000 })).sort()).toEqual(['a.example', 'b.example']);
        await store.hosts.clampNextAt(FAR);
        expect((await hostsDue({ before: T0 + 1_000 })).sort()).toEqual(['a.example', 'b.example']);
      });
    });

    describe('lease', () => {
      test('priority first, whenever added, then age', async () => {
        await enqueue(store, job, [
          taskOf(`${A}/old-low`, { priority: -1 }),
          taskOf(`${A}/old`),
          taskOf(`${A}/old2`),
        ]);
        await enqueue(store, job, [taskOf(`${A}/new-high`, { priority: 5 }), taskOf(`${A}/new`)]);
        const order: string[] = [];
        for (let turn = 0; turn < 5; turn++) {
          const { tasks } = await leaseOne(store, job, { count: 1 });
          order.push(...tasks.map((task) => task.url.slice(A.length + 1)));
        }
        expect(order).toEqual(['new-high', 'old', 'old2', 'new', 'old-low']);
      });

      test('never more than asked, never a task twice, smaller when there is less', async () => {
        await add(...Array.from({ length: 7 }, (_, n) => `${A}/${n}`), `${B}/1`);
        const [a, b] = ['a.example', 'b.example'].map(
          async (name) => (await due()).find((h) => h.host === name)!.id,
        );
        const grant = async (hostId: Promise<number> | undefined, count: number) => ({
          hostId: (await hostId)!,
          count,
          nextAt: T0,
        });
        const batches = [
          { grants: [await grant(a, 3), await grant(b, 5)], leaseMs: 10 },
          { grants: [await grant(a, 3)], leaseMs: 10 },
          { grants: [await grant(b, 2)], leaseMs: 10 },
          { grants: [await grant(a, 3)], leaseMs: 10 },
        ];
        const leased = await store.frontier.lease(job.id, { batches, now: T0 });
        expect(leased.map((batch) => batch.tasks.length)).toEqual([4, 3, 0, 1]);
        const urls = leased.flatMap((batch) => batch.tasks.map((task) => task.url));
        expect(new Set(urls).size).toBe(8);
        const ids = leased.filter((batch) => batch.tasks.length > 0).map((batch) => batch.id);
        expect(new Set(ids).size).toBe(3);
        expect(await counters()).toMatchObject({ pending: 0, leased: 8 });
        expect((await store.frontier.orphans(job.id)).sort()).toEqual([...ids].sort());
        await expectBooks(store, job);
      });

      test('nothing to lend opens no batch', async () => {
        const batches = [{ grants: [{ hostId: 12_345, count: 5, nextAt: T0 }], leaseMs: 10 }];
        expect((await store.frontier.lease(job.id, { batches, now: T0 }))[0]?.tasks).toEqual([]);
        expect(await store.frontier.orphans(job.id)).toEqual([]);
        expect(await store.frontier.lease(job.id, { batches: [], now: T0 })).toEqual([]);
      });

      test('batch ids are never used again', async () => {
        await add(`${A}/1`);
        const first = await leaseOne(store, job);
        await release(first.id);
        await reopen();
        const second = await leaseOne(store, job);
        expect(second.id).toBeGreaterThan(first.id);
      });

      test('lends only tasks of its own job', async () => {
        const other = await createJob(store, 'other');
        await add(`${A}/1`);
        await enqueue(store, other, tasksOf(`${A}/1`, `${A}/2`));
        expect((await leaseOne(store, job)).tasks).toHaveLength(1);
        expect((await leaseOne(store, other)).tasks).toHaveLength(2);
        await expectBooks(store, job, other);
      });

      test('attempts are counted from 1, and a deferral is none', async () => {
        await add(`${A}/1`);
        const attempt = async (expected: number, next: (id: number) => TaskChange) => {
          const { id, tasks } = await leaseOne(store, job);
          expect(tasks[0]?.attempt).toBe(expected);
          await settle(id, [next(tasks[0]!.id)]);
          await expectBooks(store, job);
        };
        await attempt(1, change.deferred);
        await attempt(1, (id) => change.again(id, null));
        await attempt(2, (id) => change.again(id, T0));
        await attempt(3, change.fetched);
        expect(await row(`${A}/1`)).toMatchObject({ state: 'done', attempts: 3 });
      });

      test('a task whose worker died is lent alone, and the others without it', async () => {
        await add(`${A}/1`, `${A}/2`, `${B}/1`);
        const first = await leaseOne(store, job, { count: 1 });
        expect(first.tasks).toHaveLength(2);
        expect(await release(first.id, true)).toEqual({ returned: 2, dead: 0 });
        const urls: string[][] = [];
        for (let turn = 0; turn < 6; turn++) {
          const { tasks } = await leaseOne(store, job, { now: T0 + turn });
          if (tasks.length > 0) urls.push(tasks.map((task) => task.url));
        }
        expect(urls.flat().sort()).toEqual([`${A}/1`, `${A}/2`, `${B}/1`]);
        expect(
          urls.filter((batch) => batch.some((url) => url !== `${A}/2`)).every((batch) => batch.length === 1),
        ).toBe(true);
        await expectBooks(store, job);
      });

      test('leases end at their time', async () => {
        await add(`${A}/1`, `${B}/1`);
        const [a, b] = await due();
        const grant = (hostId: number, leaseMs: number) => ({
          grants: [{ hostId, count: 1, nextAt: T0 }],
          leaseMs,
        });
        const [short, long] = await store.frontier.lease(job.id, {
          batches: [grant(a!.id, 100), grant(b!.id, 5_000)],
          now: T0,
        });
        expect(await store.frontier.expired(job.id, T0 + 100)).toEqual([]);
        expect(await store.frontier.expired(job.id, T0 + 101)).toEqual([short!.id]);
        expect((await store.frontier.expired(job.id, T0 + 5_001)).sort()).toEqual(
          [short!.id, long!.id].sort(),
        );
        await settle(short!.id, []);
        expect(await store.frontier.expired(job.id, FAR)).toEqual([long!.id]);
        const other = await createJob(store, 'other');
        expect(await store.frontier.expired(other.id, FAR)).toEqual([]);
        await reopen();
        expect(await store.frontier.orphans(job.id)).toEqual([long!.id]);
      });
    });

    describe('settle', () => {
      test('every outcome puts its task where it belongs', async () => {
        await add(...Array.from({ length: 8 }, (_, n) => `${A}/${n}`));
        const { id, tasks } = await leaseOne(store, job);
        const ids = tasks.map((task) => task.id);
        const result = await settle(id, [
          change.fetched(ids[0]!),
          change.unchanged(ids[1]!),
          change.skipped(ids[2]!, { code: 'scope', detail: 'out' }),
          change.dead(ids[3]!),
          change.again(ids[4]!, T0 + 50),
          change.deferred(ids[5]!),
          change.moved(ids[6]!, `${A}/new`),
          change.fetched(ids[7]!, {
            outcome: 'redirected',
            redirectTo: `${A}/else`,
            links: tasksOf(`${A}/else`),
          }),
        ]);
        expect(result).toEqual({ applied: true, accepted: 1 });
        const states = (await collect(store.views.tasks(job.id))).map((each) => each.state);
        const expected = ['done', 'unchanged', 'skipped', 'dead', 'pending', 'pending', 'pending', 'done'];
        expect(states).toEqual([...expected, 'pending']);
        expect(await counters()).toMatchObject({
          accepted: 9,
          done: 2,
          unchanged: 1,
          skipped: 1,
          dead: 1,
          pending: 4,
          leased: 0,
          retries: 1,
          requests: 6,
          batches: 1,
          bytes: 400,
        });
        expect(await row(`${A}/2`)).toMatchObject({
          failureCode: 'scope',
          failureDetail: 'out',
          attempts: 0,
        });
        expect(await row(`${A}/3`)).toMatchObject({ failureCode: 'not-found', httpStatus: 404, attempts: 1 });
        expect(await row(`${A}/7`)).toMatchObject({ redirectTo: `${A}/else` });
        expect(await due()).toMatchObject([{ ready: 3 }]);
        await expectBooks(store, job);
      });

      test('a page is kept with all that is known of it', async () => {
        await add(`${A}/1`, `${A}/2`);
        const { id, tasks } = await leaseOne(store, job);
        const page = pageOf({
          httpStatus: 203,
          bytes: 777,
          sha256: '0f'.repeat(32),
          contentType: 'text/plain',
        });
        const trace = traceOf({ httpStatus: 203, startedAt: T0 + 5 });
        const archived = { ...page, archive: { offset: 321, length: 99 } };
        const changes = [
          change.fetched(tasks[0]!.id, { page: archived, trace }),
          change.fetched(tasks[1]!.id, { page, trace }),
        ];
        await settle(id, changes, { archive: { key: 'warc/x-0.warc.gz', bytes: 1_000 }, now: T0 + 9 });
        expect(await row(`${A}/1`)).toMatchObject({
          httpStatus: 203,
          bytes: 777,
          sha256: '0f'.repeat(32),
          contentType: 'text/plain',
          archive: { key: 'warc/x-0.warc.gz', offset: 321, length: 99 },
          fetchedAt: new Date(T0 + 5).toISOString(),
        });
        expect((await row(`${A}/2`))?.archive).toBeNull();
        const other = await createJob(store, 'other');
        expect(await store.views.hasArchive(job.id, 'warc/x-0.warc.gz')).toBe(true);
        expect(await store.views.hasArchive(job.id, 'warc/x-1.warc.gz')).toBe(false);
        expect(await store.views.hasArchive(other.id, 'warc/x-0.warc.gz')).toBe(false);
      });

      test('a success wipes the failure before it', async () => {
        await add(`${A}/1`);
        const first = await leaseOne(store, job);
        await settle(first.id, [change.again(first.tasks[0]!.id, null)]);
        expect(await row(`${A}/1`)).toMatchObject({ state: 'pending', failureCode: 'reset', attempts: 1 });
        const second = await leaseOne(store, job);
        await settle(second.id, [change.fetched(second.tasks[0]!.id)]);
        expect(await row(`${A}/1`)).toMatchObject({
          state: 'done',
          failureCode: null,
          failureDetail: null,
          attempts: 2,
        });
      });

      test.each([
        ['doubled', async (id: number) => void (await settle(id, []))],
        ['after a release', async (id: number) => void (await release(id))],
        ['after a suspect release', async (id: number) => void (await release(id, true))],
      ])('a report %s changes nothing', async (_, before) => {
        await add(`${A}/1`, `${A}/2`);
        const { id, tasks } = await leaseOne(store, job);
        await before(id);
        const rows = await collect(store.views.tasks(job.id));
        const counts = await counters();
        const late = settlementOf(
          job,
          id,
          [change.fetched(tasks[0]!.id, { records: [recordOf('r', { a: 1 })], links: tasksOf(`${B}/new`) })],
          {
            archive: { key: 'warc/late', bytes: 5 },
            requests: 50,
            hosts: [hostChange('a.example', { sent: 5, nextAt: FAR, failuresInRow: 9 })],
            robots: [robotsEntry(A)],
          },
        );
        for (const final of [true, false]) {
          expect(await store.frontier.settle({ ...late, final })).toEqual({ applied: false, accepted: 0 });
        }
        expect(await collect(store.views.tasks(job.id))).toEqual(rows);
        expect(await counters()).toEqual(counts);
        expect(await collect(store.views.records(job.id))).toEqual([]);
        expect(await collect(store.views.attempts(job.id))).toEqual([]);
        expect(await store.views.hasArchive(job.id, 'warc/late')).toBe(false);
        expect(await store.hosts.robots(A)).toBeNull();
        expect(await due({ before: T0 + 1 })).toMatchObject([{ failuresInRow: 0, ready: 2 }]);
      });

      test('a report cannot settle tasks of another batch, nor a task twice', async () => {
        await add(`${A}/1`, `${A}/2`);
        const one = await leaseOne(store, job, { count: 1 });
        const two = await leaseOne(store, job, { count: 1 });
        const [mine, theirs] = [one.tasks[0]!.id, two.tasks[0]!.id];
        const records = [recordOf('stolen', {})];
        const result = await settle(one.id, [
          change.dead(theirs, { records, links: tasksOf(`${B}/stolen`) }),
          change.fetched(mine),
          change.dead(mine),
          change.dead(99_999),
        ]);
        expect(result.applied).toBe(true);
        expect(await row(`${A}/1`)).toMatchObject({ state: 'done', attempts: 1 });
        expect(await row(`${A}/2`)).toMatchObject({ state: 'leased', attempts: 0 });
        expect(await counters()).toMatchObject({ accepted: 2, done: 1, leased: 1, dead: 0, records: 0 });
        expect(await collect(store.views.attempts(job.id))).toHaveLength(1);
        await expectBooks(store, job);
      });

      test('a report under the name of another job is refused', async () => {
        const other = await createJob(store, 'other');
        await add(`${A}/1`);
        const { id, tasks } = await leaseOne(store, job);
        const result = await store.frontier.settle(settlementOf(other, id, [change.fetched(tasks[0]!.id)]));
        expect(result.applied).toBe(false);
        expect(await counters()).toMatchObject({ leased: 1 });
        await expectBooks(store, job, other);
      });

      test('parts settle what they have; the last one returns what nobody mentioned', async () => {
        await add(...Array.from({ length: 4 }, (_, n) => `${A}/${n}`));
        const { id, tasks } = await leaseOne(store, job);
        await settle(id, [change.fetched(tasks[2]!.id)], { final: false });
        expect(await counters()).toMatchObject({ done: 1, leased: 3, batches: 0 });
        expect(await store.frontier.orphans(job.id)).toEqual([id]);
        await expectBooks(store, job);
        // The same part again: its task is settled, so nothing is left of it.
        await settle(id, [change.dead(tasks[2]!.id)], { final: false, requests: 0 });
        expect(await row(`${A}/2`)).toMatchObject({ state: 'done', attempts: 1 });
        await settle(id, [change.dead(tasks[0]!.id)], { final: true });
        expect(await counters()).toMatchObject({
          done: 1,
          dead: 1,
          pending: 2,
          leased: 0,
          batches: 1,
          requests: 2,
        });
        expect(await row(`${A}/1`)).toMatchObject({ state: 'pending', attempts: 0 });
        expect(await due()).toMatchObject([{ ready: 2 }]);
        expect(await store.frontier.orphans(job.id)).toEqual([]);
        await expectBooks(store, job);
      });

      test('a release after a part returns only the rest', async () => {
        await add(`${A}/1`, `${A}/2`);
        const { id, tasks } = await leaseOne(store, job);
        await settle(id, [change.fetched(tasks[0]!.id)], { final: false });
        expect(await release(id)).toEqual({ returned: 1, dead: 0 });
        expect(await counters()).toMatchObject({ done: 1, pending: 1, leased: 0 });
        await expectBooks(store, job);
      });

      test('links become tasks, deduped against everything and each other', async () => {
        await add(`${A}/1`, `${A}/2`);
        const { id, tasks } = await leaseOne(store, job);
        const links = [
          taskOf(`${B}/x`, { depth: 1, priority: 3, route: 'p', template: 't' }),
          taskOf(`${A}/2`, { depth: 1 }),
        ];
        const result = await settle(id, [
          change.fetched(tasks[0]!.id, { links }),
          change.fetched(tasks[1]!.id, { links }),
        ]);
        expect(result.accepted).toBe(1);
        expect(await row(`${B}/x`)).toMatchObject({ state: 'pending', depth: 1, priority: 3, route: 'p' });
        expect(await counters()).toMatchObject({ accepted: 3, duplicates: 3 });
        await expectBooks(store, job);
      });

      test('the budget of a template holds over enqueue and settle', async () => {
        await enqueue(store, job, [taskOf(`${A}/1`), taskOf(`${A}/c/1`, { template: 't' })], 2);
        const { id, tasks } = await leaseOne(store, job);
        const links = [2, 3, 4].map((n) => taskOf(`${A}/c/${n}`, { template: 't' }));
        await settle(id, [change.fetched(tasks[0]!.id, { links })], { perTemplateMax: 2 });
        expect(await counters()).toMatchObject({ accepted: 3, dropped: 2 });
        await expectBooks(store, job);
      });

      test('a record is kept once for its key, in its last form', async () => {
        await add(`${A}/1`, `${A}/2`, `${A}/3`);
        const { id, tasks } = await leaseOne(store, job);
        const ids = tasks.map((task) => task.id);
        const put = (index: number, key: string, data: object, now: number) =>
          settle(id, [change.fetched(ids[index]!, { records: [recordOf(key, data)] })], {
            final: false,
            now,
          });
        await put(0, 'k1', { n: 1, text: 'ü€"\n' }, T0 + 1);
        await put(1, 'k1', { n: 1, text: 'ü€"\n' }, T0 + 2);
        expect(await collect(store.views.records(job.id))).toMatchObject([
          { key: 'k1', updatedAt: new Date(T0 + 1).toISOString() },
        ]);
        await put(2, 'k1', { n: 2 }, T0 + 3);
        expect(await collect(store.views.records(job.id))).toEqual([
          {
            key: 'k1',
            url: `${A}/3`,
            route: null,
            data: { n: 2 },
            hash: '{"n":2}',
            updatedAt: new Date(T0 + 3).toISOString(),
          },
        ]);
        expect((await counters()).records).toBe(1);
        await expectBooks(store, job);
      });

      test('an attempt is logged for each request, with how it went', async () => {
        await add(`${A}/1`, `${A}/2`, `${A}/3`);
        const { id, tasks } = await leaseOne(store, job);
        await settle(
          id,
          [
            change.again(tasks[0]!.id, T0, {
              trace: traceOf({ startedAt: T0 + 7.4, durationMs: 3.6, httpStatus: null, bytes: 0 }),
            }),
            change.fetched(tasks[1]!.id),
            change.skipped(tasks[2]!.id),
          ],
          { worker: 'w-7' },
        );
        expect(await collect(store.views.attempts(job.id))).toMatchObject([
          {
            url: `${A}/1`,
            batch: id,
            worker: 'w-7',
            startedAt: new Date(T0 + 7).toISOString(),
            durationMs: 4,
            httpStatus: null,
            outcome: 'failed',
            failureCode: 'reset',
            bytes: 0,
          },
          { url: `${A}/2`, httpStatus: 200, outcome: 'fetched', failureCode: null, bytes: 100 },
        ]);
      });

      test('a host keeps its health and its time', async () => {
        await add(`${A}/1`, `${A}/2`, `${B}/1`);
        const { id } = await leaseOne(store, job, { count: 1, nextAt: T0 + 100 });
        await settle(id, [], {
          final: false,
          hosts: [
            hostChange('a.example', { sent: 4, nextAt: T0 + 900, failuresInRow: 3, rests: 2 }),
            hostChange('new.example', { nextAt: T0 + 5 }),
          ],
        });
        expect(await due()).toMatchObject([
          { host: 'a.example', nextAt: T0 + 900, failuresInRow: 3, rests: 2 },
        ]);
        await settle(id, [], { hosts: [hostChange('a.example', { failuresInRow: 0, rests: 0 })] });
        const after = await due();
        expect(after.find((host) => host.host === 'a.example')).toMatchObject({
          nextAt: T0 + 900,
          failuresInRow: 0,
          rests: 0,
        });
        expect(after.find((host) => host.host === 'b.example')).toMatchObject({ nextAt: T0 + 100 });
        // A host that got a time before its first task keeps it.
        await add('https://new.example/1');
        expect((await due()).find((host) => host.host === 'new.example')).toMatchObject({ nextAt: T0 + 5 });
      });

      test('robots.txt is kept by origin, and its delay with the host', async () => {
        await add(`${A}/1`, `${A}/2`);
        const { id } = await leaseOne(store, job, { count: 1 });
        const entry = robotsEntry(A, {
          text: 'User-agent: *\nCrawl-delay: 2',
          crawlDelayMs: 2_000,
          fetchedAt: T0 + 3,
        });
        await settle(id, [], { final: false, robots: [entry] });
        expect(await store.hosts.robots(A)).toEqual(entry);
        expect(await store.hosts.robots('http://a.example')).toBeNull();
        expect(await due()).toMatchObject([{ crawlDelayMs: 2_000 }]);
        await reopen();
        const gone = robotsEntry(A, {
          text: null,
          failures: 2,
          detail: 'connect: refused',
          fetchedAt: T0 + 9,
        });
        await settle(id, [], { robots: [gone] });
        expect(await store.hosts.robots(A)).toEqual(gone);
      });

      test('a redirect that is followed goes on at the other host, as the same task', async () => {
        await add(`${A}/1`, `${B}/9`);
        const { id, tasks } = await leaseOne(store, job);
        const mine = tasks.find((task) => task.url === `${A}/1`)!;
        await settle(id, [change.moved(mine.id, `${B}/moved`)]);
        await expectBooks(store, job);
        expect(await hostsDue()).toEqual(['b.example']);
        expect(await due()).toMatchObject([{ ready: 2 }]);
        const next = await leaseOne(store, job);
        const moved = next.tasks.find((task) => task.id === mine.id)!;
        expect(moved).toMatchObject({ url: `${B}/moved`, hops: 1, attempt: 1 });
        await settle(next.id, [change.moved(moved.id, `${A}/third`)]);
        const third = await leaseOne(store, job);
        expect(third.tasks.find((task) => task.id === mine.id)).toMatchObject({ url: `${A}/third`, hops: 2 });
        await settle(third.id, [change.fetched(mine.id)]);
        expect(await row(`${A}/1`)).toMatchObject({ state: 'done', attempts: 1 });
        expect(await row(`${A}/third`)).toBeNull();
        await expectBooks(store, job);
      });

      test('a task that followed redirects says where its page came from', async () => {
        await add(`${A}/1`);
        const first = await leaseOne(store, job);
        await settle(first.id, [change.moved(first.tasks[0]!.id, `${B}/moved`)]);
        const second = await leaseOne(store, job);
        await settle(second.id, [change.fetched(second.tasks[0]!.id)]);
        expect(await row(`${A}/1`)).toMatchObject({ state: 'done', redirectTo: `${B}/moved` });
      });

      test('a move without a stored page moves the task all the same', async () => {
        await add(`${A}/1`);
        const { id, tasks } = await leaseOne(store, job);
        await settle(id, [change.moved(tasks[0]!.id, `${B}/moved`, { page: null })]);
        expect(await hostsDue()).toEqual(['b.example']);
        expect((await leaseOne(store, job)).tasks).toMatchObject([{ url: `${B}/moved`, hops: 1 }]);
        await expectBooks(store, job);
      });

      test('a settle that fails changes nothing and can be done again', async () => {
        await add(`${A}/1`, `${A}/2`);
        const { id, tasks } = await leaseOne(store, job);
        const broken = { ...taskOf(`${B}/2`), url: null as unknown as string };
        const links = [taskOf(`${B}/1`), broken];
        const changes = [
          change.fetched(tasks[0]!.id, { records: [recordOf('r', {})] }),
          change.fetched(tasks[1]!.id, { links }),
        ];
        const before = await counters();
        await expect(settle(id, changes, { archive: { key: 'warc/1', bytes: 1 } })).rejects.toThrow();
        expect(await counters()).toEqual(before);
        expect(await store.frontier.knows(job.id, `${B}/1`)).toBe(false);
        expect(await store.views.hasArchive(job.id, 'warc/1')).toBe(false);
        const good = [changes[0]!, change.fetched(tasks[1]!.id, { links: [links[0]!] })];
        expect(await settle(id, good)).toEqual({ applied: true, accepted: 1 });
        expect(await hostsDue()).toEqual(['b.example']);
        await expectBooks(store, job);
      });
    });

    describe('release', () => {
      test('returns the tasks, once', async () => {
        await add(`${A}/1`, `${B}/1`);
        const { id } = await leaseOne(store, job);
        expect(await release(id)).toEqual({ returned: 2, dead: 0 });
        expect(await release(id)).toEqual({ returned: 0, dead: 0 });
        expect(await release(12_345)).toEqual({ returned: 0, dead: 0 });
        expect(await counters()).toMatchObject({ pending: 2, leased: 0 });
        expect((await hostsDue()).sort()).toEqual(['a.example', 'b.example']);
        expect((await leaseOne(store, job)).tasks).toHaveLength(2);
        await expectBooks(store, job);
      });

      test('a task that kills its worker every time becomes a dead letter that says so', async () => {
        await add(`${A}/killer`);
        for (let loss = 1; loss <= LIMITS.lossesMax; loss++) {
          const { id, tasks } = await leaseOne(store, job);
          expect(tasks).toMatchObject([{ attempt: 1 }]);
          const last = loss === LIMITS.lossesMax;
          expect(await release(id, true, 'out of memory')).toEqual({
            returned: last ? 0 : 1,
            dead: last ? 1 : 0,
          });
          await expectBooks(store, job);
          await reopen();
        }
        expect(await row(`${A}/killer`)).toMatchObject({
          state: 'dead',
          failureCode: 'worker-lost',
          failureDetail: 'out of memory',
        });
        expect(await store.views.tallies(job.id)).toEqual([{ state: 'dead', code: 'worker-lost', count: 1 }]);
        expect(await store.views.retryDead(job.id, { code: 'worker-lost' }, T0)).toBe(1);
        const again = await leaseOne(store, job);
        expect(await release(again.id, true)).toEqual({ returned: 1, dead: 0 });
      });

      test('an innocent release is no loss', async () => {
        await add(`${A}/1`);
        for (let turn = 0; turn < LIMITS.lossesMax * 2; turn++) {
          expect(await release((await leaseOne(store, job)).id)).toEqual({ returned: 1, dead: 0 });
        }
        expect(await row(`${A}/1`)).toMatchObject({ state: 'pending', attempts: 0 });
      });
    });

    describe('waiting, giving up, trying again', () => {
      test('a task waits until it is due, also after a restart', async () => {
        await add(`${A}/1`, `${A}/2`);
        const { id, tasks } = await leaseOne(store, job);
        await settle(id, [change.again(tasks[0]!.id, T0 + 1_000), change.again(tasks[1]!.id, T0 + 2_000)]);
        expect(await counters()).toMatchObject({ pending: 2, retries: 2 });
        await reopen();
        expect((await leaseOne(store, job, { now: T0 + 999 })).tasks).toEqual([]);
        expect((await leaseOne(store, job, { now: T0 + 1_000 })).tasks).toMatchObject([
          { url: `${A}/1`, attempt: 2 },
        ]);
        expect((await leaseOne(store, job, { now: T0 + 2_000 })).tasks).toMatchObject([{ url: `${A}/2` }]);
        await expectBooks(store, job);
      });

      test('condemn ends the ready tasks of a host, at most so many at once', async () => {
        await add(...Array.from({ length: 5 }, (_, n) => `${A}/${n}`), `${B}/1`);
        const held = await leaseOne(store, job, { count: 1 });
        const condemn = (limit: number, host = 'a.example') =>
          store.frontier.condemn(job.id, { host, code: 'host-down', detail: 'no answer', now: T0, limit });
        expect(await condemn(3)).toBe(3);
        await expectBooks(store, job);
        expect(await condemn(3)).toBe(1);
        expect(await condemn(3)).toBe(0);
        expect(await condemn(3, 'never.seen')).toBe(0);
        expect(await counters()).toMatchObject({ dead: 4, leased: 2, pending: 0 });
        expect(await hostsDue()).toEqual([]);
        expect(await row(`${A}/4`)).toMatchObject({
          state: 'dead',
          failureCode: 'host-down',
          failureDetail: 'no answer',
        });
        await settle(held.id, []);
        expect(await counters()).toMatchObject({ dead: 4, pending: 2 });
        await expectBooks(store, job);
      });

      const kill = async () => {
        await add(`${A}/x1`, `${A}/x2`, `${A}/y1`, `${B}/x1`);
        const { id, tasks } = await leaseOne(store, job);
        const of = (url: string) => tasks.find((task) => task.url === url)!.id;
        await settle(id, [
          change.dead(of(`${A}/x1`), { detail: 'zzz' }),
          change.dead(of(`${A}/x2`), { detail: 'aaa' }),
          change.dead(of(`${A}/y1`), { code: 'tls', detail: 'expired' }),
          change.dead(of(`${B}/x1`), { code: 'tls', detail: 'wrong name' }),
        ]);
      };

      test('dead letters are grouped by reason and host, each with a true example', async () => {
        await kill();
        const groups = await store.views.dead(job.id);
        expect(groups[0]).toMatchObject({ code: 'not-found', host: 'a.example', count: 2 });
        expect(groups).toHaveLength(3);
        for (const group of groups) {
          expect(await row(group.sampleUrl)).toMatchObject({
            state: 'dead',
            failureCode: group.code,
            failureDetail: group.sampleDetail,
          });
        }
        const other = await createJob(store, 'other');
        expect(await store.views.dead(other.id)).toEqual([]);
      });

      test.each([
        ['all', {}, 4],
        ['by code', { code: 'tls' }, 2],
        ['by host', { host: 'a.example' }, 3],
        ['by a part of the URL', { urlContains: '/x1' }, 2],
        ['by a part of the URL, without wildcards', { urlContains: 'x_' }, 0],
        ['by everything', { code: 'tls', host: 'b.example', urlContains: 'x' }, 1],
        ['by something that is not there', { code: 'dns' }, 0],
      ])('dead letters are put back: %s', async (_, filter, count) => {
        await kill();
        const other = await createJob(store, 'other');
        await enqueue(store, other, tasksOf(`${A}/x1`));
        const held = await leaseOne(store, other);
        await store.frontier.settle(settlementOf(other, held.id, [change.dead(held.tasks[0]!.id)]));
        expect(await store.views.retryDead(job.id, filter, T0 + 5)).toBe(count);
        expect(await counters()).toMatchObject({ dead: 4 - count, pending: count });
        await expectBooks(store, job, other);
        const { tasks } = await leaseOne(store, job);
        expect(tasks.map((task) => task.attempt)).toEqual(Array.from({ length: count }, () => 1));
        expect(await store.jobs.counters(other.id)).toMatchObject({ dead: 1 });
      });

      test('a host that rested can be asked again when its dead letters are put back', async () => {
        await add(`${A}/1`);
        const { id, tasks } = await leaseOne(store, job);
        const hosts = [hostChange('a.example', { nextAt: T0 + 600_000, failuresInRow: 12, rests: 7 })];
        await settle(id, [change.dead(tasks[0]!.id, { code: 'host-down' })], { hosts });
        await store.views.retryDead(job.id, {}, T0 + 100_000);
        const [host] = await due({ now: T0 + 100_000, before: T0 + 100_000 + LIMITS.permitMsMax * 2 });
        expect(host).toMatchObject({ host: 'a.example', ready: 1, failuresInRow: 0, rests: 0 });
      });
    });

    describe('views', () => {
      test('two jobs that grow in turn are read apart, in the order of their tasks', async () => {
        const other = await createJob(store, 'other');
        const urls = (which: string, from: number) =>
          Array.from({ length: 700 }, (_, n) => `https://${which}.example/${from + n}`);
        for (let from = 0; from < 2_100; from += 700) {
          await enqueue(store, other, tasksOf(...urls('o', from)));
          await add(...urls('t', from));
        }
        const rows = await collect(store.views.tasks(job.id));
        expect(rows.map((each) => each.url)).toEqual(
          Array.from({ length: 2_100 }, (_, n) => `https://t.example/${n}`),
        );
        expect(await collect(store.views.tasks(other.id))).toHaveLength(2_100);

        for (const each of [job, other]) {
          const { id, tasks } = await leaseOne(store, each, { count: 1_500 });
          const changes = tasks.map((task) =>
            change.fetched(task.id, {
              records: [recordOf(`${task.url}#0`, { u: task.url }), recordOf(task.url, {})],
            }),
          );
          await store.frontier.settle(settlementOf(each, id, changes));
        }
        for (const [each, host] of [
          [job, 't'],
          [other, 'o'],
        ] as const) {
          const records = await collect(store.views.records(each.id));
          expect(records).toHaveLength(3_000);
          expect(new Set(records.map((record) => record.key)).size).toBe(3_000);
          expect(records.every((record) => record.url.startsWith(`https://${host}.`))).toBe(true);
          const attempts = await collect(store.views.attempts(each.id));
          expect(attempts).toHaveLength(1_500);
          expect(attempts.every((attempt) => attempt.url.startsWith(`https://${host}.`))).toBe(true);
        }
        await expectBooks(store, job, other);
      });

      test('a job without tasks has empty views', async () => {
        for (const rows of [
          store.views.tasks(job.id),
          store.views.records(job.id),
          store.views.attempts(job.id),
        ]) {
          expect(await collect<unknown>(rows)).toEqual([]);
        }
        expect(await store.views.tallies(job.id)).toEqual([]);
        expect(await row(`${A}/1`)).toBeNull();
      });

      test('a view can be left early and the store used meanwhile', async () => {
        await add(...Array.from({ length: 2_500 }, (_, n) => `${A}/${n}`));
        const seen: string[] = [];
        for await (const each of store.views.tasks(job.id)) {
          seen.push(each.url);
          if (seen.length === 1_200) await add(`${B}/meanwhile`);
          if (seen.length === 1_300) break;
        }
        expect(new Set(seen).size).toBe(1_300);
        await expectBooks(store, job);
      });
    });

    test(
      'whatever happens in whatever order, every task is where a simple model says',
      { timeout: 60_000 },
      () =>
        fc.assert(
          fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 40 }), async (steps) => {
            const model = await StoreModel.start(open, `${place}/model-${runs++}`);
            try {
              for (const step of steps) await model.take(step);
            } finally {
              await model.close();
            }
          }),
          { numRuns: 60 },
        ),
    );
  });
}

/** What may happen to a store; numbers choose among what there is at that moment. */
type Step =
  | { kind: 'enqueue'; job: number; urls: number[]; priority: number }
  | { kind: 'lease'; job: number; count: number; parts: number; waitMs: number }
  | { kind: 'settle'; batch: number; outcomes: number[]; final: boolean }
  | { kind: 'release'; batch: number; suspect: boolean }
  | { kind: 'condemn'; job: number; host: number; limit: number }
  | { kind: 'retry'; job: number; host: number | null }
  | { kind: 'reopen' };

const index = fc.nat(99);
const which = fc.nat(1);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      job: which,
      urls: fc.array(index, { maxLength: 12 }),
      priority: fc.integer({ min: -1, max: 1 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('lease' as const),
      job: which,
      count: fc.integer({ min: 1, max: 5 }),
      parts: fc.integer({ min: 1, max: 3 }),
      waitMs: fc.nat(150),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      batch: index,
      outcomes: fc.array(fc.nat(8), { maxLength: 8 }),
      final: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('release' as const), batch: index, suspect: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('condemn' as const),
      job: which,
      host: fc.nat(2),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('retry' as const),
      job: which,
      host: fc.option(fc.nat(2)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
);

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
class StoreModel {
  readonly #open: OpenStore;
  readonly #place: string;
  readonly #jobs: Job[] = [];
  readonly #tasks: Map<string, ModelTask>[] = [new Map(), new Map()];
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
      const task = this.#tasks[step.job]!.get(url)!;
      expect(this.#ready(step.job, task.host)[0]?.url).toBe(url);
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
    const named = [...batch.tasks, ...this.#batches.flatMap((other) => [...other.tasks])].slice(
      0,
      step.outcomes.length,
    );
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
