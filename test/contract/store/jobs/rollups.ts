import { describe, expect, test } from 'vitest';
import {
  addCosts,
  addSettled,
  costOf,
  countsOf,
  emptyRollup,
  latencyOf,
  pagesOf,
  type RollupStep,
} from '../../../../src/core/rollups/rollup.ts';
import { change, leaseOne, T0, traceOf } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

const MINUTE_MS = 60_000;
/** The beginning of an hour. */
const START = Math.floor(T0 / 3_600_000) * 3_600_000;

export function testRollups(setup: StoreSetup): void {
  const series = (step: RollupStep, host = '') =>
    setup.store.rollups.series(setup.job.id, { step, from: 0, to: Number.MAX_SAFE_INTEGER, host });

  describe('roll-ups', () => {
    test('count each settle once, in all steps, in its transaction', async () => {
      await setup.add(...Array.from({ length: 6 }, (_, n) => `${A}/${n}`));
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const ids = tasks.map((task) => task.id);
      const slow = traceOf({ durationMs: 400, bytes: 50 });
      const first = [
        change.fetched(ids[0]!),
        change.unchanged(ids[1]!),
        change.skipped(ids[2]!),
        change.dead(ids[3]!, { trace: slow }),
      ];
      const costs = [{ item: 's3Puts' as const, quantity: 3, dollars: 0.5 }];
      await setup.settle(id, first, { now: START, final: false, requests: 4, costs });
      // The same part again has nothing left to settle.
      await setup.settle(id, first, { now: START, final: false, requests: 0 });
      const last = [change.again(ids[4]!, null), change.deferred(ids[5]!)];
      await setup.settle(id, last, { now: START + 65_000, final: true, requests: 2 });
      expect((await setup.settle(id, last, { now: START + 65_000, requests: 2 })).applied).toBe(false);

      const points = await series(10);
      expect(points.map(({ at }) => at)).toEqual([START, START + 60_000]);
      expect(points[0]!.rollup).toMatchObject({
        succeeded: 2,
        failed: 1,
        skipped: 1,
        requests: 4,
        bytes: 150,
      });
      expect(countsOf(points[0]!.rollup, 'failure')).toEqual([['not-found', 1]]);
      expect(costOf(points[0]!.rollup)).toBe(0.5);
      expect(latencyOf(points[0]!.rollup)).toMatchObject({ p99: expect.closeTo(395.5, 1) });
      expect(pagesOf(points[1]!.rollup)).toBe(0);
      expect(countsOf(points[1]!.rollup, 'failure')).toEqual([['reset', 1]]);
      expect((await series(60)).map(({ at }) => at)).toEqual([START, START + 60_000]);
      const [hour] = await series(3_600);
      expect(hour).toEqual({ at: START, rollup: await setup.store.rollups.total(setup.job.id) });
      expect(hour!.rollup).toMatchObject({ succeeded: 2, failed: 1, skipped: 1, requests: 6 });
    });

    test('count tasks that end without a report, and batches that are lost', async () => {
      await setup.add(`${A}/1`, `${A}/2`, `${A}/3`);
      const { id } = await leaseOne(setup.store, setup.job);
      await setup.release(id);
      const dead = { host: 'a.example', code: 'connect' as const, detail: '', now: T0, limit: 10 };
      await setup.store.frontier.failTasksOfHost(setup.job.id, dead);
      const total = await setup.store.rollups.total(setup.job.id);
      expect(total.failed).toBe(3);
      expect(countsOf(total, 'failure')).toEqual([['worker-lost', 3]]);
    });

    test('have what is paid beside reports, too: time of the machine, batches without a report', async () => {
      const line = { item: 'machineHours' as const, quantity: 0.5, dollars: 0.25 };
      await setup.store.jobs.addCosts(setup.job.id, [line], START);
      await setup.store.jobs.addCosts(setup.job.id, [line], START + MINUTE_MS);
      expect((await series(60)).map(({ rollup }) => costOf(rollup))).toEqual([0.25, 0.25]);
    });

    test('of hosts and costs add up, whoever adds them and in whatever order', async () => {
      const { rollups } = setup.store;
      const about = (host: string, failures: number, at: number) => {
        const rollup = emptyRollup();
        for (let n = 0; n < failures; n++) addSettled(rollup, change.dead(n));
        rollup.requests = failures;
        return { host, at, rollup };
      };
      const paid = emptyRollup();
      addCosts(paid, [{ item: 'lambdaCalls', quantity: 1, dollars: 0.25 }]);
      const now = START + MINUTE_MS;
      await Promise.all([
        rollups.add(setup.job.id, [about('b.example', 1, START), about('a.example', 3, START + 1)], now),
        rollups.add(
          setup.job.id,
          [about('a.example', 2, START + 9_999), { host: '', at: START, rollup: paid }],
          now,
        ),
        rollups.add(setup.job.id, [{ host: '', at: START + 5, rollup: paid }], now),
      ]);
      expect((await series(10, 'a.example')).map(({ rollup }) => rollup.failed)).toEqual([5]);
      expect(await series(10, 'c.example')).toEqual([]);
      expect((await series(60)).map(({ rollup }) => costOf(rollup))).toEqual([0.5]);
      const hosts = await rollups.hosts(setup.job.id, { limit: 10 });
      expect(hosts.map(({ host, rollup }) => [host, rollup.requests])).toEqual([
        ['a.example', 5],
        ['b.example', 1],
      ]);
      expect(await rollups.hosts(setup.job.id, { limit: 1 })).toHaveLength(1);
      expect(await rollups.hosts(setup.job.id, { limit: 10, since: START })).toEqual(hosts);
      expect(await rollups.hosts(setup.job.id, { limit: 10, since: START + MINUTE_MS })).toEqual([]);
      expect(await rollups.failures(setup.job.id, { limit: 10 })).toEqual([
        { host: 'a.example', code: 'not-found', count: 5 },
        { host: 'b.example', code: 'not-found', count: 1 },
      ]);
      expect(await rollups.failures(setup.job.id, { limit: 1 })).toHaveLength(1);
    });

    test('have bounded rows, whatever the length of the run', async () => {
      const { rollups } = setup.store;
      const rows = ['', 'a.example'].flatMap((host) =>
        Array.from({ length: 1_000 }, (_, n) => ({
          host,
          at: START + n * 10_000,
          rollup: { ...emptyRollup(), requests: 1 },
        })),
      );
      await rollups.add(setup.job.id, rows, START);
      expect(await series(10)).toHaveLength(1_000);
      await rollups.add(setup.job.id, [], START + 10_000_000);
      expect((await series(10)).length).toBe(720);
      expect((await series(10, 'a.example')).length).toBe(180);
      expect((await series(60)).length).toBe(167);
      expect(await rollups.total(setup.job.id)).toMatchObject({ requests: 1_000 });
    });
  });
}
