import { Worker } from 'node:worker_threads';
import type { ReadStore } from '../../../ports/store/read-store.ts';
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

/** A thread, and the calls that wait for it: one that breaks ends later than its successor may begin. */
interface Started {
  worker: Worker;
  waiting: Map<number, Waiting>;
}

/** Starts with the first call. One that ends fails the calls that wait for it, and is started again with the next. */
class ReadThread {
  readonly #path: string;
  #started: Started | null = null;
  #last = 0;

  constructor(path: string) {
    this.#path = path;
  }

  call(part: ReadCall['part'], method: string, args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#started ??= this.#start();
      const { worker, waiting } = this.#started;
      const id = ++this.#last;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, part, method, args } satisfies ReadCall);
    });
  }

  async close(): Promise<void> {
    const worker = this.#started?.worker;
    if (!worker) return;
    worker.ref();
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    worker.postMessage('close');
    await exited;
  }

  #start(): Started {
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./read-thread.${ending}`, import.meta.url), {
      workerData: { path: this.#path },
      name: 'reads',
      // Node 22 warns of SQLite in each thread.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 },
    });
    const waiting = new Map<number, Waiting>();
    const started = { worker, waiting };
    worker.on('message', (answer: ReadAnswer) => {
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if ('error' in answer) asked?.reject(new Error(answer.error));
      else asked?.resolve(answer.value);
    });
    worker.on('error', (error) =>
      this.#onEnded(started, error instanceof Error ? error : new Error(String(error))),
    );
    worker.on('exit', () => this.#onEnded(started, new Error('the thread that reads ended')));
    worker.unref();
    return started;
  }

  #onEnded(ended: Started, error: Error): void {
    if (this.#started === ended) this.#started = null;
    for (const asked of ended.waiting.values()) asked.reject(error);
    ended.waiting.clear();
  }
}
