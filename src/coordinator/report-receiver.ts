import type { Report } from '../core/batch/batch.ts';
import { checkReport, isGivenBackPart } from '../core/batch/report.ts';
import type { Usage } from '../core/cost/cost.ts';
import { lostEntry, textOf } from '../core/host-log/host-log.ts';
import { freeAfterLoss } from '../core/politeness/permits.ts';
import type { Clock, Logger } from '../ports/ambient.ts';
import type { Delivery } from '../ports/dispatcher.ts';
import type { Frontier, HostLogText, Job, ReleaseOptions } from '../ports/store.ts';
import type { BudgetWatch } from './budget/budget-watch.ts';
import type { JobBreaker } from './circuit-breaker/job-breaker.ts';
import type { SlotAccountant } from './explain/slot-accountant.ts';
import { failTasksOfHost } from './giving-up/giving-up.ts';
import type { OpenPermits } from './hosts/open-permits.ts';
import type { OpenBatch } from './plan/open-batch.ts';
import type { Progress } from './reports/progress.ts';
import type { RobotsCache } from './robots/robots-cache.ts';
import type { LearnedBatchTimes, LearnedSizes, OpenBatches, Wake } from './run-state.ts';
import type { Settler } from './settle/settler.ts';
import type { StoragePause } from './storage/storage-pause.ts';
import type { BatchTracer } from './traces/batch-tracer.ts';

type LostBatch = Extract<Delivery, { kind: 'lost' }>;
type FreedHost = NonNullable<ReleaseOptions['hosts']>[number];

interface ReceiverParts {
  store: { readonly frontier: Pick<Frontier, 'release' | 'failTasksOfHost'> };
  job: Pick<Job, 'id' | 'name' | 'run' | 'spec'>;
  clock: Clock;
  logger: Pick<Logger, 'warn' | 'debug'>;
  progress: Pick<Progress, 'onDelivery'>;
  batches: OpenBatches;
  permits: OpenPermits;
  robots: RobotsCache;
  storage: Pick<StoragePause, 'onReport'>;
  breaker: JobBreaker;
  pageSizes: LearnedSizes;
  batchTimes: LearnedBatchTimes;
  budget: Pick<BudgetWatch, 'add'>;
  wake: Pick<Wake, 'notify'>;
  settler: Pick<Settler, 'settle'>;
  accountant: Pick<SlotAccountant, 'onReport' | 'onEnd'>;
  tracer: Pick<BatchTracer, 'onReport' | 'onSettled' | 'onLost'>;
}

