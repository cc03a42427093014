import type { Report } from '../core/batch/batch.ts';
import { messageOf } from '../core/errors.ts';
import { newestDecisions } from '../core/explain/scaling-decision.ts';
import { LIMITS } from '../core/limits.ts';
import type { Counters, JobState } from '../core/model.ts';
import type { Delivery } from '../ports/dispatcher.ts';
import type { AdoptedBatch, Job } from '../ports/store.ts';
import { BatchSender, LOOK_AHEAD_MS } from './batch-sender.ts';
import { BrowserSlots } from './browser-slots.ts';
import { archiveKeyOf, type OpenBatch, packKeyOf, reopenBatch } from './plan/open-batch.ts';
import { ReportReceiver } from './report-receiver.ts';
import { RobotsGate } from './robots/robots-gate.ts';
import { type CoordinatorOptions, openRunState, type RunState } from './run-state.ts';
import { Settler } from './settle/settler.ts';
import { checkStop, type StopReason } from './stop.ts';
import type { TailWatch } from './tail/tail-watch.ts';
import { WorkerHealthLog } from './workers/worker-health-log.ts';

/** Read when a run begins: a few MB. */
const ESCALATION_ROWS_MAX = 50_000;
/** Profiles of hosts, for the timeouts that a run begins with; each has some kilobytes of evidence. */
const PROFILES_MAX = 500;

export interface RunResult {
  state: JobState;
  stop: StopReason | null;
  counters: Counters;
}

/** Of a batch, in its line of the log. */
const HOSTS_LOGGED = 10;
/** How often the requested state, limits and leases are looked at. */
const POLL_MS = 250;
/** How often the time worked is written down, for `status` and for runs that are killed. */
const SAVE_MS = 2_000;
/** A worker answers a drain at once, unless a handler does not let go of it. */
const DRAIN_MS = 10_000;
/** Hosts that are due later than this rest. */
const IDLE_MS = 60_000;
/** Rests and leases are minutes; what is to wait for longer was planned under another clock. */
const REST_CREDIBLE_MS = 3_600_000;

