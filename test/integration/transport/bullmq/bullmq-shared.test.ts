import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { Queue } from 'bullmq';
import { expect, test, vi } from 'vitest';
import type { Batch, Report } from '../../../../src/core/batch/batch.ts';
import { requestDrain } from '../../../../src/transport/bullmq/drain.ts';
import { openFleet } from '../../../../src/transport/bullmq/fleet.ts';
import { openRedis, parseFleet } from '../../../../src/transport/bullmq/redis.ts';
import { fleetKeys, QUEUES } from '../../../../src/transport/bullmq/wire.ts';
import { openMessageSeal } from '../../../../src/transport/message-seal.ts';
import { batchOf, deliver, expectWhole, within } from '../../../contract/dispatcher-contract.ts';
import { memoryLogger, openDispatcher, startWorker, withFleet } from '../../../support/fleet/bullmq-fleet.ts';
import { FLEET_KEY } from '../../../support/seine-process.ts';
import { startTcpProxy } from '../../../support/servers/tcp-proxy.ts';

const SOON = { timeout: 60_000, interval: 20 };

test.concurrent('two coordinators with the same numbers get each its own reports, and a drain of one leaves the other alone', () =>
  withFleet({}, async ({ site, addWorker, addDispatcher }) => {
    await addWorker();
    const [one, other] = [await addDispatcher(), await addDispatcher()];
    const batches = ['one', 'other'].map((name) =>
      [1, 2, 3, 4].map((id) => batchOf(site, { id, paths: [`/${name}/${id}`, `/${name}/${id}/x`] })),
    );
    const answers = await Promise.all(
      [one, other].map((dispatcher, index) =>
        Promise.all(batches[index]!.map((batch) => deliver(dispatcher, batch))),
      ),
    );
    for (const [index, name] of ['one', 'other'].entries())
      for (const [number, { reports }] of answers[index]!.entries()) {
        expectWhole(batches[index]![number]!, reports);
        const links = reports.flatMap(({ outcomes }) =>
          outcomes.flatMap((outcome) => (outcome.kind === 'fetched' ? outcome.links : [])),
        );
        expect(links.map(({ url }) => url)).toContain(`${site.origin}/found/${name}/${number + 1}`);
      }
    site.paths.length = 0;
    const slow = batchOf(site, { id: 9, paths: ['/slow', '/slow'], budgetMs: 120_000 });
    const [returned, kept] = [deliver(one, slow), deliver(other, slow)];
    await vi.waitFor(() => expect(site.paths).toHaveLength(4), SOON);
    await one.drain();
    expectWhole(slow, (await returned).reports);
    expect(await within(500, kept)).toBe('too late');
    await other.drain();
    expectWhole(slow, (await kept).reports);
  }));

test.concurrent('a busy worker looks whether anything waits before it asks BullMQ for it', () =>
  withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
    await addWorker({ threads: 1 });
    const dispatcher = await addDispatcher();
    const slow = deliver(dispatcher, batchOf(site, { paths: ['/slow'], budgetMs: 120_000 }));
    await vi.waitFor(() => expect(site.paths).toContain('/slow'), SOON);
    const fleet = await openRedis(parseFleet(redis.url), { logger: memoryLogger() });
    const callsOf = async (command: string) => {
      const stats = await fleet.client.info('commandstats');
      return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    };
    const asked = await callsOf('rpoplpush');
    const looked = await callsOf('llen');
    await expect.poll(() => callsOf('llen'), SOON).toBeGreaterThan(looked + 2);
    expect(await callsOf('rpoplpush')).toBe(asked);
    await dispatcher.drain();
    await slow;
    fleet.close();
  }));

test.concurrent('prefixes keep two fleets in one Redis apart', () =>
  withFleet({}, async ({ redis, addWorker, addDispatcher }) => {
    await addWorker();
    const apart = await openDispatcher(`${redis.url}?prefix=apart`);
    const dispatcher = await addDispatcher();
    expect([dispatcher.workers, apart.workers]).toEqual([1, 0]);
    await apart.close();
  }));

