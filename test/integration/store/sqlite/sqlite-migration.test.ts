import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fingerprint } from '../../../../src/core/url/fingerprint.ts';
import { REOPENED_SOURCE } from '../../../../src/ports/store/job-store.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { NUMBERED, OF_JOB } from '../../../../src/store/shared/job-removals.ts';
import { Database } from '../../../../src/store/sqlite/connection/database.ts';
import { MIGRATIONS } from '../../../../src/store/sqlite/migrations/migrations.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import {
  change,
  codeOf,
  collect,
  enqueue,
  leaseOne,
  recordHash,
  settlementOf,
  specOf,
  T0,
  tasksOf,
  temporaryFolder,
} from '../../../support/fixtures.ts';
import { describeTables, migratedTables } from '../../../support/migrated-tables.ts';

test('a new database has what all migrations come to', async () => {
  const { dir, remove } = await temporaryFolder();
  onTestFinished(remove);
  const path = join(dir, 'new.db');
  new Database(path).close();
  const made = new DatabaseSync(path);
  onTestFinished(() => made.close());
  expect(made.prepare('PRAGMA user_version').get()).toEqual({ user_version: MIGRATIONS.length });
  const migrated = migratedTables(new DatabaseSync(':memory:'));
  expect(describeTables(made), 'run npx node scripts/build/write-new-tables.ts').toBe(migrated);
});

/** A folder of the first release: two runs of a shop, and one of something else, all with work left. */
function fillFirstVersion(path: string): void {
  const db = new DatabaseSync(path);
  db.exec(MIGRATIONS[0]!.sql);
  db.exec('PRAGMA user_version = 1');
  const spec = JSON.stringify(specOf({ name: 'shop' }));
  const insert = (table: string, row: Record<string, string | number | Uint8Array | null>) => {
    const names = Object.keys(row);
    const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
    db.prepare(sql).run(...Object.values(row));
  };
  insert('hosts', { id: 1, host: 'a.example', next_at: 5, requests: 9 });
  for (const [id, name, run] of [
    [1, 'shop', 1],
    [2, 'shop', 2],
    [3, 'other', 1],
  ] as const) {
    const job = { id, name, run, spec, spec_hash: 'h1', seed: 7 + id, first_task_id: id * 10 };
    insert('jobs', {
      ...job,
      state: 'done',
      wish: 'run',
      created_at: T0 + id,
      ended_at: T0 + 99,
      worked_ms: 5,
    });
    insert('counters', { job_id: id, accepted: 3, done: 1, dead: 1, pending: 1, records: 2, requests: 2 });
    insert('tallies', { job_id: id, state: 'dead', code: 'not-found', count: 1 });
    insert('sources', { job_id: id, source: 0, position: '3', done: 1, rows: 3, rejected: 0 });
    insert('queues', { job_id: id, host_id: 1, ready: 1, next_at: 5 });
    insert('archives', { id, job_id: id, batch_id: id, key: `warc/${id}`, bytes: 100 });
    for (const [place, state] of [4, 7, 2].entries()) {
      const url = `https://a.example/${place}`;
      const [taskId, attemptId] = [id * 10 + place, state === 2 ? 0x7fff_ffff : id * 10 + place];
      const task = {
        id: taskId,
        job_id: id,
        host_id: 1,
        state,
        priority: 0,
        depth: 0,
        batch_id: 0x7fff_ffff,
      };
      insert('tasks', {
        ...task,
        attempt_id: attemptId,
        attempts: 1,
        url,
        code: state === 7 ? 'not-found' : null,
      });
      insert('seen', { fingerprint: fingerprint(url, 'a.example', 7 + id), task_id: taskId });
      if (state === 2) continue;
      const attempt = { id: attemptId, job_id: id, task_id: taskId, batch_id: id, started_at: T0 + 50 };
      const log = { ...attempt, duration_ms: 1, http_status: 200, outcome: 'fetched', wire_bytes: 10 };
      const page = {
        bytes: 20,
        sha256: Buffer.alloc(32, id),
        archive_id: id,
        archive_offset: 0,
        archive_length: 9,
      };
      insert('attempts', { ...log, ...page, etag: '"e"' });
    }
  }
  const record = (id: number, jobId: number, key: string, data: object, updatedAt: number) =>
    insert('records', {
      id,
      job_id: jobId,
      key,
      task_id: jobId * 10,
      data: JSON.stringify(data),
      hash: 'of the text as it was',
      updated_at: updatedAt,
    });
  record(1, 1, 'both', { z: 1, a: 'first' }, T0 + 10);
  record(2, 1, 'only-first', { z: 1, a: 1 }, T0 + 11);
  record(3, 2, 'both', { z: 2, a: 'second' }, T0 + 20);
  record(4, 2, 'only-second', {}, T0 + 21);
  record(5, 3, 'both', { z: 3 }, T0 + 30);
  db.close();
}

