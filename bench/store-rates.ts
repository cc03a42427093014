import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Job, LeasedBatch, Store } from '../src/ports/store.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import {
  change,
  createJob,
  hostChange,
  pageOf,
  recordOf,
  settlementOf,
  taskOf,
} from '../test/support/fixtures.ts';
import { startPostgres } from '../test/support/servers/services.ts';

/**
 * What a store settles without workers: each page brings a record, a new link and a known one, and four reports of 60
 * tasks are settled at a time.
 */

const HOSTS = 48;
const AT_ONCE = 4;
const BATCH = 60;
const CHUNK = 2_000;

const urlOf = (index: number) => `https://host-${index % HOSTS}.example/items/item-${index}.html`;

async function measure(store: Store, wanted: number): Promise<number> {
  const job = await createJob(store, 'rates');
  for (let from = 0; from < wanted; from += CHUNK) {
    const tasks = Array.from({ length: CHUNK }, (_, n) => taskOf(urlOf(from + n)));
    const source = { source: 0, position: String(from), done: false, rows: from, rejected: 0 };
    await store.frontier.enqueue(job.id, tasks, { now: Date.now(), perTemplateMax: null, source });
  }
  let settleMs = 0;
  let settled = 0;
  while (settled < wanted) {
    const batches = await leaseBatches(store, job);
    const startedAt = performance.now();
    await Promise.all(batches.map((batch, at) => settleBatch(store, job, batch, settled + at * BATCH)));
    settleMs += performance.now() - startedAt;
    settled += batches.reduce((sum, { tasks }) => sum + tasks.length, 0);
  }
  return settled / (settleMs / 1_000);
}

async function leaseBatches(store: Store, job: Job): Promise<LeasedBatch[]> {
  const now = Date.now();
  const due = await store.frontier.dueHosts(job.id, { now, before: now + 400, limit: 1_000 });
  const batches = Array.from({ length: AT_ONCE }, (_, at) => {
    const own = due.filter((_, index) => index % AT_ONCE === at);
    const grants = own.map(({ id }) => ({ hostId: id, count: Math.ceil(BATCH / own.length), nextAt: now }));
    return { grants, leaseMs: 60_000 };
  });
  const leased = await store.frontier.lease(job.id, { batches, now });
  return leased.filter(({ tasks }) => tasks.length > 0);
}

async function settleBatch(
  store: Store,
  job: Job,
  { id, tasks }: LeasedBatch,
  serial: number,
): Promise<void> {
  const now = Date.now();
  const page = pageOf({ archive: { offset: 1_234, length: 5_678 }, etag: '"abc"', route: 'item' });
  const changes = tasks.map(({ id: taskId, url }, index) =>
    change.fetched(taskId, {
      page,
      links: [taskOf(`${urlOf(serial + index)}?found`, { depth: 1, template: 't' }), taskOf(url)],
      records: [recordOf(url, { title: 'A thing', price: 12.5, url, text: 'x'.repeat(200) })],
    }),
  );
  const names = new Set(tasks.map(({ url }) => new URL(url).host));
  const hosts = [...names].map((host) => hostChange(host, { sent: 1, nextAt: now }));
  const archive = { key: `warc/${id}.warc.gz`, bytes: 99_999 };
  const more = { now, hosts, archive, perTemplateMax: 10_000_000 };
  await store.frontier.settle(settlementOf(job, id, changes, more));
}

/** Tasks per second that each store settles. */
export async function measureSettle(tasks: number): Promise<{ sqlite: number; postgres: number }> {
  const dir = mkdtempSync(join(tmpdir(), 'seine-rates-'));
  const sqlite = openSqliteStore(join(dir, 'seine.db'), { checkpointThread: true });
  const own = await measure(sqlite, tasks);
  await sqlite.close();
  rmSync(dir, { recursive: true });
  const server = await startPostgres({ own: true, fsync: true });
  const postgres = await openPostgresStore(await server.createDatabase());
  const remote = await measure(postgres, tasks);
  await postgres.close();
  await server.stop();
  return { sqlite: own, postgres: remote };
}
