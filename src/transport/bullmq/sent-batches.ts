import type { Batch, Report } from '../../core/batch/batch.ts';
import { makeReportCheck } from '../../core/batch/check-report.ts';
import { deferredReport, unsettledOf } from '../../core/batch/report.ts';
import type { Delivery } from '../../ports/dispatcher.ts';
import type { LiveWorkers } from './heartbeat.ts';
import { type Reply, reasonOf, sentIdOf, TAKE_MS } from './wire.ts';

/** A batch that is out. Times are a monotonic clock's. */
export interface SentBatch {
  id: string;
  batch: Batch;
  sentAt: number;
  /** Who has it; null while it waits in Redis. */
  worker: string | null;
  takenAt: number;
  /** The next part of its report; null when nothing is known of the earlier ones. */
  part: number | null;
  /** The last heartbeat of its worker that was read, and how many in a row did not name this batch. */
  beat: number | null;
  unnamed: number;
  /** Another coordinator sent it, and may have settled parts of its report. */
  isAdopted: boolean;
  /** Since when neither Redis nor a worker has it. */
  missingSince: number | null;
  /** What is wrong with a report on it; made when the first one comes. */
  problemOf: ((report: unknown) => string | null) | null;
  onPart(report: Report): void;
  resolve(delivery: Delivery): void;
}

/** Heartbeats of a worker that do not name a batch which it had: one may be older than the batch, one may cross with its report. */
const UNNAMED_MAX = 3;
/** Time for news of a batch that is not in Redis any more. */
const MISSING_MS = 5_000;
/** Beyond a batch's own time: then its lease ends too. */
const LATE_MS = 15_000;

interface Opened {
  sent: SentBatch;
  delivery: Promise<Delivery>;
}

/** What is known of each batch that is out, and what follows from what is heard of it. */
export class SentBatches {
  readonly #coordinator: string;
  readonly #open = new Map<string, SentBatch>();

  constructor(coordinator: string) {
    this.#coordinator = coordinator;
  }

  open(batch: Batch, onPart: (report: Report) => void, now: number): Opened {
    return this.#add(sentIdOf(this.#coordinator, batch.id), batch, onPart, { now, part: 0 });
  }

  /** One that another coordinator has sent: it may wait in Redis, be at a worker, or be reported in part or whole. */
  adopt(batch: Batch, coordinator: string, onPart: (report: Report) => void, now: number): Opened {
    return this.#add(sentIdOf(coordinator, batch.id), batch, onPart, { now, part: null });
  }

  #add(
    id: string,
    batch: Batch,
    onPart: (report: Report) => void,
    { now, part }: { now: number; part: number | null },
  ): Opened {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    const sent: SentBatch = {
      id,
      batch,
      sentAt: now,
      worker: null,
      takenAt: now,
      part,
      isAdopted: part === null,
      beat: null,
      unnamed: 0,
      missingSince: null,
      problemOf: null,
      onPart,
      resolve,
    };
    this.#open.set(id, sent);
    return { sent, delivery: promise };
  }

  all(): SentBatch[] {
    return [...this.#open.values()];
  }

  get(id: string): SentBatch | undefined {
    return this.#open.get(id);
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Late and doubled news change nothing. */
  hear(reply: Reply, now: number): void {
    const sent = this.#open.get(reply.sentId);
    if (!sent) return;
    if (reply.kind === 'taken') this.#hearTaken(sent, reply.worker, now);
    else if (reply.kind === 'report') this.#receive(sent, reply.report);
    else if (reply.kind === 'lost')
      this.#close(sent, { kind: 'lost', batchId: sent.batch.id, ...reasonOf(reply) });
    else if (reply.kind === 'refused') this.lose(sent, reply.reason, true);
    // Somebody else has it, when it was taken before.
    else if (sent.worker === null) this.lose(sent, 'Redis lost it', true);
  }

  /** A Redis that remembers what was taken long ago gives it away again: the reports of two must not be mixed. */
  #hearTaken(sent: SentBatch, worker: string, now: number): void {
    if (sent.worker === null || sent.worker === worker) this.take(sent, worker, null, now);
    else this.lose(sent, `${sent.worker} and ${worker} both run it`, true);
  }

  take(sent: SentBatch, worker: string, beat: number | null, now: number): void {
    sent.worker = worker;
    sent.takenAt = now;
    sent.beat = beat;
    sent.missingSince = null;
  }

  /** No worker has seen it, which is certain once it was taken out of Redis. */
  withdraw(sent: SentBatch, now: number): void {
    this.#close(sent, {
      kind: 'report',
      report: deferredReport(sent.batch, { worker: 'none', now }),
    });
  }

  lose(sent: SentBatch, reason: string, blameless: boolean): void {
    const { id: batchId } = sent.batch;
    this.#close(sent, { kind: 'lost', batchId, reason, ...(blameless ? { blameless } : {}) });
  }

  /** It is not in Redis; a worker may have it all the same, and the news may be on its way. */
  miss(sent: SentBatch, liveWorkers: LiveWorkers, now: number): void {
    const holder = liveWorkers.holderOf(sent.id);
    if (holder !== null) {
      this.take(sent, holder, liveWorkers.beatOf(holder), now);
      return;
    }
    sent.missingSince ??= now;
    if (now - sent.missingSince > MISSING_MS) this.lose(sent, 'Redis lost it', true);
  }

  /** Of those that workers have: which will never come back. */
  judge(liveWorkers: LiveWorkers, now: number): void {
    for (const sent of this.#open.values()) {
      const { worker } = sent;
      if (now - sent.sentAt > TAKE_MS + sent.batch.budgetMs + LATE_MS)
        this.lose(sent, 'no worker answered in time', true);
      else if (worker === null) continue;
      else if (liveWorkers.isDead(worker, sent.takenAt, now))
        this.lose(sent, `the worker ${worker} stopped sending heartbeats`, false);
      else this.#countUnnamed(sent, worker, liveWorkers);
    }
  }

  #countUnnamed(sent: SentBatch, worker: string, liveWorkers: LiveWorkers): void {
    const beat = liveWorkers.beatOf(worker);
    if (beat === sent.beat) return;
    sent.beat = beat;
    sent.unnamed = liveWorkers.has(worker, sent.id) ? 0 : sent.unnamed + 1;
    if (sent.unnamed >= UNNAMED_MAX) this.lose(sent, 'its report was lost in Redis', true);
  }

  /** Whoever signs may be wrong as well. A page that makes workers report nonsense must not do so for ever: it is blamed. */
  #receive(sent: SentBatch, said: Report): void {
    const report = sent.isAdopted ? unsettledOf(sent.batch, said) : said;
    sent.problemOf ??= makeReportCheck(sent.batch);
    const problem = sent.problemOf(report);
    if (problem !== null) {
      this.lose(sent, `${sent.worker ?? 'a worker'} sent a report that is not valid: ${problem}`, false);
      return;
    }
    const expected = sent.part ?? report.part;
    if (report.part < expected) return;
    if (report.part > expected) {
      this.lose(sent, 'a part of its report was lost in Redis', true);
      return;
    }
    sent.part = expected + 1;
    const own = { ...report, batchId: sent.batch.id };
    if (report.final) this.#close(sent, { kind: 'report', report: own });
    else sent.onPart(own);
  }

  #close(sent: SentBatch, delivery: Delivery): void {
    this.#open.delete(sent.id);
    sent.resolve(delivery);
  }
}
