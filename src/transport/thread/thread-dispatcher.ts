import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import type { EventLoopUtilization } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { type AwsCredentialsProvider, openCredentials } from '../../aws/s3/s3-client.ts';
import type { Batch, Report } from '../../core/batch/batch.ts';
import { deferredReport, failureReport } from '../../core/batch/report.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { isLane, isLaneTaken } from '../../core/pace/address-pace.ts';
import { fixedThreads, type ThreadRange } from '../../core/scaling/threads.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Delivery, Dispatcher } from '../../ports/dispatcher.ts';
import { CpuMeter } from '../cpu-meter.ts';
import { type PackedReport, packReport } from '../packed-report.ts';
import { ThreadMarks } from './code-marks.ts';
import { SuspectProcess } from './suspect-process.ts';
import type { FromThread, ThreadData, ThreadReport, ToThread } from './thread-messages.ts';
import { ThreadScaler } from './thread-scaler.ts';

export interface ThreadDispatcherOptions {
  /** A number, or a range in which it follows the work. */
  threads: number | ThreadRange;
  /** The entry that runs `processBatch` in each thread. */
  entry: URL;
  /** The entry of processes for batches of suspects; those run in the threads when absent. */
  suspectEntry?: URL;
  data: Omit<ThreadData, 'name' | 'marks'>;
  /** All that code of jobs sees there of the environment. */
  env: Record<string, string>;
  /** Of the process, where several have threads for one job. */
  name?: string;
  /** What threads have to say; the same words are said once for all of them. */
  logger?: Logger;
  /** For the batch that is sent next, where the coordinator is on another machine and the time to answer is limited. */
  call?: () => { clockOffsetMs: number; answerMs: number };
  /** What threads get that ask for credentials; those of the environment when absent. */
  credentials?: AwsCredentialsProvider;
  /** A page that needs more than this kills its thread, not the run. */
  heapMbMax?: number | undefined;
}

/**
 * When V8 collects all garbage of a heap, by what is in its old part and what bodies take outside of it. Reports, tasks and
 * links live long enough to become old, 1 KB for each page, and are only collected then.
 *
 * The first time: a worker's heap is small, and without a number bodies alone reach V8's first limit: 22 full collections
 * in 6,000 pages. At 128 MB there was none in 100,000 pages, and the process took 470 MB; with 64 it takes 365, with 48 340. But
 * bodies of pictures count, too: with 48 they take 5 % more CPU than with 64, and 18 % more where they are packed.
 *
 * From then on: when the heap is twice what was left of it. By itself V8 leaves a worker less, which is a full collection
 * for each 1,400 pages instead of 5,500, and the coordinator more: its old part grew to 65 MB instead of 27.
 */
const HEAP_FLAGS = ['--initial-old-space-size=64', '--heap-growing-percent=100'];

/**
 * Each thread compiles what it runs for itself, and TurboFan takes most of that time: for 20,000 pages it paid itself back only
 * where a function was called much more often than 3,000 times, which is V8's own number. With this one such a crawl takes
 * 0.97 times the CPU, one of 100,000 pages as much as before.
 */
const COMPILER_FLAGS = ['--invocation-count-for-turbofan=30000'];

/** Pages make much short-lived garbage; the process itself is started with less, see bin/seine.js. */
const YOUNG_MB = 48;

/** Batches per thread: most of a batch is waiting for hosts, so a thread has several under way. */
export const SLOTS_PER_THREAD = 8;
const HEARTBEAT_HOSTS_MAX = 8;
/** A thread that dies this often before it is ready will not get better. */
const FAILED_STARTS_MAX = 3;

/** Past its budget by this much, a thread is stuck in code of the job and will not answer. */
const STUCK_AFTER_MS = 5_000;
const WATCH_MS = 500;
/** Code that keeps its time to the last moment is not stuck. */
const LATE_MS = 500;
/** Code that lets nothing else run for so long, when the time of its batch is over, will not answer either. */
const BLOCKED_MS = 1_000;
/** A thread that is asked to close ends its connections and goes; then it is ended. */
const CLOSE_MS = 2_000;

