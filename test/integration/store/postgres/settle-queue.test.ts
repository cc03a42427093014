import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Job, LeasedBatch, LeasedTask, Settlement, Store } from '../../../../src/ports/store.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import { takeGroup } from '../../../../src/store/postgres/settle/settle-queue.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import {
  change,
  codeOf,
  createJob,
  enqueue,
  hostChange,
  pageOf,
  recordOf,
  settlementOf,
  T0,
  taskOf,
  tasksOf,
} from '../../../support/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';

const BATCHES = 40;

let server: PostgresServer;
let schema: string;
let store: Store;
let job: Job;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const place = new URL(server.url);
  schema = `f${randomUUID().replaceAll('-', '')}`;
  place.searchParams.set('schema', schema);
  store = await openPostgresStore(place.href);
  job = await createJob(store);
});
afterEach(() => store.close());

const hostOf = (index: number) => `h${index}.example`;

/** A batch of two tasks for each host, and the pass known to the store, as it is after the first report of a run. */
async function leaseAll(): Promise<LeasedBatch[]> {
  const urls = Array.from({ length: BATCHES + 1 }, (_, index) => [
    `https://${hostOf(index)}/1`,
    `https://${hostOf(index)}/2`,
  ]).flat();
  await enqueue(store, job, tasksOf(...urls));
  const due = await store.frontier.dueHosts(job.id, { now: T0, before: T0 + 1_000, limit: 1_000 });
  const batches = due.map(({ id }) => ({
    grants: [{ hostId: id, count: 2, nextAt: T0 + 60_000 }],
    leaseMs: 60_000,
  }));
  const [first, ...others] = await store.frontier.lease(job.id, { batches, now: T0 });
  await store.frontier.settle(doneOf(first!));
  return others;
}

function doneOf({ id, tasks }: LeasedBatch, more: Partial<Settlement> = {}): Settlement {
  const names = new Set(tasks.map(({ url }) => new URL(url).host));
  const hosts = [...names].map((host) =>
    hostChange(host, { sent: tasks.length, nextAt: T0 + 5, takenUntil: T0 + 60_000 }),
  );
  return settlementOf(
    job,
    id,
    tasks.map((task) => change.fetched(task.id)),
    { hosts, owner: job.owner, ...more },
  );
}

async function query<T extends pg.QueryResultRow>(text: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const { rows } = await client.query<T>(text.replaceAll('TABLE ', `${schema}.`));
  await client.end();
  return rows;
}

/** Batches by the transaction that wrote them last. */
const transactions = async () =>
  (await query<{ count: string }>(`SELECT count(*) FROM TABLE batches GROUP BY xmin`)).map(({ count }) =>
    Number(count),
  );

test('reports that come at once are written in few transactions, and everything counts once', async () => {
  const batches = await leaseAll();
  const results = await Promise.all(batches.map((batch) => store.frontier.settle(doneOf(batch))));
  expect(results).toEqual(batches.map(() => ({ applied: true, accepted: 0 })));
  const tasks = 2 * (BATCHES + 1);
  await expectBalance(store, job);
  const counters = await store.jobs.counters(job.id);
  expect(counters).toMatchObject({ done: tasks, leased: 0, pending: 0, batches: BATCHES + 1 });
  expect(Math.max(...(await transactions()))).toBeGreaterThan(1);
  expect(await query('SELECT DISTINCT holds, requests, next_at FROM TABLE hosts')).toEqual([
    { holds: 0, requests: '2', next_at: String(T0 + 5) },
  ]);
  const [attempts] = await query<{ count: string }>('SELECT count(*) FROM TABLE attempts');
  expect(Number(attempts!.count)).toBe(tasks);
});

test('requests of reports that are written together count for the key of the job, those of a late one do not', async () => {
  job = await store.jobs.create({ ...codeOf('mine'), name: 'mine', now: T0, owner: 'k' });
  const batches = await leaseAll();
  const [late] = batches;
  await store.frontier.release(late!.id, { now: T0, blame: 'none', reason: 'too late' });
  await Promise.all(batches.map((batch) => store.frontier.settle(doneOf(batch))));
  expect(Math.max(...(await transactions()))).toBeGreaterThan(1);
  const { requests } = await store.keys.usage('k', Math.floor(T0 / 86_400_000));
  expect(requests).toBe(2 * BATCHES);
  expect((await store.jobs.counters(job.id)).requests).toBe(requests);
});

test('a late report and one that comes twice change nothing, and the others beside them are written', async () => {
  const batches = await leaseAll();
  const [late] = batches;
  await store.frontier.release(late!.id, { now: T0, blame: 'none', reason: 'too late' });
  const settles = [...batches, ...batches].map((batch) => store.frontier.settle(doneOf(batch)));
  const results = await Promise.all(settles);
  expect(results.filter(({ applied }) => applied).length).toBe(BATCHES - 1);
  expect(results[0]).toEqual({ applied: false, accepted: 0 });
  await expectBalance(store, job);
  const counters = await store.jobs.counters(job.id);
  expect(counters).toMatchObject({ done: 2 * BATCHES, pending: 2, leased: 0 });
  expect(await query('SELECT sum(requests)::integer AS sent FROM TABLE hosts')).toEqual([
    { sent: 2 * BATCHES },
  ]);
});