test.concurrent('Bull Board opens the queues, sees what is done, and no secret is left in Redis', () =>
  withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
    const dispatcher = await addDispatcher();
    const fleet = await openRedis(parseFleet(redis.url), { logger: memoryLogger() });
    const queue = new Queue(QUEUES.http, { connection: fleet.client });
    const board = new BullMQAdapter(queue);
    const batch = {
      ...batchOf(site, { id: 7, paths: ['/1', '/2'] }),
      proxies: [{ id: 'p', url: 'http://user:hidden-word@proxy.example' }],
    };
    const answer = deliver(dispatcher, batch);
    await vi.waitFor(async () => expect(await board.getJobCounts()).toMatchObject({ waiting: 1 }), SOON);
    await addWorker();
    expectWhole(batch, (await answer).reports);
    await vi.waitFor(async () => expect(await board.getJobCounts()).toMatchObject({ completed: 1 }), SOON);
    const [job] = await board.getJobs(['completed'], 0, 10);
    expect(job!.toJSON()).toMatchObject({
      name: 'test',
      data: { batch: 7, tasks: 2, hosts: [site.host] },
      returnvalue: { outcomes: 2 },
    });
    // What is kept for people names hosts and numbers only: batches are under keys of their own.
    expect(await fleet.client.keys('*:batch:*')).toEqual([]);
    for (const key of await fleet.client.keys('*')) {
      const dump = (await fleet.client.dumpBuffer(key)) ?? Buffer.alloc(0);
      expect(dump.includes('hidden-word'), key).toBe(false);
    }
    await queue.close();
    fleet.close();
  }));

test.concurrent('finished jobs do not gather in Redis', () =>
  withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
    await addWorker();
    const dispatcher = await addDispatcher();
    const send = (id: number) => deliver(dispatcher, batchOf(site, { id, paths: ['/1'] }));
    for (let round = 0; round < 13; round++)
      await Promise.all(Array.from({ length: 10 }, (_, n) => send(round * 10 + n + 1)));
    const fleet = await openRedis(parseFleet(redis.url), { logger: memoryLogger() });
    const queue = new Queue(QUEUES.http, { connection: fleet.client });
    await vi.waitFor(async () => expect(await queue.getActiveCount()).toBe(0), SOON);
    expect(await queue.getCompletedCount()).toBe(100);
    expect(await fleet.client.xlen((await fleet.client.keys('*:reply:*'))[0]!)).toBe(0);
    await queue.close();
    fleet.close();
  }));

test.concurrent('a network that is cut or falls silent costs time and nothing else', () =>
  withFleet({}, async ({ redis, site, blobs }) => {
    const proxy = await startTcpProxy(redis);
    const url = `redis://127.0.0.1:${proxy.port}`;
    const worker = await startWorker(url, blobs);
    const dispatcher = await openDispatcher(url);
    let id = 0;
    for (const fault of [() => proxy.cut(1_500), () => proxy.freeze(2_500)]) {
      const batches = Array.from({ length: 6 }, () =>
        // Longer than the fault, so that there is something to report after it; `/slow` never ends by itself.
        batchOf(site, { id: ++id, paths: ['/1', '/slow'], budgetMs: 5_000 }),
      );
      await vi.waitFor(() => expect(dispatcher.slots).toBeGreaterThan(0), SOON);
      const answers = batches.map((batch) => deliver(dispatcher, batch));
      await vi.waitFor(() => expect(site.paths.length).toBeGreaterThan(2), SOON);
      await fault();
      for (const [index, { delivery, reports }] of (await Promise.all(answers)).entries())
        if (delivery.kind === 'report') expectWhole(batches[index]!, reports);
        // The coordinator sends its tasks again: no page is suspected.
        else expect(delivery).toMatchObject({ kind: 'lost', blameless: true });
      site.paths.length = 0;
    }
    await dispatcher.close();
    await worker.end();
    await proxy.close();
  }));

