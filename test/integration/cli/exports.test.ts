import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AWS_ITSELF } from '../../../src/aws/s3/s3-client.ts';
import { openDestination } from '../../../src/cli/export/destination.ts';
import { formatOf, writeRows } from '../../../src/cli/export/formats.ts';
import type { Selection, What } from '../../../src/cli/export/tables.ts';
import type { Job, Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { openDuckDb } from '../../support/duckdb.ts';
import {
  change,
  createJob,
  enqueue,
  leaseOne,
  pageOf,
  recordOf,
  settlementOf,
  T0,
  taskOf,
  temporaryFolder,
  traceOf,
} from '../../support/fixtures.ts';

/** Every export is read by DuckDB as it is, without a word about its columns. */

const ODD = 'Crème "brûlée", 😀\nsecond line\r\n=1+1';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let duck: Awaited<ReturnType<typeof openDuckDb>>;
let store: Store;
let job: Job;

const DATA = [
  { name: ODD, price: 12.5, stock: 3, sold: true, tags: ['a', 'b'], size: { w: 1, h: null }, note: null },
  { name: 'Ünïcödé', price: -0.1, stock: 0, sold: false, tags: [], size: null, note: 'mixed' },
  { name: '', price: null, stock: 4, sold: null, note: 7, late: 'only here' },
];

beforeAll(async () => {
  folder = await temporaryFolder();
  duck = await openDuckDb();
  store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
  job = await createJob(store, 'shop', {
    routes: [{ name: 'product', select: { name: 'h1', unseen: 'i' } }],
  });
  await settle(T0, DATA);
});

afterAll(async () => {
  duck.close();
  await store.close();
  await folder.remove();
});

/** One page for each record, and one dead letter, one image, and one page that was never visited. */
async function settle(at: number, data: object[]): Promise<void> {
  const urls = data.map((_, n) => `https://shop.example/p${n}`);
  const meta = { row: 1, source: 'list "x"' };
  await enqueue(store, job, [
    ...urls.map((url) => taskOf(url, { meta })),
    taskOf('https://shop.example/gone'),
    taskOf('https://img.example/1.png', { route: '@media' }),
  ]);
  const batch = await leaseOne(store, job);
  const media = { key: 'media/ab/abc.png', md5: 'cd'.repeat(16), member: null };
  const changes = batch.tasks.map(({ id, url }) => {
    const index = urls.indexOf(url);
    const trace = traceOf({ startedAt: at });
    if (url.endsWith('/gone')) return change.dead(id, { trace });
    if (url.endsWith('.png'))
      return change.fetched(id, { trace, page: pageOf({ media, contentType: 'image/png' }) });
    return change.fetched(id, {
      trace,
      page: pageOf({ route: 'product' }),
      records: [recordOf(url, data[index]!)],
      shows: ['https://img.example/1.png'],
    });
  });
  const quality = [{ route: 'product', records: 3, invalid: 1, filled: { name: 3, price: 2 } }];
  const records = { guardMs: 0, history: true };
  await store.frontier.settle(settlementOf(job, batch.id, changes, { now: at, quality, records }));
  await enqueue(store, job, [taskOf('https://later.example/')]);
}

async function exportTo(file: string, what: What, more: Partial<Selection> = {}): Promise<string> {
  const path = join(folder.dir, file);
  const destination = await openDestination(path, new PassThrough(), AWS_ITSELF);
  await writeRows(formatOf(file), what, { store, job, wholeName: true, ...more }, destination);
  await destination.finish();
  return path;
}

const FORMATS = ['jsonl', 'csv', 'parquet'] as const;

describe.each(FORMATS)('%s', (format) => {
  test('records: numbers, texts, nested values and nothing come back as they were', async () => {
    const file = await exportTo(`records.${format}`, 'records');
    const field = (name: string) => (format === 'jsonl' ? `data.${name}` : `"${name}"`);
    const select = ['name', 'price', 'stock', 'sold', 'late'].map((name) => `${field(name)} AS ${name}`);
    const rows = await duck.rows(
      `SELECT url, route, ${select}, ${field('tags')}::JSON AS tags, ${field('size')}::JSON AS size, "updatedAt"
       FROM '${file}' ORDER BY url`,
    );
    expect(rows).toHaveLength(3);
    expect(rows[0]).toMatchObject({
      url: 'https://shop.example/p0',
      route: 'product',
      name: ODD,
      sold: true,
    });
    expect(rows.map(({ price }) => price)).toEqual([12.5, -0.1, null]);
    expect(rows.map(({ stock }) => Number(stock))).toEqual([3, 0, 4]);
    expect(rows.map(({ late }) => late)).toEqual([null, null, 'only here']);
    expect(rows.slice(0, 2).map(({ tags }) => JSON.parse(String(tags)))).toEqual([['a', 'b'], []]);
    expect(JSON.parse(String(rows[0]!.size))).toEqual({ w: 1, h: null });
    expect(String(rows[0]!.updatedAt)).toContain('2023-11-14 22:13:20');
  });

  test.each([
    ['tasks', 6, { httpStatus: 'BIGINT', fetchedAt: 'TIMESTAMP', state: 'VARCHAR', attempts: 'BIGINT' }],
    ['attempts', 5, { startedAt: 'TIMESTAMP', durationMs: 'BIGINT', batch: 'BIGINT', outcome: 'VARCHAR' }],
    ['media', 1, { fetchedAt: 'TIMESTAMP', bytes: 'BIGINT', md5: 'VARCHAR' }],
    ['quality', 1, { run: 'BIGINT', score: 'BIGINT', route: 'VARCHAR' }],
  ] as const)('%s: every row, with types', async (what, count, types) => {
    const file = await exportTo(`${what}.${format}`, what);
    expect(await duck.rows(`SELECT count(*)::INT AS n FROM '${file}'`)).toEqual([{ n: count }]);
    const columns = await duck.columns(file);
    for (const [name, type] of Object.entries(types)) expect(columns[name], name).toContain(type);
  });

  test('tasks: archive and meta are nested values, and a task never visited has no time', async () => {
    const file = await exportTo(`tasks.${format}`, 'tasks');
    const rows = await duck.rows(
      `SELECT url, state, "failureCode" AS code, "fetchedAt" AS at, (meta::JSON)->>'source' AS source
       FROM '${file}' ORDER BY url`,
    );
    expect(rows.map(({ state }) => state)).toEqual(['done', 'pending', 'dead', 'done', 'done', 'done']);
    expect(rows[2]).toMatchObject({ url: 'https://shop.example/gone', code: 'not-found', source: null });
    expect(rows[3]!.source).toBe('list "x"');
    expect(rows[1]!.at).toBeNull();
  });

  test('media: pages that show it', async () => {
    const file = await exportTo(`media.${format}`, 'media');
    const rows = await duck.rows(`SELECT url, key, referrers::JSON AS referrers FROM '${file}'`);
    expect(rows).toMatchObject([{ url: 'https://img.example/1.png', key: 'media/ab/abc.png' }]);
    expect(JSON.parse(String(rows[0]!.referrers))).toHaveLength(3);
  });

  test('an export without a row is still a file that can be read', async () => {
    const file = await exportTo(`none.${format}`, 'tasks', { since: T0 + 1 });
    if (format === 'jsonl') expect(readFileSync(file, 'utf8')).toBe('');
    else expect(await duck.rows(`SELECT count(*)::INT AS n FROM '${file}'`)).toEqual([{ n: 0 }]);
  });
});

describe('another run', () => {
  const later = T0 + 86_400_000;
  const first = () => store.jobs.find('shop-1') as Promise<Job>;

  beforeAll(async () => {
    job = await createJob(store, 'shop');
    await settle(later, [{ ...DATA[0], price: 13 }, DATA[1]!]);
  });

  const lines = async (what: What, more: Partial<Selection> = {}) =>
    readFileSync(await exportTo('lines.jsonl', what, more), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));

  test('the name of a job gives the records of all its runs, name and run those that it wrote last', async () => {
    expect((await lines('records')).map(({ data }) => data.price)).toEqual([13, -0.1, null]);
    expect((await lines('records', { wholeName: false })).map(({ key }) => key)).toEqual([
      'https://shop.example/p0',
    ]);
    const old = await lines('records', { wholeName: false, job: await first() });
    expect(old.map(({ key }) => key)).toEqual(['https://shop.example/p1', 'https://shop.example/p2']);
  });

  test('--since leaves out what did not change', async () => {
    expect((await lines('records', { since: later })).map(({ data }) => data.price)).toEqual([13]);
    expect(await lines('records', { since: later + 1 })).toEqual([]);
    expect(await lines('tasks', { since: later, job: await first() })).toEqual([]);
    expect(await lines('tasks', { since: later })).toHaveLength(4);
  });

  test.each(FORMATS)('former states of records as %s', async (format) => {
    const file = await exportTo(`history.${format}`, 'history');
    const price = format === 'jsonl' ? 'data.price' : 'price';
    const [row, ...others] = await duck.rows(`SELECT key, ${price} AS price, "from", until FROM '${file}'`);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ key: 'https://shop.example/p0', price: 12.5 });
    expect(String(row!.from)).toContain('2023-11-14 22:13:20');
    expect(String(row!.until)).toContain('2023-11-15 22:13:20');
  });

  test('quality of every run and pass', async () => {
    expect(await lines('quality')).toMatchObject([
      {
        job: 'shop',
        run: 1,
        pass: 1,
        route: 'product',
        score: 63,
        fields: { name: 1, price: 0.667 },
        drops: [],
      },
      { job: 'shop', run: 2, pass: 1 },
    ]);
    expect(await lines('quality', { wholeName: false })).toHaveLength(1);
  });
});
