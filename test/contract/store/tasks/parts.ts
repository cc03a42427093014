import { describe, expect, test } from 'vitest';
import { change, createJob, leaseOne, T0, tasksOf } from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Long lists: their links come in parts, before the outcome of their task. */
export function testParts(setup: StoreSetup): void {
  const { add, row, counters, release, settle } = setup;
  const pages = (from: number, to: number) =>
    tasksOf(...Array.from({ length: to - from }, (_, n) => `${B}/${from + n}`));

  describe('links that come before the outcome of their task', () => {
    test('are tasks at once, and the task stays lent', async () => {
      await add(`${A}/sitemap.xml`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const [task] = tasks;
      expect(await settle(id, [], { final: false, links: pages(0, 3) })).toEqual({
        applied: true,
        accepted: 3,
      });
      expect(await counters()).toMatchObject({ accepted: 4, pending: 3, leased: 1, done: 0 });
      expect(await row(`${A}/sitemap.xml`)).toMatchObject({ state: 'leased', attempts: 0 });
      await expectBalance(setup.store, setup.job);
      await settle(id, [change.fetched(task!.id, { links: pages(2, 5), rejected: 7 })]);
      expect(await counters()).toMatchObject({
        accepted: 6,
        pending: 5,
        leased: 0,
        done: 1,
        duplicates: 1,
        rejected: 7,
      });
      await expectBalance(setup.store, setup.job);
    });

    test('are found again after a worker died in between, and are there once', async () => {
      await add(`${A}/sitemap.xml`);
      const first = await leaseOne(setup.store, setup.job);
      await settle(first.id, [], { final: false, links: pages(0, 3) });
      await release(first.id);
      // What comes late from the dead one changes nothing.
      expect(await settle(first.id, [], { final: false, links: pages(3, 9) })).toMatchObject({
        applied: false,
      });
      const again = await leaseOne(setup.store, setup.job, { now: T0 + 1_000 });
      const task = again.tasks.find(({ url }) => url === `${A}/sitemap.xml`)!;
      await settle(again.id, [], { final: false, links: pages(0, 3) });
      await settle(again.id, [change.fetched(task.id, { links: pages(3, 5) })]);
      expect(await counters()).toMatchObject({ accepted: 6, done: 1, pending: 5, leased: 0, duplicates: 3 });
      await expectBalance(setup.store, setup.job);
    });

    test('of another job are not taken', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/sitemap.xml`);
      const { id } = await leaseOne(setup.store, setup.job);
      expect(await settle(id, [], { final: false, jobId: other.id, links: pages(0, 3) })).toMatchObject({
        applied: false,
      });
      expect(await setup.store.jobs.counters(other.id)).toMatchObject({ accepted: 0 });
    });
  });
}
