import type { Client } from 'pg';
import { messageOf, SeineError } from '../../../core/errors.ts';
import type { QueryOptions } from '../../../ports/views.ts';
import { QUERY_MS, tooSlow } from '../../shared/query-time.ts';
import { type ConnectionOptions, clientConfig } from '../connection/connections.ts';
import { toSeineError, troubleOf } from '../connection/failures.ts';
import { checkQuery } from './check-query.ts';

type Row = Record<string, unknown>;

const STEP = 1_000;
const CANCEL_MS = 250;

/**
 * Runs a query of a person, who may read the views and nothing else, and not for ever. A source may take days over the
 * rows, and a transaction in the middle of them keeps the database from cleaning its tables: so the server puts them
 * aside first, and gives them from there.
 */
export async function* runQuery(
  options: ConnectionOptions,
  sql: string,
  { signal, timeMs = QUERY_MS }: QueryOptions = {},
): AsyncIterable<Row> {
  signal?.throwIfAborted();
  const client = openClient(options);
  const cancelNow = () => void cancel(options, client).catch(() => {});
  let cancels: NodeJS.Timeout | null = null;
  // A server forgets what it is told between two statements: it is told again until the query ends.
  const stop = () => {
    cancels ??= setInterval(cancelNow, CANCEL_MS);
    cancelNow();
  };
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = true;
    stop();
  }, timeMs);
  try {
    signal?.addEventListener('abort', stop, { once: true });
    await client.connect();
    signal?.throwIfAborted();
    await spool(client, sql, options.place.schema, timeMs);
    clearTimeout(timer);
    while (true) {
      signal?.throwIfAborted();
      const { rows } = await client.query(`FETCH ${STEP} FROM rows_of_query`);
      yield* rows;
      if (rows.length < STEP) return;
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (isOver) throw tooSlow(timeMs);
    throw toSeineError(error, options.place.shown);
  } finally {
    clearTimeout(timer);
    if (cancels) clearInterval(cancels);
    signal?.removeEventListener('abort', stop);
    await client.end().catch(() => {});
  }
}

function openClient(options: ConnectionOptions): Client {
  const client = options.connect(clientConfig({ ...options, planned: false }, 'seine-query'));
  // Said by the statement that is under way.
  client.on('error', () => {});
  return client;
}

/** A server goes on with a statement when its connection is closed: it has to be told. */
async function cancel(options: ConnectionOptions, client: Client): Promise<void> {
  const other = openClient(options);
  try {
    await other.connect();
    const { processID } = client as Client & { processID: number };
    await other.query('SELECT pg_cancel_backend($1)', [processID]);
  } finally {
    await other.end().catch(() => {});
  }
}

const CANCELLED = '57014';

/**
 * The rows are made by COMMIT, which no timeout of the server ends: the timer here does. A server whose client is gone has
 * to notice that by itself.
 */
const LIMITS_OF_SERVER = `
  SELECT set_config(name, setting, true) FROM (VALUES ('statement_timeout', $1), ('lock_timeout', $1),
    ('client_connection_check_interval', '5000')) AS wanted(name, setting)
  WHERE name IN (SELECT pg_settings.name FROM pg_catalog.pg_settings)`;

async function spool(client: Client, sql: string, schema: string, timeMs: number): Promise<void> {
  try {
    await client.query('BEGIN');
    await client.query(LIMITS_OF_SERVER, [String(timeMs)]);
    await checkQuery(client, sql, schema);
    await takeRole(client, schema);
    await client.query('SET TRANSACTION READ ONLY');
    // Prepared, so that it cannot be more than one statement; a cursor, so that it cannot be another than SELECT.
    const text = `DECLARE rows_of_query NO SCROLL CURSOR WITH HOLD FOR ${sql}`;
    await client.query({ text, queryMode: 'extended' } as { text: string });
    await client.query('COMMIT');
  } catch (error) {
    if (troubleOf(error) === 'lost' || error instanceof SeineError) throw error;
    if ((error as { code?: string }).code === CANCELLED) throw tooSlow(timeMs);
    throw new SeineError(`the query failed: ${messageOf(error)}`, {
      hint: 'a query is one SELECT statement; its views are seine_tasks and seine_records',
      cause: error,
    });
  }
}

/** The role that may read the views, where there is one: see the migration that makes it. */
async function takeRole(client: Client, schema: string): Promise<void> {
  const role = `${schema.slice(0, 57)}_query`;
  const { rows } = await client.query(
    `SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1 AND NOT rolsuper
       AND has_schema_privilege(oid, $2, 'USAGE')
       AND has_table_privilege(oid, to_regclass($2 || '.seine_tasks'), 'SELECT')
       AND has_table_privilege(oid, to_regclass($2 || '.seine_records'), 'SELECT')`,
    [role, schema],
  );
  if (rows.length === 0) return;
  await client.query('SAVEPOINT before_role');
  // An administrator may have taken the right to be this role away again.
  await client
    .query(`SET LOCAL ROLE "${role}"`)
    .catch(() => client.query('ROLLBACK TO SAVEPOINT before_role'));
}
