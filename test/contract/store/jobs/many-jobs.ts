import { describe, expect, test } from 'vitest';
import type { Job } from '../../../../src/ports/store.ts';
import { OVERTAKEN_MS, TURN_MS } from '../../../../src/store/shared/turns.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  hostChange,
  leaseOne,
  settlementOf,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

/** Several jobs in one store. */
export function testManyJobs(setup: StoreSetup): void {
  const { add, settle } = setup;

  describe('many jobs', () => {
    const dueOf = async (job: Job, now: number) =>
      (await setup.store.frontier.dueHosts(job.id, { now, before: now, limit: 9 })).map(({ host }) => host);

    /** The job of the set-up has just had host A, and both want it. */
    const openTwo = async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      const other = await createJob(setup.store, 'other');
      await enqueue(setup.store, other, tasksOf(`${A}/1`, `${A}/2`));
      await setup.store.jobs.join(setup.job.id);
      await setup.store.jobs.join(other.id);
      const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 1 });
      await settle(id, [change.fetched(tasks[0]!.id)], {
        hosts: [hostChange('a.example', { nextAt: T0 + 500 })],
      });
      return other;
    };

    test('take turns at a host that both want', async () => {
      const other = await openTwo();
      expect(await dueOf(setup.job, T0 + 500)).toEqual([]);
      expect(await dueOf(other, T0 + 500)).toEqual(['a.example']);
      const { id, tasks } = await leaseOne(setup.store, other, { count: 1, now: T0 + 500 });
      const hosts = [hostChange('a.example', { nextAt: T0 + 1_000 })];
      const settled = [change.fetched(tasks[0]!.id)];
      await setup.store.frontier.settle(settlementOf(other, id, settled, { hosts }));
      expect(await dueOf(other, T0 + 1_000)).toEqual([]);
      expect(await dueOf(setup.job, T0 + 1_000)).toEqual(['a.example']);
    });

    test.each(['settled', 'released'])(
      'keep their turn at a host that comes back before its time: its batch is %s',
      async (how) => {
        const other = await openTwo();
        const { id, tasks } = await leaseOne(setup.store, setup.job, {
          count: 1,
          now: T0 + 3_000,
          nextAt: T0 + 9_000,
        });
        // It sees that the host is taken, and until when.
        expect(await dueOf(other, T0 + 3_000)).toEqual([]);
        const times = { nextAt: T0 + 4_000, takenUntil: T0 + 9_000 };
        if (how === 'settled')
          await settle(id, [change.fetched(tasks[0]!.id)], { hosts: [hostChange('a.example', times)] });
        else {
          const hosts = [{ host: 'a.example', ...times }];
          await setup.store.frontier.release(id, { now: T0, blame: 'none', reason: 'gone', hosts });
        }
        expect(await dueOf(setup.job, T0 + 4_000)).toEqual([]);
        expect(await dueOf(other, T0 + 4_000)).toEqual(['a.example']);
      },
    );

    test('are named as those who want the same host, while they run and have tasks for it', async () => {
      const other = await openTwo();
      const sharers = async (job: Job) =>
        (await collect(setup.store.hosts.list(job.id))).map(({ sharedWith }) => sharedWith);
      expect(await sharers(setup.job)).toEqual([['other-1']]);
      expect(await sharers(other)).toEqual([[`${setup.job.name}-1`]]);
      await setup.store.jobs.update(other.id, { state: 'stopped' });
      expect(await sharers(setup.job)).toEqual([[]]);
    });

    test('that are urgent pass others at a host, until those have waited for some seconds', async () => {
      const other = await openTwo();
      const dueBefore = async (job: Job, now: number, overtakes: number[]) =>
        (await setup.store.frontier.dueHosts(job.id, { now, before: now, limit: 9, overtakes })).length;
      // The other one has never had the host.
      expect(await dueBefore(setup.job, T0 + 500, [other.id])).toBe(0);
      const { id, tasks } = await leaseOne(setup.store, other, { count: 1, now: T0 + 500 });
      const hosts = [hostChange('a.example', { nextAt: T0 + 510 })];
      await setup.store.frontier.settle(settlementOf(other, id, [change.fetched(tasks[0]!.id)], { hosts }));
      const again = await leaseOne(setup.store, setup.job, { count: 1, now: T0 + 520 });
      await settle(again.id, [change.fetched(again.tasks[0]!.id)], {
        hosts: [hostChange('a.example', { nextAt: T0 + 530 })],
      });
      expect(await dueBefore(setup.job, T0 + 540, [])).toBe(0);
      expect(await dueBefore(setup.job, T0 + 540, [setup.job.id])).toBe(0);
      expect(await dueBefore(setup.job, T0 + 540, [other.id])).toBe(1);
      const last = await leaseOne(setup.store, setup.job, { count: 1, now: T0 + 3_000 });
      await settle(last.id, [change.fetched(last.tasks[0]!.id)], {
        hosts: [hostChange('a.example', { nextAt: T0 + 3_100 })],
      });
      await add(`${A}/4`);
      expect(await dueBefore(setup.job, T0 + 499 + OVERTAKEN_MS, [other.id])).toBe(1);
      expect(await dueBefore(setup.job, T0 + 500 + OVERTAKEN_MS, [other.id])).toBe(0);
    });

    test('do not wait for one that does not use its turn, or is not at work', async () => {
      const other = await openTwo();
      expect(await dueOf(setup.job, T0 + 500)).toEqual([]);
      expect(await dueOf(setup.job, T0 + 500 + TURN_MS)).toEqual(['a.example']);
      await setup.store.jobs.leave(other.id);
      expect(await dueOf(setup.job, T0 + 500)).toEqual(['a.example']);
    });

    test('are found by what is to be done: those that run, and the newest of each name with a schedule', async () => {
      const { jobs } = setup.store;
      await jobs.update(setup.job.id, { state: 'done' });
      expect(await jobs.running()).toEqual([]);
      expect(await jobs.scheduled()).toEqual([]);
      await createJob(setup.store, 'nightly', { schedule: '0 3 * * *' });
      const second = await createJob(setup.store, 'nightly', { schedule: '0 4 * * *' });
      await createJob(setup.store, 'once', { schedule: '0 5 * * *' });
      await createJob(setup.store, 'once');
      expect((await jobs.running()).map(({ name, run }) => `${name}-${run}`)).toEqual([
        'nightly-1',
        'nightly-2',
        'once-1',
        'once-2',
      ]);
      expect((await jobs.scheduled()).map(({ id }) => id)).toEqual([second.id]);
    });
  });
}
