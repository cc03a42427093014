import { describe, expect, test } from 'vitest';
import { change, collect, createJob, leaseOne, traceOf } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

/** How hosts want to be asked, and how they were asked. */
export function testEscalations(setup: StoreSetup): void {
  const { add, settle, reopen } = setup;

  describe('escalation', () => {
    test('are kept by job, host and template, replaced and removed', async () => {
      const other = await createJob(setup.store, 'other');
      const stats = { 'http full': { tries: 3, rate: 0.5, at: 7 }, text: 'ü \u0000 "' };
      const rows = [
        { host: 'a.example', template: '', stats },
        { host: 'a.example', template: 'a.example/p/{n}', stats: [1, null] },
        { host: 'https://a.example', template: '@cookies x-1', stats: { cookies: [] } },
      ];
      await setup.store.escalations.save(setup.job.id, rows);
      await setup.store.escalations.save(other.id, [{ ...rows[0]!, stats: 'other' }]);
      await setup.store.escalations.save(setup.job.id, []);
      await reopen();
      expect(await setup.store.escalations.load(setup.job.id, 100)).toEqual(rows);
      expect(await setup.store.escalations.load(setup.job.id, 2)).toEqual(rows.slice(0, 2));

      await setup.store.escalations.save(setup.job.id, [
        { ...rows[0]!, stats: null },
        { ...rows[1]!, stats: 'new' },
        { host: 'b.example', template: '', stats: null },
      ]);
      expect(await setup.store.escalations.load(setup.job.id, 100)).toEqual([
        { ...rows[1], stats: 'new' },
        rows[2],
      ]);
      expect(await setup.store.escalations.load(other.id, 100)).toHaveLength(1);
    });

    test('are told of each attempt, and nothing for the plain way', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job, { count: 2 });
      const via = { rung: 2, fetcher: 'impersonate' as const, identity: 'x-1', proxy: 'gate.example:1#a' };
      await settle(id, [
        { ...change.fetched(tasks[0]!.id), trace: traceOf({ via }) },
        change.fetched(tasks[1]!.id),
      ]);
      await reopen();
      const attempts = await collect(setup.store.views.attempts(setup.job.id));
      expect(attempts.map(({ fetcher, rung, identity, proxy }) => [fetcher, rung, identity, proxy])).toEqual([
        ['impersonate', 2, 'x-1', 'gate.example:1#a'],
        [null, null, null, null],
      ]);
    });
  });
}
