import { Worker } from 'node:worker_threads';
import type { ReadStore } from '../../../ports/read-store.ts';
import { Database } from '../connection/database.ts';
import { SqliteJobStore } from '../job-store.ts';
import { SqliteKeyStore } from '../key-store.ts';
import type { ReadAnswer, ReadCall } from './read-messages.ts';

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * Reads of a database file in a thread, which starts with the first of them. One that ends is started again. What is found by
 * its id is read here: that takes some microseconds, and on busy cores a thread is only reached after milliseconds.
 */
export function openReads(path: string): ReadStore {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | null = null;
  let last = 0;

  const start = (): Worker => {
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const started = new Worker(new URL(`./read-thread.${ending}`, import.meta.url), {
      workerData: { path },
      name: 'reads',
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 },
    });
    started.on('message', (answer: ReadAnswer) => {
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if ('error' in answer) asked?.reject(new Error(answer.error));
      else asked?.resolve(answer.value);
    });
    const end = (error: Error) => {
      if (worker === started) worker = null;
      for (const asked of waiting.values()) asked.reject(error);
      waiting.clear();
    };
    started.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))));
    started.on('exit', () => end(new Error('the thread that reads ended')));
    started.unref();
    return started;
  };

  const call = (part: ReadCall['part'], method: string, args: unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      worker ??= start();
      const id = ++last;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, part, method, args } satisfies ReadCall);
    });

  const partOf = <T extends ReadCall['part']>(part: T): ReadStore[T] =>
    new Proxy({} as ReadStore[T], {
      get: (_, method) =>
        typeof method === 'string' ? (...args: unknown[]) => call(part, method, args) : undefined,
    });

  const db = new Database(path, { readOnly: true });
  return {
    jobs: new SqliteJobStore(db, new Set()),
    keys: new SqliteKeyStore(db),
    hosts: partOf('hosts'),
    views: partOf('views'),
    rollups: partOf('rollups'),
    slotTimes: partOf('slotTimes'),
    workers: partOf('workers'),
    async close() {
      db.close();
      const ending = worker;
      if (!ending) return;
      ending.ref();
      const exited = new Promise<void>((resolve) => ending.once('exit', () => resolve()));
      ending.postMessage('close');
      await exited;
    },
  };
}
