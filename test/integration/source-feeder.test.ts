import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SourceFeeder } from '../../src/coordinator/seeds.ts';
import type { JobInput } from '../../src/core/job.ts';
import type { Source } from '../../src/ports/source.ts';
import type { Job, Store } from '../../src/ports/store.ts';
import { openSource } from '../../src/sources/open-source.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { codeOf, collect, temporaryFolder } from '../support/fixtures.ts';
import { realClock } from '../support/memory-clock.ts';

const A = 'https://a.example';
const ENDLESS = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT '${A}/' || i AS url FROM n`;
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: Store;
beforeEach(async () => {
  folder = await temporaryFolder();
  store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
});
afterEach(async () => {
  await store.close();
  await folder.remove();
});

const jobOf = (input: Partial<JobInput>): Promise<Job> =>
  store.jobs.create({ ...codeOf('feed', input), name: 'feed', now: Date.now() });
const feederOf = (job: Job, source: Source) =>
  new SourceFeeder({ store, job, sources: [source], clock: realClock, logger: SILENT });

test('a stop ends a query that has no end, and leaves the source to be asked again', async () => {
  const job = await jobOf({ sources: [{ query: ENDLESS }] });
  const asked = Promise.withResolvers<void>();
  const source = openSource(job.spec.sources[0]!, {
    files: () => Promise.reject(new Error('no files here')),
    query: (sql, options) => {
      asked.resolve();
      return store.views.query(sql, options);
    },
    spool: { dir: join(folder.dir, 'inputs'), jobId: job.id, pass: 1, source: 0 },
  });
  const feeder = feederOf(job, source);
  feeder.start(() => {});
  await asked.promise;
  for (let turns = 0; turns < 5; turns++) await turn();
  const stoppedAt = performance.now();
  await feeder.stop();
  expect(performance.now() - stoppedAt).toBeLessThan(1_000);
  expect(feeder.failure).toBeNull();
  expect(feeder.done).toBe(false);
  expect(await store.jobs.sources(job.id)).toEqual([]);
  expect(existsSync(join(folder.dir, 'inputs'))).toBe(true);
  expect(await readdir(join(folder.dir, 'inputs'))).toEqual([]);
});

test('a query that is stopped fails with the reason, and one that fails by itself with its own', async () => {
  const stop = new AbortController();
  setImmediate(() => stop.abort('enough'));
  await expect(collect(store.views.query(ENDLESS, { signal: stop.signal }))).rejects.toBe('enough');
  const failing = openSource((await jobOf({ sources: [{ query: 'SELECT nonsense' }] })).spec.sources[0]!, {
    files: () => Promise.reject(new Error('no files here')),
    query: (sql, options) => store.views.query(sql, options),
    spool: { dir: folder.dir, jobId: 1, pass: 1, source: 0 },
  });
  await expect(collect(failing.rows(null))).rejects.toThrow(/the query does not work/);
});

test('a window smaller than a chunk is not read beyond', async () => {
  const job = await jobOf({ sources: [`${A}/`], limits: { window: 100 } });
  const source: Source = {
    name: 'many',
    priority: 0,
    async *rows() {
      for (let n = 0; n < 5_000; n++)
        yield { place: `${n}`, position: `${n}`, row: { url: `${A}/${n}`, meta: null } };
    },
  };
  const feeder = feederOf(job, source);
  await new Promise<void>((resolve) => feeder.start(resolve));
  await feeder.stop();
  expect((await store.jobs.counters(job.id)).pending).toBe(100);
});
