import { describe, expect, test } from 'vitest';
import { WORKERS_KEPT_MAX, type WorkerSample } from '../../../../src/core/workers/worker-health.ts';
import type { StoreSetup } from '../store-setup.ts';

/** The beginning of an hour. */
const HOUR = 3_600_000 * 500_000;

const sampleOf = (worker: string, change: Partial<WorkerSample> = {}): WorkerSample => ({
  worker,
  kind: 'http',
  at: HOUR,
  software: '1.2.3',
  threads: 2,
  slots: 16,
  isDraining: false,
  cpu: 0.5,
  memoryBytes: 100_000_000,
  batches: 4,
  batchesDone: 10,
  tasksDone: 600,
  ...change,
});

/** How workers fared over time. */
export function testWorkers(setup: StoreSetup): void {
  describe('workers', () => {
    test('are kept with their last sample, and with means and maxima in every step', async () => {
      const { reopen } = setup;
      await setup.store.workers.note([sampleOf('b'), sampleOf('a')], HOUR + 1_000);
      const later = { cpu: 1.5, memoryBytes: 300_000_000, batches: 8, batchesDone: 12, tasksDone: 700 };
      await setup.store.workers.note([sampleOf('a', later)], HOUR + 2_000);
      await setup.store.workers.note(
        [sampleOf('a', { ...later, isDraining: true, slots: 0 })],
        HOUR + 61_000,
      );
      await reopen();
      const [a, b] = await setup.store.workers.list({ limit: 10 });
      expect(a).toMatchObject({ worker: 'a', isDraining: true, software: '1.2.3', cpu: 1.5, tasksDone: 700 });
      expect(a).toMatchObject({ firstSeenAt: HOUR + 1_000, lastSeenAt: HOUR + 61_000 });
      expect(b).toMatchObject({ worker: 'b', isDraining: false, memoryBytes: 100_000_000 });
      const range = { from: HOUR, to: HOUR + 3_600_000 };
      const minutes = await setup.store.workers.series('a', { step: 60, ...range });
      expect(
        minutes.map(({ at, cpu, cpuMax, memoryBytes, batches, tasksDone }) => [
          at,
          cpu,
          cpuMax,
          memoryBytes,
          batches,
          tasksDone,
        ]),
      ).toEqual([
        [HOUR, 1, 1.5, 200_000_000, 6, 700],
        [HOUR + 60_000, 1.5, 1.5, 300_000_000, 8, 700],
      ]);
      expect(await setup.store.workers.series('a', { step: 3600, ...range })).toHaveLength(1);
      expect(await setup.store.workers.series('a', { step: 10, ...range })).toHaveLength(2);
      expect(await setup.store.workers.series('c', { step: 10, ...range })).toEqual([]);
    });

    test('have no more rows than their time allows, and are forgotten after two weeks', async () => {
      await setup.store.workers.note([sampleOf('old')], HOUR);
      const day = 86_400_000;
      await setup.store.workers.note([sampleOf('old'), sampleOf('gone')], HOUR + day);
      const all = { from: 0, to: HOUR + 100 * day };
      expect(await setup.store.workers.series('old', { step: 10, ...all })).toHaveLength(1);
      expect(await setup.store.workers.series('old', { step: 3600, ...all })).toHaveLength(2);
      await setup.store.workers.note([sampleOf('old')], HOUR + 20 * day);
      expect((await setup.store.workers.list({ limit: 10 })).map(({ worker }) => worker)).toEqual(['old']);
      expect(await setup.store.workers.series('gone', { step: 3600, ...all })).toEqual([]);
      expect(await setup.store.workers.series('old', { step: 3600, ...all })).toHaveLength(1);
    });

    test('are no more than so many, however many there were', async () => {
      for (let at = 0; at < WORKERS_KEPT_MAX + 200; at += 200)
        await setup.store.workers.note(
          Array.from({ length: 200 }, (_, index) => sampleOf(`w${at + index}`)),
          HOUR + at,
        );
      await setup.store.workers.note([sampleOf('last')], HOUR + 120_000);
      const kept = await setup.store.workers.list({ limit: 10_000 });
      expect(kept).toHaveLength(WORKERS_KEPT_MAX);
      expect(kept[0]!.worker).toBe('last');
    });
  });
}
