import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Job, Store } from '../../../../src/ports/store.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import { seededRandom } from '../../../support/crash/crash-harness.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  recordOf,
  settlementOf,
  tasksOf,
} from '../../../support/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';
import { startTcpProxy, type TcpProxy } from '../../../support/servers/tcp-proxy.ts';

let server: PostgresServer;
let proxy: TcpProxy;
let store: Store;
let job: Job;
const warnings: string[] = [];
const logger = { info() {}, warn: (message: string) => void warnings.push(message), error() {} };

const through = (url: string, port: number) => {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
};

beforeAll(async () => {
  // Only what PostgreSQL keeps by itself, with its own settings, counts.
  server = await startPostgres({ own: true, fsync: true });
});
afterAll(() => server.stop());
beforeEach(async () => {
  warnings.length = 0;
  proxy = await startTcpProxy(server);
  const url = through(await server.createDatabase(), proxy.port);
  store = await openPostgresStore(url, { connections: 4, silenceMs: 1_500, patienceMs: 60_000, logger });
  job = await createJob(store);
});
afterEach(async () => {
  await store.close();
  await proxy.close();
});

const urls = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => `https://h${(from + n) % 5}.example/${from + n}`);
const attempts = async () => (await collect(store.views.attempts(job.id))).length;

describe('an answer that is lost', () => {
  const faults = {
    'after the database has written': (text: string) => proxy.loseReplyTo(text),
    'before the database has heard of it': (text: string) => proxy.loseRequest(text),
  };
  for (const [when, lose] of Object.entries(faults)) {
    test(`${when}: a report is settled once, and the caller learns that it was`, async () => {
      await enqueue(store, job, tasksOf(...urls(0, 3)));
      const { id, tasks } = await leaseOne(store, job);
      const lost = lose('COMMIT');
      const changes = tasks.map((task) =>
        change.fetched(task.id, {
          links: tasksOf(`${task.url}/link`),
          records: [recordOf(task.url, { n: 1 })],
        }),
      );
      const settlement = settlementOf(job, id, changes, { archive: { key: 'warc/1', bytes: 5 } });
      expect(await store.frontier.settle(settlement)).toEqual({ applied: true, accepted: 3 });
      await lost;
      expect(await store.jobs.counters(job.id)).toMatchObject({
        done: 3,
        requests: 3,
        batches: 1,
        records: 3,
        pending: 3,
      });
      expect(await attempts()).toBe(3);
      // Whoever comes with the same report later is late.
      expect(await store.frontier.settle(settlement)).toEqual({ applied: false, accepted: 0 });
      await expectBalance(store, job);
    });

    test(`${when}: a part of a report is counted once`, async () => {
      await enqueue(store, job, tasksOf(...urls(0, 2)));
      const { id, tasks } = await leaseOne(store, job);
      const lost = lose('COMMIT');
      const part = settlementOf(job, id, [change.fetched(tasks[0]!.id)], { final: false });
      expect(await store.frontier.settle(part)).toMatchObject({ applied: true });
      await lost;
      expect(await store.jobs.counters(job.id)).toMatchObject({
        done: 1,
        leased: 1,
        requests: 1,
        batches: 0,
      });
      await expectBalance(store, job);
    });

    test(`${when}: tasks are enqueued once, with the place of their source`, async () => {
      const source = { source: 0, position: '7', done: false, rows: 4, rejected: 2 };
      const lost = lose('COMMIT');
      const options = { now: 1, perTemplateMax: null, source };
      expect(await store.frontier.enqueue(job.id, tasksOf(...urls(0, 4)), options)).toEqual({
        accepted: 4,
        duplicates: 0,
        dropped: 0,
      });
      await lost;
      expect(await store.jobs.counters(job.id)).toMatchObject({ accepted: 4, duplicates: 0, rejected: 2 });
      expect(await store.jobs.sources(job.id)).toEqual([source]);
      await expectBalance(store, job);
    });

    test(`${when}: no batch is lent that nobody knows of`, async () => {
      await enqueue(store, job, tasksOf(...urls(0, 4)));
      await store.jobs.join(job.id);
      const lost = lose('COMMIT');
      const { id, tasks } = await leaseOne(store, job);
      await lost;
      expect(tasks).toHaveLength(4);
      expect(await store.frontier.orphans(job.id)).toEqual([id]);
      await expectBalance(store, job);
    });
  }

  test('in a connection that only seems to be alive: what was sent there never comes true later', async () => {
    await enqueue(store, job, tasksOf(...urls(0, 3)));
    const { id, tasks } = await leaseOne(store, job);
    const holding = proxy.hold('COMMIT');
    const settled = store.frontier.settle(
      settlementOf(
        job,
        id,
        tasks.map((task) => change.fetched(task.id)),
      ),
    );
    const held = await holding;
    expect(await settled).toMatchObject({ applied: true });
    held.release();
    await expectBalance(store, job);
    expect(await store.jobs.counters(job.id)).toMatchObject({ done: 3, requests: 3, batches: 1 });
    expect(await attempts()).toBe(3);
  });
});

