import { mkdir, writeFile } from 'node:fs/promises';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { type Batch, type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import { deferredReport } from '../../../../src/core/batch/report.ts';
import { writeHeartbeat } from '../../../../src/transport/bullmq/heartbeat.ts';
import { openRedis, parseFleet } from '../../../../src/transport/bullmq/redis.ts';
import {
  fleetKeys,
  QUEUES,
  replyFields,
  sealBatch,
  sealPiece,
  sealReply,
} from '../../../../src/transport/bullmq/wire.ts';
import { openMessageSeal } from '../../../../src/transport/message-seal.ts';
import { packPiece } from '../../../../src/transport/packed-report.ts';
import { batchOf, deliver, expectWhole } from '../../../contract/dispatcher-contract.ts';
import { memoryLogger, openDispatcher, startWorker, withFleet } from '../../../support/fleet/bullmq-fleet.ts';
import { FLEET_KEY } from '../../../support/seine-process.ts';

/** Somebody who can read and write everything in Redis, but does not have the fleet key. */

const OTHER_KEY = 'x'.repeat(43);
const KEYS = fleetKeys('bull');
const UNSIGNED = openMessageSeal([]);
const OTHERS = openMessageSeal([OTHER_KEY]);
const OWN = openMessageSeal([FLEET_KEY]);

async function withAttacker(url: string, work: (redis: Redis) => Promise<void>): Promise<void> {
  const redis = await openRedis(parseFleet(url), { logger: memoryLogger() });
  try {
    await work(redis.client);
  } finally {
    redis.close();
  }
}

/** Puts a batch into the queue as a coordinator does, and waits until its job has ended. */
async function send(redis: Redis, sentId: string, body: Buffer): Promise<string> {
  const queue = new Queue(QUEUES.http, { connection: redis, prefix: 'bull' });
  await redis.set(KEYS.batch(sentId), body);
  await queue.add('forged', {}, { jobId: sentId });
  let reason: string | undefined;
  await expect
    .poll(async () => {
      const job = await queue.getJob(sentId);
      reason = job?.failedReason;
      return job?.finishedOn ?? null;
    })
    .not.toBeNull();
  await queue.close();
  return reason ?? '';
}

describe('a worker', () => {
  test('refuses batches that are forged, of another fleet, changed, old or sent twice, and asks no site', async () => {
    await withFleet({}, async ({ redis, site, addWorker }) => {
      const worker = await addWorker();
      await withAttacker(redis.url, async (client) => {
        const batch = batchOf(site, { paths: ['/1'] });
        const sealed = (sentId: string, seal = OWN, now = Date.now()) =>
          sealBatch(batch, { seal, keys: KEYS, sentId, now });
        const idOf = (number: number) => `abcdef012345-${number}`;
        expect(await send(client, idOf(1), sealed(idOf(1), UNSIGNED))).toContain('not signed');
        expect(await send(client, idOf(2), sealed(idOf(2), OTHERS))).toContain('another fleet key');
        expect(await send(client, idOf(3), sealed(idOf(1)))).toContain('belongs elsewhere');
        const changed = sealed(idOf(4));
        changed[changed.length - 1]! ^= 1;
        expect(await send(client, idOf(4), changed)).toContain('its signature is wrong');
        expect(await send(client, idOf(5), sealed(idOf(5), OWN, Date.now() - 60_000))).toContain('60 s ago');
        expect(await send(client, idOf(6), Buffer.from('what is this'))).toContain('not signed');
        expect(site.paths).toEqual([]);
        expect(worker.lines).toEqual([expect.stringContaining('refused a batch')]);

        const odd = { ...batch, tasks: [{ ...batch.tasks[0]!, url: 'file:///etc/passwd' }] };
        const signed = sealBatch(odd, { seal: OWN, keys: KEYS, sentId: idOf(8), now: Date.now() });
        expect(await send(client, idOf(8), signed)).toContain('not an http or https URL');

        const good = sealed(idOf(7));
        expect(await send(client, idOf(7), good)).toBe('');
        expect(site.paths).toEqual(['/1']);
        const queue = new Queue(QUEUES.http, { connection: client, prefix: 'bull' });
        await queue.remove(idOf(7));
        await queue.close();
        expect(await send(client, idOf(7), good)).toContain('it was here before');
        expect(site.paths).toEqual(['/1']);
      });
    });
  });

  test('that refuses private addresses refuses a proxy there, and runs no code that is not what its name says', async () => {
    await withFleet({}, async ({ site, blobs, addWorker, addDispatcher }) => {
      await addWorker({ allowPrivate: 'never' });
      const dispatcher = await addDispatcher();
      const proxied = batchOf(site, { id: 1, paths: ['/1'] });
      proxied.proxies = [{ id: 'p', url: site.origin }];
      proxied.tasks[0] = {
        ...proxied.tasks[0]!,
        url: 'http://public.example/',
        fetchMethod: { level: 0, fetcher: 'http', headers: 'full', identity: null, pool: 'p' },
        through: { among: [0] },
      };
      const { reports } = await deliver(dispatcher, proxied);
      expect(reports.flatMap(({ outcomes }) => outcomes)).toMatchObject([
        { kind: 'failed', code: 'proxy', detail: expect.stringContaining('private') },
      ]);
      const bundle = `bundles/${'0'.repeat(64)}.mjs`;
      await mkdir(`${blobs}/bundles`, { recursive: true });
      await writeFile(`${blobs}/${bundle}`, `await fetch('${site.origin}/ran'); export default {};`);
      const coded = await deliver(dispatcher, batchOf(site, { id: 2, paths: ['/1'], bundle }));
      expect(coded.reports.flatMap(({ outcomes }) => outcomes)).toMatchObject([
        { kind: 'failed', detail: expect.stringContaining('the code of the job was changed') },
      ]);
      expect(site.paths).toEqual([]);
    });
  });

  test('puts nothing into Redis that can be read there', async () => {
    await withFleet({}, async ({ redis, site, blobs, addDispatcher }) => {
      const dispatcher = await addDispatcher();
      const batch: Batch = { ...batchOf(site, { paths: ['/1'] }), apiKey: 'very-secret-key' };
      const delivery = deliver(dispatcher, batch);
      await withAttacker(redis.url, async (client) => {
        const [key] = await waitForKey(client, 'bull:seine:batch:*');
        const body = (await client.getBuffer(key!))!;
        const without = OWN.open(['batch', 'bull', QUEUES.http, key!.split(':').at(-1)!], body);
        expect(without.length).toBeGreaterThan(0);
        expect(() => UNSIGNED.open(['batch'], body)).toThrow('there is none here');
        expect(body.includes('very-secret-key')).toBe(false);
      });
      const worker = await startWorker(redis.url, blobs);
      expectWhole(batch, (await delivery).reports);
      await worker.end();
    });
  });
});

async function waitForKey(client: Redis, pattern: string): Promise<string[]> {
  let keys: string[] = [];
  const look = async () => {
    keys = await client.keys(pattern);
    return keys.length;
  };
  await expect.poll(look).toBeGreaterThan(0);
  return keys;
}

describe('a coordinator', () => {
  test('takes no report that a worker of its fleet did not write for this very batch', async () => {
    await withFleet({}, async ({ redis, site, addWorker, addDispatcher }) => {
      await addWorker({ name: 'honest' });
      const dispatcher = await addDispatcher();
      const batch = batchOf(site, { id: 7, paths: ['/slow', '/1'], budgetMs: 10_000 });
      const delivery = deliver(dispatcher, batch);
      await withAttacker(redis.url, async (client) => {
        // The stream is emptied as it is read, so the id is taken from the heartbeat.
        const sentId = await sentIdOf(client, 'honest');
        const stream = KEYS.reply(sentId.split('-')[0]!);
        const report: Report = {
          ...deferredReport(batch, { worker: 'forger', now: 0 }),
          outcomes: batch.tasks.map(({ id }) => ({ kind: 'failed', taskId: id }) as never),
        };
        const say = async (kind: 'report' | 'lost' | 'taken' | 'gone', body: Buffer) =>
          void (await client.xadd(stream, '*', ...replyFields(kind, sentId, body)));
        const about = (seal = OWN, of: Batch = batch) => ({ seal, keys: KEYS, batch: of });
        const forged = (...[seal, of]: Parameters<typeof about>) =>
          sealPiece(packPiece(report), { part: 0, sentId }, about(seal, of));
        const lost = { kind: 'lost', sentId, reason: 'forged' } as const;
        await say('report', forged(UNSIGNED));
        await say('report', forged(OTHERS));
        await say('report', sealReply(lost, about()));
        await say('report', forged(OWN, { ...batch, id: 8 }));
        await say('report', forged(OWN, { ...batch, job: { ...batch.job, epoch: 'e2' } }));
        await say('lost', sealReply(lost, about(UNSIGNED)));
        await say('taken', sealReply({ kind: 'taken', sentId, worker: 'forger' }, about(OTHERS)));
        await say('gone', sealReply({ kind: 'gone', sentId }, about(UNSIGNED)));
        await say('report', Buffer.alloc(0));
        await client.xadd(stream, '*', 'kind', 'odd', 'sentId', sentId);
        await client.xadd(stream, '*', 'a', 'b');
      });
      const { reports, delivery: last } = await delivery;
      expect(last.kind).toBe('report');
      expectWhole(batch, reports);
      expect(reports.every(({ worker }) => worker.startsWith('honest'))).toBe(true);
      expect(dispatcher.lines).toContainEqual(expect.stringContaining('refused a message about a batch'));
    });
  });

  test('does not count workers with another key, and says so', async () => {
    await withFleet({}, async ({ addWorker, addDispatcher }) => {
      await addWorker({ fleetKeys: [OTHER_KEY] });
      const dispatcher = await addDispatcher();
      expect(dispatcher.slots).toBe(0);
      expect(dispatcher.lines).toEqual([expect.stringContaining('have another fleet key, or none')]);
      await addWorker({ fleetKeys: [OTHER_KEY, FLEET_KEY] });
      await addWorker({ fleetKeys: [FLEET_KEY, OTHER_KEY] });
      await expect.poll(() => dispatcher.workers).toBe(1);
      const both = await addDispatcher([FLEET_KEY, OTHER_KEY]);
      expect(both.workers).toBe(3);
    });
  });
});

/** As the heartbeat of the worker names it. */
async function sentIdOf(client: Redis, worker: string): Promise<string> {
  let sentIds: string[] = [];
  await expect
    .poll(
      async () => {
        const body = await client.getBuffer(KEYS.worker(worker));
        const text = body && OWN.open(['heartbeat', 'bull', worker], body).toString();
        sentIds = text ? JSON.parse(text).sentIds : [];
        return sentIds.length;
      },
      { timeout: 8_000 },
    )
    .toBe(1);
  return sentIds[0]!;
}

describe('a signed report', () => {
  test('that is not valid loses its batch, and the next one is taken', async () => {
    await withFleet({}, async ({ redis, site, addDispatcher }) => {
      await withAttacker(redis.url, async (client) => {
        // A worker that has the key, and reports nonsense.
        await writeHeartbeat(client, KEYS, OWN, {
          ...{ version: WIRE_VERSION, worker: 'odd', kind: 'http', beat: 1, at: 0, cpu: 0, memoryBytes: 0 },
          ...{ batches: 0, threads: 1, slots: 8, hosts: [], sentIds: [] },
          ...{ software: '', isDraining: false, batchesDone: 0, tasksDone: 0 },
        });
        const dispatcher = await addDispatcher();
        const answer = async (batch: Batch, report: unknown) => {
          const delivery = deliver(dispatcher, batch);
          const [key] = await waitForKey(client, 'bull:seine:batch:*');
          const sentId = key!.split(':').at(-1)!;
          await client.del(key!);
          const piece = packPiece(report as Report);
          const body = sealPiece(piece, { part: 0, sentId }, { seal: OWN, keys: KEYS, batch });
          await client.xadd(KEYS.reply(sentId.split('-')[0]!), '*', ...replyFields('report', sentId, body));
          return delivery;
        };
        const batch = batchOf(site, { paths: ['/1'] });
        const good = deferredReport(batch, { worker: 'odd', now: 0 });
        const links = [{ url: 'file:///etc/passwd', host: '', priority: 0, route: null }];
        for (const bad of [
          null,
          {},
          { ...good, outcomes: null },
          { ...good, found: [{ taskId: 1_000, links }] },
        ])
          expect((await answer(batch, bad)).delivery).toMatchObject({
            kind: 'lost',
            reason: expect.stringContaining('sent a report that is not valid: '),
          });
        expect((await answer(batch, good)).delivery.kind).toBe('report');
      });
    });
  });
});

describe('without a key', () => {
  test('a fleet works on this machine, with a warning on both sides', async () => {
    await withFleet({}, async ({ site, addWorker, addDispatcher }) => {
      const worker = await addWorker({ fleetKeys: [] });
      const dispatcher = await addDispatcher([]);
      for (const { lines } of [worker, dispatcher])
        expect(lines).toEqual([expect.stringContaining('neither signed nor encrypted; make one with')]);
      const batch = batchOf(site, { paths: ['/1'] });
      expectWhole(batch, (await deliver(dispatcher, batch)).reports);
    });
  });

  test.each(['redis://192.0.2.1:6379', 'rediss://redis.example:6380', 'redis://[2001:db8::1]:6379'])(
    'a fleet at %s is refused, with the command that makes one',
    async (url) => {
      await expect(openDispatcher(url, [])).rejects.toMatchObject({
        message: expect.stringContaining('no fleet key for Redis at'),
        hint: expect.stringContaining('`seine fleet-key create fleet.key`'),
      });
    },
  );
});
