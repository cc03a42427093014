import { randomBytes } from 'node:crypto';
import { type Batch, type Report, WORKER_KINDS, type WorkerKind } from '../../core/batch/batch.ts';
import { deferredReport } from '../../core/batch/report.ts';
import { messageOf } from '../../core/errors.ts';
import { withSince } from '../../core/text/since.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Delivery, Dispatcher, WorkerHeartbeat } from '../../ports/dispatcher.ts';
import type { MessageSeal } from '../message-seal.ts';
import { Queue, ReplyError } from './bullmq-packages.ts';
import { openFleetSeal, RefusalLog } from './fleet-seal.ts';
import { DEAD_MS, LiveWorkers, readHeartbeats } from './heartbeat.ts';
import { explainRedis, type FleetPlace, type FleetRedis, openRedis, parseFleet } from './redis.ts';
import { readReplies } from './reply-reader.ts';
import { OnceSender } from './send-once.ts';
import { type SentBatch, SentBatches } from './sent-batches.ts';
import {
  BATCH_TTL_MS,
  CARD_HOSTS_MAX,
  type FleetKeys,
  fleetKeys,
  isCoordinator,
  type JobCard,
  KEPT,
  openReply,
  QUEUES,
  type RawReply,
  type Reply,
  sealBatch,
  TAKE_MS,
} from './wire.ts';

/** How often heartbeats are read and waiting batches are checked. */
const LOOK_MS = 1_000;
/** A batch that waits for longer is looked for in Redis. */
const WAITED_MS = 2_000;
/** After Redis refused a batch, nothing is sent for so long. */
const REFUSED_MS = 1_000;
const CLOSE_MS = 1_000;

export async function openBullmqDispatcher(options: {
  url: string;
  /** The first signs, all are accepted; none only on this machine. */
  fleetKeys?: readonly string[];
  logger: Logger;
}): Promise<Dispatcher> {
  const place = parseFleet(options.url);
  const seal = openFleetSeal(place, options.fleetKeys ?? [], options.logger);
  const liveWorkers = new LiveWorkers();
  const redis = await openRedis(place, {
    logger: options.logger,
    onReady: () => liveWorkers.forgive(performance.now()),
  });
  const dispatcher = new BullmqDispatcher({ place, redis, seal, liveWorkers, logger: options.logger });
  try {
    await dispatcher.start();
  } catch (error) {
    await dispatcher.close();
    throw explainRedis(error, place);
  }
  return dispatcher;
}

interface DispatcherParts {
  place: FleetPlace;
  redis: FleetRedis;
  seal: MessageSeal;
  liveWorkers: LiveWorkers;
  logger: Logger;
}

/**
 * Carries batches to `seine worker` processes by queues in Redis:
 * 1. The batch is written under a key of its own, and its job, with the same id, goes into the queue of its kind.
 * 2. A worker (bullmq-worker.ts) takes the job, deletes the key in the same step that writes `taken` to the reply stream
 *    of this coordinator, and runs the batch in its threads.
 * 3. While it runs, the worker's heartbeat names the batch (heartbeat.ts). When heartbeats stop, or no longer name it, the
 *    batch is lost (sent-batches.ts), and its tasks are leased again.
 * 4. Parts of the report, and the last one, come back by the reply stream (reply-writer.ts, reply-reader.ts).
 * Redis holds nothing that could not be lost: a batch that no worker takes is withdrawn. Nor does it hold anything that
 * could be read or changed there: all of it is encrypted and signed with the fleet key (../message-seal.ts).
 */
class BullmqDispatcher implements Dispatcher {
  readonly #place: FleetPlace;
  readonly #redis: FleetRedis;
  readonly #seal: MessageSeal;
  readonly #refusals: RefusalLog;
  readonly #liveWorkers: LiveWorkers;
  readonly #logger: Logger;
  readonly #id = randomBytes(6).toString('hex');
  /** Whose replies are read. */
  readonly #heard = new Set<string>();
  readonly #keys: FleetKeys;
  readonly #queues: Record<WorkerKind, Queue<JobCard>>;
  readonly #once: OnceSender;
  readonly #sentBatches: SentBatches;
  readonly #notices: WorkerNotices;
  #look: NodeJS.Timeout | null = null;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #draining = false;
  #closed = false;

