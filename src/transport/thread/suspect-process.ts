import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Batch, Report } from '../../core/batch/batch.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Delivery } from '../../ports/dispatcher.ts';
import type { ThreadData } from './thread-messages.ts';

/** What a process for suspects is told. */
export type ToSuspectProcess =
  | {
      kind: 'open';
      thread: string;
      data: Omit<ThreadData, 'name' | 'marks'>;
      env: Record<string, string>;
      name: string;
      heapMbMax?: number;
    }
  | { kind: 'batch'; batch: Batch }
  | { kind: 'recall'; batchId: number }
  | { kind: 'drain' };

export type FromSuspectProcess =
  | { kind: 'log'; level: 'info' | 'warn' | 'error'; message: string }
  | { kind: 'part'; report: Report }
  | { kind: 'delivery'; delivery: Delivery };

interface SuspectProcessOptions {
  /** The entry of such a process, and that of its thread. */
  entry: URL;
  thread: URL;
  data: Omit<ThreadData, 'name' | 'marks'>;
  /** Of its thread: the process itself finds credentials for it. */
  env: Record<string, string>;
  name: string;
  logger?: Logger | undefined;
  heapMbMax?: number | undefined;
  /** Beyond the time of a batch: a process that has not answered then stands still, and is ended. */
  answerMs?: number;
}

interface Waiting {
  batch: Batch;
  onPart(report: Report): void;
  resolve(delivery: Delivery): void;
}

/** Until then the next batch of suspects finds its process ready. */
const IDLE_MS = 10_000;
/** To start, and to end a thread that is stuck: the process itself does that 5 s after the time of the batch. */
const ANSWER_MS = 12_000;

/**
 * Batches whose tasks may kill their worker run here: one at a time in a process of its own, so that even a page that ends
 * its process takes no other with it, and not the coordinator.
 */
export class SuspectProcess {
  readonly #options: SuspectProcessOptions;
  readonly #queue: Waiting[] = [];
  #current: Waiting | null = null;
  #child: ChildProcess | null = null;
  #idle: NodeJS.Timeout | null = null;
  #deadline: NodeJS.Timeout | null = null;
  #isDraining = false;
  #closed = false;

  constructor(options: SuspectProcessOptions) {
    this.#options = options;
  }

  get load(): number {
    return this.#queue.length + (this.#current ? 1 : 0);
  }

  dispatch(batch: Batch, onPart: (report: Report) => void): Promise<Delivery> {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    this.#queue.push({ batch, onPart, resolve });
    this.#next();
    return promise;
  }

  recall(batchId: number): void {
    if (this.#current?.batch.id === batchId) this.#post({ kind: 'recall', batchId });
  }

  drain(): void {
    this.#isDraining = true;
    this.#post({ kind: 'drain' });
  }

  /** What is out is lost. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#idle) clearTimeout(this.#idle);
    if (this.#deadline) clearTimeout(this.#deadline);
    const child = this.#child;
    if (!child) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
    await promise;
  }

  #next(): void {
    if (this.#current || this.#closed) return;
    this.#current = this.#queue.shift() ?? null;
    if (!this.#current) return;
    if (this.#idle) clearTimeout(this.#idle);
    this.#child ??= this.#start();
    const { batch } = this.#current;
    this.#post({ kind: 'batch', batch });
    if (this.#isDraining) this.#post({ kind: 'drain' });
    this.#deadline = setTimeout(() => this.#giveUp(), batch.budgetMs + (this.#options.answerMs ?? ANSWER_MS));
    this.#deadline.unref();
  }

  /** A process that stands still would keep the suspects of all jobs waiting for ever. */
  #giveUp(): void {
    this.#child?.kill('SIGKILL');
    this.#child = null;
    this.#end('the process for suspects did not answer in time');
  }

  #start(): ChildProcess {
    const { entry, thread, data, env, name, heapMbMax } = this.#options;
    // Batches go by this pipe, and pages only by the archive: what the code of a job prints comes out as from a thread.
    const child = fork(fileURLToPath(entry), [], {
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const open: ToSuspectProcess = { kind: 'open', thread: thread.href, data, env, name };
    child.send(heapMbMax === undefined ? open : { ...open, heapMbMax });
    // What comes of one that was given up is late: the present batch is another's.
    child.on('message', (message: FromSuspectProcess) => {
      if (this.#child === child) this.#hear(message);
    });
    child.on('error', () => {});
    child.once('exit', (code, signal) => {
      if (this.#child !== child) return;
      this.#child = null;
      this.#end(`the process for suspects died: ${signal ?? `exit code ${code}`}`);
    });
    return child;
  }

  #post(message: ToSuspectProcess): void {
    // One that has just ended says so by its exit.
    if (this.#child?.connected) this.#child.send(message, () => {});
  }

  #hear(message: FromSuspectProcess): void {
    if (message.kind === 'log') this.#options.logger?.[message.level](message.message);
    else if (message.kind === 'part') this.#current?.onPart(message.report);
    else this.#finish(message.delivery);
  }

  #end(reason: string): void {
    const batchId = this.#current?.batch.id;
    if (batchId !== undefined) this.#finish({ kind: 'lost', batchId, reason, ended: true });
    if (!this.#closed) return;
    for (const { batch, resolve } of this.#queue.splice(0))
      resolve({ kind: 'lost', batchId: batch.id, reason, ended: true, blameless: true });
  }

  #finish(delivery: Delivery): void {
    if (this.#deadline) clearTimeout(this.#deadline);
    this.#current?.resolve(delivery);
    this.#current = null;
    this.#next();
    if (this.#current || !this.#child) return;
    this.#idle = setTimeout(() => this.#child?.kill(), IDLE_MS);
    this.#idle.unref();
  }
}