describe('a folder of the first release', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let store: Store;
  beforeEach(async () => {
    folder = await temporaryFolder();
    const path = join(folder.dir, 'seine.db');
    fillFirstVersion(path);
    store = openSqliteStore(path);
  });
  afterEach(async () => {
    await store.close();
    await folder.remove();
  });

  test('has its jobs, tasks, counters and log as they were', async () => {
    const job = await store.jobs.find('shop');
    expect(job).toMatchObject({ id: 2, run: 2, pass: 1, passStart: null, passStartedAt: T0 + 2, file: null });
    expect(job).toMatchObject({ state: 'done', workedMs: 5, createdAt: T0 + 2, specHash: 'h1' });
    expect(await store.jobs.list(9)).toHaveLength(3);
    for (const id of [1, 2, 3]) {
      expect(await store.jobs.counters(id)).toMatchObject({
        accepted: 3,
        done: 1,
        dead: 1,
        pending: 1,
        records: 2,
      });
      expect(await store.jobs.sources(id)).toMatchObject([{ source: 0, position: '3', done: true }]);
      expect(await collect(store.views.tasks(id))).toMatchObject([
        {
          state: 'done',
          archive: { key: `warc/${id}`, length: 9 },
          bytes: 20,
          media: null,
          robotsTags: null,
        },
        { state: 'dead', failureCode: 'not-found' },
        { state: 'pending', attempts: 1, fetchedAt: null },
      ]);
      expect(await collect(store.views.attempts(id))).toHaveLength(2);
    }
  });

  test('has the newest record of each key of a name, hashed as records are now', async () => {
    const rows = await collect(store.views.records(1));
    const iso = (time: number) => new Date(time).toISOString();
    expect(rows).toEqual(await collect(store.views.records(2)));
    expect(rows.map(({ key }) => key)).toEqual(['both', 'only-first', 'only-second']);
    expect(rows[0]).toEqual({
      key: 'both',
      url: 'https://a.example/0',
      route: null,
      data: { z: 2, a: 'second' },
      hash: recordHash({ a: 'second', z: 2 }),
      createdAt: iso(T0 + 10),
      updatedAt: iso(T0 + 20),
      checkedAt: iso(T0 + 20),
      goneAt: null,
      meta: null,
    });
    expect(await store.views.record(3, 'both')).toMatchObject({ data: { z: 3 }, createdAt: iso(T0 + 30) });
    const own = await collect(store.views.records(1, { ownOnly: true }));
    expect(own.map(({ key }) => key)).toEqual(['only-first']);
    // What is the same as before is not taken for a change.
    const batch = await leaseOne(store, { id: 2 });
    const same = { key: 'both', json: '{"a":"second","z":2}', hash: rows[0]!.hash, merge: false };
    await store.frontier.settle(
      settlementOf({ id: 2 }, batch.id, [change.fetched(batch.tasks[0]!.id, { records: [same] })]),
    );
    expect(await store.views.record(2, 'both')).toMatchObject({ updatedAt: iso(T0 + 20) });
  });

  test('goes on, knows its URLs, and can be visited again', async () => {
    const known = tasksOf('https://a.example/0', 'https://a.example/1', 'https://a.example/2');
    const all = [...known, ...tasksOf('https://a.example/new')];
    expect(await enqueue(store, { id: 2 }, all)).toMatchObject({ accepted: 1, duplicates: 3 });
    const batch = await leaseOne(store, { id: 2 });
    expect(batch.tasks.map(({ lastVisit }) => lastVisit)).toEqual([null, null]);
    await store.frontier.settle(
      settlementOf(
        { id: 2 },
        batch.id,
        batch.tasks.map(({ id }) => change.fetched(id)),
      ),
    );
    await store.jobs.beginPass(2, { ...codeOf('shop'), now: T0 + 1_000 });
    const source = { source: REOPENED_SOURCE, position: null, done: false, rows: 0, rejected: 0 };
    const options = { now: T0, visitedBefore: T0 + 1_000, limit: 1_000, source };
    expect(await store.frontier.reopen(2, options)).toMatchObject({ reopened: 4, source: { done: true } });
    const again = await leaseOne(store, { id: 2 });
    expect(again.tasks[0]?.lastVisit).toMatchObject({
      etag: '"e"',
      lastModified: null,
      sha256: '02'.repeat(32),
    });
    expect(await store.jobs.counters(2)).toMatchObject({ accepted: 4, leased: 4, done: 0, dead: 0 });
    expect(await store.jobs.counters(1)).toMatchObject({ done: 1, dead: 1, pending: 1 });
  });
});

