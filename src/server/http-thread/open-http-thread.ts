import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { MessageChannel, Worker } from 'node:worker_threads';
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Work } from '../api/requests/work.ts';
import { answerCalls, errorOf } from './calls.ts';
import type { HttpThreadData, HttpThreadMessage } from './thread-messages.ts';

/**
 * V8 notices that rows of a list outlive the next small collection of garbage, and makes all rows from then on where only a large
 * one looks: the heap of this thread went up to 135 MB, and stays below 60 without that.
 */
const HEAP_FLAGS = ['--no-allocation-site-pretenuring'];

/** A thread that ends at once each time must not keep the process busy. */
const AGAIN_MS = 500;

interface HttpThreadOptions {
  data: Omit<HttpThreadData, 'work'>;
  work: Work;
  logger: Logger;
  /** The thread ended by itself: what it was answering is not answered any more. */
  onEnded(): Promise<void>;
  /** It cannot be started again. */
  onBroken(error: unknown): void;
}

/** The thread that answers HTTP. One that ends by itself is started again at its address, and the jobs go on. */
export class HttpThread {
  readonly #options: HttpThreadOptions;
  #worker: Worker | null = null;
  #isClosing = false;
  #url = '';

  private constructor(options: HttpThreadOptions) {
    this.#options = options;
  }

  /** It listens when this returns. */
  static async open(options: HttpThreadOptions): Promise<HttpThread> {
    for (const flag of HEAP_FLAGS) setFlagsFromString(flag);
    const thread = new HttpThread(options);
    await thread.#start(options.data.listen.port);
    return thread;
  }

  get url(): string {
    return this.#url;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const worker = this.#worker;
    if (!worker) return;
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    worker.postMessage('close');
    await exited;
  }

  #start(port: number): Promise<void> {
    const { data, work, logger } = this.#options;
    const { port1, port2 } = new MessageChannel();
    answerCalls(port1, partsOf(work));
    // Its calls alone keep no process alive.
    port1.unref();
    const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const worker = new Worker(new URL(`./http-thread.${ending}`, import.meta.url), {
      workerData: { ...data, listen: { ...data.listen, port }, work: port2 } satisfies HttpThreadData,
      transferList: [port2],
      name: 'http',
      // Node 22 warns of SQLite in each thread.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    return new Promise((resolve, reject) => {
      let failure: unknown = null;
      worker.on('message', (message: HttpThreadMessage) => {
        if (message.kind === 'log') logger[message.level](message.message, message.fields);
        else if (message.kind === 'failed') reject(errorOf(message.error));
        else {
          this.#url = message.url;
          resolve();
        }
      });
      worker.on('error', (error) => {
        failure = error;
      });
      worker.once('exit', () => {
        port1.close();
        if (this.#worker === worker) this.#worker = null;
        const error = failure ?? new Error('the thread that answers HTTP ended');
        reject(error);
        if (!this.#isClosing && this.#url !== '') void this.#startAgain(error);
      });
    });
  }

  async #startAgain(error: unknown): Promise<void> {
    const { logger, onEnded, onBroken } = this.#options;
    logger.error(`the thread that answers HTTP ended and is started again: ${messageOf(error)}`);
    try {
      await onEnded();
      await sleep(AGAIN_MS, undefined, { ref: false });
      if (!this.#isClosing) await this.#start(Number(new URL(this.#url).port));
    } catch (failed) {
      onBroken(failed);
    }
  }
}

function partsOf({ store, ...others }: Work): Map<string, object> {
  const parts = new Map<string, object>(Object.entries(others));
  for (const name of STORE_PARTS) parts.set(`store.${name}`, store[name]);
  return parts;
}

const STORE_PARTS = [
  'jobs',
  'frontier',
  'hosts',
  'proxies',
  'escalations',
  'keys',
  'webhooks',
  'alerts',
  'requests',
  'removals',
  'views',
] as const satisfies readonly (keyof Work['store'])[];
