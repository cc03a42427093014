import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { LOSSES_MAX } from '../../../../src/core/suspicion/suspicion.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  hostChange,
  leaseOne,
  robotsEntry,
  settlementOf,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Tasks that come back: released, waiting, given up, tried again. */
export function testReturn(setup: StoreSetup): void {
  const { add, due, hostsDue, row, counters, release, settle, reopen } = setup;

  describe('release', () => {
    test('returns the tasks, once', async () => {
      await add(`${A}/1`, `${B}/1`);
      const { id } = await leaseOne(setup.store, setup.job);
      expect(await release(id)).toEqual({ returned: 2, dead: 0 });
      expect(await release(id)).toEqual({ returned: 0, dead: 0 });
      expect(await release(12_345)).toEqual({ returned: 0, dead: 0 });
      expect(await counters()).toMatchObject({ pending: 2, leased: 0 });
      expect((await hostsDue()).sort()).toEqual(['a.example', 'b.example']);
      expect((await leaseOne(setup.store, setup.job)).tasks).toHaveLength(2);
      await expectBalance(setup.store, setup.job);
    });

    test('the log of attempts has what may have been sent, and why it was lost; a page stays the page of its task', async () => {
      await add(`${A}/1`, `${A}/2`);
      const first = await leaseOne(setup.store, setup.job);
      const [settled, lost] = first.tasks;
      await settle(first.id, [change.fetched(settled!.id)], { final: false });
      await release(first.id, 'none', 'the function seine failed (request 5f1c)');
      const attempts = await collect(setup.store.views.attempts(setup.job.id));
      expect(attempts).toMatchObject([
        { url: settled!.url, outcome: 'fetched', detail: null },
        {
          url: lost!.url,
          batch: first.id,
          outcome: 'lost',
          failureCode: 'worker-lost',
          detail: 'the function seine failed (request 5f1c)',
          httpStatus: null,
          bytes: 0,
          startedAt: new Date(T0).toISOString(),
        },
      ]);
      await reopen();
      const second = await leaseOne(setup.store, setup.job);
      expect(second.tasks).toMatchObject([{ id: lost!.id, attempt: 1, lastVisit: null }]);
      await settle(second.id, [change.fetched(lost!.id)]);
      await expectBalance(setup.store, setup.job);
      expect((await counters()).requests).toBe(2);
    });

    test('a task that kills its worker every time becomes a dead letter that says so', async () => {
      await add(`${A}/killer`);
      for (let loss = 1; loss <= LOSSES_MAX; loss++) {
        const { id, tasks } = await leaseOne(setup.store, setup.job);
        expect(tasks).toMatchObject([{ attempt: 1 }]);
        const last = loss === LOSSES_MAX;
        expect(await release(id, 'worker', 'out of memory')).toEqual({
          returned: last ? 0 : 1,
          dead: last ? 1 : 0,
        });
        await expectBalance(setup.store, setup.job);
        await reopen();
      }
      expect(await row(`${A}/killer`)).toMatchObject({
        state: 'dead',
        failureCode: 'worker-lost',
        failureDetail: 'out of memory',
      });
      expect(await setup.store.views.tallies(setup.job.id)).toEqual([
        { state: 'dead', code: 'worker-lost', count: 1 },
      ]);
      expect(await setup.store.views.retryDead(setup.job.id, { code: 'worker-lost' }, T0)).toBe(1);
      const again = await leaseOne(setup.store, setup.job);
      expect(await release(again.id, 'worker')).toEqual({ returned: 1, dead: 0 });
    });

    test('a host is free as soon as its lost worker can send nothing more, unless it was taken again', async () => {
      await add(`${A}/1`, `${A}/2`);
      const options = { now: T0, blame: 'worker', reason: 'gone' } as const;
      const nextAt = async () => (await due())[0]?.nextAt;
      const first = await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 5_000 });
      const freed = { host: 'a.example', nextAt: T0 + 300, takenUntil: T0 + 5_000 };
      await setup.store.frontier.release(first.id, { ...options, hosts: [freed] });
      expect(await nextAt()).toBe(T0 + 300);
      expect(await hostsDue({ before: T0 + 300 })).toEqual(['a.example']);
      const second = await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 6_000 });
      await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 9_000 });
      const early = { host: 'a.example', nextAt: T0 + 300, takenUntil: T0 + 6_000 };
      await setup.store.frontier.release(second.id, { ...options, hosts: [early] });
      expect(await nextAt()).toBe(T0 + 9_000);
    });

    test('an innocent release is no loss', async () => {
      await add(`${A}/1`);
      for (let turn = 0; turn < LOSSES_MAX * 2; turn++) {
        expect(await release((await leaseOne(setup.store, setup.job)).id)).toEqual({ returned: 1, dead: 0 });
      }
      expect(await row(`${A}/1`)).toMatchObject({ state: 'pending', attempts: 0 });
    });
  });

  describe('waiting, giving up, trying again', () => {
    test('requests that the host asked not to send are counted apart from attempts', async () => {
      await add(`${A}/1`);
      for (const throttles of [undefined, 1, 2]) {
        const { id, tasks } = await leaseOne(setup.store, setup.job);
        expect(tasks).toMatchObject([{ attempt: 1, ...(throttles && { throttles }) }]);
        expect(tasks[0]!.throttles).toBe(throttles);
        await settle(id, [change.again(tasks[0]!.id, T0, { countsAsAttempt: false, throttled: true })]);
      }
      expect(await counters()).toMatchObject({ pending: 1, attempted: 0 });
    });

    test('a task waits until it is due, also after a restart', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await settle(id, [change.again(tasks[0]!.id, T0 + 1_000), change.again(tasks[1]!.id, T0 + 2_000)]);
      expect(await counters()).toMatchObject({ pending: 2, retries: 2 });
      await reopen();
      expect((await leaseOne(setup.store, setup.job, { now: T0 + 999 })).tasks).toEqual([]);
      expect((await leaseOne(setup.store, setup.job, { now: T0 + 1_000 })).tasks).toMatchObject([
        { url: `${A}/1`, attempt: 2 },
      ]);
      expect((await leaseOne(setup.store, setup.job, { now: T0 + 2_000 })).tasks).toMatchObject([
        { url: `${A}/2` },
      ]);
      await expectBalance(setup.store, setup.job);
    });

    test('the ready tasks of a host fail at once, at most so many at a time', async () => {
      await add(...Array.from({ length: 5 }, (_, n) => `${A}/${n}`), `${B}/1`);
      const held = await leaseOne(setup.store, setup.job, { count: 1 });
      const fail = (limit: number, host = 'a.example') =>
        setup.store.frontier.failTasksOfHost(setup.job.id, {
          host,
          code: 'host-down',
          detail: 'no answer',
          now: T0,
          limit,
        });
      expect(await fail(3)).toBe(3);
      await expectBalance(setup.store, setup.job);
      expect(await fail(3)).toBe(1);
      expect(await fail(3)).toBe(0);
      expect(await fail(3, 'never.seen')).toBe(0);
      expect(await counters()).toMatchObject({ dead: 4, leased: 2, pending: 0 });
      expect(await hostsDue()).toEqual([]);
      expect(await row(`${A}/4`)).toMatchObject({
        state: 'dead',
        failureCode: 'host-down',
        failureDetail: 'no answer',
      });
      await settle(held.id, []);
      expect(await counters()).toMatchObject({ dead: 4, pending: 2 });
      await expectBalance(setup.store, setup.job);
    });

    test('those that wait for later fail, too, after the ready ones', async () => {
      await add(...Array.from({ length: 6 }, (_, n) => `${A}/${n}`), `${B}/1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 3 });
      await settle(
        id,
        tasks.map((task) => change.again(task.id, T0 + 60_000)),
      );
      const options = { host: 'a.example', code: 'host-down', detail: 'no answer', now: T0 } as const;
      const fail = (limit: number) =>
        setup.store.frontier.failTasksOfHost(setup.job.id, { ...options, limit });
      expect(await fail(4)).toBe(4);
      await expectBalance(setup.store, setup.job);
      expect((await row(`${A}/0`))?.state).toBe('dead');
      expect((await row(`${A}/2`))?.state).toBe('pending');
      expect(await fail(4)).toBe(2);
      expect(await fail(4)).toBe(0);
      await expectBalance(setup.store, setup.job);
      expect(await counters()).toMatchObject({ dead: 6, pending: 1 });
      // What was given up does not come back by itself.
      expect(await hostsDue({ now: T0 + 120_000 })).toEqual(['b.example']);
    });

    const kill = async () => {
      await add(`${A}/x1`, `${A}/x2`, `${A}/y1`, `${B}/x1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
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
      const groups = await setup.store.views.dead(setup.job.id);
      expect(groups[0]).toMatchObject({ code: 'not-found', host: 'a.example', count: 2 });
      expect(groups).toHaveLength(3);
      for (const group of groups) {
        expect(await row(group.sampleUrl)).toMatchObject({
          state: 'dead',
          failureCode: group.code,
          failureDetail: group.sampleDetail,
        });
      }
      const other = await createJob(setup.store, 'other');
      expect(await setup.store.views.dead(other.id)).toEqual([]);
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
      const other = await createJob(setup.store, 'other');
      await enqueue(setup.store, other, tasksOf(`${A}/x1`));
      const held = await leaseOne(setup.store, other);
      await setup.store.frontier.settle(settlementOf(other, held.id, [change.dead(held.tasks[0]!.id)]));
      expect(await setup.store.views.retryDead(setup.job.id, filter, T0 + 5)).toBe(count);
      expect(await counters()).toMatchObject({ dead: 4 - count, pending: count });
      await expectBalance(setup.store, setup.job, other);
      const { tasks } = await leaseOne(setup.store, setup.job);
      expect(tasks.map((task) => task.attempt)).toEqual(Array.from({ length: count }, () => 1));
      expect(await setup.store.jobs.counters(other.id)).toMatchObject({ dead: 1 });
    });

    test('a host that rested can be asked again when its dead letters are put back', async () => {
      await add(`${A}/1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const hosts = [hostChange('a.example', { nextAt: T0 + 600_000, failuresInRow: 12, rests: 7 })];
      // One that could not be had is asked for again, one that is known stays.
      const robots = [robotsEntry(A, { text: null, failures: 5 }), robotsEntry(B)];
      await settle(id, [change.dead(tasks[0]!.id, { code: 'host-down' })], { hosts, robots });
      expect(await setup.store.hosts.robots(A)).not.toBeNull();
      await setup.store.views.retryDead(setup.job.id, {}, T0 + 100_000);
      expect(await setup.store.hosts.robots(A)).toBeNull();
      expect(await setup.store.hosts.robots(B)).not.toBeNull();
      const [host] = await due({ now: T0 + 100_000, before: T0 + 100_000 + LIMITS.permitMsMax * 2 });
      expect(host).toMatchObject({ host: 'a.example', ready: 1, failuresInRow: 0, rests: 0 });
    });
  });
}
