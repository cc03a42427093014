import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { summarize } from '../../../../src/coordinator/jobs.ts';
import { StoreRoom, waitForRoom } from '../../../../src/coordinator/storage/store-room.ts';
import { StorageFullError } from '../../../../src/core/errors.ts';
import type { Job, Store } from '../../../../src/ports/store.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  FAR,
  settlementOf,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';

let server: PostgresServer;
let store: Store;
let job: Job;
/** Looks and locks beside the store. */
let other: pg.Client;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const url = await server.createDatabase();
  store = await openPostgresStore(url);
  job = await createJob(store);
  other = new pg.Client({ connectionString: url, application_name: 'beside' });
  await other.connect();
  await other.query('SET search_path = seine');
});
afterEach(async () => {
  await other.end();
  await store.close();
});

/** Batches of one task each. */
async function leaseMany(count: number) {
  await enqueue(store, job, tasksOf(...Array.from({ length: count }, (_, n) => `https://h${n}.example/`)));
  const due = await store.frontier.dueHosts(job.id, { now: T0, before: FAR, limit: count });
  const batches = due.map(({ id }) => ({
    grants: [{ hostId: id, count: 1, startAt: FAR, nextAt: FAR }],
    leaseMs: 60_000,
  }));
  return store.frontier.lease(job.id, { batches, now: T0 });
}

const settle = ({ id, tasks }: { id: number; tasks: { id: number }[] }) =>
  store.frontier.settle(
    settlementOf(
      job,
      id,
      tasks.map((task) => change.fetched(task.id)),
    ),
  );

/** How many of the store's connections wait for a lock, as soon as they are so many. */
async function waitingForLock(atLeast: number): Promise<number> {
  while (true) {
    // Within a transaction, what was seen first would be seen for ever.
    await other.query('SELECT pg_stat_clear_snapshot()');
    const { rows } = await other.query(
      `SELECT count(*)::int AS n FROM pg_stat_activity
       WHERE wait_event_type = 'Lock' AND datname = current_database() AND application_name LIKE 'seine-%'`,
    );
    if (rows[0].n >= atLeast) return rows[0].n;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('connections to PostgreSQL', () => {
  test('reads for people do not wait behind settles', async () => {
    const batches = await leaseMany(12);
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM batches FOR UPDATE');
    let settled = 0;
    const settles = batches.map((batch) => settle(batch).then(() => settled++));
    await waitingForLock(4);
    const summary = await summarize(store, (await store.jobs.find(null))!, { alive: true });
    expect(summary.leased).toBe(12);
    expect(await collect(store.hosts.list(job.id))).toHaveLength(12);
    expect(await collect(store.views.tasks(job.id))).toHaveLength(12);
    expect(await collect(store.views.records(job.id))).toHaveLength(0);
    expect(await collect(store.views.attempts(job.id))).toHaveLength(0);
    expect(await store.views.tallies(job.id)).toMatchObject({});
    expect(await store.views.dead(job.id)).toEqual([]);
    expect(await store.jobs.list(5)).toHaveLength(1);
    expect(await store.frontier.nextDueAt(job.id)).toBeNull();
    expect(settled).toBe(0);
    await other.query('ROLLBACK');
    await Promise.all(settles);
    expect((await store.jobs.counters(job.id)).done).toBe(12);
    await expectBalance(store, job);
  });

  test('there are four for work, however many reports wait', async () => {
    const batches = await leaseMany(30);
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM batches FOR UPDATE');
    const settles = batches.map(settle);
    await waitingForLock(4);
    // What needs a connection waits for one of the four: none is made for it.
    let isDue = false;
    const due = store.frontier.dueHosts(job.id, { now: T0, before: FAR, limit: 1 }).then(() => {
      isDue = true;
    });
    await store.frontier.nextDueAt(job.id);
    expect(await waitingForLock(4)).toBe(4);
    expect(isDue).toBe(false);
    await other.query('ROLLBACK');
    await Promise.all([...settles, due]);
    await expectBalance(store, job);
  });
});

describe('a database without room', () => {
  const fill = () =>
    other.query(`
      CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
      CREATE TRIGGER full_disk BEFORE INSERT ON tasks FOR EACH STATEMENT EXECUTE FUNCTION full_disk()`);

  test('says so at once and has changed nothing', async () => {
    await fill();
    await expect(enqueue(store, job, tasksOf('https://a.example/'))).rejects.toThrow(StorageFullError);
    await expect(enqueue(store, job, tasksOf('https://a.example/'))).rejects.toThrow(
      /^the disk of the database at postgres:.* is full$/,
    );
    expect((await store.jobs.counters(job.id)).accepted).toBe(0);
    await expectBalance(store, job);
  });

  test('is waited for by a run', async () => {
    await fill();
    const warnings: string[] = [];
    const full = Promise.withResolvers<void>();
    const warn = (text: string) => {
      warnings.push(text);
      full.resolve();
    };
    const room = new StoreRoom({ clock: { now: () => 0 }, logger: { warn } });
    const enqueued = enqueue(waitForRoom(store, room), job, tasksOf('https://a.example/'));
    await full.promise;
    await other.query('DROP TRIGGER full_disk ON tasks');
    expect((await enqueued).accepted).toBe(1);
    expect(warnings).toHaveLength(2);
  });
});