/** Plans, dispatches and settles one job. Never fetches, never parses. */
export class Coordinator {
  readonly #options: CoordinatorOptions;
  readonly #run: RunState;
  readonly #sender: BatchSender;
  readonly #receiver: ReportReceiver;
  readonly #health: WorkerHealthLog | null;
  #startedAt = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #savedAt = Number.NEGATIVE_INFINITY;
  /** What keeps all or some of the tasks waiting, as it was last looked at. */
  #reason: string | null = null;
  #stop: StopReason | null = null;
  #finished: JobState | null = null;
  #idleSince: number | null = null;
  /** Of the batches that are out, those of coordinators that are gone. */
  readonly #adopted = new Set<number>();
  #broken: unknown = null;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.#run = openRunState(options);
    const parts = { ...options, ...this.#run };
    const settler = new Settler({ ...parts, rejects: options.feeder.rejects });
    this.#receiver = new ReportReceiver({ ...parts, settler });
    this.#sender = new BatchSender({
      ...parts,
      settler,
      robotsGate: new RobotsGate(parts),
      browserSlots: new BrowserSlots(parts),
      dispatch: (open) => this.#dispatch(open),
    });
    const heartbeats = options.isHealthNoted ? undefined : options.dispatcher.heartbeats;
    this.#health = heartbeats
      ? new WorkerHealthLog({ ...options, heartbeats: heartbeats.bind(options.dispatcher) })
      : null;
    options.dispatcher.onSlotsFree?.(() => this.#run.wake.notify());
  }

  /** Asks the run to end soon; open work is returned. */
  stop(reason: StopReason): void {
    this.#stop ??= reason;
    this.#options.room?.stopWaiting();
    this.#run.wake.notify();
  }

  /** Tasks were added: they are looked for at once. */
  wake(): void {
    this.#run.wake.notify();
  }

  get state(): JobState | 'stopping' {
    return this.#stop ? 'stopping' : 'running';
  }

  async run(): Promise<RunResult> {
    const { store, job, feeder } = this.#options;
    this.#startedAt = this.#options.clock.now();
    await store.jobs.join(job.id);
    let others = 0;
    try {
      await this.#recover();
      feeder.start(() => this.#run.wake.notify());
      await this.#loop();
      await this.#drain();
      await this.#saveEscalation();
      await this.#saveRollups();
      await this.#health?.note();
      await this.#saveAccount(this.#options.clock.now());
    } finally {
      await feeder.stop();
      await this.#giveUpPermits();
      others = await store.jobs.leave(job.id);
    }
    if (this.#broken) throw this.#broken;
    this.#stop ??= sourceFailure(feeder.failure);
    const counters = await store.jobs.counters(job.id);
    await this.#run.budget.addMachineTime(this.#workedHereMs());
    await store.jobs.update(job.id, { workedMs: this.#workedMs(), ...this.#endOf(others) });
    return { state: this.#stop?.state ?? this.#finished ?? 'done', stop: this.#stop, counters };
  }

  /** What is to be written of a run that was stopped; the store knows of one that is finished, and of URLs added since. */
  #endOf(others: number): Partial<Pick<Job, 'state' | 'reason' | 'endedAt'>> {
    if (!this.#stop) return {};
    const { state, cause, message } = this.#stop;
    // What ends only this coordinator does not end the job of the others.
    if (cause === 'restart' || (others > 0 && isOwnTrouble(this.#stop))) return {};
    return { state, reason: message, endedAt: Math.floor(this.#options.clock.now()) };
  }

  /** Why batches wait, in one line; null while they do not. */
  get waitingFor(): string | null {
    return this.#options.dispatcher.trouble?.() ?? this.#reason ?? this.#sender.trouble;
  }

  async #loop(): Promise<void> {
    while (true) {
      await this.#look();
      if (this.#stop || this.#broken) return;
      await this.#sender.fill();
      if (!(await this.#isFinished())) this.#idleSince = null;
      else if (await this.#finish()) return;
      await this.#run.wake.wait(await this.#sleepMs());
    }
  }

  async #recover(): Promise<void> {
    const { store, job } = this.#options;
    const now = Math.floor(this.#options.clock.now());
    // What was requested stays: a stop may have come since the job was given to this coordinator.
    await store.jobs.update(job.id, { state: 'running', reason: null, endedAt: null });
    await this.#clampTimes(now);
    // A job that has not worked yet has no pace that could have changed.
    if (job.workedMs > 0) await this.#sender.followPace();
    await this.#takeBack(await store.frontier.orphans(job.id));
    const { escalation, access, breaker, timeouts } = this.#run;
    breaker.begin(await store.jobs.counters(job.id));
    await access?.exchange();
    timeouts?.begin(await store.hosts.profiles(PROFILES_MAX), now);
    if (escalation) escalation.load(await store.escalations.load(job.id, ESCALATION_ROWS_MAX));
  }

  /** A permit of the time before may still be out somewhere: that is waited for, and no more. */
  async #clampTimes(now: number): Promise<void> {
    const { store, job, logger } = this.#options;
    const waitMs = Math.max(REST_CREDIBLE_MS, job.spec.retry.maxMs);
    const count = await store.hosts.clampNextAt({ latest: now + waitMs, to: now + LIMITS.permitMsMax });
    if (count === 0) return;
    const minutes = Math.round(waitMs / 60_000);
    logger.warn(
      `the clock was ahead: ${count} hosts and tasks were to wait for more than ${minutes} minutes; they are due now`,
    );
  }

  /** What a crash loses of it is learned again. */
  async #saveEscalation(): Promise<void> {
    const { store, job } = this.#options;
    const rows = this.#run.escalation?.takeChanges() ?? [];
    if (rows.length > 0) await store.escalations.save(job.id, rows);
    await this.#run.access?.exchange();
  }

  async #saveRollups(): Promise<void> {
    const { store, job, clock } = this.#options;
    await store.rollups.add(job.id, this.#run.rollups.take(), Math.floor(clock.now()));
  }

  async #saveAccount(now: number): Promise<void> {
    const { dispatcher } = this.#options;
    const made = [...(dispatcher.decisions ?? []), ...this.#run.scaling.decisions];
    await this.#run.accountant.save(now, newestDecisions(made));
  }

  /** Of a coordinator that died: what its workers still have is waited for, all else goes back. */
  async #takeBack(batchIds: number[]): Promise<void> {
    const { store, job, logger } = this.#options;
    for (const batchId of batchIds) {
      const adopted = await store.frontier.adopt(job.id, batchId);
      if (adopted && (await this.#adopt(adopted))) continue;
      const { returned, isOthers } = await store.frontier.release(batchId, {
        now: Math.floor(this.#options.clock.now()),
        // Workers elsewhere had nothing to do with its end.
        blame: adopted ? 'none' : 'coordinator',
        reason: 'the coordinator ended',
      });
      // Another one took it over meanwhile, and waits for what its workers have.
      if (isOthers) continue;
      await this.#sweep(batchId);
      logger.info('recovered a batch of an earlier run', { batch: batchId, tasks: returned });
    }
  }

  /** False when this coordinator's dispatcher cannot hear of it. */
  async #adopt(adopted: AdoptedBatch): Promise<boolean> {
    const { store, job, dispatcher, clock, logger } = this.#options;
    const { handover, replyTo } = adopted;
    if (!dispatcher.adopt || !handover) return false;
    // Planned under a clock that was ahead: its permits would keep their hosts until then.
    if (adopted.leaseUntil - clock.now() > REST_CREDIBLE_MS) return false;
    const open = reopenBatch(job, adopted, handover, clock.now());
    const { permits } = this.#run;
    const names = new Set(handover.permits.map(({ host }) => host));
    await permits.holding(names, async () => {
      const hosts = new Map((await store.frontier.hostsNamed([...names])).map((host) => [host.host, host]));
      for (const permit of handover.permits)
        permits.grant(permit, hosts.get(permit.host) ?? { failuresInRow: 0, rests: 0, pace: null });
    });
    this.#run.batches.add(open);
    const { id } = adopted;
    logger.info('waiting for a batch of an earlier run', { batch: id, tasks: open.tasks.size });
    this.#adopted.add(id);
    this.#await(open, (onPart) => dispatcher.adopt!(open.batch, replyTo, onPart));
    return true;
  }

  async #lose(lost: Parameters<ReportReceiver['lose']>[0]): Promise<void> {
    await this.#sweepLost(lost.batchId, await this.#receiver.lose(lost));
  }

  /** What its worker wrote is of no use once it went back, and not before: a report may be under way here, or at others. */
  async #sweepLost(batchId: number, isTakenBack: boolean): Promise<void> {
    if (isTakenBack && this.#adopted.delete(batchId)) await this.#sweep(batchId);
  }

  /** Files that no report of the batch refers to. */
  async #sweep(batchId: number): Promise<void> {
    const { store, job, blobs } = this.#options;
    for (const prefix of [archiveKeyOf(job, batchId), packKeyOf(job, batchId)]) {
      for await (const { key } of blobs.list(`${prefix}-`)) {
        if (!(await store.views.hasArchive(job.id, key))) await blobs.delete(key);
      }
    }
  }

  /** The requested state, limits, breakers and leases; not on every report. */
  async #look(): Promise<void> {
    const { store, job, dispatcher } = this.#options;
    const now = this.#options.clock.now();
    const { pages, requests } = job.spec.limits;
    const isUrgent = pages !== null || requests !== null || this.#run.breaker.brokenCode !== null;
    if (now - this.#lookedAt < POLL_MS && !isUrgent) return;
    this.#lookedAt = now;
    if (now - this.#savedAt > SAVE_MS) {
      this.#savedAt = now;
      const { access, bans, outages, storage } = this.#run;
      this.#reason = access?.tellShortage() ?? storage.reason ?? outages.tell() ?? bans.tell(now);
      await store.jobs.update(job.id, { workedMs: this.#workedMs(), reason: this.waitingFor });
      await this.#run.budget.addMachineTime(this.#workedHereMs());
      await this.#takeBack(await store.frontier.abandoned(job.id));
      await this.#sender.outliveGaps();
      await this.#saveEscalation();
      await this.#saveRollups();
      await this.#health?.look();
      await this.#saveAccount(now);
    }
    this.#run.priorities.update(await store.jobs.priorities(job.id));
    await this.#run.storage.look();
    const counters = await store.jobs.counters(job.id);
    this.#run.scaling.look({
      ...{ counters, now, workedMs: this.#workedMs(), dispatcher },
      accountant: this.#run.accountant,
    });
    const tail = this.#lookAtTail(counters, now);
    const stop = checkStop({
      requestedState: await store.jobs.requestedState(job.id),
      counters,
      limits: job.spec.limits,
      workedMs: this.#workedMs(),
      failedBatchesInRow: this.#run.breaker.failedBatchesInRow,
      brokenCode: this.#run.breaker.brokenCode,
      noWorkers: this.#options.dispatcher.refusal?.('http')?.message ?? null,
      storage: this.#run.storage,
      jobBatches: job.spec.breaker.jobBatches,
      lastingBan: await this.#lastingBan(now),
      isLastingOutage: this.#run.outages.isLasting(),
      exhausted: await this.#run.budget.exhausted(counters),
      tail: tail?.stop ?? null,
    });
    // Not `??=` above: a stop that came meanwhile would be overwritten by null.
    this.#stop ??= stop;
    for (const { batch } of tail?.late ?? [])
      await this.#lose({
        batchId: batch.id,
        reason: 'late near the end: its pages are requested again',
        blameless: true,
      });
    for (const batchId of await store.frontier.expired(job.id, Math.floor(now))) {
      await this.#lose({ batchId, reason: 'the lease expired before the worker answered' });
    }
    await this.#dropTaken(now);
  }

  #lookAtTail(counters: Counters, now: number): ReturnType<TailWatch['look']> | null {
    const { tail, batches } = this.#run;
    if (!tail || this.#stop) return null;
    const { dispatcher, feeder } = this.#options;
    return tail.look({
      ...{ counters, now, isSourceDone: feeder.done, workedMs: this.#workedMs() },
      open: batches.all(),
      freeSlots: dispatcher.slots - batches.size,
    });
  }

  /**
   * Batches that another coordinator has taken, because this one stood still: the store does not name them any more. Without
   * an answer of their workers they would be waited for until the end of time.
   */
  async #dropTaken(now: number): Promise<void> {
    for (const { batch, leaseUntil, over } of [...this.#run.batches.all()])
      if (!over && leaseUntil + POLL_MS < now)
        await this.#lose({
          batchId: batch.id,
          reason: 'another coordinator took it',
          blameless: true,
        });
  }

  /** As long as other hosts have something to request, a ban stops nothing. */
  async #lastingBan(now: number): Promise<string | null> {
    const host = this.#run.bans.lastingBan(now);
    if (host === null || this.#run.batches.size > 0) return null;
    const dueAt = await this.#options.store.frontier.nextDueAt(this.#options.job.id);
    return dueAt !== null && dueAt > now + IDLE_MS ? host : null;
  }

  #dispatch(open: OpenBatch): void {
    this.#await(open, (onPart) => this.#options.dispatcher.dispatch(open.batch, onPart));
  }

  #await(open: OpenBatch, deliver: (onPart: (part: Report) => void) => Promise<Delivery>): void {
    const { batch } = open;
    const now = this.#options.clock.now();
    this.#options.logger.debug?.('sent a batch', {
      batch: batch.id,
      tasks: batch.tasks.length,
      hosts: batch.permits.slice(0, HOSTS_LOGGED).map(({ host }) => host),
    });
    this.#options.progress.onDispatch(batch, now);
    this.#run.accountant.onDispatch(batch.id, now);
    this.#run.tracer.onSent(open, now);
    const delivery = deliver((part) => void this.#guard(this.#receiver.settle(part)));
    void this.#guard(
      delivery.then(async (answer) => {
        await this.#sweepLost(batch.id, await this.#receiver.receive(answer));
        this.#adopted.delete(batch.id);
      }),
    );
  }

  /** Workers return what they have; one that hangs keeps its lease, and the next run takes it back. */
  async #drain(): Promise<void> {
    if (this.#run.batches.size === 0) return;
    await this.#options.dispatcher.drain();
    const until = this.#options.clock.now() + DRAIN_MS;
    while (this.#run.batches.size > 0 && !this.#broken && this.#options.clock.now() < until) {
      await this.#run.wake.wait(POLL_MS);
    }
  }

  /** What workers did not bring back: other jobs of this process must not wait for it longer than they have to. */
  async #giveUpPermits(): Promise<void> {
    const { batches, permits } = this.#run;
    for (const open of [...batches.all()]) {
      // What has come is settled under its permits.
      for (let settled = null; settled !== open.settled; await settled) settled = open.settled;
      for (const [index, permit] of open.batch.permits.entries())
        if (!open.released[index]) {
          permits.release(permit, permit.endAt);
          // Its report may still come, and must not give back what another job has by then.
          open.released[index] = true;
        }
    }
  }

  async #isFinished(): Promise<boolean> {
    const { store, job, feeder } = this.#options;
    if (this.#run.batches.size > 0 || !feeder.done) return false;
    const { pending, leased } = await store.jobs.counters(job.id);
    return pending === 0 && leased === 0;
  }

  /** False when the job goes on: it is kept open for a while, or tasks were added just now. */
  async #finish(): Promise<boolean> {
    const { store, job, feeder, lingerMs = 0 } = this.#options;
    // The failure of a source stops the job instead.
    if (feeder.failure !== null) return true;
    const now = this.#options.clock.now();
    this.#idleSince ??= now;
    // It may have been closed to more URLs since the run began.
    const isOpen = job.keepOpen && lingerMs > 0 && (await store.jobs.get(job.id)).keepOpen;
    if (isOpen && now - this.#idleSince < lingerMs) return false;
    this.#idleSince = null;
    this.#finished = await store.jobs.finish(job.id, Math.floor(now));
    return this.#finished !== null;
  }

  async #sleepMs(): Promise<number> {
    const { store, job, dispatcher } = this.#options;
    if (this.#run.batches.size >= dispatcher.slots) return POLL_MS;
    const dueAt = await store.frontier.nextDueAt(job.id);
    const ms = dueAt === null ? POLL_MS : Math.ceil(dueAt - LOOK_AHEAD_MS - this.#options.clock.now());
    // Hosts that are due but fully used wake us by their reports.
    return ms <= 0 ? POLL_MS : Math.min(POLL_MS, ms);
  }

  #workedMs(): number {
    return Math.round(this.#options.job.workedMs + this.#workedHereMs());
  }

  #workedHereMs(): number {
    return this.#options.clock.now() - this.#startedAt;
  }

  /** A store that fails is fatal: stop at once and say so, with nothing half done. */
  async #guard(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#options.logger.error(`the coordinator failed: ${messageOf(error)}`);
      this.#broken ??= error;
      this.#run.wake.notify();
    }
  }
}

function isOwnTrouble(stop: StopReason | null): boolean {
  return stop?.cause === 'signal' || stop?.cause === 'breaker' || stop?.cause === 'source';
}

/** What was read is done; `resume` reads on from there once the source is well again. */
function sourceFailure(failure: unknown): StopReason | null {
  return failure === null
    ? null
    : { state: 'stopped', cause: 'source', message: `a source failed: ${messageOf(failure)}` };
}
