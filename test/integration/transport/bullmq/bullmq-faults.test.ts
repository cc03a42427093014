import { describe, expect, test, vi } from 'vitest';
import type { WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import type { Delivery, Dispatcher } from '../../../../src/ports/dispatcher.ts';
import { openRedis, parseFleet } from '../../../../src/transport/bullmq/redis.ts';
import { batchOf, deliver, expectWhole, type Site, within } from '../../../contract/dispatcher-contract.ts';
import { memoryLogger, openDispatcher, startWorker, withFleet } from '../../../support/fleet/bullmq-fleet.ts';
import { startWorkerProcess } from '../../../support/fleet/bullmq-worker-process.ts';

/** Slower machines than this one take three times as long. */
const SOON = { timeout: 60_000, interval: 20 };

/** Work goes on: a batch that is sent now comes back whole. */
async function expectWork(dispatcher: Dispatcher, site: Site): Promise<void> {
  await vi.waitFor(() => expect(dispatcher.slots).toBeGreaterThan(0), SOON);
  const batch = batchOf(site, { id: 999, paths: ['/1', '/2'] });
  const answer = await within(20_000, deliver(dispatcher, batch));
  if (answer === 'too late') throw new Error('the batch did not come back');
  expectWhole(batch, answer.reports);
}

/** Nothing stays open, and no task is suspected: each batch is a report, or lost without blame. */
function expectSettled(deliveries: Delivery[]): void {
  for (const delivery of deliveries)
    if (delivery.kind === 'lost')
      expect(delivery).toMatchObject({ blameless: true, reason: expect.stringMatching(/Redis/) });
    else expect(delivery.report.final).toBe(true);
}

/** Batches whose second page does not come within their time. */
const slowBatches = (site: Site, count: number, budgetMs: number) =>
  Array.from({ length: count }, (_, index) =>
    batchOf(site, { id: index + 1, paths: ['/1', '/slow'], budgetMs }),
  );

const requests = (site: Site, count: number) =>
  vi.waitFor(() => expect(site.paths.length).toBeGreaterThanOrEqual(count), SOON);

const connect = (url: string) => openRedis(parseFleet(url), { logger: memoryLogger() });

describe.concurrent('Redis', () => {
  test('kill -9 and a restart under work: every batch is settled, and work goes on', () =>
    withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
      const worker = await addWorker();
      const dispatcher = await addDispatcher();
      const answers = slowBatches(site, 12, 3_000).map((batch) => dispatcher.dispatch(batch, () => {}));
      await requests(site, 8);
      await redis.kill9();
      for (const { lines } of [dispatcher, worker])
        await vi.waitFor(
          () => expect(lines.join()).toMatch(/lost the connection to Redis at .*, reconnecting/),
          SOON,
        );
      expect(dispatcher.slots).toBe(0);
      await redis.restart();
      expectSettled(await Promise.all(answers));
      await expectWork(dispatcher, site);
      for (const { lines } of [dispatcher, worker]) expect(lines.join()).toContain('is available again');
    }));

  test('FLUSHALL with batches in the queue and at work: every batch is settled, and work goes on', () =>
    withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
      const { slots } = (await addWorker()).threads;
      const dispatcher = await addDispatcher();
      await expectWork(dispatcher, site);
      const settled: Delivery[] = [];
      const answers = slowBatches(site, slots + 4, 120_000).map(async (batch) => {
        settled.push(await dispatcher.dispatch(batch, () => {}));
      });
      await vi.waitFor(
        async () => expect(await dispatcher.heartbeats!()).toMatchObject([{ batches: slots }]),
        SOON,
      );
      const { client, close } = await connect(redis.url);
      await client.flushall();
      close();
      // What waited is gone, and that is noticed long before its lease ends.
      await vi.waitFor(() => expect(settled).toHaveLength(4), SOON);
      expect(settled.map(({ kind }) => kind)).toEqual(['lost', 'lost', 'lost', 'lost']);
      // What was at work comes back: workers need nothing of Redis for that.
      await dispatcher.drain();
      await Promise.all(answers);
      await expectWork(await addDispatcher(), site);
      expectSettled(settled);
      expect(settled.filter(({ kind }) => kind === 'report')).toHaveLength(slots);
    }));

  test('one that throws keys away costs batches and nothing else', () =>
    withFleet(
      { maxmemory: '3mb', 'maxmemory-policy': 'allkeys-random' },
      async ({ redis, site, addWorker, addDispatcher }) => {
        await addWorker();
        const dispatcher = await addDispatcher();
        const { client, close } = await connect(redis.url);
        const answers = slowBatches(site, 24, 300).map((batch) => dispatcher.dispatch(batch, () => {}));
        for (let n = 0; n < 60; n++) await client.set(`filler:${n}`, Buffer.alloc(100_000, n));
        expect(await client.info('stats')).toMatch(/^evicted_keys:[1-9]/m);
        expectSettled(await Promise.all(answers));
        await client.flushall();
        close();
        await expectWork(dispatcher, site);
        expect(dispatcher.lines.join()).toContain('evicts keys');
      },
    ));

  test('one that is full makes the run wait, and says so', () =>
    withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
      await addWorker();
      const dispatcher = await addDispatcher();
      const { client, close } = await connect(redis.url);
      await client.config('SET', 'maxmemory', '1');
      const batch = batchOf(site, { id: 1, paths: ['/1'] });
      const { reports } = await deliver(dispatcher, batch);
      expectWhole(batch, reports);
      expect(reports.flatMap(({ outcomes }) => outcomes)).toMatchObject([{ kind: 'deferred' }]);
      expect(dispatcher.slots).toBe(0);
      expect(dispatcher.lines.join()).toContain('is out of memory');
      await client.config('SET', 'maxmemory', '0');
      close();
      await expectWork(dispatcher, site);
    }));

  test.each([
    ['nobody listens', 'redis://127.0.0.1:1', /cannot reach Redis at .*: ECONNREFUSED/],
    ['the prefix is odd', 'redis://127.0.0.1:1?prefix=a:b', /invalid prefix/],
    ['the database is no number', 'redis://127.0.0.1:1/shop', /must be a number, got 'shop'/],
  ])('where %s there is one sentence', async (_, url, sentence) => {
    const failed = { name: 'SeineError', message: expect.stringMatching(sentence) };
    await expect(openDispatcher(url)).rejects.toMatchObject(failed);
  });

  test('a wrong password and none are told apart', () =>
    withFleet({ requirepass: 'right' }, async ({ redis, addDispatcher }) => {
      const place = `127.0.0.1:${redis.port}`;
      await expect(openDispatcher(`redis://:wrong@${place}`)).rejects.toMatchObject({
        message: `Redis at ${place} rejected the user name or password`,
      });
      await expect(openDispatcher(`redis://${place}`)).rejects.toMatchObject({
        message: `Redis at ${place} requires a password`,
      });
      await addDispatcher();
    }));
});

