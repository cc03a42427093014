import { statSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SeineError } from '../../../../src/core/errors.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { READY, WAITING } from '../../../../src/store/shared/states.ts';
import { WRITER_PAGES } from '../../../../src/store/sqlite/connection/checkpointer.ts';
import type { DatabaseOptions } from '../../../../src/store/sqlite/connection/database.ts';
import { keyOf } from '../../../../src/store/sqlite/dedupe/seen-key.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import { runStoreContract } from '../../../contract/store-contract.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  settlementOf,
  T0,
  tasksOf,
  temporaryFolder,
} from '../../../support/fixtures.ts';

runStoreContract('sqlite', async (place) => {
  await mkdir(place, { recursive: true });
  return openSqliteStore(join(place, 'seine.db'));
});

describe('sqlite store', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let path: string;
  const opened: Store[] = [];
  const open = (options?: DatabaseOptions) => {
    const store = openSqliteStore(path, options);
    opened.push(store);
    return store;
  };
  beforeEach(async () => {
    folder = await temporaryFolder();
    path = join(folder.dir, 'seine.db');
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close().catch(() => {});
    await folder.remove();
  });

  /** Looks into the file beside the store, as another process could. */
  const inFile = <T>(work: (db: DatabaseSync) => T): T => {
    const db = new DatabaseSync(path);
    try {
      return work(db);
    } finally {
      db.close();
    }
  };

  test('URLs with the same fingerprint are told apart, also when the place after it is taken', async () => {
    const store = open();
    const job = await createJob(store);
    const decoys = Array.from({ length: 6 }, (_, n) => `https://decoy.example/${n}`);
    await enqueue(store, job, tasksOf(...decoys));
    const wanted = ['https://a.example/1', 'https://a.example/2'];
    inFile((db) => {
      const { seed } = db.prepare('SELECT seed FROM jobs').get() as { seed: number };
      const ids = db.prepare('SELECT id FROM tasks ORDER BY id').all() as { id: number }[];
      for (const [at, url] of wanted.entries()) {
        for (let step = 0; step < 3; step++) {
          db.prepare('INSERT INTO seen (fingerprint, task_id) VALUES (?, ?)').run(
            keyOf(url, seed) + step,
            ids[at * 3 + step]!.id,
          );
        }
      }
    });
    expect(await store.frontier.knows(job.id, wanted[0]!)).toBe(false);
    expect(await store.views.task(job.id, wanted[0]!)).toBeNull();
    expect(await enqueue(store, job, tasksOf(...wanted, ...wanted))).toMatchObject({
      accepted: 2,
      duplicates: 2,
    });
    await store.close();
    const again = open();
    expect(await enqueue(again, job, tasksOf(...wanted))).toMatchObject({ accepted: 0, duplicates: 2 });
    expect((await again.views.task(job.id, wanted[1]!))?.url).toBe(wanted[1]);
    await expectBalance(again, job);
  });

  test('another process sees and changes the store while it is open', async () => {
    const store = open();
    const job = await createJob(store);
    const other = open();
    await enqueue(store, job, tasksOf('https://a.example/1'));
    expect(await other.jobs.counters(job.id)).toMatchObject({ accepted: 1 });
    await other.jobs.update(job.id, { requestedState: 'stop' });
    expect(await store.jobs.requestedState(job.id)).toBe('stop');
    const batch = await leaseOne(store, job);
    await store.frontier.settle(settlementOf(job, batch.id, [change.dead(batch.tasks[0]!.id)]));
    expect(await other.views.retryDead(job.id, {}, T0)).toBe(1);
    expect((await leaseOne(store, job)).tasks).toHaveLength(1);
    await expectBalance(other, job);
  });

  test('a command beside a process that works leaves a long log to it', async () => {
    const path = join(folder.dir, 'guest.db');
    const owner = openSqliteStore(path);
    const db = new DatabaseSync(path);
    const bytes = WRITER_PAGES * 8_192;
    db.exec('PRAGMA wal_autocheckpoint = 0; CREATE TABLE rows (bytes BLOB)');
    db.prepare('INSERT INTO rows VALUES (zeroblob(?))').run(bytes);
    const guest = openSqliteStore(path, { isGuest: true });
    await createJob(guest);
    expect(statSync(path).size).toBeLessThan(bytes);
    // Who is no guest moves it with the next write.
    await createJob(owner);
    expect(statSync(path).size).toBeGreaterThan(bytes);
    db.close();
    await guest.close();
    await owner.close();
  });

  test('a store opened to read only reads', async () => {
    const store = open();
    const job = await createJob(store);
    await enqueue(store, job, tasksOf('https://a.example/1'));
    const reader = open({ readOnly: true });
    expect(await collect(reader.views.tasks(job.id))).toHaveLength(1);
    await expect(enqueue(reader, job, tasksOf('https://a.example/2'))).rejects.toThrow();
    expect(await reader.jobs.counters(job.id)).toMatchObject({ accepted: 1 });
  });

  test('a database of a newer version, or no database at all, is refused with a hint', async () => {
    await open().close();
    inFile((db) => db.exec('PRAGMA user_version = 999'));
    expect(() => open()).toThrow(SeineError);
    expect(() => open()).toThrow(/newer/);
    const text = join(folder.dir, 'text.db');
    await writeFile(text, 'this is no database, whatever its name says'.repeat(50));
    expect(() => openSqliteStore(text)).toThrow(SeineError);
    expect(() => openSqliteStore(join(folder.dir, 'no', 'such', 'folder.db'))).toThrow(SeineError);
  });

  test('closing leaves one file', async () => {
    const store = open();
    await createJob(store);
    await store.close();
    expect(await readdir(folder.dir)).toEqual(['seine.db']);
  });

  test('a query reads the views alone, whatever it calls its parts, and values of its own', async () => {
    const store = openSqliteStore(path, {});
    const ask = (sql: string) => collect(store.views.query(sql));
    const allowed = `
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3), t AS (SELECT count(*) AS c FROM seine_tasks)
      SELECT i, value, c, strftime('%Y', 0, 'unixepoch') AS year FROM n, t JOIN json_each('[7]') WHERE i = 3`;
    expect(await ask(allowed)).toEqual([{ i: 3, value: 7, c: 0, year: '1970' }]);
    const refused = [
      'SELECT * FROM sqlite_schema',
      'SELECT count(*) FROM sqlite_schema',
      'SELECT * FROM temp.sqlite_schema',
      'SELECT file FROM pragma_database_list',
      'SELECT * FROM dbstat',
      'SELECT * FROM main.seine_tasks, escalations',
    ];
    for (const sql of refused) await expect(ask(sql), sql).rejects.toThrow(/^the query failed: /);
    await store.close();
  });

  test('a query whose rows are taken slowly does not hold back the log', async () => {
    const store = open();
    const job = await createJob(store);
    await enqueue(store, job, tasksOf(...Array.from({ length: 3_000 }, (_, n) => `https://a.example/${n}`)));
    const emptied = () =>
      inFile((db) => db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }).busy === 0;
    let taken = 0;
    for await (const _ of store.views.query('SELECT url FROM seine_tasks')) {
      if (taken++ % 1_500 > 0) continue;
      await enqueue(store, job, tasksOf(`https://b.example/${taken}`));
      expect(emptied()).toBe(true);
    }
    expect(taken).toBe(3_000);
  });

  test('tasks and batches are found by an index, so that a large backlog costs what a small one does', async () => {
    const store = open();
    const job = await createJob(store);
    await enqueue(store, job, tasksOf('https://a.example/1'));
    const plans = inFile((db) =>
      [
        `SELECT id FROM tasks WHERE job_id = 1 AND host_id = 1 AND state = ${READY} ORDER BY priority DESC, id LIMIT 10`,
        `SELECT id, host_id FROM tasks WHERE job_id = 1 AND state = ${WAITING} AND due_at <= 5 LIMIT 10`,
        "SELECT id FROM batches WHERE job_id = 1 AND state = 'open' AND lease_until < 5",
        `SELECT tasks.id, pages.sha256 FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id
           LEFT JOIN attempts AS pages ON pages.id = coalesce(attempts.page_id, attempts.id)
         WHERE tasks.job_id = 1 AND tasks.host_id = 1 AND tasks.state = ${READY}
         ORDER BY tasks.priority DESC, tasks.id LIMIT 10`,
        'UPDATE records SET checked_at = 9 WHERE task_id = 5 AND checked_at < 3',
        "SELECT data FROM records WHERE collection_id = 1 AND key > 'k' ORDER BY key LIMIT 10",
        `SELECT data FROM record_versions WHERE collection_id = 1 AND (key, id) > ('k', 5) ORDER BY key, id LIMIT 10`,
        'SELECT page_task_id FROM shown WHERE media_task_id = 5 ORDER BY page_task_id LIMIT 10',
        "SELECT id FROM attempts WHERE task_id = 5 AND (outcome = 'failed' OR outcome = 'lost' OR outcome = 'redirected')",
      ].map((sql) =>
        db
          .prepare(`EXPLAIN QUERY PLAN ${sql}`)
          .all()
          .map((row) => String(row.detail))
          .join('; '),
      ),
    );
    for (const plan of plans) expect(plan).toMatch(/^SEARCH \w+ USING (COVERING )?INDEX (?!.*TEMP B-TREE)/);
  });

  test('no index is limited by a list, which SQLite makes a table of for every row that is written', () => {
    open();
    const indexes = inFile((db) => db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'index'").all());
    expect(indexes.length).toBeGreaterThan(10);
    expect(indexes.filter(({ sql }) => /\bIN \(/.test(String(sql)))).toEqual([]);
  });
});
