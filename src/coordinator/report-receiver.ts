import type { Report } from '../core/batch/batch.ts';
import { checkReport } from '../core/batch/report.ts';
import type { Delivery } from '../ports/dispatcher.ts';
import type { OpenBatch } from './plan/open-batch.ts';
import type { RunState } from './run-state.ts';
import type { FailedHost } from './settle/giving-up.ts';
import type { Settler } from './settle/settler.ts';

/** Tasks of a dead host that are given up in one transaction. */
const FAIL_STEP = 2_000;

/** Takes what comes back from workers. */
export class ReportReceiver {
  readonly #run: RunState;
  readonly #settler: Settler;

  constructor(run: RunState, settler: Settler) {
    this.#run = run;
    this.#settler = settler;
  }

  async receive(delivery: Delivery): Promise<void> {
    if (delivery.kind === 'report') return this.settle(delivery.report);
    this.#run.options.progress.onDelivery(delivery, this.#run.now());
    // It was given up before, and somebody else may have its tasks already.
    if (!this.#run.open.has(delivery.batchId)) return;
    return this.lose(delivery.batchId, delivery.reason, delivery.blameless);
  }

  async settle(received: Report): Promise<void> {
    const open = this.#run.open.get(received.batchId);
    if (!open || open.over) return;
    const { report, problems } = checkReport(received);
    for (const problem of problems)
      this.#run.options.logger.warn(`a report of worker ${report.worker}: ${problem}`, {
        batch: report.batchId,
      });
    open.over = report.final;
    const settled = open.settled.then(() => this.#settle(open, report));
    open.settled = settled.catch(() => {});
    await settled;
  }

  /** The batch keeps its slot until it is written down: a slow store must not gather reports without end. */
  async #settle(open: OpenBatch, report: Report): Promise<void> {
    const run = this.#run;
    const { failedHosts, lostLinks } = await this.#settler.settle(open, report);
    if (report.final) run.open.delete(report.batchId);
    run.options.progress.onDelivery({ kind: 'report', report }, run.now());
    if (lostLinks) run.beginEpoch();
    if (report.trouble) run.onStorage(report.trouble);
    else if (report.archive || report.pack) run.onStorage(null);
    if (report.final && open.succeeded + open.failed > 0) {
      run.failedBatchesInRow = open.succeeded === 0 ? run.failedBatchesInRow + 1 : 0;
    }
    for (const host of failedHosts) await this.#failTasksOfHost(host);
    run.wake.notify();
  }

  /** Takes back a batch whose worker died or did not answer in time. */
  async lose(batchId: number, reason: string, blameless = false): Promise<void> {
    const { store, logger } = this.#run.options;
    const open = this.#run.open.get(batchId);
    if (open?.over) return;
    if (open) open.over = true;
    await open?.settled;
    this.#run.open.delete(batchId);
    if (!blameless) this.#run.failedBatchesInRow++;
    this.#run.beginEpoch();
    open?.batch.permits.forEach((permit, index) => {
      if (!open.released[index]) this.#run.permits.release(permit, permit.endAt);
    });
    for (const { origin } of open?.batch.robots ?? []) this.#run.robots.doneAsking(origin);
    const { returned, dead } = await store.frontier.release(batchId, {
      now: Math.floor(this.#run.now()),
      suspect: !blameless,
      reason,
    });
    logger.warn(`lost a batch: ${reason}`, { batch: batchId, returned, dead });
    this.#run.wake.notify();
  }

  async #failTasksOfHost({ host, code, detail }: FailedHost): Promise<void> {
    const { store, job, logger } = this.#run.options;
    let total = 0;
    for (let count = 1; count > 0; total += count) {
      count = await store.frontier.condemn(job.id, {
        host,
        code,
        detail,
        now: Math.floor(this.#run.now()),
        limit: FAIL_STEP,
      });
    }
    if (total > 0) logger.warn(`gave up on ${host}: ${detail}`, { tasks: total, code });
  }
}
