import pg from 'pg';
import { expect, test } from 'vitest';
import type { Job, Store } from '../../../../src/ports/store.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import {
  change,
  createJob,
  enqueue,
  hostChange,
  leaseOne,
  recordOf,
  settlementOf,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { startPostgres } from '../../../support/servers/services.ts';

const HOSTS = 4;
const urls = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => `https://h${(from + n) % HOSTS}.example/${from + n}`);

/** Lends a few tasks of each host and settles them with all that a report may have; how many. */
async function visit(store: Store, job: Job, serial: number): Promise<number> {
  const { id, tasks } = await leaseOne(store, job, { count: 3 });
  const changes = tasks.map((task, index) => {
    const records = [recordOf(task.url, { n: 1 }), recordOf('shared', { serial, index })];
    const links = tasksOf(`${task.url}/found`, task.url);
    return index % 5 === 4
      ? change.again(task.id, T0 - 1)
      : change.fetched(task.id, { links, records, shows: [task.url] });
  });
  const hosts = Array.from({ length: HOSTS }, (_, n) => hostChange(`h${n}.example`, { nextAt: T0 }));
  await store.frontier.settle(settlementOf(job, id, changes, { hosts }));
  return tasks.length;
}

test('plans that were made for empty tables do not read full ones', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase();
  const store = await openPostgresStore(url, { connections: 1 });
  const job = await createJob(store);
  let settled = 0;
  for (let turn = 0; turn < 30; turn++) {
    await enqueue(store, job, tasksOf(...urls(turn, 1)));
    settled += await visit(store, job, turn);
  }
  for (let from = 1_000; from < 31_000; from += 2_000)
    await enqueue(store, job, tasksOf(...urls(from, 2_000)));
  for (let turn = 0; turn < 20; turn++) settled += await visit(store, job, 100 + turn);
  expect(settled).toBeGreaterThan(200);
  // Statistics are written when a connection ends.
  await store.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const read = async () => {
    const { rows } = await client.query<{ name: string; read: string }>(
      "SELECT relname AS name, seq_tup_read + coalesce(idx_tup_fetch, 0) AS read FROM pg_stat_user_tables WHERE schemaname = 'seine'",
    );
    return new Map(rows.map((row) => [row.name, Number(row.read)]));
  };
  await expect.poll(async () => (await read()).get('tasks')).toBeGreaterThan(settled);
  const counts = await read();
  // One full read of the tasks would be 30,000 rows.
  for (const table of ['tasks', 'seen', 'attempts', 'records', 'batches'])
    expect([table, counts.get(table)! < settled * 12]).toEqual([table, true]);
  await client.end();
  await server.stop();
});
