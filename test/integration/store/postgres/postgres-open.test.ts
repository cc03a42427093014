import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SeineError } from '../../../../src/core/errors.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { requireVersion } from '../../../../src/store/postgres/migrations/migrate.ts';
import { MIGRATIONS } from '../../../../src/store/postgres/migrations/migrations.ts';
import { openPostgresStore } from '../../../../src/store/postgres/postgres-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import {
  change,
  codeOf,
  collect,
  createJob,
  enqueue,
  leaseOne,
  pageOf,
  recordOf,
  robotsEntry,
  settlementOf,
  T0,
  taskOf,
  tasksOf,
  temporaryFolder,
} from '../../../support/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';

let server: PostgresServer;
let url: string;
const opened: Store[] = [];
const open = async (at = url, options: Parameters<typeof openPostgresStore>[1] = {}) => {
  const store = await openPostgresStore(at, { connections: 2, ...options });
  opened.push(store);
  return store;
};
const execute = async (text: string, at = url) => {
  const client = new pg.Client({ connectionString: at });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};
const urlWith = (make: (at: URL) => void) => {
  const at = new URL(url);
  make(at);
  return at.href;
};

beforeAll(async () => {
  server = await startPostgres({ own: true, password: 'sesame' });
});
afterAll(() => server.stop());
beforeEach(async () => {
  url = await server.createDatabase();
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close().catch(() => {});
});

describe('a database that cannot be used is refused in one sentence', () => {
  const refusal = async (at: string): Promise<SeineError> => {
    const error = await open(at).then(
      () => null,
      (found: unknown) => found,
    );
    expect(error).toBeInstanceOf(SeineError);
    expect((error as SeineError).message).not.toContain('sesame');
    expect((error as SeineError).hint).toBeTruthy();
    return error as SeineError;
  };

  test('wrong password', async () => {
    const { message, hint } = await refusal(
      urlWith((at) => {
        at.password = 'wrong';
      }),
    );
    expect(message).toMatch(
      /^the database at postgres:\/\/postgres@127\.0\.0\.1:\d+\/\w+ rejected the login$/,
    );
    expect(hint).toContain('SEINE_STORE_PASSWORD_FILE');
  });

  test('no password', async () => {
    const { message } = await refusal(
      urlWith((at) => {
        at.password = '';
      }),
    );
    expect(message).toMatch(/requires a password|rejected the login/);
  });

  test('unknown user', async () => {
    expect(
      (
        await refusal(
          urlWith((at) => {
            at.username = 'nobody';
          }),
        )
      ).message,
    ).toMatch(/rejected the login/);
  });

  test('unknown database', async () => {
    expect(
      (
        await refusal(
          urlWith((at) => {
            at.pathname = '/nothing';
          }),
        )
      ).message,
    ).toMatch(/^no such database: .*\/nothing$/);
  });

  test('nobody listens, no such host', async () => {
    const closed = await refusal(
      urlWith((at) => {
        at.port = '1';
      }),
    );
    expect(closed.message).toMatch(/cannot reach .*: .*ECONNREFUSED/);
    expect(
      (
        await refusal(
          urlWith((at) => {
            at.hostname = 'no-such-host.invalid';
          }),
        )
      ).message,
    ).toMatch(/^unknown host of the database at /);
  });

  test('a user who may not create tables; with a schema of its own it may', async () => {
    await execute("CREATE ROLE guest LOGIN PASSWORD 'sesame'");
    const guest = urlWith((at) => {
      at.username = 'guest';
    });
    expect((await refusal(guest)).message).toMatch(
      /^the user lacks a permission in the database at .*permission denied/,
    );
    await execute('CREATE SCHEMA seine AUTHORIZATION guest');
    const store = await open(guest);
    expect(await store.jobs.list(1)).toEqual([]);
  });

  test('one that is too old', () => {
    expect(() => requireVersion(120_016)).toThrow(/PostgreSQL 12 is too old/);
    expect(() => requireVersion(130_000)).not.toThrow();
  });

  test('one of a newer Seine', async () => {
    await (await open()).close();
    await execute('INSERT INTO seine.migrations VALUES (999)');
    expect((await refusal(url)).message).toMatch(/newer Seine/);
  });

  test.each([
    ['postgres://', /^cannot reach the database at /],
    ['postgres://h/d?schema=a"b', /^'a"b' is not a valid schema name$/],
    ['postgres://h/d?schema=UPPER', /^'UPPER' is not a valid schema name$/],
    ['postgres://h:x/d', /^the store is not a valid URL$/],
  ])('%s', async (at, message) => {
    expect((await refusal(at)).message).toMatch(message);
  });
});