  constructor({ place, redis, seal, liveWorkers, logger }: DispatcherParts) {
    this.#place = place;
    this.#redis = redis;
    this.#seal = seal;
    this.#refusals = new RefusalLog(logger);
    this.#liveWorkers = liveWorkers;
    this.#logger = logger;
    this.#keys = fleetKeys(place.prefix);
    this.#once = new OnceSender(redis.client);
    this.#sentBatches = new SentBatches(this.#id);
    this.#notices = new WorkerNotices(liveWorkers, { place: place.shown, logger });
    const open = (kind: WorkerKind) => {
      const queue = new Queue<JobCard>(QUEUES[kind], { connection: redis.client, prefix: place.prefix });
      // Redis itself is watched by its connection; a batch that could not be added says so.
      queue.on('error', () => {});
      return queue;
    };
    this.#queues = { http: open('http'), browser: open('browser') };
  }

  async start(): Promise<void> {
    for (const kind of WORKER_KINDS) await this.#queues[kind].waitUntilReady();
    this.#listen(this.#id);
    await this.#readHeartbeats();
    this.#notices.look(this.#sentBatches.all(), performance.now());
    this.#look = setInterval(() => void this.#lookAround(), LOOK_MS);
  }

  get workers(): number {
    return this.#live().reduce((sum, { threads }) => sum + threads, 0);
  }

  get slots(): number {
    return this.slotsFor('http');
  }

  get addresses(): number {
    return this.#live().length;
  }

  /** Each has a process for them. */
  get suspectSlots(): number {
    return this.#live().length;
  }