interface Open {
  batch: Batch;
  sentAt: number;
  answerBy: number;
  onPart(report: ThreadReport): void;
  resolve(delivery: ThreadDelivery): void;
}

type Lost = Extract<Delivery, { kind: 'lost' }>;
type ThreadDelivery = Lost | { kind: 'report'; report: ThreadReport };
type PackedDelivery = Lost | { kind: 'report'; report: PackedReport };

export interface ThreadDispatcher extends Dispatcher {
  /** Starts all threads: when they can work, or will never. */
  readonly started: Promise<void>;
  /** As `dispatch`, with reports as they go on to another machine. */
  dispatchPacked(batch: Batch, onPart: (report: PackedReport) => void): Promise<PackedDelivery>;
  /** Asks for what there is of one batch; its dispatch still resolves. */
  recall(batchId: number): void;
}

export function openThreadDispatcher(options: ThreadDispatcherOptions): ThreadDispatcher {
  if (options.entry.protocol === 'file:' && !existsSync(options.entry))
    throw new SeineError(`a file of Seine is missing: ${fileURLToPath(options.entry)}`, {
      hint: 'install Seine again (from sources: npm run build)',
    });
  for (const flag of [...HEAP_FLAGS, ...COMPILER_FLAGS]) setFlagsFromString(flag);
  const told = { ...options, ...(options.logger ? { logger: onceEach(options.logger) } : {}) };
  const range = typeof options.threads === 'number' ? fixedThreads(options.threads) : options.threads;
  const scaler = new ThreadScaler(range, SLOTS_PER_THREAD, options.logger);
  const threads = new ThreadPool(told, range.first, scaler);
  const watch = setInterval(() => threads.watch(), WATCH_MS);
  watch.unref();
  const scale = range.min === range.max ? null : setInterval(() => threads.scale(), range.lookMs);
  scale?.unref();
  const cpu = new CpuMeter();
  const done = { batches: 0, tasks: 0 };
  const lanes = new Set<Batch>();
  const counted = ({ outcomes }: ThreadReport) => {
    const count = typeof outcomes === 'number' ? outcomes : outcomes.length;
    done.tasks += count;
    scaler.countTasks(count);
  };
  const apart = options.suspectEntry ? openSuspects(told, options.suspectEntry) : null;
  const carry = async (
    batch: Batch,
    packed: boolean,
    onPart: (report: ThreadReport) => void,
  ): Promise<ThreadDelivery> => {
    // All threads have one address. What is not begun here goes to another.
    if (isLaneTaken(batch, lanes))
      return {
        kind: 'report',
        report: deferredReport(batch, { worker: options.name ?? 'local', now: Date.now() }),
      };
    if (batch.permits.some(isLane)) lanes.add(batch);
    const counting = (part: ThreadReport) => {
      counted(part);
      onPart(part);
    };
    const delivery = await (batch.suspects && apart
      ? apart.dispatch(batch, counting)
      : dispatchToIdlest(batch, packed, counting));
    lanes.delete(batch);
    if (delivery.kind === 'report') counted(delivery.report);
    done.batches++;
    return delivery;
  };
  const dispatchToIdlest = async (
    batch: Batch,
    packed: boolean,
    onPart: (report: ThreadReport) => void,
  ): Promise<ThreadDelivery> => {
    scaler.count(1);
    const delivery = await threads.idlestFor(batch).dispatch(batch, packed, onPart);
    scaler.count(-1);
    return delivery;
  };
  return {
    get workers() {
      return threads.taking.length;
    },
    get slots() {
      return threads.taking.length * SLOTS_PER_THREAD;
    },
    get spareSlots() {
      return Math.max(0, range.max - threads.taking.length) * SLOTS_PER_THREAD;
    },
    get decisions() {
      return scaler.decisions;
    },
    want: (wanted) => scaler.want(wanted),
    ...(apart ? { suspectSlots: 1 } : {}),
    refusal() {
      const [problem, ...others] = threads.taking.map((thread) => thread.problem);
      return problem != null && !others.includes(null) ? new SeineError(problem) : null;
    },
    get started() {
      threads.start();
      return Promise.all(threads.all.map(({ started }) => started)).then(() => {});
    },
    async dispatch(batch, onPart) {
      const delivery = await carry(batch, false, (report) => onPart(asReport(report)));
      return delivery.kind === 'lost' ? delivery : { ...delivery, report: asReport(delivery.report) };
    },
    async dispatchPacked(batch, onPart) {
      const delivery = await carry(batch, true, (report) => onPart(asPacked(report)));
      return delivery.kind === 'lost' ? delivery : { ...delivery, report: asPacked(delivery.report) };
    },
    async heartbeats() {
      const hosts = threads.all.flatMap((thread) => thread.hosts);
      return [
        {
          worker: options.name ?? `${hostname()}-${process.pid}`,
          kind: 'threads',
          at: Date.now(),
          software: VERSION,
          threads: threads.all.length,
          slots: threads.taking.length * SLOTS_PER_THREAD,
          isDraining: false,
          cpu: cpu.take(),
          memoryBytes: process.memoryUsage.rss(),
          batches: threads.all.reduce((sum, { load }) => sum + load, 0),
          batchesDone: done.batches,
          tasksDone: done.tasks,
          hosts: [...new Set(hosts)].slice(0, HEARTBEAT_HOSTS_MAX),
        },
      ];
    },
    recall(batchId) {
      apart?.recall(batchId);
      for (const thread of threads.all) if (thread.has(batchId)) thread.post({ kind: 'recall', batchId });
    },
    giveBack(batchId, hosts) {
      for (const thread of threads.all)
        if (thread.has(batchId)) thread.post({ kind: 'giveBack', batchId, hosts });
    },
    announce(priority) {
      for (const thread of threads.all) thread.post({ kind: 'announce', priority });
    },
    async drain() {
      apart?.drain();
      if (scale) clearInterval(scale);
      for (const thread of threads.all) thread.post({ kind: 'drain' });
    },
    async close() {
      clearInterval(watch);
      if (scale) clearInterval(scale);
      await Promise.all([apart?.close(), threads.close()]);
    },
  };
}