test('the password may come from a file', async () => {
  const folder = await temporaryFolder();
  const passwordFile = join(folder.dir, 'password');
  await writeFile(passwordFile, 'sesame\n');
  const without = urlWith((at) => {
    at.password = '';
  });
  const store = await open(without, { passwordFile });
  expect(await store.jobs.list(1)).toEqual([]);
  await expect(open(without, { passwordFile: join(folder.dir, 'none') })).rejects.toThrow(
    /cannot read the password of the store from/,
  );
  await folder.remove();
});

test('several processes may open a new database at once', async () => {
  const stores = await Promise.all([open(), open(), open(), open()]);
  const job = await createJob(stores[0]!);
  expect(await stores[3]!.jobs.find('test')).toEqual(job);
});

test('a database of the version before tables were renamed has its requested states and what was learned of hosts', async () => {
  await execute(`
    CREATE SCHEMA seine; SET search_path = seine; CREATE TABLE migrations (version integer PRIMARY KEY);
    INSERT INTO migrations SELECT generate_series(1, 7);
    ${MIGRATIONS.slice(0, 7)
      .map(({ sql }) => sql)
      .join(';')};
    INSERT INTO collections (name) VALUES ('shop');
    INSERT INTO jobs (name, run, spec, spec_hash, seed, state, wish, created_at)
      VALUES ('shop', 1, '{}', 'h', 1, 'stopped', 'stop', ${T0});
    INSERT INTO passes (job_id, collection_id, pass, started_at) VALUES (1, 1, 1, ${T0});
    INSERT INTO approaches (job_id, host, template, stats) VALUES (1, 'a.example', '/p/*', '{"tries":3}')`);
  const store = await open();
  expect(await store.jobs.find('shop')).toMatchObject({ state: 'stopped', requestedState: 'stop' });
  expect(await store.jobs.requestedState(1)).toBe('stop');
  const row = { host: 'a.example', template: '/p/*', stats: { tries: 3 } };
  expect(await store.escalations.load(1, 9)).toEqual([row]);
  await store.escalations.save(1, [{ ...row, stats: { tries: 4 } }]);
  expect(await store.escalations.load(1, 9)).toEqual([{ ...row, stats: { tries: 4 } }]);
  expect(await execute("SELECT relname FROM pg_class WHERE relname LIKE 'approaches%'")).toEqual([]);
});

