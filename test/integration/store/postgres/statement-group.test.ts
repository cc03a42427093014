import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Connection } from '../../../../src/store/postgres/connection/connections.ts';
import { statementGroups } from '../../../../src/store/postgres/connection/statement-group.ts';
import { parseStoreUrl } from '../../../../src/store/postgres/connection/store-url.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';

let server: PostgresServer;
let connection: Connection;
/** Queries of the driver. */
let queries = 0;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const makeGroup = statementGroups(pg.Query);
  connection = new Connection(
    {
      place: parseStoreUrl(await server.createDatabase(), null),
      connect: (config) => new pg.Client(config),
      makeGroup: (parts) => {
        queries++;
        return makeGroup(parts);
      },
      silenceMs: 10_000,
    },
    0,
  );
  await connection.open();
  queries = 0;
});
afterEach(() => connection.close());

test('statements of one turn are one query of the driver, and each has its own rows', async () => {
  const found = await Promise.all([
    connection.run('SELECT 1 AS one', []),
    connection.run('SELECT n, n % 2 = 0 AS even FROM generate_series(1, $1::integer) AS n', [2]),
    connection.run('SELECT 1 AS none WHERE false', []),
  ]);
  const rows = [
    { n: 1, even: false },
    { n: 2, even: true },
  ];
  expect(found).toEqual([[{ one: 1 }], rows, []]);
  expect(queries).toBe(1);
  // Prepared by now, and described no more.
  expect(await connection.run('SELECT 1 AS one', [])).toEqual([{ one: 1 }]);
});

test('values arrive as they were given, and the character 0 as a sign that it was there', async () => {
  const texts = ['', 'a "b"', 'back\\slash', '{x,y}', 'NULL', 'é\n', null];
  const [row] = await connection.run<{ texts: string; numbers: string; flags: string; zero: string }>(
    `SELECT array_to_json($1::text[]) AS texts, array_to_json($2::bigint[]) AS numbers,
      array_to_json($3::boolean[]) AS flags, $4::text AS zero, $5::json ->> 'a' AS json, $6::text AS nothing`,
    [texts, [1, -2, Number.MAX_SAFE_INTEGER], [true, false], 'a\0b', { a: 1 }, undefined],
  );
  expect(JSON.parse(row!.texts)).toEqual(texts);
  expect(JSON.parse(row!.numbers)).toEqual([1, -2, Number.MAX_SAFE_INTEGER]);
  expect(JSON.parse(row!.flags)).toEqual([true, false]);
  expect(row).toMatchObject({ zero: 'a\ufffdb', json: '1', nothing: null });
});

test('one that fails takes the others with it, and they can be sent again', async () => {
  const failed = await Promise.allSettled([
    connection.execute('BEGIN'),
    connection.run('SELECT 1 / $1::integer AS quotient', [0]),
    connection.run('SELECT 2 AS two', []),
    connection.execute('COMMIT'),
  ]);
  for (const each of failed) expect(each).toMatchObject({ status: 'rejected', reason: { code: '22012' } });
  expect((await connection.execute('COMMIT')).command).toBe('ROLLBACK');
  const again = await Promise.all([
    connection.execute('BEGIN'),
    connection.run('SELECT 6 / $1::integer AS quotient', [3]),
    connection.run('SELECT 2 AS two', []),
    connection.execute('COMMIT'),
  ]);
  expect(again.slice(1, 3)).toEqual([[{ quotient: 2 }], [{ two: 2 }]]);
  expect(again[3]).toMatchObject({ command: 'COMMIT' });
});

test('outside of a transaction, what was done before one that fails is not stored, and is not said to be', async () => {
  await connection.command('CREATE TEMP TABLE kept (n integer)');
  const insert = 'INSERT INTO kept VALUES ($1) RETURNING n';
  const sent = await Promise.allSettled([
    connection.run(insert, [1]),
    connection.run('SELECT 1 / $1::integer AS quotient', [0]),
  ]);
  expect(sent.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await connection.run('SELECT n FROM kept', [])).toEqual([]);
  // At the end of the transaction, when the server has said already that the row is inserted.
  await connection.command('CREATE TEMP TABLE once (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)');
  await connection.run('INSERT INTO once VALUES ($1)', [1]);
  await expect(connection.run('INSERT INTO once VALUES ($1)', [1])).rejects.toMatchObject({ code: '23505' });
  expect(await connection.run(insert, [2])).toEqual([{ n: 2 }]);
});

test('a connection that ends fails all that was sent, and all that is sent then', async () => {
  const waiting = Promise.allSettled([
    connection.run('SELECT pg_terminate_backend(pg_backend_pid())', []),
    connection.run('SELECT 1', []),
  ]);
  expect((await waiting).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  connection.drop();
  await expect(connection.run('SELECT 1', [])).rejects.toThrow('Connection terminated');
  await connection.open();
  expect(await connection.run('SELECT 1 AS one', [])).toEqual([{ one: 1 }]);
});
