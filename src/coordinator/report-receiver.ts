import type { Report } from '../core/batch/batch.ts';
import type { Delivery } from '../ports/dispatcher.ts';
import type { OpenBatch } from './plan/open-batch.ts';
import type { Flight } from './run-state.ts';
import type { Condemned } from './settle/giving-up.ts';
import type { Settler } from './settle/settler.ts';

/** Tasks of a dead host that are given up in one transaction. */
const CONDEMN_STEP = 2_000;

/** Takes what comes back from workers. */
export class Inbound {
  readonly #flight: Flight;
  readonly #settler: Settler;

  constructor(flight: Flight, settler: Settler) {
    this.#flight = flight;
    this.#settler = settler;
  }

  async receive(delivery: Delivery): Promise<void> {
    if (delivery.kind === 'report') return this.settle(delivery.report);
    this.#flight.options.progress.onDelivery(delivery, this.#flight.now());
    // It was given up before, and somebody else may have its tasks already.
    if (!this.#flight.open.has(delivery.batchId)) return;
    return this.lose(delivery.batchId, delivery.reason, delivery.blameless);
  }

  async settle(report: Report): Promise<void> {
    const open = this.#flight.open.get(report.batchId);
    if (!open || open.over) return;
    open.over = report.final;
    const settled = open.settled.then(() => this.#settle(open, report));
    open.settled = settled.catch(() => {});
    await settled;
  }

  /** The batch keeps its slot until it is written down: a slow store must not gather reports without end. */
  async #settle(open: OpenBatch, report: Report): Promise<void> {
    const flight = this.#flight;
    const { condemned, lostLinks } = await this.#settler.settle(open, report);
    if (report.final) flight.open.delete(report.batchId);
    flight.options.progress.onDelivery({ kind: 'report', report }, flight.now());
    if (lostLinks) flight.beginEpoch();
    if (report.trouble) flight.onStorage(report.trouble);
    else if (report.archive || report.pack) flight.onStorage(null);
    if (report.final && open.succeeded + open.failed > 0) {
      flight.failedBatchesInRow = open.succeeded === 0 ? flight.failedBatchesInRow + 1 : 0;
    }
    for (const host of condemned) await this.#condemn(host);
    flight.wake.notify();
  }

  /** Takes back a batch whose worker died or did not answer in time. */
  async lose(batchId: number, reason: string, blameless = false): Promise<void> {
    const { store, logger } = this.#flight.options;
    const open = this.#flight.open.get(batchId);
    if (open?.over) return;
    if (open) open.over = true;
    await open?.settled;
    this.#flight.open.delete(batchId);
    if (!blameless) this.#flight.failedBatchesInRow++;
    this.#flight.beginEpoch();
    open?.batch.permits.forEach((permit, index) => {
      if (!open.released[index]) this.#flight.permits.release(permit, permit.endAt);
    });
    for (const { origin } of open?.batch.robots ?? []) this.#flight.robots.doneAsking(origin);
    const { returned, dead } = await store.frontier.release(batchId, {
      now: Math.floor(this.#flight.now()),
      suspect: !blameless,
      reason,
    });
    logger.warn(`lost a batch: ${reason}`, { batch: batchId, returned, dead });
    this.#flight.wake.notify();
  }

  async #condemn({ host, code, detail }: Condemned): Promise<void> {
    const { store, job, logger } = this.#flight.options;
    let total = 0;
    for (let count = 1; count > 0; total += count) {
      count = await store.frontier.condemn(job.id, {
        host,
        code,
        detail,
        now: Math.floor(this.#flight.now()),
        limit: CONDEMN_STEP,
      });
    }
    if (total > 0) logger.warn(`gave up on ${host}: ${detail}`, { tasks: total, code });
  }
}