/** Adds, lends and settles with everything at once until all is done, while `disturb` is called so many times. */
async function work(total: number, times: number, disturb: (time: number) => Promise<void>): Promise<void> {
  let next = 0;
  let done = 0;
  const feed = async () => {
    for (; next < total; next += 50) {
      const result = await enqueue(store, job, tasksOf(...urls(next, 50)));
      expect(result).toMatchObject({ accepted: 50, duplicates: 0 });
    }
  };
  const fetch = async () => {
    while (done < total) {
      const { id, tasks } = await leaseOne(store, job, { count: 4 });
      if (tasks.length === 0) continue;
      const changes = tasks.map((task) => change.fetched(task.id, { records: [recordOf(task.url, {})] }));
      expect(await store.frontier.settle(settlementOf(job, id, changes))).toMatchObject({ applied: true });
      done += tasks.length;
    }
  };
  const disturbAll = async () => {
    for (let time = 1; time <= times; time++) {
      const wanted = (total * time) / (times + 2);
      await expect.poll(() => done, { timeout: 60_000, interval: 5 }).toBeGreaterThanOrEqual(wanted);
      await disturb(time);
    }
  };
  await Promise.all([feed(), fetch(), fetch(), fetch(), disturbAll()]);
  expect(await store.jobs.counters(job.id)).toMatchObject({
    accepted: total,
    done: total,
    requests: total,
    records: total,
  });
  expect(await attempts()).toBe(total);
  await expectBalance(store, job);
}

describe('under load', () => {
  test('kill -9 of the server: everything is done exactly once', async () => {
    await work(600, 3, async () => {
      await server.kill9();
      await server.restart();
    });
  });

  test('a database that is away for seconds is waited for, and both are said once', async () => {
    const [jobs] = await Promise.all([
      Promise.all(Array.from({ length: 8 }, () => store.jobs.list(1))),
      proxy.cut(3_000),
      store.jobs.list(1),
    ]);
    expect(jobs).toHaveLength(8);
    await store.jobs.list(1);
    expect(warnings.map((warning) => warning.replace(/[\d.]+ s$|: .*/, ''))).toEqual([
      'the database does not answer, retrying',
      'the database answers again after ',
    ]);
  });

  test('connections that are cut: everything is done exactly once', async () => {
    const random = seededRandom(11);
    await work(600, 10, () => proxy.cut(random() * 300));
    expect(proxy.connections()).toBeGreaterThan(20);
  });

  test('connections that fall silent, for a while or for good: everything is done exactly once', async () => {
    // The first silence heals; the others last longer than the store waits for an answer.
    await work(600, 3, (time) => proxy.freeze(time === 1 ? 700 : 4_000));
  });
});

test('a database that stays away for too long is an error in one sentence', async () => {
  const url = through(await server.createDatabase(), proxy.port);
  const impatient = await openPostgresStore(url, { connections: 1, patienceMs: 300, silenceMs: 500 });
  const cutting = proxy.cut(3_000);
  await expect(impatient.jobs.list(1)).rejects.toThrow(
    /^cannot reach the database at postgres:\/\/postgres@127\.0\.0\.1:\d+\/\w+: /,
  );
  await impatient.close();
  await cutting;
});