test('a database of the version before requests of keys were counted keeps what they had used, and counts on', async () => {
  const before = MIGRATIONS.findIndex(({ name }) => name === 'key-requests');
  const day = Math.floor(T0 / 86_400_000);
  await execute(`
    CREATE SCHEMA seine; SET search_path = seine; CREATE TABLE migrations (version integer PRIMARY KEY);
    INSERT INTO migrations SELECT generate_series(1, ${before});
    ${MIGRATIONS.slice(0, before)
      .map(({ sql }) => sql)
      .join(';')};
    INSERT INTO api_keys (id, name, hash, scope, limits, created_at)
      VALUES ('k', 'k', 'h', 'write', '{"costPerDay":2}', ${T0});
    INSERT INTO key_usage (key_id, day, pages, cost) VALUES ('k', ${day}, 4, 0.5)`);
  const store = await open();
  const limits = { costPerDay: 2, requestsPerDay: null, browserSecondsPerDay: null };
  expect((await store.keys.byId('k'))?.limits).toMatchObject(limits);
  expect(await store.keys.usage('k', day)).toEqual({ pages: 4, cost: 0.5, requests: 0, browserSeconds: 0 });
  const job = await store.jobs.create({ ...codeOf('mine'), name: 'mine', now: T0, owner: 'k' });
  await store.jobs.addCosts(job.id, [{ item: 'browserSeconds', quantity: 3, dollars: 0 }], T0);
  expect(await store.keys.usage('k', day)).toEqual({ pages: 4, cost: 0.5, requests: 0, browserSeconds: 3 });
});

test('migrations are numbered from 1 without gaps', () => {
  expect(MIGRATIONS.map(({ number }) => number)).toEqual(MIGRATIONS.map((_, index) => index + 1));
});

test('everything is in a schema of its own, and nothing is left of a store that is closed but its rows', async () => {
  const store = await open();
  const job = await createJob(store);
  await enqueue(store, job, tasksOf('https://a.example/1'));
  await leaseOne(store, job);
  await store.close();
  const tables = await execute(
    "SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
  );
  expect(tables).toEqual([{ schemaname: 'seine' }]);
  expect(await execute('SELECT * FROM seine.coordinators')).toEqual([]);
  expect(await execute('SELECT * FROM seine.writes')).toEqual([]);
  const sessions = () => execute("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'seine%'");
  await expect.poll(sessions).toEqual([]);
});

describe('what pages contain', () => {
  const NUL = 'a\u0000b';

  test('the character 0, halves of characters and any key have their place', async () => {
    const store = await open();
    const job = await createJob(store);
    const meta = { note: NUL, half: '\ud800' };
    await enqueue(store, job, [taskOf('https://a.example/1', { meta }), taskOf('https://a.example/2')]);
    const { id, tasks } = await leaseOne(store, job);
    expect(tasks[0]?.meta).toEqual(meta);
    const data = { [NUL]: NUL, half: '\udfff x', big: 12345678901234567890n.toString(), float: 1e300 };
    const key = `${'🐟'.repeat(1_000)}${NUL}`;
    const page = pageOf({ contentType: NUL, etag: NUL, lastModified: NUL, robotsTags: NUL });
    const records = [recordOf(key, data), recordOf(`${'🐟'.repeat(1_000)}c`, { n: 2 })];
    await store.frontier.settle(
      settlementOf(
        job,
        id,
        [
          change.fetched(tasks[0]!.id, { page, records, redirectTo: NUL }),
          change.dead(tasks[1]!.id, { detail: NUL }),
        ],
        {
          worker: NUL,
          robots: [robotsEntry('https://a.example', { text: NUL, detail: NUL })],
          quality: [{ route: 'r', records: 1, invalid: 0, filled: { [NUL]: 1, ['f'.repeat(5_000)]: 1 } }],
        },
      ),
    );
    const found = await collect(store.views.records(job.id));
    // As everywhere in records, so that every query can look into them.
    const stored = { ...data, [NUL]: undefined, 'a\ufffdb': 'a\ufffdb', half: '\ufffd x' };
    expect(found.map((record) => record.data)).toEqual(expect.arrayContaining([stored, { n: 2 }]));
    expect((await store.views.task(job.id, 'https://a.example/2'))?.failureDetail).toBe('a\ufffdb');
    expect((await store.views.quality(job.id, 1))[0]?.filled).toMatchObject({ ['f'.repeat(5_000)]: 1 });
    expect((await store.hosts.robots('https://a.example'))?.text).toBe('a\ufffdb');
    await expectBalance(store, job);
  });

  test('records are found and listed by keys that only differ at their end', async () => {
    const store = await open();
    const job = await createJob(store);
    await enqueue(store, job, tasksOf('https://a.example/1'));
    const { id, tasks } = await leaseOne(store, job);
    const keys = Array.from({ length: 2_300 }, (_, n) => `${'k'.repeat(2_000)}${n}`);
    const records = keys.map((key, n) => recordOf(key, { n }));
    await store.frontier.settle(settlementOf(job, id, [change.fetched(tasks[0]!.id, { records })]));
    const found = await collect(store.views.records(job.id));
    expect(new Set(found.map(({ key }) => key))).toEqual(new Set(keys));
    expect(found).toHaveLength(keys.length);
    expect((await store.views.record(job.id, keys[77]!))?.data).toEqual({ n: 77 });
  });
});

