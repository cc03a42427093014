import { expect, test } from 'vitest';
import type { Coordinator } from '../../../src/coordinator/coordinator.ts';
import type { Batch } from '../../../src/core/batch/batch.ts';
import type { Delivery } from '../../../src/ports/dispatcher.ts';
import type { Settlement, Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { reportOn } from '../../support/fleet/report-examples.ts';

/** A coordinator whose store fails while a batch is out; the report of the batch comes at some point of its end. */
async function endWithReport(comes: 'before permits are given up' | 'after'): Promise<Settlement[]> {
  const settled: Settlement[] = [];
  let deliver: (() => Promise<void>) | null = null;
  const storeIn = (path: string): Store => {
    const store = openSqliteStore(path, { sync: 'normal', checkpointThread: false });
    const { counters, leave } = store.jobs;
    const { settle } = store.frontier;
    store.frontier.settle = (settlement) => {
      settled.push(settlement);
      return settle.call(store.frontier, settlement);
    };
    store.jobs.counters = async (id) => {
      if (deliver === null) return counters.call(store.jobs, id);
      if (comes !== 'after') await deliver();
      throw new Error('disk I/O error');
    };
    store.jobs.leave = async (id) => {
      if (comes === 'after') await deliver!();
      return leave.call(store.jobs, id);
    };
    return store;
  };
  const dispatch = (batch: Batch) => {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    deliver = async () => {
      resolve({ kind: 'report', report: reportOn(batch) });
      await new Promise((next) => setImmediate(next));
    };
    return promise;
  };
  const sources = ['https://a.example/1', 'https://a.example/2'];
  const politeness = { rate: 20, robots: false };
  const through = () => ({
    ...{ workers: 1, slots: 1, dispatch, drain: async () => {}, close: async () => {} },
  });
  const crawled = crawl({ sources, politeness }, { storeIn, through });
  await expect(crawled).rejects.toThrow('disk I/O error');
  return settled;
}

test.each(['before permits are given up', 'after'] as const)(
  'a report that comes while its coordinator ends is written down with what it says of its host: %s',
  async (comes) => {
    const settled = await endWithReport(comes);
    const host = { host: 'a.example', sent: 1, ban: { known: { url: 'https://a.example/1' } } };
    expect(settled).toMatchObject([{ final: true, hosts: [host] }]);
    expect(settled[0]!.hosts[0]!.reachedAt).toBeGreaterThan(0);
  },
);

test('a stop that comes while its coordinator looks whether to stop is not forgotten', async () => {
  let coordinator: Coordinator;
  const storeIn = (path: string): Store => {
    const store = openSqliteStore(path, { sync: 'normal', checkpointThread: false });
    const { requestedState } = store.jobs;
    store.jobs.requestedState = async (id) => {
      coordinator.stop({ state: 'stopped', cause: 'request', message: 'now' });
      return requestedState.call(store.jobs, id);
    };
    return store;
  };
  const dispatch = async (batch: Batch): Promise<Delivery> => ({ kind: 'report', report: reportOn(batch) });
  const { state } = await crawl(
    { sources: ['https://a.example/1'], politeness: { rate: 'max', robots: false } },
    {
      storeIn,
      through: () => ({ workers: 1, slots: 1, dispatch, drain: async () => {}, close: async () => {} }),
      onCoordinator: (one) => {
        coordinator = one;
      },
    },
  );
  expect(state).toBe('stopped');
});
