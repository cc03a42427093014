import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openCheckpointer, WRITER_PAGES } from '../../../../src/store/sqlite/connection/checkpointer.ts';
import { temporaryFolder } from '../../../support/fixtures.ts';

/** More than a log has when it is worth a thread. */
const PAGES_BYTES = 13 * 1024 * 1024;

test('a log that has grown is moved into the database by a thread, while the writer does not', async () => {
  const folder = await temporaryFolder();
  const path = join(folder.dir, 'seine.db');
  const db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE rows (bytes BLOB)');
  db.prepare('INSERT INTO rows VALUES (zeroblob(?))').run(PAGES_BYTES);
  expect(statSync(path).size).toBeLessThan(PAGES_BYTES);
  const every: number[] = [];
  const checkpointer = openCheckpointer({ path, checkpointEvery: (pages) => every.push(pages) });
  expect(every).toEqual([]);
  await expect.poll(() => statSync(path).size).toBeGreaterThan(PAGES_BYTES);
  // The writer leaves more to the thread.
  expect(every).toEqual([expect.any(Number)]);
  expect(every[0]).toBeGreaterThan(WRITER_PAGES);
  await checkpointer.close();
  db.close();
  await folder.remove();
});
