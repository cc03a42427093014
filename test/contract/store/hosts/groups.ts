import { describe, expect, test } from 'vitest';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  robotsEntry,
  T0,
  taskOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, expectBalance, type StoreSetup } from '../store-setup.ts';

const SITE = '*.a.example';
const DAY = 86_400_000;

/** Hosts that are counted together, and where a task came from. */
export function testGroups(setup: StoreSetup): void {
  const { due, hostsDue, settle, beginPass, reopenTasks, reopen } = setup;
  const addTo = (host: string, url: string) => enqueue(setup.store, setup.job, [taskOf(url, { host })]);

  describe('groups of hosts', () => {
    test('a task that followed a redirect elsewhere is due again in the group that it came with', async () => {
      await addTo(SITE, `${A}/1`);
      const first = await leaseOne(setup.store, setup.job);
      const moveTo = { url: 'https://x.b.example/1', host: '*.b.example' };
      await settle(first.id, [change.moved(first.tasks[0]!.id, moveTo.url, { moveTo })]);
      expect(await hostsDue()).toEqual(['*.b.example']);
      const second = await leaseOne(setup.store, setup.job);
      await settle(second.id, [change.fetched(second.tasks[0]!.id)]);
      for (const pass of [1, 2]) {
        await beginPass(T0 + pass * DAY);
        await reopenTasks(T0 + pass * DAY);
        expect(await hostsDue()).toEqual([SITE]);
        const { id, tasks } = await leaseOne(setup.store, setup.job);
        expect(tasks).toMatchObject([{ url: `${A}/1`, hops: 0 }]);
        await settle(id, [change.fetched(tasks[0]!.id, { trace: traceOf({ startedAt: T0 + pass * DAY }) })]);
        await expectBalance(setup.store, setup.job);
      }
    });

    test('what a host is counted by is noted once for a job, and stays', async () => {
      const { hosts } = setup.store;
      expect(await hosts.groupsOf(setup.job.id, ['a.example', 'b.example'])).toEqual(new Map());
      const one = new Map([
        ['a.example', 'ip:203.0.113.7'],
        ['b.example', 'ip:203.0.113.7'],
      ]);
      expect(await hosts.noteGroups(setup.job.id, one)).toEqual(one);
      const other = new Map([
        ['b.example', 'ip:203.0.113.8'],
        ['c.example', 'c.example'],
      ]);
      const held = new Map([
        ['b.example', 'ip:203.0.113.7'],
        ['c.example', 'c.example'],
      ]);
      expect(await hosts.noteGroups(setup.job.id, other)).toEqual(held);
      await reopen();
      const wanted = ['c.example', 'a.example', 'd.example'];
      expect(await setup.store.hosts.groupsOf(setup.job.id, wanted)).toEqual(
        new Map([
          ['a.example', 'ip:203.0.113.7'],
          ['c.example', 'c.example'],
        ]),
      );
      const second = await createJob(setup.store, 'other');
      expect(await setup.store.hosts.groupsOf(second.id, ['a.example'])).toEqual(new Map());
    });

    test('of several origins, the one that wants the most time between requests decides', async () => {
      await addTo(SITE, `${A}/1`);
      await addTo(SITE, `${A}/2`);
      const { id } = await leaseOne(setup.store, setup.job, { count: 1 });
      const delayOf = async () => (await due())[0]?.crawlDelayMs;
      const robots = (origin: string, crawlDelayMs: number | null, host = SITE) =>
        settle(id, [], { final: false, robots: [robotsEntry(origin, { host, crawlDelayMs })] });
      await robots('https://one.a.example', 3_000);
      await robots('https://two.a.example', null);
      expect(await delayOf()).toBe(3_000);
      await robots('https://three.a.example', 5_000);
      expect(await delayOf()).toBe(5_000);
      await robots('https://three.a.example', null);
      expect(await delayOf()).toBe(3_000);
      await robots('https://one.a.example', null);
      expect(await delayOf()).toBeNull();
      const [facts] = await collect(setup.store.hosts.list(setup.job.id));
      expect(facts?.robots).toHaveLength(3);
    });
  });

  describe('the page that linked', () => {
    test('is lent with the task, also after a redirect and in the next pass', async () => {
      const referrer = `${A}/list?page=2`;
      await enqueue(setup.store, setup.job, [taskOf(`${A}/1`, { referrer }), taskOf(`${A}/2`)]);
      const first = await leaseOne(setup.store, setup.job);
      expect(first.tasks.map((task) => task.referrer)).toEqual([referrer, undefined]);
      await settle(first.id, [
        change.moved(first.tasks[0]!.id, `${A}/moved`),
        change.fetched(first.tasks[1]!.id),
      ]);
      const second = await leaseOne(setup.store, setup.job);
      expect(second.tasks).toMatchObject([{ url: `${A}/moved`, referrer }]);
      await settle(second.id, [change.fetched(second.tasks[0]!.id)]);
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      const third = await leaseOne(setup.store, setup.job);
      expect(third.tasks.map((task) => task.referrer)).toEqual([referrer, undefined]);
    });
  });
}
