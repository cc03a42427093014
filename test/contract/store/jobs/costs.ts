import { describe, expect, test } from 'vitest';
import type { CostLine } from '../../../../src/core/cost/cost.ts';
import type { Settlement, TaskChange } from '../../../../src/ports/store.ts';
import { change, codeOf, enqueue, leaseOne, settlementOf, T0, tasksOf } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

export function testCosts(setup: StoreSetup): void {
  describe('costs', () => {
    const line = (item: CostLine['item'], quantity: number, dollars: number) => ({ item, quantity, dollars });

    test('are added up by item with the settle, once for each report, and stay', async () => {
      await setup.add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const [first, second] = tasks;
      const costs = [line('proxyGb', 2, 16), line('lambdaCalls', 1, 0.5)];
      await setup.settle(id, [change.fetched(first!.id)], { final: false, costs });
      await setup.settle(id, [change.fetched(second!.id)], { costs: [line('proxyGb', 0.5, 4)] });
      // The batch is closed: this report is not written down.
      await setup.settle(id, [], { costs });
      await setup.store.jobs.addCosts(setup.job.id, [line('browserSeconds', 3, 0)], T0);
      await setup.reopen();
      expect(await setup.store.jobs.costs(setup.job.id)).toEqual([
        line('lambdaCalls', 1, 0.5),
        line('proxyGb', 2.5, 20),
        line('browserSeconds', 3, 0),
      ]);
      expect(await setup.store.jobs.costs(setup.job.id + 1)).toEqual([]);
    });

    test('of a job count for its key, on the day on which they arose', async () => {
      const { jobs, keys } = setup.store;
      const job = await jobs.create({ ...codeOf('mine'), name: 'mine', now: T0, owner: 'k' });
      const day = Math.floor(T0 / 86_400_000);
      await keys.use('k', day, { pages: 3, cost: 0 }, { pages: null, cost: null });
      await jobs.addCosts(job.id, [line('proxyGb', 1, 8), line('apiCalls', 1, 0.25)], T0);
      await jobs.addCosts(job.id, [line('proxyGb', 1, 8), line('browserSeconds', 2.5, 0)], T0 + 86_400_000);
      await jobs.addCosts(job.id, [line('browserSeconds', 1, 0)], T0 + 86_400_000);
      expect(await keys.usage('k', day)).toEqual({ pages: 3, cost: 8.25, requests: 0, browserSeconds: 0 });
      expect(await keys.usage('k', day + 1)).toEqual({ pages: 0, cost: 8, requests: 0, browserSeconds: 3.5 });
    });

    test('requests count for the key of their job with the settle, once for each report', async () => {
      const { store } = setup;
      const owner = 'k';
      const job = await store.jobs.create({ ...codeOf('mine'), name: 'mine', now: T0, owner });
      await enqueue(store, job, tasksOf(`${A}/1`, `${A}/2`));
      const { id, tasks } = await leaseOne(store, job);
      const [first, second] = tasks;
      const settle = (changes: TaskChange[], more: Partial<Settlement>) =>
        store.frontier.settle(settlementOf(job, id, changes, { owner, ...more }));
      const day = Math.floor(T0 / 86_400_000);
      await settle([change.fetched(first!.id)], { final: false, requests: 3 });
      expect(await store.keys.usage('k', day)).toEqual({ pages: 0, cost: 0, requests: 3, browserSeconds: 0 });
      const costs = [line('apiCalls', 1, 0.25), line('browserSeconds', 1.5, 0)];
      await settle([change.fetched(second!.id)], { requests: 2, costs, now: T0 + 86_400_000 });
      // The batch is closed: this report is not written down.
      await settle([], { requests: 9, costs });
      expect((await store.keys.usage('k', day)).requests).toBe(3);
      const next = { pages: 0, cost: 0.25, requests: 2, browserSeconds: 1.5 };
      expect(await store.keys.usage('k', day + 1)).toEqual(next);
    });

    test('a quote is kept with its job', async () => {
      const { jobs } = setup.store;
      expect(setup.job.quote).toBeNull();
      const quote = {
        ...{ requests: 3, pages: 2, seconds: { p50: 1, p90: 2 }, bytes: 9, criticalHost: null },
        dollars: { p50: 1, p90: 2, items: [] },
        sample: { from: 'assumptions', requests: 0, pages: 0 },
      } as const;
      await jobs.update(setup.job.id, { quote: { ...quote, dollars: { ...quote.dollars, items: [] } } });
      expect((await jobs.get(setup.job.id)).quote).toEqual(quote);
    });
  });
}