/**
 * The threads of a process. The first one starts at once, each of the others with its first batch: a thread computes for
 * 100 ms until it can work, and on few cores the first request would wait for all of them. Those that are to end take no
 * more batches, and end when they have none.
 */
class ThreadPool {
  readonly #options: ThreadDispatcherOptions;
  readonly #scaler: ThreadScaler;
  readonly #threads: Thread[];
  /** Cannot take batches yet, and may never. */
  readonly #starting = new Set<Thread>();
  readonly #leaving = new Set<Thread>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: ThreadDispatcherOptions, count: number, scaler: ThreadScaler) {
    this.#options = options;
    this.#scaler = scaler;
    this.#threads = Array.from({ length: count }, (_, index) => new Thread(options, index + 1));
    this.#threads[0]?.start();
  }

  start(): void {
    for (const thread of this.#threads) thread.start();
  }

  get all(): readonly Thread[] {
    return this.#threads;
  }

  get taking(): readonly Thread[] {
    return this.#threads.filter((thread) => !this.#starting.has(thread) && !this.#leaving.has(thread));
  }

  /** The one that is done with it first: batches of lower priority stand back, so they count only between equals. */
  idlestFor(batch: Batch): Thread {
    const able = this.taking.filter(({ problem }) => problem === null);
    const candidates = able.length > 0 ? able : this.taking;
    const priority = priorityOf(batch);
    const ranked = candidates.map((thread) => ({ thread, ahead: thread.aheadOf(priority) }));
    return ranked.reduce((best, each) => (isIdler(each, best) ? each : best)).thread;
  }

  watch(): void {
    for (const thread of this.#threads) thread.watch();
  }

  /** Starts and ends threads, so that there are as many as there should be. */
  scale(): void {
    const wanted = this.#scaler.look(this.#threads.reduce((sum, thread) => sum + thread.takeComputed(), 0));
    const staying = () => this.#threads.length - this.#leaving.size;
    while (staying() < wanted) {
      // One that has not ended yet stays.
      const [kept] = this.#leaving;
      if (kept) this.#leaving.delete(kept);
      else if (!this.#add()) break;
    }
    for (const thread of this.taking.toSorted((one, other) => one.load - other.load)) {
      // Those that start cannot take batches yet: one that can stays until then.
      if (staying() <= wanted || this.taking.length === 1) break;
      this.#leaving.add(thread);
    }
    for (const thread of [...this.#leaving]) if (thread.load === 0) this.#end(thread);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#ending, ...this.#threads.map((thread) => thread.close())]);
  }

  #add(): boolean {
    const numbers = new Set(this.#threads.map(({ number }) => number));
    let number = 1;
    while (numbers.has(number)) number++;
    try {
      const thread = new Thread(this.#options, number);
      thread.start();
      this.#threads.push(thread);
      this.#starting.add(thread);
      void thread.started.then(() => {
        if (this.#isClosed) return;
        if (thread.problem === null) this.#starting.delete(thread);
        else this.#giveUp(thread, thread.problem);
      });
      return true;
    } catch (error) {
      // The machine has no room for it: those that are there go on.
      this.#scaler.fail(this.#threads.length, `cannot start another: ${messageOf(error)}`);
      return false;
    }
  }

  #giveUp(thread: Thread, problem: string): void {
    this.#starting.delete(thread);
    this.#threads.splice(this.#threads.indexOf(thread), 1);
    this.#scaler.fail(this.#threads.length - this.#leaving.size, problem);
  }

  #end(thread: Thread): void {
    this.#leaving.delete(thread);
    this.#threads.splice(this.#threads.indexOf(thread), 1);
    const ended = thread.close().finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}

function asReport(report: ThreadReport): Report {
  if ('pieces' in report) throw new Error('a thread packed a report that is wanted as it is');
  return report;
}

/** Those that are not of a thread are packed here: a process of its own made them, or this one speaks for a thread that died. */
function asPacked(report: ThreadReport): PackedReport {
  return 'pieces' in report ? report : packReport(report);
}

interface RankedThread {
  thread: Thread;
  ahead: { batches: number; tasks: number };
}

function isIdler(one: RankedThread, other: RankedThread): boolean {
  const less = one.ahead.batches - other.ahead.batches || one.ahead.tasks - other.ahead.tasks;
  return (less || one.thread.load - other.thread.load) < 0;
}

function priorityOf({ job }: Batch): number {
  return job.spec.priority ?? 0;
}

function openSuspects(options: ThreadDispatcherOptions, entry: URL): SuspectProcess {
  const { entry: thread, data, env, logger, heapMbMax, name } = options;
  const own = `${name === undefined ? '' : `${name}/`}suspects`;
  return new SuspectProcess({ entry, thread, data, env, name: own, logger, heapMbMax });
}

/** Of words that differ, threads have few. */
const WORDS_MAX = 1_000;

function onceEach(logger: Logger): Logger {
  const said = new Set<string>();
  const at = (level: 'info' | 'warn' | 'error') => (message: string, fields?: Record<string, unknown>) => {
    if (said.has(message) || said.size >= WORDS_MAX) return;
    said.add(message);
    logger[level](message, fields);
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** One worker thread; replaced when it dies, with its batches reported as lost. */
class Thread {
  readonly #options: ThreadDispatcherOptions;
  readonly #name: string;
  readonly number: number;
  readonly #open = new Map<number, Open>();
  /** Null until it is started. */
  #worker: Worker | null = null;
  #utilized: EventLoopUtilization | undefined;
  /** When the present worker has exited. */
  #ended: Promise<void> = Promise.resolve();
  #ready = false;
  readonly #begun = Promise.withResolvers<void>();
  #failedStarts = 0;
  #closing = false;
  #isDraining = false;
  #lastError = 'the thread ended';
  #marks = new ThreadMarks();
  /** Why the thread was ended from here, and that no batch is to blame for it. */
  #isConvicted = false;
  #credentials: AwsCredentialsProvider | null = null;

  constructor(options: ThreadDispatcherOptions, number: number) {
    this.#options = options;
    this.number = number;
    this.#name = `${options.name === undefined ? '' : `${options.name}/`}thread-${number}`;
  }

  start(): void {
    this.#worker ??= this.#startWorker();
  }

  get started(): Promise<void> {
    return this.#begun.promise;
  }

  /** Why it will never work; null while it may. */
  get problem(): string | null {
    return this.#failedStarts < FAILED_STARTS_MAX ? null : `cannot start worker threads: ${this.#lastError}`;
  }

  /** Batches under way. */
  get load(): number {
    return this.#open.size;
  }

  /** Those that are at least as urgent. */
  aheadOf(priority: number): { batches: number; tasks: number } {
    const ahead = { batches: 0, tasks: 0 };
    for (const { batch } of this.#open.values()) {
      if (priorityOf(batch) < priority) continue;
      ahead.batches++;
      ahead.tasks += batch.tasks.length;
    }
    return ahead;
  }

  has(batchId: number): boolean {
    return this.#open.has(batchId);
  }

  /** Share of the time since this was last asked in which it did not wait. */
  takeComputed(): number {
    if (this.#worker === null) return 0;
    const { performance: loop } = this.#worker;
    const before = this.#utilized;
    this.#utilized = loop.eventLoopUtilization();
    return before ? loop.eventLoopUtilization(this.#utilized, before).utilization : 0;
  }

  /** Those that its batches ask. */
  get hosts(): string[] {
    return [...this.#open.values()].flatMap(({ batch }) => batch.permits.map(({ host }) => host));
  }

  post(message: ToThread): void {
    if (message.kind === 'drain') this.#isDraining = true;
    this.#worker?.postMessage(message);
  }

  dispatch(batch: Batch, packed: boolean, onPart: (report: ThreadReport) => void): Promise<ThreadDelivery> {
    const { promise, resolve } = Promise.withResolvers<ThreadDelivery>();
    const { problem } = this;
    if (problem !== null)
      return Promise.resolve({ kind: 'lost', batchId: batch.id, reason: problem, running: [] });
    const call = this.#options.call?.();
    const sentAt = performance.now();
    const answerBy = sentAt + batch.budgetMs + Math.min(STUCK_AFTER_MS, call?.answerMs ?? STUCK_AFTER_MS);
    this.#open.set(batch.id, { batch, onPart, resolve, sentAt, answerBy });
    this.start();
    this.post({ kind: 'batch', batch, packed, ...(call ? { clockOffsetMs: call.clockOffsetMs } : {}) });
    return promise;
  }

  /**
   * A loop without end in a handler blocks its thread for good: when the time of its task is over, the task has failed, the
   * thread is ended, and the other tasks go back. Behind an `await` it is not known whose loop it is.
   */
  watch(): void {
    if (this.#isConvicted) return;
    const running = this.#marks.running;
    const now = performance.now();
    const open = [...this.#open.values()];
    // A process that was frozen has been silent meanwhile.
    const silentMs = Math.min(this.#marks.silentMs, now - Math.min(now, ...open.map(({ sentAt }) => sentAt)));
    const isOver = open.some(({ answerBy }) => answerBy < now);
    if (running && (running.lateMs > LATE_MS || (isOver && silentMs > BLOCKED_MS))) {
      this.#convict(running);
      return;
    }
    const taskMs = Math.max(0, ...open.map(({ batch }) => batch.job.spec.timeouts.taskMs));
    if (silentMs <= taskMs + LATE_MS && !isOver) return;
    this.#lastError = 'the worker did not answer in time';
    void this.#worker?.terminate();
  }

  #convict({ batchId, taskId, lateMs }: { batchId: number; taskId: number; lateMs: number }): void {
    const open = this.#open.get(batchId);
    if (!open) return;
    const { taskMs } = open.batch.job.spec.timeouts;
    const within = lateMs > 0 ? `within ${taskMs} ms` : 'before the time of its batch was over';
    const detail = `the handler did not finish ${within}`;
    open.onPart(failureReport(open.batch, { worker: this.#name, now: Date.now(), taskId, detail }));
    this.#isConvicted = true;
    this.#lastError = `${detail}, and was ended with its thread`;
    void this.#worker?.terminate();
  }

  async close(): Promise<void> {
    this.#closing = true;
    // One that still loads has nothing to close.
    if (!this.#ready && this.load === 0) void this.#worker?.terminate();
    else this.post({ kind: 'close' });
    const timer = setTimeout(() => void this.#worker?.terminate(), CLOSE_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #startWorker(): Worker {
    this.#marks = new ThreadMarks();
    this.#isConvicted = false;
    const workerData: ThreadData = { ...this.#options.data, name: this.#name, marks: this.#marks.buffer };
    const worker = new Worker(this.#options.entry, {
      workerData,
      env: this.#options.env,
      name: this.#name,
      resourceLimits: {
        maxOldGenerationSizeMb: this.#options.heapMbMax ?? 1_024,
        maxYoungGenerationSizeMb: YOUNG_MB,
      },
    });
    this.#ready = false;
    this.#utilized = undefined;
    worker.on('message', (message: FromThread) => this.#receive(message));
    worker.on('error', (error) => {
      this.#lastError = messageOf(error);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    worker.on('exit', () => {
      resolve();
      this.#exited();
    });
    if (this.#isDraining) worker.postMessage({ kind: 'drain' } satisfies ToThread);
    return worker;
  }

  #receive(message: FromThread): void {
    if (message.kind === 'ready') {
      this.#ready = true;
      this.#lastError = 'the thread ended';
      this.#begun.resolve();
      this.#failedStarts = 0;
      return;
    }
    if (message.kind === 'credentials') {
      void this.#sendCredentials();
      return;
    }
    if (message.kind === 'log') {
      this.#options.logger?.[message.level](message.message, message.fields);
      return;
    }
    const open = this.#open.get(message.report.batchId);
    if (message.kind === 'part') {
      open?.onPart(message.report);
      return;
    }
    this.#open.delete(message.report.batchId);
    open?.resolve({ kind: 'report', report: message.report });
  }

  async #sendCredentials(): Promise<void> {
    this.#credentials ??= this.#options.credentials ?? openCredentials();
    const credentials = await this.#credentials().catch((error) => ({ problem: messageOf(error) }));
    this.post({ kind: 'credentials', credentials });
  }

  #exited(): void {
    const lost = [...this.#open];
    this.#open.clear();
    const running = this.#marks.running;
    const isConvicted = this.#isConvicted;
    if (!this.#closing) {
      if (!this.#ready) this.#failedStarts++;
      if (this.#failedStarts < FAILED_STARTS_MAX) this.#worker = this.#startWorker();
      else this.#begun.resolve();
    }
    for (const [batchId, { resolve }] of lost)
      resolve({
        kind: 'lost',
        batchId,
        reason: `${this.#name} died: ${this.#lastError}`,
        ended: true,
        ...(running ? { running: running.batchId === batchId ? [running.taskId] : [] } : {}),
        ...(isConvicted ? { blameless: true } : {}),
      });
  }
}
