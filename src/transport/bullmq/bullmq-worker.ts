import { randomBytes } from 'node:crypto';
import { type Batch, WIRE_VERSION, WORKER_KINDS, type WorkerKind } from '../../core/batch/batch.ts';
import { batchProblem } from '../../core/batch/check-batch.ts';
import { messageOf } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { BoundedSet } from '../../core/lru.ts';
import type { Logger } from '../../ports/ambient.ts';
import { CpuMeter } from '../cpu-meter.ts';
import type { MessageSeal } from '../message-seal.ts';
import type { PackedReport } from '../packed-report.ts';
import type { ThreadDispatcher } from '../thread/thread-dispatcher.ts';
import { type Job, Worker } from './bullmq-packages.ts';
import { isDrainRequested } from './drain.ts';
import { Turns } from './fair-turns.ts';
import { openFleetSeal, RefusalLog } from './fleet-seal.ts';
import { type Heartbeat, removeHeartbeat, writeHeartbeat } from './heartbeat.ts';
import { type FleetPlace, type FleetRedis, openRedis, parseFleet } from './redis.ts';
import { Replies } from './reply-writer.ts';
import {
  type AboutBatch,
  coordinatorOf,
  type FleetKeys,
  fleetKeys,
  HEARTBEAT_MS,
  type JobCard,
  LOCK_MS,
  type LossReason,
  openBatch,
  QUEUES,
  REPLY_TTL_MS,
  type Reply,
  reasonOf,
  sealPiece,
  sealReply,
  TAKE,
  TAKEN_TTL_MS,
} from './wire.ts';

interface BullmqWorkerOptions {
  url: string;
  kind: WorkerKind;
  name: string;
  threads: ThreadDispatcher;
  /** The first signs, all are accepted; none only on this machine. */
  fleetKeys?: readonly string[];
  logger: Logger;
}

export interface BullmqWorker {
  /** Resolves when somebody wants it to take no more batches (`drain.ts`). */
  readonly drainRequested: Promise<void>;
  /** Batches that it has. */
  readonly batches: number;
  /** Takes nothing more, and finishes what it has. */
  finish(): Promise<void>;
  /** Takes nothing more, and returns what it has. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

/** What this process has of one batch. */
interface Held {
  coordinator: string;
  kind: WorkerKind;
  queue: Worker<JobCard>;
  /** Null until it is known to be one. */
  batch: AboutBatch | null;
  token: string;
  /** Its number here: those of two coordinators may be the same. */
  number: number;
  hosts: string[];
  /** Parts of its report that were sent. */
  parts: number;
}

/** An idle worker waits this long for a batch, and so long a drain takes. */
const WAIT_S = 1;
const HEARTBEAT_HOSTS_MAX = 8;
const RECALLS_KEPT = 1_000;
const DRAIN_MS_MAX = 10_000;
/** Ids of batches that were taken: more than a worker takes while one of them is young enough to be sent again. */
const TAKEN_KEPT = 10_000;

export async function openBullmqWorker(options: BullmqWorkerOptions): Promise<BullmqWorker> {
  const place = parseFleet(options.url);
  const seal = openFleetSeal(place, options.fleetKeys ?? [], options.logger);
  const redis = await openRedis(place, { logger: options.logger });
  const worker = new QueueWorker(place, redis, seal, options);
  await worker.start();
  return worker;
}

/** Takes batches out of queues and gives them to threads; decides nothing about them. */
class QueueWorker implements BullmqWorker {
  readonly #options: BullmqWorkerOptions;
  readonly #redis: FleetRedis;
  readonly #keys: FleetKeys;
  readonly #seal: MessageSeal;
  readonly #refusals: RefusalLog;
  readonly #queues: { kind: WorkerKind; queue: Worker<JobCard> }[];
  readonly #held = new Map<string, Held>();
  readonly #replies: Replies;
  readonly #turns: Turns;
  readonly #cpu = new CpuMeter();
  readonly #drain = Promise.withResolvers<void>();
  readonly #taken = new BoundedSet<string>(TAKEN_KEPT);
  /** Coordinators that want their batches back. */
  readonly #recalled = new BoundedSet<string>(RECALLS_KEPT);
  #loops: Promise<void>[] = [];
  #heartbeatTimer: NodeJS.Timeout | null = null;
  #numbers = 0;
  #beats = Date.now();
  #leaving = false;
  #batchesDone = 0;
  #tasksDone = 0;

