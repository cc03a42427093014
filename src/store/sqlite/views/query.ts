import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { QueryOptions } from '../../../ports/views.ts';

type Row = Record<string, unknown>;

const STEP = 1_000;
/** Rows that are slow to find must not keep the rest of the process waiting for a whole step of them. */
const TURN_MS = 20;

/**
 * Runs a query of a person on a connection that can only read. A source may take days over its rows, and a reader in
 * the middle of them keeps the log from being emptied: so they are copied into a temporary table of the connection
 * first, and given from there.
 */
export async function* runQuery(path: string, sql: string, options: QueryOptions = {}): AsyncIterable<Row> {
  requireSelect(sql);
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    db.exec('PRAGMA busy_timeout = 10000');
    try {
      await spool(db, sql, options.signal);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw new SeineError(`the query failed: ${messageOf(error)}`, {
        hint: 'use a read-only query on the views seine_tasks and seine_records',
        cause: error,
      });
    }
    yield* readSpool(db);
  } finally {
    db.close();
  }
}

async function spool(db: DatabaseSync, sql: string, signal?: AbortSignal): Promise<void> {
  const query = db.prepare(sql);
  db.exec('CREATE TEMP TABLE spool (id INTEGER PRIMARY KEY, row BLOB NOT NULL); BEGIN');
  const insert = db.prepare('INSERT INTO temp.spool (row) VALUES (?)');
  let count = 0;
  let turnAt = performance.now() + TURN_MS;
  for (const row of query.iterate()) {
    if (++count > LIMITS.queryRowsMax) throw new Error(`it has more than ${LIMITS.queryRowsMax} rows`);
    insert.run(serialize({ ...row }));
    if (count % STEP !== 0 && performance.now() < turnAt) continue;
    await turn();
    signal?.throwIfAborted();
    turnAt = performance.now() + TURN_MS;
  }
  db.exec('COMMIT');
}

function* readSpool(db: DatabaseSync): Iterable<Row> {
  const select = db.prepare('SELECT id, row FROM temp.spool WHERE id > ? ORDER BY id LIMIT ?');
  let after = 0;
  while (true) {
    const rows = select.all(after, STEP) as unknown as { id: number; row: Uint8Array }[];
    for (const { row } of rows) yield deserialize(row);
    const last = rows.at(-1);
    if (!last) return;
    after = last.id;
  }
}

/** Strings, quoted names and comments: what is inside of them is no keyword and no end of a statement. */
const QUOTED = /'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g;

function requireSelect(sql: string): void {
  const bare = sql.replace(QUOTED, (part) => (/^(--|\/\*)/.test(part) ? ' ' : 'x'));
  const statement = bare.replace(/;\s*$/, '').trim();
  if (/^(select|with)\b/i.test(statement) && !statement.includes(';')) return;
  throw new SeineError('a query must be one SELECT statement', {
    hint: "for example: SELECT url FROM seine_records WHERE job = 'shop'",
  });
}
