import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StorageFullError } from '../../../../src/core/errors.ts';
import { Database } from '../../../../src/store/sqlite/connection/database.ts';
import { storeIn } from '../../../../src/store/sqlite/sqlite-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import { createJob, enqueue, tasksOf, temporaryFolder } from '../../../support/fixtures.ts';
import { limitDatabase } from '../../../support/full-database.ts';

describe('a SQLite store without room', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let db: Database;
  beforeEach(async () => {
    folder = await temporaryFolder();
    db = new Database(join(folder.dir, 'seine.db'));
  });
  afterEach(async () => {
    db.close();
    await folder.remove();
  });

  test('says so, though SQLite has rolled back by itself, and works again with room', () => {
    const room = limitDatabase(db);
    const fill = () =>
      db.transaction(() => {
        for (let i = 0; i < 2_000; i++)
          db.run(
            'INSERT INTO robots (origin, host, text, fetched_at, failures) VALUES (?, ?, ?, 0, 0)',
            `o${i}`,
            'h',
            'x'.repeat(1_000),
          );
      });
    expect(fill).toThrow(StorageFullError);
    expect(fill).toThrow(`the disk of ${db.path} is full`);
    expect(db.get<{ n: number }>('SELECT count(*) AS n FROM robots')!.n).toBe(0);
    room.make();
    fill();
    expect(db.get<{ n: number }>('SELECT count(*) AS n FROM robots')!.n).toBe(2_000);
  });

  test('a single statement says the same', () => {
    limitDatabase(db);
    const insert = () =>
      db.run(
        'INSERT INTO robots (origin, host, text, fetched_at, failures) VALUES (?, ?, ?, 0, 0)',
        'o',
        'h',
        'x'.repeat(1_000_000),
      );
    expect(insert).toThrow(StorageFullError);
  });

  test('counters and tasks agree after a write that found no room, and the same write works later', async () => {
    const store = storeIn(db);
    const job = await createJob(store);
    await enqueue(store, job, tasksOf('https://a.example/'));
    const room = limitDatabase(db);
    const tasks = tasksOf(
      ...Array.from({ length: 5_000 }, (_, i) => `https://a.example/${'long-'.repeat(20)}${i}`),
    );
    await expect(enqueue(store, job, tasks)).rejects.toThrow(StorageFullError);
    await expectBalance(store, job);
    expect((await store.jobs.counters(job.id)).accepted).toBe(1);
    room.make();
    expect((await enqueue(store, job, tasks)).accepted).toBe(5_000);
    await expectBalance(store, job);
  });
});