  constructor(place: FleetPlace, redis: FleetRedis, seal: MessageSeal, options: BullmqWorkerOptions) {
    this.#options = options;
    this.#redis = redis;
    this.#seal = seal;
    this.#refusals = new RefusalLog(options.logger);
    this.#keys = fleetKeys(place.prefix);
    this.#replies = new Replies(redis.client, options.logger);
    this.#turns = new Turns(options.threads);
    const kinds = options.kind === 'browser' ? WORKER_KINDS.toReversed() : (['http'] as const);
    this.#queues = kinds.map((kind) => {
      const queue = new Worker<JobCard>(QUEUES[kind], null, {
        connection: redis.client,
        prefix: place.prefix,
        name: options.name,
        lockDuration: LOCK_MS,
        drainDelay: WAIT_S,
        // A batch whose worker died is never given to another: its coordinator decides.
        maxStalledCount: 0,
      });
      // Redis itself is watched by its connection.
      queue.on('error', () => {});
      return { kind, queue };
    });
  }

  async start(): Promise<void> {
    // The time of a batch begins when it is taken.
    await this.#options.threads.started;
    const recalls = this.#redis.another();
    await recalls.subscribe(this.#keys.recall);
    recalls.on('message', (_, coordinator) => this.#recall(coordinator));
    await this.#sendHeartbeat();
    this.#heartbeatTimer = setInterval(() => void this.#sendHeartbeat().catch(() => {}), HEARTBEAT_MS);
    for (const { queue } of this.#queues) {
      await queue.waitUntilReady();
      await queue.startStalledCheckTimer();
    }
    this.#loops = this.#queues.map(({ kind, queue }) => this.#takeFrom(kind, queue));
  }

  get drainRequested(): Promise<void> {
    return this.#drain.promise;
  }

  get batches(): number {
    return this.#held.size;
  }

  async finish(): Promise<void> {
    this.#leaving = true;
    this.#turns.end();
    await this.#sendHeartbeat().catch(() => {});
    await Promise.all(this.#loops);
    await this.#turns.untilIdle();
  }

  async drain(): Promise<void> {
    this.#leaving = true;
    this.#turns.end();
    await this.#options.threads.drain();
    await this.#sendHeartbeat().catch(() => {});
    const left = Promise.all(this.#loops).then(() => this.#turns.untilIdle());
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, DRAIN_MS_MAX);
    await Promise.race([left, promise]);
    clearTimeout(timer);
  }

  async close(): Promise<void> {
    if (this.#heartbeatTimer) clearInterval(this.#heartbeatTimer);
    if (this.#redis.client.status === 'ready')
      await removeHeartbeat(this.#redis.client, this.#keys, this.#options.name).catch(() => {});
    await Promise.all(this.#queues.map(({ queue }) => queue.close(true).catch(() => {})));
    this.#redis.close();
  }

  async #takeFrom(kind: WorkerKind, queue: Worker<JobCard>): Promise<void> {
    for (let turn = 0; !this.#leaving; turn++) {
      const { block } = await this.#turns.next();
      if (this.#leaving) return;
      const token = `${this.#options.name}:${turn}`;
      try {
        const job =
          block || (await this.#hasWaiting(queue)) ? await queue.getNextJob(token, { block }) : null;
        this.#turns.took(job != null);
        if (job) void this.#turns.hold(this.#work(kind, queue, job, token));
      } catch {
        // Redis is away, and its connection says so.
        await this.#turns.pause();
      }
    }
  }

  /** Most looks of a busy worker are in vain, more than two for each batch, and BullMQ runs a script of ten commands for each. */
  async #hasWaiting(queue: Worker<JobCard>): Promise<boolean> {
    return (await this.#redis.client.llen(queue.toKey('wait'))) > 0;
  }

  async #work(kind: WorkerKind, queue: Worker<JobCard>, job: Job<JobCard>, token: string): Promise<void> {
    const sentId = job.id!;
    const coordinator = coordinatorOf(sentId);
    if (!coordinator || this.#held.has(sentId)) return finish(job, null, token);
    const number = ++this.#numbers;
    const held: Held = { coordinator, kind, queue, batch: null, token, number, hosts: [], parts: 0 };
    this.#held.set(sentId, held);
    try {
      const taken = sealReply({ kind: 'taken', sentId, worker: this.#options.name }, this.#sealing(held));
      const body = await this.#take(sentId, coordinator, taken);
      const last = body ? await this.#process(sentId, body, held) : null;
      if (last?.kind === 'report') await this.#report(sentId, held, last.report);
      else await this.#send(held, last ? { ...last, sentId } : { kind: 'gone', sentId });
      await finish(job, last, token);
    } catch (error) {
      this.#options.logger.warn(`cannot answer a batch: ${messageOf(error)}`, { sentId });
    } finally {
      this.#held.delete(sentId);
      this.#batchesDone++;
    }
  }

  /** Null when it is not there any more. */
  async #take(sentId: string, coordinator: string, taken: Buffer): Promise<Buffer | null> {
    const { client } = this.#redis;
    const kept = this.#keys.taken(sentId, this.#options.name);
    const keys = [this.#keys.batch(sentId), this.#keys.reply(coordinator), kept];
    const values = [sentId, taken, REPLY_TTL_MS, TAKEN_TTL_MS];
    const body = await client.callBuffer('EVAL', TAKE, keys.length, ...keys, ...values);
    if (body !== null) client.del(kept).catch(() => {});
    return body as Buffer | null;
  }

  #sealing({ batch }: Held) {
    return { seal: this.#seal, keys: this.#keys, batch };
  }

  #send(held: Held, reply: Exclude<Reply, { kind: 'report' }>): Promise<void> {
    const body = sealReply(reply, this.#sealing(held));
    return this.#replies.send(this.#keys.reply(held.coordinator), reply, body);
  }

  /** Throws when it is no batch of this fleet, or was here before. */
  #opened(sentId: string, body: Buffer, kind: WorkerKind): Batch {
    const { name } = this.#options;
    const about = { seal: this.#seal, keys: this.#keys, sentId, queue: kind, now: Date.now() };
    const batch = openBatch(body, about) as Batch;
    if (batch?.version !== WIRE_VERSION) throw new Error(wrongVersion(name, batch?.version));
    const problem = batchProblem(batch);
    if (problem !== null) throw new Error(`it is not valid: ${problem}`);
    if (batch.needs !== kind) throw new Error('it is in the wrong queue');
    if (this.#taken.has(sentId)) throw new Error('it was here before');
    this.#taken.add(sentId);
    return batch;
  }

  async #process(sentId: string, body: Buffer, held: Held): Promise<Last> {
    let batch: Batch;
    try {
      batch = this.#opened(sentId, body, held.kind);
    } catch (error) {
      const reason = `the worker ${this.#options.name} refused a batch: ${messageOf(error)}`;
      this.#refusals.note(reason, performance.now());
      return { kind: 'refused', reason };
    }
    held.batch = { id: batch.id, job: { epoch: batch.job.epoch } };
    try {
      held.hosts = batch.permits.slice(0, HEARTBEAT_HOSTS_MAX).map(({ host }) => host);
      // Files of its own: should the batch ever run twice, neither run writes over what the other has reported.
      const own = randomBytes(4).toString('hex');
      const files = { archiveKey: `${batch.archiveKey}-${own}`, packKey: `${batch.packKey}-${own}` };
      const answer = this.#options.threads.dispatchPacked(
        { ...batch, ...files, id: held.number },
        (report) => {
          this.#report(sentId, held, report).catch(() => {});
        },
      );
      if (this.#recalled.has(held.coordinator)) this.#options.threads.recall(held.number);
      const delivery = await answer;
      return delivery.kind === 'report' ? delivery : { kind: 'lost', ...reasonOf(delivery) };
    } catch (error) {
      return { kind: 'lost', reason: messageOf(error), blameless: true };
    }
  }

  async #report(sentId: string, held: Held, { outcomes, pieces }: PackedReport): Promise<void> {
    this.#tasksDone += outcomes;
    const key = this.#keys.reply(held.coordinator);
    await Promise.all(
      pieces.map((piece) => {
        const body = sealPiece(piece, { part: held.parts++, sentId }, this.#sealing(held));
        return this.#replies.send(key, { kind: 'report', sentId }, body);
      }),
    );
  }

  #recall(coordinator: string): void {
    this.#recalled.add(coordinator);
    for (const held of this.#held.values())
      if (held.coordinator === coordinator) this.#options.threads.recall(held.number);
  }

  async #readDrainRequest(): Promise<void> {
    if (this.#leaving) return;
    try {
      if (await isDrainRequested(this.#redis.client, this.#keys, this.#seal, this.#options.name))
        this.#drain.resolve();
    } catch (error) {
      const { name } = this.#options;
      this.#refusals.note(
        `the worker ${name} refused a request to drain: ${messageOf(error)}`,
        performance.now(),
      );
    }
  }

  /** Heartbeat for coordinators, and longer locks for BullMQ. */
  async #sendHeartbeat(): Promise<void> {
    const { client } = this.#redis;
    if (client.status !== 'ready') return;
    const { name, kind, threads } = this.#options;
    const heartbeat: Heartbeat = {
      version: WIRE_VERSION,
      worker: name,
      kind,
      at: Date.now(),
      beat: ++this.#beats,
      cpu: this.#cpu.take(),
      memoryBytes: process.memoryUsage.rss(),
      batches: this.#held.size,
      hosts: [...new Set([...this.#held.values()].flatMap(({ hosts }) => hosts))].slice(
        0,
        HEARTBEAT_HOSTS_MAX,
      ),
      threads: this.#leaving ? 0 : threads.workers,
      slots: this.#leaving ? 0 : threads.slots,
      sentIds: [...this.#held.keys()],
      software: VERSION,
      isDraining: this.#leaving,
      batchesDone: this.#batchesDone,
      tasksDone: this.#tasksDone,
    };
    await writeHeartbeat(client, this.#keys, this.#seal, heartbeat);
    await this.#readDrainRequest();
    for (const { queue } of this.#queues) {
      const own = [...this.#held].filter(([, held]) => held.queue === queue);
      const tokens = own.map(([, { token }]) => token);
      if (own.length > 0)
        await queue.extendJobLocks(
          own.map(([sentId]) => sentId),
          tokens,
          LOCK_MS,
        );
    }
  }
}

/** What became of a batch. */
type Last =
  | { kind: 'report'; report: PackedReport }
  | ({ kind: 'lost' } & LossReason)
  | { kind: 'refused'; reason: string };

/** For people who inspect the queue; a Redis that has forgotten the job does not mind. Null: there was no batch. */
async function finish(job: Job<JobCard>, last: Last | null, token: string): Promise<void> {
  try {
    if (last?.kind === 'report') await job.moveToCompleted({ outcomes: last.report.outcomes }, token, false);
    else await job.moveToFailed(new Error(last?.reason ?? 'the batch was cancelled'), token, false);
  } catch {
    // It is over all the same.
  }
}

function wrongVersion(name: string, version: number): string {
  return `the worker ${name} uses version ${WIRE_VERSION} of the wire format, the coordinator version ${version}: install the same Seine version everywhere`;
}
