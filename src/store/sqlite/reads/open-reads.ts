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
 * Reads of a database file in a thread, which starts with the first of them. What is found by its id is read here: that takes
 * some microseconds, and on busy cores a thread is only reached after milliseconds.
 */
export function openReads(path: string): ReadStore {
  const thread = new ReadThread(path);
  const partOf = <T extends ReadCall['part']>(part: T): ReadStore[T] =>
    new Proxy({} as ReadStore[T], {
      get: (_, method) =>
        typeof method === 'string' ? (...args: unknown[]) => thread.call(part, method, args) : undefined,
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
      await thread.close();
    },
  };
}

/** Starts with the first call. One that ends fails the calls that wait, and is started again with the next. */
class ReadThread {
  readonly #path: string;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #last = 0;

  constructor(path: string) {
    this.#path = path;
  }

  call(part: ReadCall['part'], method: string, args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#worker ??= this.#start();
      const id = ++this.#last;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, part, method, args } satisfies ReadCall);
    });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (!worker) return;
    worker.ref();
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    worker.postMessage('close');
    await exited;
  }

  #start(): Worker {
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./read-thread.${ending}`, import.meta.url), {
      workerData: { path: this.#path },
      name: 'reads',
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 },
    });
    worker.on('message', (answer: ReadAnswer) => {
      const asked = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('error' in answer) asked?.reject(new Error(answer.error));
      else asked?.resolve(answer.value);
    });
    worker.on('error', (error) =>
      this.#onEnded(worker, error instanceof Error ? error : new Error(String(error))),
    );
    worker.on('exit', () => this.#onEnded(worker, new Error('the thread that reads ended')));
    worker.unref();
    return worker;
  }

  #onEnded(worker: Worker, error: Error): void {
    if (this.#worker === worker) this.#worker = null;
    for (const asked of this.#waiting.values()) asked.reject(error);
    this.#waiting.clear();
  }
}
