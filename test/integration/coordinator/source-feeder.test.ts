import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RejectLog } from '../../../src/coordinator/sources/reject-log.ts';
import { SourceFeeder } from '../../../src/coordinator/sources/source-feeder.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { Logger } from '../../../src/ports/ambient.ts';
import type { Source, SourceTask } from '../../../src/ports/source.ts';
import type { Job, Store } from '../../../src/ports/store.ts';
import { openRejectFile, REJECT_FILE_BYTES_MAX } from '../../../src/sources/files/reject-file.ts';
import { openSource } from '../../../src/sources/open-source.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { codeOf, collect, temporaryFolder } from '../../support/fixtures.ts';
import { realClock } from '../../support/real-clock.ts';

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
  expect(performance.now() - stoppedAt).toBeLessThan(10_000);
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
  await expect(collect(failing.rows(null))).rejects.toThrow(/the query failed/);
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

/** Feeds rows to the end, and returns what was warned of. */
async function feed(job: Job, rows: SourceTask[], rejects?: (logger: Logger) => RejectLog) {
  const warnings: string[] = [];
  const logger = { ...SILENT, warn: (text: string) => void warnings.push(text) };
  const source: Source = {
    name: 'list.csv',
    priority: 0,
    async *rows() {
      for (const [n, row] of rows.entries()) yield { place: `row ${n + 1}`, position: `${n}`, row };
    },
  };
  const log = rejects?.(logger) ?? new RejectLog(logger);
  const feeder = new SourceFeeder({ store, job, sources: [source], clock: realClock, logger, rejects: log });
  const done = Promise.withResolvers<void>();
  feeder.start(() => feeder.done && done.resolve());
  await done.promise;
  await feeder.rejects.flush();
  return { warnings, shown: feeder.rejects.shown, counters: await store.jobs.counters(job.id) };
}

test('a list of nothing but bad rows is told of a few times, counted and written down', async () => {
  const path = join(folder.dir, 'rejects/feed-1.jsonl');
  const job = await jobOf({ sources: [`${A}/`] });
  const rows = Array.from({ length: 5_000 }, (_, n) => ({ url: `bad ${n}`, meta: null }));
  const { warnings, shown, counters } = await feed(
    job,
    rows,
    (logger) => new RejectLog(logger, openRejectFile(path, 1)),
  );
  expect(counters).toMatchObject({ rejected: 5_000, accepted: 0 });
  expect(warnings).toHaveLength(6);
  expect(warnings[0]).toBe('list.csv, row 1: not an http(s) URL: "bad 0"');
  expect(shown).toHaveLength(20);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(lines).toHaveLength(5_000);
  expect(JSON.parse(lines.at(-1)!)).toEqual({
    pass: 1,
    source: 'list.csv',
    place: 'row 5000',
    reason: 'not an http(s) URL: "bad 4999"',
  });
});

test('rejected rows that cannot be written down stop nothing', async () => {
  const job = await jobOf({ sources: [`${A}/`] });
  const file = { append: () => Promise.reject(new Error('disk full')) };
  const rows = [
    { url: 'bad', meta: null },
    { url: `${A}/1`, meta: null },
  ];
  const { warnings, counters } = await feed(job, rows, (logger) => new RejectLog(logger, file));
  expect(counters).toMatchObject({ rejected: 1, accepted: 1 });
  expect(warnings.at(-1)).toBe('cannot write the list of rejected rows: disk full');
});

test('the file of rejected rows ends at its limit', async () => {
  const path = join(folder.dir, 'rejects.jsonl');
  const file = openRejectFile(path, 1);
  const reject = { source: 's', place: 'p', reason: 'x'.repeat(1024 * 1024) };
  for (let n = 0; n < 20; n++) await file.append(Array(4).fill(reject));
  expect(readFileSync(path).length).toBeLessThan(REJECT_FILE_BYTES_MAX + 2 * 1024 * 1024);
});

test('columns of a repeated URL are those of its first row, which is said once', async () => {
  const job = await jobOf({ sources: [`${A}/`] });
  const rows = [1, 2, 3].map((n) => ({ url: `${A}/same`, meta: { n } }));
  const { warnings, counters } = await feed(job, rows);
  expect(counters).toMatchObject({ accepted: 1, duplicates: 2 });
  expect(warnings).toEqual(['list.csv: 2 rows repeat URLs; the columns of the first row are kept']);
  expect((await store.views.task(job.id, `${A}/same`))?.meta).toEqual({ n: 1 });
  const plain = await feed(job, [{ url: `${A}/same`, meta: null }]);
  expect(plain.warnings).toEqual([]);
});

test('columns nested deeper than anyone means are refused, and the next row is read', async () => {
  const job = await jobOf({ sources: [`${A}/`] });
  let deep: unknown = 1;
  for (let level = 0; level < 50_000; level++) deep = [deep];
  const rows = [
    { url: `${A}/1`, meta: { deep } },
    { url: `${A}/2`, meta: { n: 1 } },
  ];
  const { shown, counters } = await feed(job, rows);
  expect(counters).toMatchObject({ accepted: 1, rejected: 1 });
  expect(shown[0]!.reason).toBe('a column is nested deeper than 200 levels');
});
