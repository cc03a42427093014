import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OpenPermits } from '../../../src/coordinator/hosts/open-permits.ts';
import type { Batch } from '../../../src/core/batch/batch.ts';
import { LOSSES_MAX } from '../../../src/core/suspicion/suspicion.ts';
import type { Delivery, Dispatcher } from '../../../src/ports/dispatcher.ts';
import { openThreadDispatcher } from '../../../src/transport/thread/thread-dispatcher.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { realClock } from '../../support/real-clock.ts';

const PAGES = 240;
const server = createServer((_, response) => response.end('<p>page</p>'));
let origin = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

type Lost = Omit<Extract<Delivery, { kind: 'lost' }>, 'kind' | 'batchId'>;

/** All pages, by a worker that dies with the batches for which `lostBy` says so; the sizes of all batches that were sent. */
async function crawlLosing(lostBy: (batch: Batch) => Lost | null) {
  const batches: { size: number; suspects: boolean }[] = [];
  const through = (inline: Dispatcher): Dispatcher => ({
    workers: 2,
    slots: 16,
    suspectSlots: 1,
    async dispatch(batch, onPart) {
      batches.push({ size: batch.tasks.length, suspects: batch.suspects ?? false });
      const lost = lostBy(batch);
      return lost ? { kind: 'lost', batchId: batch.id, ...lost } : inline.dispatch(batch, onPart);
    },
    drain: () => inline.drain(),
    close: () => inline.close(),
  });
  const urls = Array.from({ length: PAGES }, (_, n) => `${origin}/${n}`);
  const { counters, tasks } = await crawl(
    { sources: urls, allowPrivate: true, batchSize: 60, politeness: { rate: 'max', robots: false } },
    { through },
  );
  return { counters, batches, dead: tasks.filter(({ state }) => state === 'dead') };
}

describe('a crawl whose workers die', () => {
  test('two that were ended from outside cost two more batches, and no batches of one', async () => {
    const whole = await crawlLosing(() => null);
    const lost = new Set<number>();
    let deaths = 0;
    const { counters, batches } = await crawlLosing(({ tasks }) => {
      if (deaths === 2 || tasks.length < 5 || tasks.some(({ id }) => lost.has(id))) return null;
      deaths++;
      for (const { id } of tasks) lost.add(id);
      return { reason: 'the worker was ended' };
    });
    expect(deaths).toBe(2);
    expect(counters).toMatchObject({ done: PAGES, dead: 0 });
    expect(batches.length).toBeLessThan(whole.batches.length + 20);
    expect(batches.filter(({ suspects }) => suspects)).toEqual([]);
  });

  test('the page that kills them is found in groups, and takes no other with it', async () => {
    const poison = `${origin}/137`;
    const { counters, batches, dead } = await crawlLosing((batch) =>
      batch.tasks.some(({ url }) => url === poison) ? { reason: 'the worker died' } : null,
    );
    expect(counters).toMatchObject({ done: PAGES - 1, dead: 1 });
    expect(dead).toMatchObject([{ url: poison, failureCode: 'worker-lost' }]);
    const groups = batches.filter(({ suspects }) => suspects).map(({ size }) => size);
    expect(Math.max(...groups)).toBeLessThanOrEqual(16);
    // One by one there would be as many as the batch had tasks.
    expect(groups.length).toBeLessThan(LOSSES_MAX * 5);
  });
});

test('a report that comes after its job was stopped is written down, and frees no host that another job has', async () => {
  const permits = new OpenPermits({ isShared: true });
  const { host } = new URL(origin);
  const now = realClock.now();
  const ofOther = { host, startAt: now, endAt: now + 60_000, gapMs: 0, parallel: 1 };
  let skippedMs = 0;
  const late = Promise.withResolvers<void>();
  const through = (inline: Dispatcher): Dispatcher => ({
    ...inline,
    async dispatch(batch, onPart) {
      const delivery = await inline.dispatch(batch, onPart);
      permits.grant(ofOther, { failuresInRow: 0, rests: 0, pace: null });
      stop();
      await late.promise;
      return delivery;
    },
    async drain() {
      // Longer than workers are waited for, once that has begun.
      setImmediate(() => {
        skippedMs = 60_000;
      });
    },
  });
  let stop = () => {};
  let left: unknown = null;
  await crawl(
    { sources: [`${origin}/1`], allowPrivate: true, politeness: { rate: 'max', robots: false } },
    {
      ...{ through, permits, clock: { now: () => realClock.now() + skippedMs } },
      begun({ store, job }) {
        stop = () => void store.jobs.update(job.id, { requestedState: 'stop' });
      },
      async inspect({ store, job }) {
        left = permits.load(host);
        late.resolve();
        await expect.poll(async () => (await store.jobs.counters(job.id)).done).toBe(1);
      },
    },
  );
  expect(left).toMatchObject({ permits: 1 });
  expect(permits.load(host)).toMatchObject({ permits: 1 });
});

test('a crawl whose workers cannot start ends with the reason', async () => {
  const entry = new URL("data:text/javascript,throw new Error('cannot begin')");
  let reason: string | null = null;
  const { state, counters } = await crawl(
    { sources: [`${origin}/1`], allowPrivate: true, politeness: { rate: 'max', robots: false } },
    {
      through: () => openThreadDispatcher({ threads: 1, entry, env: {}, data: { blobs: '', sync: false } }),
      async inspect({ store, job }) {
        ({ reason } = await store.jobs.get(job.id));
      },
    },
  );
  expect({ state, reason }).toEqual({
    state: 'tripped',
    reason: 'cannot start worker threads: cannot begin',
  });
  expect(counters).toMatchObject({ done: 0, pending: 1 });
});