test.concurrent('a worker that took a batch while its connection broke runs it all the same', () =>
  withFleet({}, async ({ redis, site, blobs, addDispatcher }) => {
    const proxy = await startTcpProxy(redis);
    const worker = await startWorker(`redis://127.0.0.1:${proxy.port}`, blobs);
    const dispatcher = await addDispatcher();
    const broken = proxy.loseReplyTo("redis.call('RENAME'");
    const batch = batchOf(site, { id: 1, paths: ['/1', '/2'] });
    const answer = deliver(dispatcher, batch);
    await broken;
    expectWhole(batch, (await answer).reports);
    expect(site.paths.toSorted()).toEqual(['/1', '/2']);
    await worker.end();
    await proxy.close();
  }));

test('the reports of a coordinator that is gone come to the one that takes its batches over', () =>
  withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
    await addWorker();
    const proxy = await startTcpProxy(redis);
    const gone = await openDispatcher(`redis://127.0.0.1:${proxy.port}`);
    const [done, slow] = [
      batchOf(site, { id: 1, paths: ['/1', '/2'] }),
      batchOf(site, { id: 2, paths: ['/3', '/slow'], budgetMs: 8_000 }),
    ];
    const unseen = batchOf(site, { id: 3, paths: ['/4'] });
    const never = [deliver(gone, done), deliver(gone, slow)];
    await vi.waitFor(() => expect(site.paths).toContain('/slow'), SOON);
    // Nothing reaches it any more; what its workers say waits in Redis.
    void proxy.cut(60_000);
    const heir = await addDispatcher();
    const take = async (batch: Batch, replyTo = gone.replyTo!) => {
      const reports: Report[] = [];
      const delivery = await heir.adopt!(batch, replyTo, (part) => void reports.push(part));
      if (delivery.kind === 'report') reports.push(delivery.report);
      return { delivery, reports };
    };
    const [, late, lost, strange] = await Promise.all([
      // Reported before, if the cut came late: then there is nothing left to hear of it.
      take(done),
      take(slow),
      take(unseen),
      take(unseen, 'lambda'),
    ]);
    expectWhole(slow, late.reports);
    const blameless = { delivery: { kind: 'lost', blameless: true } };
    expect(lost).toMatchObject(blameless);
    expect(strange).toMatchObject(blameless);
    expect(site.paths.filter((path) => path === '/3')).toHaveLength(1);
    await gone.close();
    await Promise.all(never);
    await proxy.close();
  }));

test.concurrent('a worker that is drained tells so, finishes its batch and takes no more; a forged request is refused', () =>
  withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
    const { worker, lines } = await addWorker({ name: 'leaving' });
    const dispatcher = await addDispatcher();
    let isAsked = false;
    void worker.drainRequested.then(() => {
      isAsked = true;
    });
    const forger = await openFleet({ url: redis.url, fleetKeys: [], logger: memoryLogger() });
    const { client, close } = await openRedis(parseFleet(redis.url), { logger: memoryLogger() });
    const keys = fleetKeys('bull');
    await requestDrain(client, keys, openMessageSeal([]), 'leaving');
    await vi.waitFor(() => expect(lines.join()).toContain('refused a request to drain'), SOON);
    expect([isAsked, await forger.drain('leaving')]).toEqual([false, null]);
    forger.close();

    const slow = batchOf(site, { id: 1, paths: ['/slow'], budgetMs: 120_000 });
    const answer = deliver(dispatcher, slow);
    await vi.waitFor(() => expect(site.paths).toHaveLength(1), SOON);
    const fleet = await openFleet({ url: redis.url, fleetKeys: [FLEET_KEY], logger: memoryLogger() });
    expect(await fleet.drain('leaving')).toMatchObject({ worker: 'leaving', isDraining: false });
    await worker.drainRequested;
    const finished = worker.finish();
    await vi.waitFor(async () => {
      const [heartbeat] = (await fleet.workers()).heartbeats;
      expect(heartbeat).toMatchObject({ isDraining: true, slots: 0, batches: 1, batchesDone: 0 });
    }, SOON);
    // Nothing is given to it any more, and what it has it keeps.
    await vi.waitFor(() => expect(dispatcher.slots).toBe(0), SOON);
    expect(await within(200, finished)).toBe('too late');
    // The coordinator wants it back: so it ends.
    await dispatcher.drain();
    expectWhole(slow, (await answer).reports);
    await finished;
    fleet.close();
    close();
  }));
