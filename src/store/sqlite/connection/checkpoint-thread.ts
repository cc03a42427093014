import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * Moves pages from the write-ahead log into the database, beside the coordinator. With millions of tasks a
 * checkpoint writes thousands of scattered pages and waits for the disk: 100 ms in which nothing would be
 * planned or settled. What this leaves for the writer's own checkpoint is a moment's worth.
 */
const PAUSE_MS = 500;
/** The log is begun anew only when all of it was moved: while much is written, the rest must be short at any moment. */
const BUSY_PAUSE_MS = 20;
const BUSY_PAGES = 1_000;

const { path } = workerData as { path: string };
const db = new DatabaseSync(path);
db.exec('PRAGMA busy_timeout = 0; PRAGMA cache_size = -1024; PRAGMA synchronous = NORMAL');
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
let moved = 0;
let timer = setTimeout(move, PAUSE_MS);

function move(): void {
  let pages = 0;
  try {
    const { checkpointed } = checkpoint.get() as { checkpointed: number };
    // It counts from the start of the log, which may have begun anew.
    pages = checkpointed >= moved ? checkpointed - moved : checkpointed;
    moved = checkpointed;
  } catch {
    // Somebody else is at it; the next round will do.
  }
  timer = setTimeout(move, pages > BUSY_PAGES ? BUSY_PAUSE_MS : PAUSE_MS);
}

parentPort?.once('message', () => {
  clearTimeout(timer);
  db.close();
  parentPort?.close();
});
