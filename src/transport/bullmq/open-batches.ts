import type { Batch, Report } from '../../core/batch/batch.ts';
import { deferredReport } from '../../core/batch/report.ts';
import type { Delivery } from '../../ports/dispatcher.ts';
import type { LiveWorkers } from './heartbeat.ts';
import { type Reply, TAKE_MS, ticketOf } from './wire.ts';

/** A batch that is out. Times are a monotonic clock's. */
export interface SentBatch {
  id: string;
  batch: Batch;
  sentAt: number;
  /** Who has it; null while it waits in Redis. */
  worker: string | null;
  takenAt: number;
  /** The next part of its report. */
  part: number;
  /** The last sign of its worker that was looked at, and how many in a row did not name the ticket. */
  beat: number | null;
  unnamed: number;
  /** Since when neither Redis nor a worker has it. */
  missingSince: number | null;
  onPart(report: Report): void;
  resolve(delivery: Delivery): void;
}

/** Signs of a worker that do not name a batch which it had: one may be older than the batch, one may cross with its report. */
const UNNAMED_MAX = 3;
/** Time for news of a batch that is not in Redis any more. */
const MISSING_MS = 5_000;
/** Beyond a batch's own time: then its lease ends too. */
const LATE_MS = 15_000;

/** What is known of each batch that is out, and what follows from what is heard of it. */
export class SentBatches {
  readonly #coordinator: string;
  readonly #open = new Map<string, SentBatch>();
  #last = 0;

  constructor(coordinator: string) {
    this.#coordinator = coordinator;
  }

  open(
    batch: Batch,
    onPart: (report: Report) => void,
    now: number,
  ): { ticket: SentBatch; delivery: Promise<Delivery> } {
    const { promise, resolve } = Promise.withResolvers<Delivery>();
    const id = ticketOf(this.#coordinator, ++this.#last);
    const ticket: SentBatch = {
      id,
      batch,
      sentAt: now,
      worker: null,
      takenAt: now,
      part: 0,
      beat: null,
      unnamed: 0,
      missingSince: null,
      onPart,
      resolve,
    };
    this.#open.set(id, ticket);
    return { ticket, delivery: promise };
  }

  all(): SentBatch[] {
    return [...this.#open.values()];
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Late and doubled news change nothing. */
  hear(reply: Reply, now: number): void {
    const ticket = this.#open.get(reply.ticket);
    if (!ticket) return;
    if (reply.kind === 'taken') this.#hearTaken(ticket, reply.worker, now);
    else if (reply.kind === 'report') this.#receive(ticket, reply.report);
    else if (reply.kind === 'lost') this.lose(ticket, reply.reason, reply.blameless);
    // Somebody else has it, when it was taken before.
    else if (ticket.worker === null) this.lose(ticket, 'Redis lost it', true);
  }

  /** A Redis that remembers what was taken long ago gives it away again: the reports of two must not be mixed. */
  #hearTaken(ticket: SentBatch, worker: string, now: number): void {
    if (ticket.worker === null || ticket.worker === worker) this.take(ticket, worker, null, now);
    else this.lose(ticket, `${ticket.worker} and ${worker} both run it`, true);
  }

  take(ticket: SentBatch, worker: string, beat: number | null, now: number): void {
    ticket.worker = worker;
    ticket.takenAt = now;
    ticket.beat = beat;
    ticket.missingSince = null;
  }

  /** No worker has seen it, which is certain once it was taken out of Redis. */
  withdraw(ticket: SentBatch, now: number): void {
    this.#close(ticket, {
      kind: 'report',
      report: deferredReport(ticket.batch, { worker: 'none', now }),
    });
  }

  lose(ticket: SentBatch, reason: string, blameless: boolean): void {
    const { id: batchId } = ticket.batch;
    this.#close(ticket, { kind: 'lost', batchId, reason, ...(blameless ? { blameless } : {}) });
  }

  /** It is not in Redis; a worker may have it all the same, and the news may be on its way. */
  miss(ticket: SentBatch, presence: LiveWorkers, now: number): void {
    const holder = presence.holderOf(ticket.id);
    if (holder !== null) {
      this.take(ticket, holder, presence.beatOf(holder), now);
      return;
    }
    ticket.missingSince ??= now;
    if (now - ticket.missingSince > MISSING_MS) this.lose(ticket, 'Redis lost it', true);
  }

  /** Of those that workers have: which will never come back. */
  judge(presence: LiveWorkers, now: number): void {
    for (const ticket of this.#open.values()) {
      const { worker } = ticket;
      if (now - ticket.sentAt > TAKE_MS + ticket.batch.budgetMs + LATE_MS)
        this.lose(ticket, 'no worker answered in time', true);
      else if (worker === null) continue;
      else if (presence.isDead(worker, ticket.takenAt, now))
        this.lose(ticket, `the worker ${worker} stopped sending heartbeats`, false);
      else this.#countUnnamed(ticket, worker, presence);
    }
  }

  #countUnnamed(ticket: SentBatch, worker: string, presence: LiveWorkers): void {
    const beat = presence.beatOf(worker);
    if (beat === ticket.beat) return;
    ticket.beat = beat;
    ticket.unnamed = presence.has(worker, ticket.id) ? 0 : ticket.unnamed + 1;
    if (ticket.unnamed >= UNNAMED_MAX) this.lose(ticket, 'its report was lost in Redis', true);
  }

  #receive(ticket: SentBatch, report: Report): void {
    if (report.part < ticket.part) return;
    if (report.part > ticket.part) {
      this.lose(ticket, 'a part of its report was lost in Redis', true);
      return;
    }
    ticket.part++;
    const own = { ...report, batchId: ticket.batch.id };
    if (report.final) this.#close(ticket, { kind: 'report', report: own });
    else ticket.onPart(own);
  }

  #close(ticket: SentBatch, delivery: Delivery): void {
    this.#open.delete(ticket.id);
    ticket.resolve(delivery);
  }
}
