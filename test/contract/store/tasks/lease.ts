import { describe, expect, test } from 'vitest';
import { type Blame, CRASHES_MAX } from '../../../../src/core/suspicion/suspicion.ts';
import type { LeasedBatch, TaskChange } from '../../../../src/ports/store.ts';
import { change, createJob, enqueue, FAR, leaseOne, T0, taskOf, tasksOf } from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Tasks are lent. */
export function testLease(setup: StoreSetup): void {
  const { add, due, row, counters, release, settle, reopen } = setup;

  describe('lease', () => {
    test('priority first, whenever added, then age', async () => {
      await enqueue(setup.store, setup.job, [
        taskOf(`${A}/old-low`, { priority: -1 }),
        taskOf(`${A}/old`),
        taskOf(`${A}/old2`),
      ]);
      await enqueue(setup.store, setup.job, [taskOf(`${A}/new-high`, { priority: 5 }), taskOf(`${A}/new`)]);
      const order: string[] = [];
      for (let turn = 0; turn < 5; turn++) {
        const { tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
        order.push(...tasks.map((task) => task.url.slice(A.length + 1)));
      }
      expect(order).toEqual(['new-high', 'old', 'old2', 'new', 'old-low']);
    });

    test('a task whose priority is lowered comes last, and has its own again when it ends', async () => {
      await add(`${A}/sick`, `${A}/next`);
      await enqueue(setup.store, setup.job, [taskOf(`${A}/low`, { priority: -1 })]);
      const first = await leaseOne(setup.store, setup.job, { count: 1 });
      expect(first.tasks[0]!.url).toBe(`${A}/sick`);
      await settle(first.id, [{ ...change.again(first.tasks[0]!.id, T0), lowersPriority: true }]);
      await add(`${A}/new`);
      const order: string[] = [];
      for (let turn = 0; turn < 4; turn++) {
        const { tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
        order.push(...tasks.map((task) => task.url.slice(A.length + 1)));
      }
      expect(order).toEqual(['next', 'new', 'low', 'sick']);
      expect((await row(`${A}/sick`))?.priority).toBe(0);
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
      const leased = await setup.store.frontier.lease(setup.job.id, { batches, now: T0 });
      expect(leased.map((batch) => batch.tasks.length)).toEqual([4, 3, 0, 1]);
      const urls = leased.flatMap((batch) => batch.tasks.map((task) => task.url));
      expect(new Set(urls).size).toBe(8);
      const ids = leased.filter((batch) => batch.tasks.length > 0).map((batch) => batch.id);
      expect(new Set(ids).size).toBe(3);
      expect(await counters()).toMatchObject({ pending: 0, leased: 8 });
      expect((await setup.store.frontier.orphans(setup.job.id)).sort()).toEqual([...ids].sort());
      await expectBalance(setup.store, setup.job);
    });

    test('several batches of one host may be for the same time, and the host is taken until the last ends', async () => {
      await add(...Array.from({ length: 6 }, (_, n) => `${A}/${n}`));
      const hostId = (await due())[0]!.id;
      const lane = (startAt: number) => ({
        grants: [{ hostId, count: 2, startAt, nextAt: T0 + 5_000 }],
        leaseMs: 60_000,
      });
      const lend = (startAts: number[]) =>
        setup.store.frontier.lease(setup.job.id, { batches: startAts.map(lane), now: T0 });
      const leased = await lend([T0, T0 + 100]);
      expect(leased.map(({ tasks }) => tasks.length)).toEqual([2, 2]);
      expect(await due({ before: T0 + 4_999 })).toEqual([]);
      // What was planned before that is late.
      expect((await lend([T0 + 200]))[0]!.tasks).toEqual([]);
      expect((await lend([T0 + 5_000]))[0]!.tasks).toHaveLength(2);
    });

    test('nothing to lend opens no batch', async () => {
      const batches = [{ grants: [{ hostId: 12_345, count: 5, nextAt: T0 }], leaseMs: 10 }];
      expect((await setup.store.frontier.lease(setup.job.id, { batches, now: T0 }))[0]?.tasks).toEqual([]);
      expect(await setup.store.frontier.orphans(setup.job.id)).toEqual([]);
      expect(await setup.store.frontier.lease(setup.job.id, { batches: [], now: T0 })).toEqual([]);
    });

    test('batch ids are never used again', async () => {
      await add(`${A}/1`);
      const first = await leaseOne(setup.store, setup.job);
      await release(first.id);
      await reopen();
      const second = await leaseOne(setup.store, setup.job);
      expect(second.id).toBeGreaterThan(first.id);
    });

    test('lends only tasks of its own job', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/1`);
      await enqueue(setup.store, other, tasksOf(`${A}/1`, `${A}/2`));
      expect((await leaseOne(setup.store, setup.job)).tasks).toHaveLength(1);
      expect((await leaseOne(setup.store, other)).tasks).toHaveLength(2);
      await expectBalance(setup.store, setup.job, other);
    });

    test('attempts are counted from 1, and a deferral is none', async () => {
      await add(`${A}/1`);
      const attempt = async (expected: number, next: (id: number) => TaskChange) => {
        const { id, tasks } = await leaseOne(setup.store, setup.job);
        expect(tasks[0]?.attempt).toBe(expected);
        await settle(id, [next(tasks[0]!.id)]);
        await expectBalance(setup.store, setup.job);
      };
      await attempt(1, change.deferred);
      await attempt(1, (id) => change.again(id, null));
      await attempt(2, (id) => change.again(id, T0));
      await attempt(3, change.fetched);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'done', attempts: 3 });
    });

    /** Lends everything, batch by batch, and takes each back with the same blame; the sizes of the batches. */
    const loseAll = async (blame: Blame, suspectBatchesMax = 100) => {
      const leased: LeasedBatch[] = [];
      while (true) {
        const grants = (await due()).map((host) => ({ hostId: host.id, count: 100, nextAt: T0 }));
        const request = { batches: [{ grants, leaseMs: 60_000 }], now: T0, suspectBatchesMax };
        const lent = await setup.store.frontier.lease(setup.job.id, request);
        const some = lent.filter(({ tasks }) => tasks.length > 0);
        if (some.length === 0) break;
        leased.push(...some);
      }
      for (const { id } of leased) await release(id, blame);
      await expectBalance(setup.store, setup.job);
      return leased.map(({ tasks, suspectsOf }) => ({
        size: tasks.length,
        isApart: suspectsOf !== undefined,
      }));
    };
    const MANY = Array.from({ length: 20 }, (_, n) => `${n % 2 === 0 ? A : B}/${n}`);

    test('tasks of one lost batch go out together again; those lost twice in smaller and smaller groups', async () => {
      await add(...MANY);
      expect(await loseAll('worker')).toEqual([{ size: 20, isApart: false }]);
      expect(await loseAll('worker')).toEqual([{ size: 20, isApart: false }]);
      const apart = (size: number) => ({ size, isApart: true });
      expect(await loseAll('worker')).toEqual([apart(16), apart(4)]);
      expect(await loseAll('worker')).toEqual(Array.from({ length: 5 }, () => apart(4)));
      expect(await loseAll('worker')).toEqual(Array.from({ length: 20 }, () => apart(1)));
      expect(await counters()).toMatchObject({ pending: 20, dead: 0 });
    });

    test('suspects wait for their turn, and the other tasks of their host do not wait for them', async () => {
      await add(`${A}/suspect`, `${B}/suspect`);
      await loseAll('worker');
      await loseAll('worker');
      await add(`${A}/1`, `${A}/2`);
      const lease = async (suspectBatchesMax: number) => {
        const grants = (await due()).map((host) => ({ hostId: host.id, count: 5, nextAt: T0 }));
        const request = { batches: [{ grants, leaseMs: 60_000 }], now: T0, suspectBatchesMax };
        const leased = await setup.store.frontier.lease(setup.job.id, request);
        return leased.map(({ tasks, ...batch }) => ({ ...batch, urls: tasks.map(({ url }) => url).sort() }));
      };
      const hosts = new Map((await due()).map(({ host, id }) => [host, id]));
      expect(await lease(0)).toMatchObject([
        { urls: [`${A}/1`, `${A}/2`], waiting: [hosts.get('b.example')] },
      ]);
      expect(await lease(0)).toMatchObject([
        { urls: [], waiting: expect.arrayContaining([...hosts.values()]) },
      ]);
      expect(await lease(1)).toMatchObject([
        { urls: [] },
        { urls: [`${A}/suspect`, `${B}/suspect`], suspectsOf: 0 },
      ]);
    });

    test('the task that was running when its worker died is alone at once, the others are no suspects', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      for (const returned of [3, 1]) {
        const { id, tasks } = await leaseOne(setup.store, setup.job);
        const running = tasks.filter(({ url }) => url === `${A}/2`).map((task) => task.id);
        if (returned === 1) expect(tasks.map(({ url }) => url)).toEqual([`${A}/2`]);
        expect(await release(id, { running })).toEqual({ returned, dead: 0 });
        if (returned === 1) continue;
        const others = await leaseOne(setup.store, setup.job);
        expect(others.tasks.map(({ url }) => url)).toEqual([`${A}/1`, `${A}/3`]);
        await settle(
          others.id,
          others.tasks.map((task) => change.fetched(task.id)),
        );
      }
      const last = await leaseOne(setup.store, setup.job);
      expect(await release(last.id, { running: [last.tasks[0]!.id] })).toEqual({ returned: 0, dead: 1 });
    });

    test('coordinators that die make suspects, also over restarts, and never dead letters', async () => {
      await add(...MANY);
      for (let death = 0; death < CRASHES_MAX; death++) {
        expect(await loseAll('coordinator')).toEqual([{ size: 20, isApart: false }]);
        await reopen();
      }
      for (let death = 0; death < 10; death++) {
        expect((await loseAll('coordinator')).every(({ isApart }) => isApart)).toBe(true);
        await reopen();
      }
      expect(await counters()).toMatchObject({ pending: 20, dead: 0 });
    });

    test('an attempt that came to its end is the end of suspicion', async () => {
      await add(`${A}/1`, `${A}/2`);
      await loseAll('worker');
      await loseAll('worker');
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await settle(id, [change.again(tasks[0]!.id, null), change.deferred(tasks[1]!.id)]);
      const grants = (await due()).map((host) => ({ hostId: host.id, count: 5, nextAt: T0 }));
      const request = { batches: [{ grants, leaseMs: 60_000 }], now: T0, suspectBatchesMax: 1 };
      const [first] = await setup.store.frontier.lease(setup.job.id, request);
      const [, second] = await setup.store.frontier.lease(setup.job.id, request);
      expect(first!.tasks).toMatchObject([{ id: tasks[0]!.id }]);
      expect(second!.tasks).toMatchObject([{ id: tasks[1]!.id }]);
    });

    test('leases end at their time', async () => {
      await add(`${A}/1`, `${B}/1`);
      const [a, b] = await due();
      const grant = (hostId: number, leaseMs: number) => ({
        grants: [{ hostId, count: 1, nextAt: T0 }],
        leaseMs,
      });
      const [short, long] = await setup.store.frontier.lease(setup.job.id, {
        batches: [grant(a!.id, 100), grant(b!.id, 5_000)],
        now: T0,
      });
      expect(await setup.store.frontier.expired(setup.job.id, T0 + 100)).toEqual([]);
      expect(await setup.store.frontier.expired(setup.job.id, T0 + 101)).toEqual([short!.id]);
      expect((await setup.store.frontier.expired(setup.job.id, T0 + 5_001)).sort()).toEqual(
        [short!.id, long!.id].sort(),
      );
      await settle(short!.id, []);
      expect(await setup.store.frontier.expired(setup.job.id, FAR)).toEqual([long!.id]);
      const other = await createJob(setup.store, 'other');
      expect(await setup.store.frontier.expired(other.id, FAR)).toEqual([]);
      await reopen();
      expect(await setup.store.frontier.orphans(setup.job.id)).toEqual([long!.id]);
    });
  });
}
