import type { Client } from 'pg';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { type ConnectionOptions, clientConfig, SLOW_MS } from '../connection/connections.ts';
import { toSeineError, troubleOf } from '../connection/failures.ts';

type Row = Record<string, unknown>;

const STEP = 1_000;

/**
 * Runs a query of a person, who may only read, and not for ever. A source may take days over the rows, and a
 * transaction in the middle of them keeps the database from cleaning its tables: so the server puts them aside
 * first, and gives them from there.
 */
export async function* runQuery(options: ConnectionOptions, sql: string): AsyncIterable<Row> {
  const client = options.connect(clientConfig({ ...options, planned: false }, 'seine-query'));
  // Said by the statement that is under way.
  client.on('error', () => {});
  try {
    await client.connect();
    await spool(client, sql);
    while (true) {
      const { rows } = await client.query(`FETCH ${STEP} FROM rows_of_query`);
      yield* rows;
      if (rows.length < STEP) return;
    }
  } catch (error) {
    throw toSeineError(error, options.place.shown);
  } finally {
    await client.end().catch(() => {});
  }
}

async function spool(client: Client, sql: string): Promise<void> {
  try {
    await client.query(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${SLOW_MS}`);
    // Prepared, so that it cannot be more than one statement; a cursor, so that it cannot be another than SELECT.
    const text = `DECLARE rows_of_query NO SCROLL CURSOR WITH HOLD FOR ${sql}`;
    await client.query({ text, queryMode: 'extended' } as { text: string });
    await client.query('COMMIT');
  } catch (error) {
    if (troubleOf(error) === 'lost') throw error;
    throw new SeineError(`the query failed: ${messageOf(error)}`, {
      hint: 'a query is one SELECT statement; its views are seine_tasks and seine_records',
      cause: error,
    });
  }
}