test('people ask with the SQL of PostgreSQL, and cannot write whatever they try', async () => {
  const store = await open();
  const job = await createJob(store);
  await enqueue(store, job, tasksOf('https://a.example/1'));
  const { id, tasks } = await leaseOne(store, job);
  const records = [recordOf('k', { price: 12.5, tags: ['x'] })];
  await store.frontier.settle(
    settlementOf(job, id, [change.fetched(tasks[0]!.id, { records })], { now: T0 }),
  );
  const ask = (sql: string) => collect(store.views.query(sql));
  expect(await ask("SELECT (data->>'price')::numeric * 2 AS double FROM seine_records")).toEqual([
    { double: 25 },
  ]);
  expect(await ask('SELECT count(*) AS n, max(attempts) FROM seine_tasks')).toEqual([{ n: 1, max: 1 }]);
  for (const sql of [
    'SELECT 1; COMMIT; DELETE FROM seine.tasks',
    "SELECT nextval('seine.task_ids')",
    'WITH gone AS (DELETE FROM seine.tasks RETURNING id) SELECT * FROM gone',
    'COMMIT',
    'SELECT * FROM seine.tasks FOR UPDATE',
  ])
    await expect(ask(sql)).rejects.toThrow(SeineError);
  await expectBalance(store, job);
});