describe.concurrent('workers', () => {
  test('one that is killed loses its batches within seconds, and the others go on', () =>
    withFleet({}, async ({ redis, site, blobs, addWorker, addDispatcher }) => {
      const doomed = await startWorkerProcess(redis.url, blobs, 'doomed');
      const dispatcher = await addDispatcher();
      const answers = slowBatches(site, 3, 60_000).map((batch) => dispatcher.dispatch(batch, () => {}));
      await requests(site, 6);
      await addWorker();
      await doomed.kill9();
      const reason = 'the worker doomed stopped sending heartbeats';
      // They are under suspicion: what they did may have killed it.
      expect(await Promise.all(answers)).toEqual(
        [1, 2, 3].map((batchId) => ({ kind: 'lost', batchId, reason })),
      );
      await expectWork(dispatcher, site);
      await vi.waitFor(async () => expect(await dispatcher.heartbeats!()).toHaveLength(1), SOON);
    }));

  test('when there are none, the run waits and is told how to start one', () =>
    withFleet({}, async ({ site, addWorker, addDispatcher }) => {
      const dispatcher = await addDispatcher();
      expect(dispatcher.slots).toBe(0);
      expect(dispatcher.lines).toEqual([expect.stringMatching(/^no live workers .*`seine worker/)]);
      expect(dispatcher.trouble!()).toMatch(
        /^no live workers at Redis \S+ since \d+ s: start some with `seine worker/,
      );
      await addWorker({ threads: 2 });
      await expectWork(dispatcher, site);
      expect(dispatcher.workers).toBe(2);
    }));

  test('one that drains returns what it has as deferred, and is not counted any more', () =>
    withFleet({}, async ({ redis, site, blobs, addDispatcher }) => {
      const leaving = await startWorker(redis.url, blobs);
      const dispatcher = await addDispatcher();
      const batches = slowBatches(site, 3, 60_000);
      const answers = batches.map((batch) => deliver(dispatcher, batch));
      await requests(site, 6);
      await leaving.end();
      for (const [index, { reports }] of (await Promise.all(answers)).entries()) {
        expectWhole(batches[index]!, reports);
        expect(reports.flatMap(({ outcomes }) => outcomes).some(({ kind }) => kind === 'deferred')).toBe(
          true,
        );
      }
      await vi.waitFor(() => expect(dispatcher.slots).toBe(0), SOON);
    }));

  test('one without a browser leaves such batches to one that has one', () =>
    withFleet({}, async ({ site, addWorker, addDispatcher }) => {
      await addWorker();
      const dispatcher = await addDispatcher();
      expect([dispatcher.serves!('http'), dispatcher.serves!('browser')]).toEqual([true, false]);
      const batch = { ...batchOf(site, { id: 1, paths: ['/1'] }), needs: 'browser' as const };
      const answer = deliver(dispatcher, batch);
      await vi.waitFor(() => expect(dispatcher.lines.join()).toMatch(/`seine worker --kind browser`/), SOON);
      expect(site.paths).toEqual([]);
      await addWorker({ kind: 'browser' });
      expectWhole(batch, (await answer).reports);
      await vi.waitFor(() => expect(dispatcher.serves!('browser')).toBe(true), SOON);
      await expectWork(dispatcher, site);
    }));

  test('another version of the wire format is refused with the reason', () =>
    withFleet({}, async ({ site, addWorker, addDispatcher }) => {
      await addWorker({ name: 'old' });
      const dispatcher = await addDispatcher();
      const batch = { ...batchOf(site, { paths: ['/1'] }), version: 99 as typeof WIRE_VERSION };
      expect(await dispatcher.dispatch(batch, () => {})).toMatchObject({
        kind: 'lost',
        blameless: true,
        reason: expect.stringMatching(
          /worker old uses version \d+ of the wire format, the coordinator version 99/,
        ),
      });
      expect(site.paths).toEqual([]);
    }));
});
