import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { deserialize, serialize } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../core/errors.ts';
import { memoryShare } from '../../../machine/machine.ts';
import { guardConnection } from './query-guard.ts';
import type { QueryAnswer, QueryQuestion } from './query-messages.ts';

/**
 * Runs one query in a process of its own. SQLite cannot be interrupted from JavaScript, so a thread that runs a query
 * without end could never be stopped; a process can.
 */

const STEP = 1_000;
/** Of SQLite alone: one value of a query may take a gigabyte. */
const HEAP_BYTES_MAX = memoryShare(0.25, { min: 64 * 1024 * 1024, max: 512 * 1024 * 1024 });

/** Looks every second whether whoever asked is still there. It cannot be told: the main thread may be in a query for ever. */
const WATCH = `
  const { ppid } = process;
  setInterval(() => process.ppid === ppid || process.kill(process.pid, 'SIGKILL'), 1_000);
`;
new Worker(WATCH, { eval: true, env: {}, resourceLimits: { maxOldGenerationSizeMb: 16 } }).unref();

let select: StatementSync | null = null;
let after = 0;

function run({ path, sql, rowsMax }: Extract<QueryQuestion, { kind: 'run' }>): QueryAnswer {
  const db = new DatabaseSync(path, { readOnly: true });
  db.exec(`PRAGMA busy_timeout = 10000; PRAGMA hard_heap_limit = ${HEAP_BYTES_MAX}`);
  const { spool, check } = guardConnection(db);
  check(sql);
  const query = db.prepare(sql);
  db.exec('BEGIN');
  const insert = db.prepare(`INSERT INTO temp.${spool} (row) VALUES (?)`);
  let count = 0;
  // A reader in the middle of its rows keeps the log from being emptied, and whoever asked may take days over them.
  for (const row of query.iterate()) {
    if (++count > rowsMax) throw new Error(`it has more than ${rowsMax} rows`);
    insert.run(serialize({ ...row }));
  }
  db.exec('COMMIT');
  select = db.prepare(`SELECT id, row FROM temp.${spool} WHERE id > ? ORDER BY id LIMIT ?`);
  return { kind: 'done' };
}

function next(): QueryAnswer {
  const found = select!.all(after, STEP) as { id: number; row: Uint8Array }[];
  after = found.at(-1)?.id ?? after;
  return { kind: 'rows', rows: found.map(({ row }) => deserialize(row)) };
}

process.on('message', (question: QueryQuestion) => {
  try {
    process.send!(question.kind === 'run' ? run(question) : next());
  } catch (error) {
    process.send!({ kind: 'failed', message: messageOf(error) } satisfies QueryAnswer);
  }
});
process.on('disconnect', () => process.exit());
