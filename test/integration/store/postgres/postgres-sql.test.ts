import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SinkSpec } from '../../../../src/core/job-schema/sink.ts';
import { sinkRows } from '../../../../src/core/record-changes/sink-rows.ts';
import { storableJson } from '../../../../src/core/values/storable-json.ts';
import type { Job, Store } from '../../../../src/ports/store.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import {
  change,
  createJob,
  enqueue,
  leaseOne,
  pageOf,
  recordOf,
  settlementOf,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { startPostgres } from '../../../support/servers/services.ts';

/** What people see in psql, and records in tables of their own. */

const A = 'https://a.example';
const SINK: SinkSpec = {
  table: 'public.products',
  columns: { sku: 'sku', amount: 'price.amount', whole: '@record', page: '@key' },
  key: ['sku'],
};
let store: Store;
let client: pg.Client;
let job: Job;

const ask = async (sql: string) => (await client.query(sql)).rows;

/** Visits one URL, whose page has these records. */
async function visit(url: string, data: object[], sink: SinkSpec = SINK): Promise<void> {
  await enqueue(store, job, tasksOf(url));
  const { id, tasks } = await leaseOne(store, job);
  const records = data.map((each, index) => recordOf(`${url}#${index}`, each));
  const settlement = settlementOf(job, id, [
    change.fetched(tasks[0]!.id, { records, page: pageOf({ route: 'product' }) }),
  ]);
  const rules = { ...settlement.records, sink: { spec: sink, job: 'test' } };
  await store.frontier.settle({ ...settlement, now: T0, records: rules });
}

beforeAll(async () => {
  const url = await (await startPostgres()).createDatabase();
  store = await openPostgresStore(url, { connections: 1 });
  job = await createJob(store);
  client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    'CREATE TABLE products (sku text PRIMARY KEY, amount numeric, whole jsonb, page text, mine text)',
  );
});

afterAll(async () => {
  await client.end();
  await store.close();
});

test('a character 0 in one record leaves every query over the views whole', async () => {
  await visit(`${A}/1`, [{ sku: 'a', name: 'x\u0000y\ud800z \\u0000', price: { amount: 12.5 } }]);
  // As an older version wrote it.
  await client.query(`UPDATE seine.records SET data = '{"sku":"a","name":"x\\u0000y \\\\u0000"}'`);
  expect(
    await ask(
      "SELECT data->>'name' AS name, pg_typeof(data)::text AS type, created_at FROM seine.seine_records",
    ),
  ).toEqual([{ name: 'x\ufffdy \\u0000', type: 'jsonb', created_at: new Date(T0) }]);
  expect(
    await ask('SELECT url FROM seine.seine_records WHERE data @> \'{"sku":"a"}\' AND created_at < now()'),
  ).toHaveLength(1);
  expect(JSON.parse(storableJson(JSON.stringify({ a: '\u0000\ud800 \\u0000 🐟' })))).toEqual({
    a: '\ufffd\ufffd \\u0000 🐟',
  });
});

test.each(['tasks', 'records', 'history', 'attempts', 'batches', 'hosts', 'media'])(
  'the view of %s answers, and says what it is',
  async (name) => {
    await ask(`SELECT * FROM seine.seine_${name} LIMIT 1`);
    const [{ comment }] = await ask(`SELECT obj_description('seine.seine_${name}'::regclass) AS comment`);
    expect(comment).toMatch(/\.$/);
    const times = await ask(
      `SELECT column_name, data_type FROM information_schema.columns
       WHERE table_name = 'seine_${name}' AND (column_name ~ '_at$|^valid_')`,
    );
    for (const { column_name: column, data_type: type } of times)
      expect([column, type]).toEqual([column, 'timestamp with time zone']);
  },
);

test('look-ups by URL, by state and by task have an index', async () => {
  await client.query('SET enable_seqscan = off; SET enable_bitmapscan = off');
  const planOf = async (sql: string) => JSON.stringify(await ask(`EXPLAIN ${sql}`));
  expect(await planOf(`SELECT * FROM seine.seine_tasks WHERE url = '${A}/1'`)).toContain('tasks_url');
  expect(await planOf("SELECT * FROM seine.seine_tasks WHERE job_id = 1 AND state = 'dead'")).toContain(
    'tasks_state',
  );
  expect(await planOf('SELECT * FROM seine.seine_attempts WHERE task_id = 1')).toContain('attempts_task');
  expect(await planOf('SELECT * FROM seine.seine_records WHERE task_id = 1')).toContain('records_task');
  await client.query('RESET enable_seqscan; RESET enable_bitmapscan');
});