test('one that the server refuses fails alone', async () => {
  const batches = await leaseAll();
  const refused = batches.length >> 1;
  const results = await Promise.allSettled(
    batches.map((batch, index) =>
      store.frontier.settle(doneOf(batch, index === refused ? { durationMs: 1e30 } : {})),
    ),
  );
  expect(results.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([refused]);
  await expectBalance(store, job);
  const counters = await store.jobs.counters(job.id);
  expect(counters).toMatchObject({ done: 2 * BATCHES, leased: 2 });
});

test('tasks that a last report forgets go back', async () => {
  const batches = await leaseAll();
  const forgetting = batches.map((batch) => doneOf({ ...batch, tasks: batch.tasks.slice(0, 1) }));
  await Promise.all(forgetting.map((settlement) => store.frontier.settle(settlement)));
  await expectBalance(store, job);
  const counters = await store.jobs.counters(job.id);
  expect(counters).toMatchObject({ done: BATCHES + 2, pending: BATCHES, leased: 0 });
  expect(await query('SELECT sum(ready)::integer AS ready FROM TABLE queues')).toEqual([{ ready: BATCHES }]);
});

test('each report has its own links, records, pages and archive, whoever it is written with', async () => {
  const batches = await leaseAll();
  const known = taskOf('https://known.example/');
  const settlements = batches.map((batch, index) => {
    const [first, second] = batch.tasks as [LeasedTask, LeasedTask];
    const own = Array.from({ length: index % 3 }, (_, n) => taskOf(`https://new.example/${index}-${n}`));
    const page = pageOf({ archive: { offset: index, length: 10 } });
    return {
      ...doneOf(batch, { archive: { key: `warc/${batch.id}`, bytes: 99 } }),
      tasks: [
        change.fetched(first.id, { page, links: [...own, known], records: [recordOf(first.url, { index })] }),
        change.fetched(second.id, { page, links: [known], records: [recordOf('all', { index }, true)] }),
      ],
    };
  });
  const results = await Promise.all(settlements.map((settlement) => store.frontier.settle(settlement)));
  expect(Math.max(...(await transactions()))).toBeGreaterThan(1);
  const accepted = results.map((result) => result.accepted);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const own = batches.map((_, index) => index % 3);
  expect(sum(accepted)).toBe(sum(own) + 1);
  expect(accepted.every((count, index) => count - own[index]! === 0 || count - own[index]! === 1)).toBe(true);
  await expectBalance(store, job);
  expect(await store.jobs.counters(job.id)).toMatchObject({
    done: 2 * (BATCHES + 1),
    pending: sum(accepted),
    duplicates: 2 * BATCHES - 1,
    records: BATCHES + 1,
  });
  const wrong =
    await query(`SELECT attempts.id FROM TABLE attempts JOIN TABLE batches ON batches.id = batch_id
    LEFT JOIN TABLE archives ON archives.id = archive_id
    WHERE archive_offset IS NOT NULL AND archives.key IS DISTINCT FROM 'warc/' || batches.id`);
  expect(wrong).toEqual([]);
});

test('a report does not touch a task that a batch beside it holds', async () => {
  const batches = await leaseAll();
  const stolen = batches.at(-1)!.tasks[0]!.id;
  const settlements = batches.map((batch, index) => {
    const settlement = doneOf(index === batches.length - 1 ? { ...batch, tasks: [] } : batch);
    return index === batches.length - 1
      ? { ...settlement, final: false }
      : { ...settlement, tasks: [...settlement.tasks, change.dead(stolen)] };
  });
  await Promise.all(settlements.map((settlement) => store.frontier.settle(settlement)));
  await expectBalance(store, job);
  expect(await store.jobs.counters(job.id)).toMatchObject({ done: 2 * BATCHES, dead: 0, leased: 2 });
});

test('a source does not wait for the reports that wait for a connection', async () => {
  await store.close();
  const place = new URL(server.url);
  place.searchParams.set('schema', schema);
  store = await openPostgresStore(place.href, { connections: 1 });
  const batches = await leaseAll();
  const ended: string[] = [];
  const settles = batches.map(async (batch) => {
    await store.frontier.settle(doneOf(batch));
    ended.push('report');
  });
  // They ask for a connection at the end of a turn of the event loop: after the next one they wait.
  for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve));
  const source = { source: 0, position: '1', done: false, rows: 1, rejected: 0 };
  const more = tasksOf(`https://${hostOf(0)}/3`);
  await store.frontier.enqueue(job.id, more, { now: T0, perTemplateMax: null, source });
  ended.push('source');
  await Promise.all(settles);
  expect(ended.indexOf('source')).toBeLessThan(ended.length - 1);
  await expectBalance(store, job);
});

test('only reports of one job, and with no batch, host or task in common, are written together', () => {
  const of = (batchId: number, host: string, { jobId = 1, taskId = batchId } = {}) => ({
    settlement: {
      ...settlementOf({ id: jobId }, batchId, [change.fetched(taskId)]),
      hosts: [hostChange(host)],
    },
  });
  const waiting = [
    of(9, 'a'),
    of(2, 'b'),
    of(3, 'a'),
    of(4, 'c', { jobId: 2 }),
    of(2, 'd', { taskId: 20 }),
    of(6, 'f', { taskId: 9 }),
    of(5, 'e'),
    of(7, 'g'),
  ];
  expect(takeGroup(waiting, 3).map(({ settlement }) => settlement.batchId)).toEqual([9, 2, 5]);
  expect(waiting.map(({ settlement }) => settlement.batchId)).toEqual([3, 4, 2, 6, 7]);
  expect(takeGroup([], 1)).toEqual([]);
});
