import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openReads } from '../../../../src/store/sqlite/reads/open-reads.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { createJob, enqueue, tasksOf, temporaryFolder } from '../../../support/fixtures.ts';

test('a thread that breaks fails the calls that wait for it, and not those of the next', async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const path = join(folder.dir, 'seine.db');
  const store = openSqliteStore(path, { sync: 'normal', checkpointThread: false });
  const job = await createJob(store);
  await enqueue(store, job, tasksOf('https://a.example/1'));
  await store.close();

  const reads = openReads(path);
  onTestFinished(() => reads.close());
  const hosts = () => reads.hosts.listStep(job.id, { after: '', limit: 9 });
  const away = `${path}.away`;
  renameSync(path, away);
  await expect(hosts()).rejects.toThrow();
  renameSync(away, path);
  // The broken thread has not ended yet.
  expect(await hosts()).toMatchObject([{ host: 'a.example' }]);
});
