import { parentPort, workerData } from 'node:worker_threads';
import type { ReadStore } from '../../../ports/store/read-store.ts';
import { ReadViews } from '../../shared/views/read-views.ts';
import { SharedWorkerStore } from '../../shared/worker-store.ts';
import { Database } from '../connection/database.ts';
import { SqliteReader } from '../connection/reader.ts';
import { SqliteHostStore } from '../host-store.ts';
import { SqliteRollupStore } from '../rollup-store.ts';
import { SqliteSlotTimeStore } from '../slot-time-store.ts';
import { SqliteWebhookDatabase } from '../webhooks.ts';
import type { ReadAnswer, ReadCall } from './read-messages.ts';

/** Answers reads beside the coordinator, on a connection that cannot write. */

class ThreadViews extends ReadViews {
  /** URLs are found by an index that the writer has in its memory. */
  protected findTask(): Promise<number | null> {
    throw new Error('tasks are not found by their URLs here');
  }
}

const { path } = workerData as { path: string };
const db = new Database(path, { readOnly: true });
const store: Omit<ReadStore, 'jobs' | 'keys' | 'close'> = {
  hosts: new SqliteHostStore(db),
  views: new ThreadViews(new SqliteReader(db)),
  rollups: new SqliteRollupStore(db),
  slotTimes: new SqliteSlotTimeStore(db),
  workers: new SharedWorkerStore(new SqliteWebhookDatabase(db)),
};
const port = parentPort!;

port.on('message', async (call: ReadCall | 'close') => {
  if (call === 'close') {
    db.close();
    port.close();
    return;
  }
  const { id, part, method, args } = call;
  let answer: ReadAnswer;
  try {
    const of = store[part] as Record<string, (...args: unknown[]) => Promise<unknown>>;
    answer = { id, value: await of[method]!(...args) };
  } catch (error) {
    answer = { id, error: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(answer);
});