test('records go into a table of the user, and rows that do not fit are put aside', async () => {
  await client.query("INSERT INTO products (sku, amount, mine) VALUES ('b', 1, 'kept')");
  await visit(`${A}/2`, [
    { sku: 'b', price: { amount: '19.90' } },
    { sku: 'c', price: { amount: 'call us' } },
    { sku: null, price: null },
    { sku: 'd', price: { amount: 1 } },
    { sku: 'd', price: { amount: 2 } },
  ]);
  expect(await ask('SELECT sku, amount, mine, page FROM products ORDER BY sku')).toEqual([
    { sku: 'a', amount: '12.5', mine: null, page: `${A}/1#0` },
    { sku: 'b', amount: '19.90', mine: 'kept', page: `${A}/2#0` },
    { sku: 'd', amount: '2', mine: null, page: `${A}/2#4` },
  ]);
  const rejects = await ask('SELECT job, row, reason FROM seine.seine_sink_rejects ORDER BY reason');
  expect(rejects).toMatchObject([
    { job: 'test', reason: expect.stringContaining('call us') },
    { job: 'test', reason: expect.stringContaining('null value') },
  ]);
  await visit(`${A}/3`, [{ sku: 'e' }], { ...SINK, route: 'other' });
  expect(await ask("SELECT 1 FROM products WHERE sku = 'e'")).toEqual([]);
  expect(await store.jobs.counters(job.id)).toMatchObject({ done: 3, records: 7 });
});

test('a page cannot end the run with a value that the table refuses in another way', async () => {
  await client.query(
    `CREATE FUNCTION no_horses() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN IF NEW.sku = 'horse' THEN RAISE EXCEPTION 'no horses'; END IF; RETURN NEW; END $$;
     CREATE TRIGGER no_horses BEFORE INSERT ON products FOR EACH ROW EXECUTE FUNCTION no_horses()`,
  );
  // Longer than a row of an index may be, also when it is compressed.
  const long = randomBytes(20_000).toString('base64');
  await visit(`${A}/hostile`, [{ sku: long }, { sku: 'horse' }, { sku: 'fine', price: { amount: 4 } }]);
  expect(await ask("SELECT amount FROM products WHERE sku = 'fine'")).toEqual([{ amount: '4' }]);
  const rejects = await ask('SELECT reason FROM seine.seine_sink_rejects ORDER BY reason');
  expect(rejects).toEqual(
    expect.arrayContaining([
      { reason: expect.stringContaining('index row') },
      { reason: expect.stringContaining('no horses') },
    ]),
  );
});

test('a table that cannot be used is refused in words, before anything runs', async () => {
  const check = (change: Partial<SinkSpec>) => store.checkSink!({ ...SINK, ...change });
  await check({});
  await expect(check({ table: 'nothing' })).rejects.toThrow('there is no table public.nothing');
  await expect(check({ columns: { ...SINK.columns, colour: 'x' } })).rejects.toThrow('has no column colour');
  await expect(check({ key: ['page'] })).rejects.toThrow('has no unique index on page');
  await expect(check({ table: 'seine.tasks' })).rejects.toThrow('is in a schema of Seine itself');
  // Of another one in the same database.
  await client.query(
    'CREATE SCHEMA other; CREATE TABLE other.tasks (id int PRIMARY KEY); CREATE TABLE other.seine_tasks ()',
  );
  await expect(check({ table: 'other.tasks' })).rejects.toThrow('is in a schema of Seine itself');
});

test('rows of a sink have nested fields, whole records and none', () => {
  const record = { key: 'k', json: '{"a":{"b":1},"c.d":2}' };
  const columns = { one: 'a.b', two: 'c.d', three: 'a.x.y', job: '@job' };
  expect(sinkRows({ ...SINK, columns, key: ['one'] }, 'shop', [record])).toEqual([
    '{"one":1,"two":2,"three":null,"job":"shop"}',
  ]);
});