  /** While Redis is away nothing is lent to it. One with a browser takes all batches. */
  slotsFor(kind: WorkerKind): number {
    const now = performance.now();
    if (this.#redis.client.status !== 'ready' || now - this.#refusedAt < REFUSED_MS) return 0;
    return this.#liveWorkers.slotsFor(kind, now);
  }

  serves(kind: WorkerKind): boolean {
    return this.#liveWorkers.serves(kind, performance.now());
  }

  async heartbeats(): Promise<WorkerHeartbeat[]> {
    return this.#live();
  }

  dispatch(batch: Batch, onPart: (report: Report) => void): Promise<Delivery> {
    if (this.#draining || this.#closed)
      return Promise.resolve({
        kind: 'report',
        report: deferredReport(batch, { worker: 'none', now: Date.now() }),
      });
    const { sent, delivery } = this.#sentBatches.open(batch, onPart, performance.now());
    void this.#send(sent);
    return delivery;
  }

  get replyTo(): string {
    return this.#id;
  }

  /** Its reports wait in the stream of the coordinator that sent it, for as long as Redis keeps that. */
  adopt(batch: Batch, replyTo: string, onPart: (report: Report) => void): Promise<Delivery> {
    if (this.#draining || this.#closed || !isCoordinator(replyTo))
      return Promise.resolve({
        kind: 'lost',
        batchId: batch.id,
        reason: 'the coordinator ended',
        blameless: true,
      });
    const { delivery } = this.#sentBatches.adopt(batch, replyTo, onPart, performance.now());
    this.#listen(replyTo);
    return delivery;
  }

  async drain(): Promise<void> {
    this.#draining = true;
    const { client } = this.#redis;
    if (client.status !== 'ready') return;
    await Promise.allSettled([
      ...this.#sentBatches.all().map((sent) => this.#withdraw(sent)),
      ...this.#recall(),
    ]);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#look) clearInterval(this.#look);
    const open = this.#sentBatches.all();
    const { client } = this.#redis;
    if (client.status === 'ready') {
      const streams = [...this.#heard].map((id) => this.#keys.reply(id));
      const left = [...streams, ...open.map(({ id }) => this.#keys.batch(id))];
      await within(CLOSE_MS, client.del(...left));
    }
    for (const sent of open) this.#sentBatches.lose(sent, 'the dispatcher was closed', true);
    await within(CLOSE_MS, Promise.all(WORKER_KINDS.map((kind) => this.#queues[kind].close())));
    this.#once.close();
    this.#redis.close();
  }

  trouble(): string | null {
    const awayMs = this.#redis.awayMs();
    if (awayMs === null) return this.#notices.trouble;
    return withSince(`waiting for Redis at ${this.#place.shown}`, awayMs);
  }

  /** Replies to this coordinator, or to one whose batches it has taken over. */
  #listen(coordinator: string): void {
    if (this.#heard.has(coordinator)) return;
    this.#heard.add(coordinator);
    void readReplies(this.#redis.another(), this.#keys.reply(coordinator), {
      onReply: (reply) => this.#hear(reply),
      onTrouble: (error) => this.#logger.warn(`cannot read a reply from Redis: ${messageOf(error)}`),
      isClosed: () => this.#closed,
    });
  }

  #recall(): Promise<unknown>[] {
    return [...this.#heard].map((id) => this.#redis.client.publish(this.#keys.recall, id));
  }

  #live() {
    return this.#liveWorkers.live(performance.now());
  }

  /** The batch is written before its job, and can be taken once: so it is written once. */
  async #send(sent: SentBatch): Promise<void> {
    const { id, batch } = sent;
    const card: JobCard = {
      batch: batch.id,
      tasks: batch.tasks.length,
      hosts: batch.permits.slice(0, CARD_HOSTS_MAX).map(({ host }) => host),
    };
    try {
      await this.#once.set(this.#keys.batch(id), this.#sealed(sent), BATCH_TTL_MS);
      await this.#queues[batch.needs].add(batch.job.name, card, {
        jobId: id,
        attempts: 1,
        removeOnComplete: KEPT,
        removeOnFail: KEPT,
      });
    } catch (error) {
      if (this.#closed || !this.#sentBatches.isOpen(id)) return;
      const now = performance.now();
      if (now - this.#refusedAt > REFUSED_MS)
        this.#logger.warn(`cannot queue a batch, retrying: ${messageOf(explainRedis(error, this.#place))}`);
      this.#refusedAt = now;
      // Without an answer of Redis the batch may be there, and a worker may have taken it.
      await this.#withdraw(sent, { isAbsent: error instanceof ReplyError }).catch(() => {});
    }
  }

  #sealed({ id: sentId, batch }: SentBatch): Buffer {
    return sealBatch(batch, { seal: this.#seal, keys: this.#keys, sentId, now: Date.now() });
  }

  async #readHeartbeats(): Promise<void> {
    const found = await readHeartbeats(this.#redis.client, this.#keys, this.#seal);
    this.#notices.refused = found.refused;
    this.#liveWorkers.note(found.heartbeats, performance.now());
  }

  /** Whoever deletes the key owns the batch: afterwards no worker can take it. */
  async #withdraw(sent: SentBatch, { isAbsent = false } = {}): Promise<void> {
    if (sent.worker !== null) return;
    const removed = await this.#redis.client.del(this.#keys.batch(sent.id));
    if (!this.#sentBatches.isOpen(sent.id) || sent.worker !== null) return;
    if (removed === 0 && !isAbsent) return this.#sentBatches.miss(sent, this.#liveWorkers, performance.now());
    this.#sentBatches.withdraw(sent, Date.now());
    await this.#queues[sent.batch.needs].remove(sent.id).catch(() => {});
  }

  #hear(raw: RawReply): void {
    const sent = this.#sentBatches.get(raw.sentId);
    const reply = sent && this.#opened(raw, sent);
    if (!reply) return;
    this.#sentBatches.hear(reply, performance.now());
    if (this.#draining && reply.kind === 'taken') void Promise.allSettled(this.#recall());
  }

  /** Null for a message that no worker of this fleet wrote: it changes nothing. */
  #opened(raw: RawReply, { batch }: SentBatch): Reply | null {
    try {
      return openReply(raw, { seal: this.#seal, keys: this.#keys, batch });
    } catch (error) {
      this.#refusals.note(
        `refused a message about a batch at Redis ${this.#place.shown}: ${messageOf(error)}`,
        performance.now(),
      );
      return null;
    }
  }

  async #lookAround(): Promise<void> {
    const { client } = this.#redis;
    if (client.status !== 'ready' || this.#closed) return;
    try {
      await this.#readHeartbeats();
      const now = performance.now();
      this.#notices.look(this.#sentBatches.all(), now);
      await Promise.all(this.#sentBatches.all().map((sent) => this.#lookFor(sent, now)));
      this.#sentBatches.judge(this.#liveWorkers, now);
    } catch {
      // Redis went away meanwhile: its connection says so.
    }
  }

  /** A batch that waits for long: is it still there, and will a worker take it? */
  async #lookFor(sent: SentBatch, now: number): Promise<void> {
    const waitedMs = now - sent.sentAt;
    if (sent.worker !== null || waitedMs < WAITED_MS) return;
    if (waitedMs > TAKE_MS || this.#draining) return this.#withdraw(sent);
    const isThere = await this.#redis.client.exists(this.#keys.batch(sent.id));
    if (isThere === 0 && this.#sentBatches.isOpen(sent.id) && sent.worker === null)
      this.#sentBatches.miss(sent, this.#liveWorkers, now);
  }
}

function within(ms: number, work: Promise<unknown>): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return Promise.race([work.catch(() => {}), promise]).finally(() => clearTimeout(timer));
}

/** Tells the operator what only an operator can change: that no worker runs, or none that could do the work. Once each. */
class WorkerNotices {
  readonly #liveWorkers: LiveWorkers;
  readonly #place: string;
  readonly #logger: Logger;
  /** Workers with another fleet key. */
  refused = 0;
  #aliveAt = Number.NEGATIVE_INFINITY;
  #told: string | null = null;
  #toldAt = 0;

  constructor(liveWorkers: LiveWorkers, options: { place: string; logger: Logger }) {
    this.#liveWorkers = liveWorkers;
    this.#place = options.place;
    this.#logger = options.logger;
  }

  /** What it last warned of, while that lasts. */
  get trouble(): string | null {
    return this.#told && withSince(this.#told, performance.now() - this.#toldAt);
  }

  look(open: readonly SentBatch[], now: number): void {
    const count = this.#liveWorkers.live(now).length;
    if (count > 0) this.#aliveAt = now;
    // A Redis that was just emptied knows no worker, for a moment.
    else if (now - this.#aliveAt <= DEAD_MS) return;
    const text = this.#trouble(count, open, now);
    if (text !== null && text !== this.#told) {
      this.#toldAt = now;
      this.#logger.warn(text);
    }
    if (text === null && this.#told !== null)
      this.#logger.warn(`${count} ${count === 1 ? 'worker is' : 'workers are'} running`);
    this.#told = text;
  }

  #trouble(count: number, open: readonly SentBatch[], now: number): string | null {
    const [stranger] = this.#liveWorkers.strangers(now);
    if (stranger)
      return `the worker ${stranger.worker} uses another version of the wire format: install the same Seine version everywhere`;
    if (count === 0 && this.refused > 0)
      return `the workers at Redis ${this.#place} have another fleet key, or none: set SEINE_FLEET_KEY to the same key everywhere; the run waits`;
    if (count === 0)
      return `no live workers at Redis ${this.#place}: start some with \`seine worker --dispatch bullmq://… --blobs …\`; the run waits`;
    if (open.some(({ batch }) => batch.needs === 'browser') && !this.#liveWorkers.serves('browser', now))
      return `batches need a browser, but no worker at Redis ${this.#place} has one: start some with \`seine worker --kind browser\``;
    return null;
  }
}
