import { SeineError } from '../../../core/errors.ts';
import { migrationsAfter } from '../../shared/migration.ts';
import { Connection, type ConnectionOptions, pause, SLOW_MS } from '../connection/connections.ts';
import { toSeineError } from '../connection/failures.ts';
import { MIGRATIONS } from './migrations.ts';

const VERSION_MIN = 13;
/** A server that has just been started, or is coming back from a crash, is waited for. */
const STARTING_MS = 30_000;
/** Any number, the same everywhere: whoever brings the tables up to date holds it. */
const LOCK = 7_734_001;

/** Connects for the first time: says what is wrong instead of waiting for it, and brings the tables up to date. */
export async function prepareDatabase(options: ConnectionOptions): Promise<void> {
  const { place } = options;
  const connection = new Connection(options, 0);
  try {
    await openConnection(connection);
    const text = "SELECT current_setting('server_version_num') AS version";
    const [row] = await connection.run<{ version: string }>(text, []);
    requireVersion(Number(row?.version));
    await migrate(connection, place.schema);
  } catch (error) {
    throw toSeineError(error, place.shown);
  } finally {
    await connection.close();
  }
}

async function openConnection(connection: Connection): Promise<void> {
  const until = performance.now() + STARTING_MS;
  while (true) {
    try {
      await connection.open();
      return;
    } catch (error) {
      const isStarting = (error as { code?: string }).code === '57P03';
      if (!isStarting || performance.now() > until) throw error;
      await pause(100);
    }
  }
}

/** As `server_version_num` says it: 150004 is 15.4. */
export function requireVersion(number: number): void {
  const version = Math.floor(number / 10_000);
  if (version >= VERSION_MIN) return;
  throw new SeineError(`PostgreSQL ${version} is too old`, {
    hint: `update the server to ${VERSION_MIN} or newer`,
  });
}

async function migrate(connection: Connection, schema: string): Promise<void> {
  const missing = async () =>
    migrationsAfter((await readVersion(connection, schema)) ?? 0, MIGRATIONS, 'schema');
  if ((await missing()).length === 0) return;
  await connection.command(
    `BEGIN; SET LOCAL statement_timeout = ${SLOW_MS}; SET LOCAL lock_timeout = ${SLOW_MS}`,
  );
  try {
    await connection.command(`SELECT pg_advisory_xact_lock(${LOCK})`, SLOW_MS);
    // Read again under the lock: two processes may start in a new database at once.
    if ((await readVersion(connection, schema)) === null) await makeSchema(connection, schema);
    for (const { number, sql } of await missing()) {
      await connection.command(sql, SLOW_MS);
      await connection.command(`INSERT INTO migrations (version) VALUES (${number})`);
    }
    await connection.command('COMMIT');
  } catch (error) {
    await connection.command('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** An administrator may have made it, for a user who may not. */
async function makeSchema(connection: Connection, schema: string): Promise<void> {
  const found = await connection.run('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  if (found.length === 0) await connection.command(`CREATE SCHEMA ${schema}`);
  await connection.command(`CREATE TABLE ${schema}.migrations (version integer PRIMARY KEY)`);
}

/** Null: no tables yet. */
async function readVersion(connection: Connection, schema: string): Promise<number | null> {
  const [found] = await connection.run<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [
    `${schema}.migrations`,
  ]);
  if (!found?.found) return null;
  const [row] = await connection.run<{ version: number }>(
    'SELECT coalesce(max(version), 0) AS version FROM migrations',
    [],
  );
  return row?.version ?? 0;
}