describe('a folder of the version before tables were renamed', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let path: string;
  beforeEach(async () => {
    folder = await temporaryFolder();
    path = join(folder.dir, 'seine.db');
  });
  afterEach(() => folder.remove());

  test('has its requested states and what was learned of hosts', async () => {
    const db = new DatabaseSync(path);
    db.function('record_hash', (data) => data);
    for (const { sql } of MIGRATIONS.slice(0, 9)) db.exec(sql);
    db.exec('PRAGMA user_version = 9');
    db.exec(`
      INSERT INTO collections (id, name) VALUES (1, 'shop');
      INSERT INTO jobs (id, name, run, spec, spec_hash, seed, state, wish, created_at)
        VALUES (1, 'shop', 1, '{}', 'h', 1, 'stopped', 'stop', ${T0});
      INSERT INTO passes (job_id, collection_id, pass, started_at) VALUES (1, 1, 1, ${T0});
      INSERT INTO approaches (job_id, host, template, stats) VALUES (1, 'a.example', '/p/*', '{"tries":3}');
    `);
    db.close();
    const store = openSqliteStore(path);
    expect(await store.jobs.find('shop')).toMatchObject({ state: 'stopped', requestedState: 'stop' });
    expect(await store.jobs.requestedState(1)).toBe('stop');
    const row = { host: 'a.example', template: '/p/*', stats: { tries: 3 } };
    expect(await store.escalations.load(1, 9)).toEqual([row]);
    await store.escalations.save(1, [{ ...row, stats: { tries: 4 } }]);
    expect(await store.escalations.load(1, 9)).toEqual([{ ...row, stats: { tries: 4 } }]);
    await store.close();
  });
});

test('a folder of the version before requests of keys were counted keeps what they had used, and counts on', async () => {
  const folder = await temporaryFolder();
  const path = join(folder.dir, 'seine.db');
  const before = MIGRATIONS.findIndex(({ name }) => name === 'key-requests');
  const db = new DatabaseSync(path);
  db.function('record_hash', (data) => data);
  for (const { sql } of MIGRATIONS.slice(0, before)) db.exec(sql);
  db.exec(`PRAGMA user_version = ${before}`);
  const day = Math.floor(T0 / 86_400_000);
  db.exec(`
    INSERT INTO api_keys (id, name, hash, scope, limits, created_at)
      VALUES ('k', 'k', 'h', 'write', '{"costPerDay":2}', ${T0});
    INSERT INTO key_usage (key_id, day, pages, cost) VALUES ('k', ${day}, 4, 0.5)`);
  db.close();
  const store = openSqliteStore(path);
  const limits = { costPerDay: 2, requestsPerDay: null, browserSecondsPerDay: null };
  expect((await store.keys.byId('k'))?.limits).toMatchObject(limits);
  expect(await store.keys.usage('k', day)).toEqual({ pages: 4, cost: 0.5, requests: 0, browserSeconds: 0 });
  const job = await store.jobs.create({ ...codeOf('mine'), name: 'mine', now: T0, owner: 'k' });
  await store.jobs.addCosts(job.id, [{ item: 'browserSeconds', quantity: 3, dollars: 0 }], T0);
  expect(await store.keys.usage('k', day)).toEqual({ pages: 4, cost: 0.5, requests: 0, browserSeconds: 3 });
  await store.close();
  await folder.remove();
});

test('migrations are numbered from 1 without gaps', () => {
  expect(MIGRATIONS.map(({ number }) => number)).toEqual(MIGRATIONS.map((_, index) => index + 1));
});

test('a job that is deleted leaves rows in no table', async () => {
  const folder = await temporaryFolder();
  const db = new Database(join(folder.dir, 'seine.db'));
  const tables = db
    .all<{ name: string }>(
      `SELECT tables.name FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
       WHERE tables.type = 'table' AND columns.name = 'job_id'`,
    )
    .map(({ name }) => name);
  db.close();
  await folder.remove();
  // Found by their tasks; callbacks stay until they are delivered.
  const others = ['media', 'records', 'webhook_deliveries', 'webhook_endpoints'];
  expect(tables.sort()).toEqual([...NUMBERED, ...OF_JOB, ...others].sort());
});