describe('a query of a person', () => {
  test('runs as a role that may read the views, and nothing else', async () => {
    const store = await open();
    const [role] = await collect(store.views.query('SELECT current_user AS name'));
    expect(role).toEqual({ name: 'seine_query' });
    const rights = await execute(
      "SELECT table_name FROM information_schema.role_table_grants WHERE grantee = 'seine_query' ORDER BY 1",
    );
    expect(rights).toEqual([{ table_name: 'seine_records' }, { table_name: 'seine_tasks' }]);
    const [{ rolcanlogin, rolsuper }] = await execute("SELECT * FROM pg_roles WHERE rolname = 'seine_query'");
    expect([rolcanlogin, rolsuper]).toEqual([false, false]);
  });

  test('works for an owner who may not make roles, too', async () => {
    await execute("CREATE ROLE plain LOGIN PASSWORD 'sesame'; CREATE SCHEMA own AUTHORIZATION plain");
    const store = await open(
      urlWith((at) => {
        at.username = 'plain';
        at.searchParams.set('schema', 'own');
      }),
    );
    const ask = (sql: string) => collect(store.views.query(sql));
    expect(await ask('SELECT current_user AS name')).toEqual([{ name: 'plain' }]);
    expect(await ask('SELECT url FROM seine_tasks')).toEqual([]);
    await expect(ask('SELECT stats FROM escalations')).rejects.toThrow(/may not use the table/);
  });

  test('may compute what it likes', async () => {
    const store = await open();
    const job = await createJob(store);
    await enqueue(store, job, tasksOf('https://a.example/1', 'https://a.example/2'));
    for (const sql of [
      "SELECT url FROM seine_tasks WHERE fetched_at IS NULL OR fetched_at::timestamptz < now() - interval '7 days'",
      "SELECT lower(url) AS url, length(url), coalesce(route, 'none'), url ~ 'a.e', url || 'x' FROM seine_tasks",
      'SELECT url, row_number() OVER (PARTITION BY host ORDER BY url) FROM seine_tasks ORDER BY random()',
      "SELECT regexp_replace(url, '/\\d+$', '/') || n AS url FROM seine_tasks, generate_series(1, 1) AS n",
      "SELECT max(url) AS url, string_agg(host, ','), json_agg(state) FROM seine_tasks GROUP BY url",
      'WITH t AS (SELECT url FROM seine_tasks) SELECT t.url FROM t LEFT JOIN seine_records USING (url)',
      "SELECT url, to_char(clock_timestamp(), 'YYYY'), md5(url), substring(url from 1 for 3) FROM seine_tasks",
    ])
      expect(await collect(store.views.query(sql)), sql).toHaveLength(2);
  });

  test('cannot read files, other tables or settings, nor become another role, even of a superuser', async () => {
    await execute(`
      CREATE FUNCTION public.read_it() RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT pg_read_file(''PG_VERSION'')';
      CREATE FUNCTION public.concat_it(text, text) RETURNS text LANGUAGE sql AS 'SELECT pg_read_file($1)';
      CREATE OPERATOR public.### (FUNCTION = public.concat_it, LEFTARG = text, RIGHTARG = text);
      CREATE AGGREGATE public.fold_it(text) (SFUNC = public.concat_it, STYPE = text);
    `);
    const store = await open();
    const ask = (sql: string) => collect(store.views.query(sql));
    for (const sql of [
      "SELECT pg_read_file('PG_VERSION') AS url",
      "SELECT pg_catalog.pg_read_file('PG_VERSION') AS url",
      'SELECT U&"pg\\005fread\\005ffile"(\'PG_VERSION\') AS url',
      "SELECT url FROM seine_tasks ORDER BY pg_read_file('PG_VERSION')",
      "SELECT url FROM seine_tasks WHERE url = (SELECT pg_read_file('PG_VERSION'))",
      "SELECT count(*) FILTER (WHERE pg_read_file('PG_VERSION') = '') AS url FROM seine_tasks",
      "SELECT max(url) OVER (PARTITION BY pg_read_file('PG_VERSION')) AS url FROM seine_tasks",
      "SELECT * FROM (VALUES (pg_read_file('PG_VERSION'))) AS v(url)",
      "SELECT url FROM pg_ls_dir('.') AS url",
      "SELECT f AS url FROM seine_tasks, LATERAL pg_ls_dir('.') AS f",
      "SELECT lo_import('PG_VERSION') AS url",
      "SELECT query_to_xml('SELECT pg_read_file(''PG_VERSION'')', true, true, '')::text AS url",
      "SELECT table_to_xml('seine.escalations', true, true, '')::text AS url",
      "SELECT schema_to_xml('seine', true, true, '')::text AS url",
      "SELECT set_config('role', 'none', false) AS url",
      "SELECT current_setting('data_directory') AS url",
      'SELECT public.read_it() AS url',
      "SELECT 'PG_VERSION' OPERATOR(public.###) 'x' AS url",
      'SELECT public.fold_it(url) AS url FROM seine_tasks',
      'SELECT usename AS url FROM pg_shadow',
      'SELECT query AS url FROM pg_stat_activity',
      'SELECT rolname AS url FROM pg_roles',
      'SELECT table_name AS url FROM information_schema.tables',
      'SELECT version AS url FROM seine.migrations',
      'SELECT pg_sleep(1)::text AS url',
      "COPY (SELECT 1) TO PROGRAM 'true'",
      "SELECT 1 AS url; COPY (SELECT 1) TO PROGRAM 'true'",
    ])
      await expect(ask(sql), sql).rejects.toThrow(/^the query failed: /);
    expect(await execute("SELECT 1 FROM pg_views WHERE viewname = 'seine_checked_query'")).toEqual([]);
  });
});
