import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * Moves pages from the write-ahead log into the database, beside the coordinator. With millions of tasks a
 * checkpoint writes thousands of scattered pages and waits for the disk: 100 ms in which nothing would be
 * planned or settled. What this leaves for the writer's own checkpoint is a moment's worth.
 */
const PAUSE_MS = 500;

const { path } = workerData as { path: string };
const db = new DatabaseSync(path);
db.exec('PRAGMA busy_timeout = 0; PRAGMA cache_size = -1024; PRAGMA synchronous = NORMAL');
const timer = setInterval(() => {
  try {
    db.exec('PRAGMA wal_checkpoint(PASSIVE)');
  } catch {
    // Somebody else is at it; the next round will do.
  }
}, PAUSE_MS);

parentPort?.once('message', () => {
  clearInterval(timer);
  db.close();
  parentPort?.close();
});
