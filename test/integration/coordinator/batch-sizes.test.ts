import { expect, test } from 'vitest';
import { type Batch, type Report, WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { pageOf, T0, traceOf } from '../../support/fixtures.ts';

function answerOf(batch: Batch, startedAt: number, durationMs: number): Report {
  return {
    version: WIRE_VERSION,
    ...{ batchId: batch.id, part: 0, final: true, worker: 'instant', startedAt, durationMs },
    permits: batch.permits.map(({ host }) => ({
      ...{ host, sent: batch.tasks.length, lastSentAt: startedAt, finished: true },
    })),
    ...{ robots: [], quality: [], archive: null },
    outcomes: batch.tasks.map(({ id }) => ({
      ...{ kind: 'fetched', taskId: id, page: pageOf({ archive: null }), links: [], records: [], shows: [] },
      trace: traceOf({ startedAt }),
    })),
  };
}

/** Sizes of all batches, where time passes only while the worker has one: so much for each page of the batch with that index. */
async function sizesOf(job: Partial<JobInput>, pages: number, pageMs: (index: number) => number) {
  const sizes: number[] = [];
  let now = T0;
  let isRead = async () => false;
  const through = (): Dispatcher => ({
    ...{ workers: 1, slots: 1 },
    async dispatch(batch) {
      // All URLs are there before the first pages are: batches are not small for want of them.
      while (!(await isRead())) await new Promise((resolve) => setImmediate(resolve));
      const startedAt = now;
      sizes.push(batch.tasks.length);
      now += batch.tasks.length * pageMs(sizes.length - 1);
      return { kind: 'report', report: answerOf(batch, startedAt, now - startedAt) };
    },
    async drain() {},
    async close() {},
  });
  const sources = Array.from({ length: pages }, (_, n) => `https://shop.example/${n}`);
  const politeness = { rate: 'max' as const, parallel: 32, robots: false };
  const { counters } = await crawl(
    { sources, politeness, ...job },
    {
      ...{ through, clock: { now: () => now } },
      begun({ store, job: { id } }) {
        isRead = async () => (await store.jobs.counters(id)).accepted === pages;
      },
    },
  );
  expect(counters).toMatchObject({ done: pages, pending: 0, leased: 0 });
  return sizes;
}

test('batches grow where pages come fast, and are small again when one was slow', async () => {
  const sizes = await sizesOf({}, 4_000, (index) => (index === 3 ? 20 : 0.3));
  // The first one has what there was when it was planned. A host alone gets half of what may be out at once.
  const [, second, third, slow, ...others] = sizes;
  expect(second).toBeLessThanOrEqual(120);
  expect([third, slow]).toEqual([250, 250]);
  expect(Math.max(...others.slice(0, 8))).toBeLessThanOrEqual(120);
  expect(Math.max(...others.slice(8))).toBe(250);
});

test('with a size of its own a job has no larger batches, and neither has one with a gap between requests', async () => {
  expect(Math.max(...(await sizesOf({ batchSize: 50 }, 600, () => 0.3)))).toBe(50);
  const paced = { politeness: { rate: 1_000, robots: false, jitter: 0, adaptive: false } };
  expect(Math.max(...(await sizesOf(paced, 600, () => 0.3)))).toBeLessThanOrEqual(120);
});