/** Takes what comes back from workers. */
export class ReportReceiver {
  readonly #parts: ReceiverParts;

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
  }

  /** Whether the batch was lost, and went back by this. */
  async receive(delivery: Delivery): Promise<boolean> {
    const { progress, clock, batches, budget } = this.#parts;
    const { used = {} } = delivery;
    if (delivery.kind === 'report') {
      await this.settle(delivery.report, used);
      return false;
    }
    // It was paid for, whatever came of it.
    await budget.add(used);
    progress.onDelivery(delivery, clock.now());
    // It was taken back before, and another batch may have its tasks already.
    return batches.get(delivery.batchId) ? this.lose(delivery) : false;
  }

  async settle(received: Report, used: Usage = {}): Promise<void> {
    const open = this.#parts.batches.get(received.batchId);
    if (!open || open.over) return this.#parts.budget.add(used);
    const { report, problems } = checkReport(received);
    for (const problem of problems)
      this.#parts.logger.warn(`a report of worker ${report.worker}: ${problem}`, {
        batch: report.batchId,
      });
    if (this.#ease(open, report)) return;
    this.#log(open, report);
    open.over = report.final;
    this.#parts.accountant.onReport(report, this.#parts.clock.now());
    const settled = open.settled.then(() => this.#settle(open, report, used));
    open.settled = settled.catch(() => {});
    await settled;
  }

  /** Hosts that were given back, or have only late pages left; true when that is all the part says. */
  #ease({ batch, released }: OpenBatch, report: Report): boolean {
    const given = report.permits.flatMap(({ underWay }, index) => {
      const permit = batch.permits[index];
      return underWay === undefined || !permit ? [] : [{ permit, underWay, isOut: !released[index] }];
    });
    if (given.length === 0) return false;
    const { permits, wake } = this.#parts;
    for (const { permit, underWay, isOut } of given)
      if (isOut && permit.gapMs === 0) permits.ease(permit, underWay);
    // Where several jobs share the host, those that wait for it are woken with its permit.
    if (!permits.isShared) wake.notify();
    this.#parts.logger.debug?.('hosts have room for other batches', {
      batch: batch.id,
      hosts: given.length,
      underWay: given.reduce((sum, { underWay }) => sum + underWay, 0),
    });
    return isGivenBackPart(report);
  }

  #log(open: OpenBatch, { batchId: batch, worker, outcomes, final }: Report): void {
    const { logger } = this.#parts;
    if (!logger.debug) return;
    logger.debug('got a report', { batch, worker, outcomes: outcomes.length, final });
    for (const outcome of outcomes) {
      const task = open.tasks.get(outcome.taskId);
      if (outcome.kind !== 'failed' || !task) continue;
      const { host } = open.batch.permits[task.permit]!;
      logger.debug('a page failed', { batch, host, url: task.url, code: outcome.code });
    }
  }

  /** The batch keeps its slot until it is written down: a slow store must not gather reports without end. */
  async #settle(open: OpenBatch, report: Report, used: Usage): Promise<void> {
    const {
      settler,
      batches,
      progress,
      clock,
      storage,
      breaker,
      pageSizes,
      batchTimes,
      wake,
      accountant,
      tracer,
    } = this.#parts;
    const from = clock.now();
    tracer.onReport(open, report);
    pageSizes.learn(report.outcomes);
    breaker.onOutcomes(report.outcomes);
    const { failedHosts, lostLinks } = await settler.settle(open, report, [], used);
    tracer.onSettled(report, from);
    if (report.final) {
      batchTimes.learn(open, from);
      batches.delete(report.batchId);
      accountant.onEnd(report.batchId, clock.now());
    }
    progress.onDelivery({ kind: 'report', report }, clock.now());
    if (lostLinks) batches.beginEpoch();
    storage.onReport(report);
    if (report.final) breaker.onBatchEnd({ kind: 'reported', ...open });
    for (const host of failedHosts) await failTasksOfHost(this.#parts, host);
    wake.notify();
  }

  /**
   * Takes back a batch whose worker died or did not answer in time. False where it stays as it is: its last report has come
   * and is written down, or another coordinator has it.
   */
  async lose(lost: Omit<LostBatch, 'kind'>): Promise<boolean> {
    const { store, logger, clock, batches, robots, breaker, wake } = this.#parts;
    const { batchId, reason, blameless = false } = lost;
    const open = batches.get(batchId);
    if (open?.over) return false;
    if (open) open.over = true;
    await open?.settled;
    batches.delete(batchId);
    this.#parts.accountant.onEnd(batchId, clock.now());
    this.#parts.tracer.onLost(batchId, reason);
    // A page that is known to kill its worker says nothing about the job.
    const isOfPage = open?.batch.suspects === true || (lost.ended === true && lost.running !== undefined);
    breaker.onBatchEnd({ kind: 'lost', blameless: blameless || isOfPage });
    batches.beginEpoch();
    const now = clock.now();
    const logs = open ? this.#lostLogs(open, now) : [];
    const hosts = open ? this.#freeHosts(open, { now, ended: lost.ended ?? false }) : [];
    for (const { origin } of open?.batch.robots ?? []) robots.doneAsking(origin);
    const blame = blameless ? 'none' : lost.running ? { running: lost.running } : 'worker';
    const options = { now: Math.floor(now), blame, reason, hosts, logs } as const;
    const { returned, dead, isOthers } = await store.frontier.release(batchId, options);
    logger.warn(`lost a batch: ${reason}`, { batch: batchId, returned, dead });
    wake.notify();
    return !isOthers;
  }

  /** What was sent under permits that did not come back is not known, and their hosts' logs say so. */
  #lostLogs({ batch, released }: OpenBatch, now: number): HostLogText[] {
    const { job } = this.#parts;
    if (!job.spec.politeness.log) return [];
    return batch.permits
      .filter((_, index) => !released[index])
      .map((permit) => ({
        host: permit.host,
        text: textOf(lostEntry({ now, job: `${job.name}-${job.run}`, batch: batch.id, permit })),
      }));
  }

  /** Permits come back; hosts that have no other out are free as soon as nothing can be sent to them under these. */
  #freeHosts({ batch, released }: OpenBatch, loss: { now: number; ended: boolean }): FreedHost[] {
    const { permits } = this.#parts;
    return batch.permits.flatMap((permit, index) => {
      if (released[index]) return [];
      const entry = permits.entry(permit.host);
      const freeAt = permits.release(permit, freeAfterLoss(permit, loss));
      if (freeAt === null || !entry || permit.gapMs === 0) return [];
      const nextAt = Math.ceil(Math.max(freeAt, entry.restUntil, entry.pauseUntil));
      return [{ host: permit.host, nextAt, takenUntil: entry.takenUntil }];
    });
  }
}
