import { refusalsLeft, slowStartOf } from '../core/bans/bans.ts';
import type { Permit } from '../core/batch/batch.ts';
import type { Outcome } from '../core/batch/outcome.ts';
import { batchSizes } from '../core/batch-size/batch-size.ts';
import { expectedBytes, pagesWithin } from '../core/byte-limit/byte-limit.ts';
import { isExpired } from '../core/calibration/host-profile.ts';
import type { IdleReason } from '../core/explain/slot-states.ts';
import { gapMsOf, parallelOf } from '../core/job-schema/job.ts';
import type { Counters } from '../core/model.ts';
import { addressLimitsOf, laneTimes } from '../core/pace/address-pace.ts';
import { isRising, isTrying, paceUnder } from '../core/pace/pace.ts';
import { compileHostLimits, type HostLimiter } from '../core/politeness/host-limits.ts';
import { guardedGapMs, SHORT_PERMIT_MS, unguardedGapMs } from '../core/politeness/permits.ts';
import type { Clock } from '../ports/ambient.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type {
  DueHost,
  Frontier,
  HostHealth,
  Job,
  JobStore,
  LeasedBatch,
  RobotsEntry,
} from '../ports/store.ts';
import type { BrowserSlots } from './browser-slots.ts';
import type { BudgetWatch } from './budget/budget-watch.ts';
import { type EscalationPolicy, SCOUTS } from './escalation/escalation-policy.ts';
import type { SlotAccountant } from './explain/slot-accountant.ts';
import type { OpenPermits } from './hosts/open-permits.ts';
import type { OutageWatch } from './outage/outage-watch.ts';
import { handoverOf, makeBatch, type OpenBatch, refusalReport } from './plan/open-batch.ts';
import { type Grant, type PlanHost, type PlannedBatch, planBatches } from './plan/plan-batches.ts';
import type { AccessAssigner } from './proxies/access-assigner.ts';
import type { RobotsCache } from './robots/robots-cache.ts';
import type { RobotsGate } from './robots/robots-gate.ts';
import type { LearnedBatchTimes, LearnedSizes, OpenBatches, Wake } from './run-state.ts';
import type { ScalingWatch } from './scaling/scaling-watch.ts';
import type { Settler } from './settle/settler.ts';
import type { SourceFeeder } from './sources/source-feeder.ts';
import type { StoragePause } from './storage/storage-pause.ts';
import type { TimeoutLearner } from './timeouts/timeout-learner.ts';

/** Hosts are planned this far ahead of time, so that a permit reaches its worker before it starts. */
export const LOOK_AHEAD_MS = 400;
const DUE_HOSTS_MAX = 1_000;
/** A host that is due sooner than this is left as it is when the pace of the job changes. */
const PACE_FELT_MS = 1_000;
/** Looked at when a run begins, so that its start takes no longer with more hosts. The others come to their next time. */
const PACED_HOSTS_MAX = 10_000;
/** The gap of a job that is over is waited for when it is shorter: few hosts wait for longer, so the look every two seconds is cheap. */
const GAP_FELT_MS = 5_000;
const GAPS_AT_ONCE = 1_000;
/** Longer than any honest delay of an answer: after that a batch is taken back. */
const LEASE_GRACE_MS = 30_000;

interface SenderParts {
  store: {
    readonly frontier: Pick<
      Frontier,
      'bringForward' | 'dueHosts' | 'hostsNamed' | 'lease' | 'noteSent' | 'pacedHosts' | 'postpone'
    >;
    readonly jobs: Pick<JobStore, 'counters'>;
  };
  job: Job;
  dispatcher: Pick<
    Dispatcher,
    'addresses' | 'replyTo' | 'slots' | 'suspectSlots' | 'wantHosts' | 'lessUrgent' | 'workers'
  >;
  clock: Clock;
  batches: OpenBatches;
  permits: OpenPermits;
  storage: Pick<StoragePause, 'batchesMax'>;
  pageSizes: LearnedSizes;
  batchTimes: LearnedBatchTimes;
  wake: Pick<Wake, 'notify'>;
  robots: RobotsCache;
  robotsGate: RobotsGate;
  browserSlots: BrowserSlots;
  outages: OutageWatch;
  budget: Pick<BudgetWatch, 'tasksLeft'>;
  timeouts: TimeoutLearner | null;
  scaling: Pick<ScalingWatch, 'slotsMax'>;
  escalation: EscalationPolicy | null;
  access: AccessAssigner | null;
  settler: Pick<Settler, 'settle'>;
  accountant: SlotAccountant;
  feeder: Pick<SourceFeeder, 'done'>;
  dispatch: (open: OpenBatch) => void;
}

type LimitName = 'gapMs' | 'parallel' | 'permitMs' | 'permitsMax' | 'answered' | 'addresses';

/** What the job's limits still allow. */
interface Allowance {
  tasks: number;
  /** What a page is expected to take of the limit of bytes; null without one. */
  bytesPerTask: number | null;
}

const UNLIMITED: Allowance = { tasks: Number.POSITIVE_INFINITY, bytesPerTask: null };

/** Plans, leases and hands over batches for dispatch. */
export class BatchSender {
  readonly #parts: SenderParts;
  readonly #limitsOf: HostLimiter;
  /** Hosts of which only suspects are ready: they wait until one more batch of those may be sent. */
  readonly #waiting = new Set<number>();
  /** Tasks that the plan under way could not start, by host or for all hosts, and what stopped them. */
  readonly #stopped = new Map<string | null, { reason: IdleReason; tasks: number }>();

  readonly #wake: () => void;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#wake = () => parts.wake.notify();
    this.#limitsOf = compileHostLimits(parts.job.spec);
  }

  /** Why pages for a browser wait; null while none do. */
  get trouble(): string | null {
    return this.#parts.browserSlots.trouble;
  }

  /**
   * The pace of the job may be another one than when hosts were last asked: those that wait for its gap alone are due when
   * the present gap is over.
   */
  async followPace(): Promise<void> {
    await this.#bringForward({ gapOf: 'this-job', afterMs: PACE_FELT_MS, limit: PACED_HOSTS_MAX });
  }

  /** A job that is over keeps no host with its gap: since the host's last request, the gap of this job counts. */
  async outliveGaps(): Promise<void> {
    await this.#bringForward({ gapOf: 'ended-jobs', afterMs: GAP_FELT_MS, limit: GAPS_AT_ONCE });
  }

  async #bringForward(of: {
    gapOf: 'this-job' | 'ended-jobs';
    afterMs: number;
    limit: number;
  }): Promise<void> {
    const { store, job, clock } = this.#parts;
    const now = Math.floor(clock.now());
    const { gapOf, afterMs, limit } = of;
    const waiting = await store.frontier.pacedHosts(job.id, { gapOf, after: now + afterMs, limit });
    const sooner = waiting.flatMap((host) => {
      const { crawlDelayMs, lastSentAt } = host;
      const gapMs = guardedGapMs(this.#limitsFor(withoutExpiredPace(host, now)).gapMs ?? 0, crawlDelayMs);
      const nextAt = Math.ceil(Math.max(now, lastSentAt + gapMs));
      return nextAt < host.nextAt ? [{ hostId: host.id, from: host.nextAt, nextAt }] : [];
    });
    if (sooner.length > 0) await store.frontier.bringForward(sooner);
  }

  /** Fills the free slots with whatever may start soon. */
  async fill(): Promise<void> {
    const { store, job, dispatcher, batches: out, storage, outages, clock } = this.#parts;
    const all = Math.min(dispatcher.slots, this.#parts.scaling.slotsMax);
    const slots = Math.min(all, storage.batchesMax) - out.size;
    const now = clock.now();
    this.#parts.accountant.onPlan({ slots: all, workers: dispatcher.workers, now });
    this.#stopped.clear();
    if (slots <= 0) return this.#account(all, 0);
    const suspectBatchesMax = Math.max(0, (dispatcher.suspectSlots ?? dispatcher.slots) - out.suspects);
    if (suspectBatchesMax > 0) this.#waiting.clear();
    const before = now + LOOK_AHEAD_MS;
    const overtakes = this.#parts.dispatcher.lessUrgent?.() ?? [];
    const due = await store.frontier.dueHosts(job.id, { now, before, limit: DUE_HOSTS_MAX, overtakes });
    const open = outages.select(
      due.filter(({ id }) => !this.#waiting.has(id)).map((host) => withoutExpiredPace(host, now)),
    );
    const allowance = await this.#allowance();
    this.#stop(null, 'retryBackoff', sum(due) - sum(open));
    const planned = await this.#plan(open, slots, now, allowance.tasks);
    if (planned.length === 0) return this.#account(all, allowance.tasks);
    const batches = planned.map(({ grants }) => ({
      grants: grants.map((grant) => ({ ...grant, startAt: grant.permit.startAt })),
      leaseMs: this.#budgetMs(grants, now) + LEASE_GRACE_MS,
    }));
    const hosts = new Set(planned.flatMap(({ grants }) => grants.map(({ permit }) => permit.host)));
    const leased = await this.#parts.permits.holding(hosts, async () => {
      const lent = await store.frontier.lease(job.id, { batches, now: Math.floor(now), suspectBatchesMax });
      this.#parts.accountant.onLeased(clock.now());
      const filled = lent.filter(({ tasks }) => tasks.length > 0);
      if (filled.length > 0) outages.onSent(filled.map(({ id }) => id));
      for (const [index, batch] of lent.entries()) {
        for (const hostId of batch.waiting ?? []) this.#waiting.add(hostId);
        const plan = planned[batch.suspectsOf ?? index]!;
        if (batch.tasks.length > 0) await this.#send(plan, batch, now, allowance.bytesPerTask);
      }
      return lent;
    });
    const sent = leased.reduce((count, { tasks }) => count + tasks.length, 0);
    await this.#account(all, allowance.tasks - sent);
  }

  /** What stops the next task, where slots are free. */
  async #account(slots: number, tasksLeft: number): Promise<void> {
    const { accountant, batches, storage, feeder, clock } = this.#parts;
    const stopped: Partial<Record<IdleReason, number>> = {};
    for (const { reason, tasks } of this.#stopped.values()) stopped[reason] = (stopped[reason] ?? 0) + tasks;
    const left = {
      freeSlots: slots - batches.size,
      isStoragePaused: storage.batchesMax < slots,
      tasksLeft,
      stopped,
      isSourceDone: feeder.done,
    };
    await accountant.onPlanned(left, clock.now());
  }

  /** What is found last of a host is what stops it: all else would let its tasks start. */
  #stop(host: string | null, reason: IdleReason, tasks: number): void {
    if (tasks > 0) this.#stopped.set(host, { reason, tasks: tasks + (this.#stopped.get(host)?.tasks ?? 0) });
  }

  async #plan(due: DueHost[], slots: number, now: number, tasksLeft: number): Promise<PlannedBatch[]> {
    const { job, dispatcher, batchTimes } = this.#parts;
    const { spec } = job;
    const open = await this.#openHosts(due, now);
    const { isFull } = this.#parts.browserSlots;
    this.#stop(null, 'hostGap', sum(due) - sum(open));
    const hosts = open
      .filter((host) => {
        const reason = this.#parts.robots.isAsking(host.host)
          ? 'robots'
          : this.#isScouted(host.host)
            ? 'hostParallelism'
            : isFull && this.#parts.escalation?.renders(host.host)
              ? 'browserRoom'
              : null;
        if (reason) this.#stop(host.host, reason, host.ready);
        return reason === null;
      })
      .map((host) => ({
        ...this.#planHost(host, now),
        ready: this.#parts.escalation?.isUnsure(host.host) ? Math.min(host.ready, SCOUTS) : host.ready,
        renders: this.#parts.escalation?.renders(host.host) ?? false,
        needsRobots: spec.politeness.robots && !this.#parts.robots.isKnown(host.host),
      }));
    const ready = await this.#parts.robotsGate.withPiggybackedHosts(hosts, now + LOOK_AHEAD_MS, (host) =>
      this.#planHost(host, now),
    );
    if (ready.length === 0) return [];
    const planned = planBatches({
      now,
      hosts: await this.#withReference(ready, now),
      slots,
      workers: dispatcher.workers,
      ...batchSizes(spec.batchSize, batchTimes.times),
      gapMs: gapMsOf(spec),
      jitter: spec.politeness.jitter,
      parallel: parallelOf(spec),
      probeAfter: spec.breaker.hostFailures,
      openMs: spec.timeouts.taskMs + LEASE_GRACE_MS,
      tasksLeft,
    });
    this.#noteHosts(open, ready, planned);
    return planned;
  }

  /** What hosts have left after a plan, and why they got no more. */
  #noteHosts(due: readonly DueHost[], hosts: readonly PlanHost[], planned: readonly PlannedBatch[]): void {
    const { spec } = this.#parts.job;
    const granted = new Map<number, number>();
    for (const { grants } of planned)
      for (const { hostId, count } of grants) granted.set(hostId, (granted.get(hostId) ?? 0) + count);
    const readyOf = new Map(due.map(({ id, ready }) => [id, ready]));
    const { permits, dispatcher } = this.#parts;
    const wanted: string[] = [];
    for (const { id, host, load, gapMs, parallel, crawlDelayMs, pace } of hosts) {
      const ready = (readyOf.get(id) ?? 0) - (granted.get(id) ?? 0);
      if (ready > 0 && permits.isShared) permits.wakeOnRelease(host, this.#wake);
      const gap = guardedGapMs(gapMs ?? gapMsOf(spec), crawlDelayMs);
      if (ready > 0 && gap === 0 && load.permits > 0) wanted.push(host);
      this.#stop(host, gap > 0 ? 'hostGap' : 'hostParallelism', ready);
      this.#parts.accountant.noteHost({
        host,
        ready,
        gapMs: gap,
        parallel: parallel ?? parallelOf(spec),
        latencyMs: pace?.latencyMs ?? null,
      });
    }
    if (wanted.length > 0) dispatcher.wantHosts?.(wanted);
  }

  /** During an outage a host that was reached before is asked as well: only then is it known who is gone. */
  async #withReference(hosts: PlanHost[], now: number): Promise<PlanHost[]> {
    const { store, outages, permits } = this.#parts;
    const { reference } = outages;
    const [first, ...others] = hosts;
    if (!reference || first!.piggybackedHost || hosts.some(({ host }) => host === reference.host))
      return hosts;
    const [other] = await store.frontier.hostsNamed([reference.host]);
    const planned = other && this.#planHost(other, now);
    if (!planned || planned.nextAt > now + LOOK_AHEAD_MS || permits.load(reference.host).permits > 0)
      return hosts;
    return [{ ...first!, piggybackedHost: { ...planned, probeUrl: reference.url } }, ...others];
  }

  #planHost(host: DueHost, now: number): PlanHost {
    const load = this.#parts.permits.load(host.host);
    const hours = this.#limitsOf(host.host).window?.nextPermit(Math.max(now, host.nextAt));
    return {
      ...host,
      ...this.#limitsFor(host),
      ...(hours ? { nextAt: Math.max(host.nextAt, hours.opensAt), closesAt: hours.closesAt } : {}),
      load,
      needsRobots: false,
    };
  }

  /** A few tasks are out to see how the host answers: the others wait for them. */
  #isScouted(host: string): boolean {
    const { escalation, permits } = this.#parts;
    return escalation !== null && permits.load(host).permits > 0 && escalation.isUnsure(host);
  }

  /** Hosts whose hours are closed wait until they open. */
  async #openHosts(due: DueHost[], now: number): Promise<DueHost[]> {
    const { store, job } = this.#parts;
    const closed: { hostId: number; until: number }[] = [];
    const open = due.filter((host) => {
      const startAt = Math.max(now, host.nextAt);
      const until = this.#limitsOf(host.host).window?.nextPermit(startAt).opensAt ?? startAt;
      if (until > startAt) closed.push({ hostId: host.id, until });
      return until <= startAt;
    });
    if (closed.length > 0) await store.frontier.postpone(job.id, closed);
    return open;
  }

  #limitsFor(due: DueHost): Pick<PlanHost, LimitName> {
    const { host, pace, ban } = due;
    const { rate: cap, parallel } = this.#limitsOf(host);
    const { adaptive, perAddress } = this.#parts.job.spec.politeness;
    if (perAddress && adaptive && Number.isFinite(cap)) return this.#limitsByAddress(due, cap, parallel);
    const now = paceUnder(pace, cap);
    const rate = adaptive ? Math.min(cap, now.rate) : cap;
    const limits = { gapMs: Number.isFinite(rate) ? 1_000 / rate : 0, parallel };
    if (!adaptive) return limits;
    const answered = slowStartOf(ban);
    return {
      ...limits,
      ...(isRising(now, cap) ? { permitMs: SHORT_PERMIT_MS } : {}),
      ...(isTrying(now) ? { permitsMax: 1 } : {}),
      ...(answered === null ? {} : { answered }),
    };
  }

  /** The gap is that of the whole host, for whoever wants to know how fast it is. */
  #limitsByAddress(
    { pace, crawlDelayMs }: DueHost,
    cap: number,
    parallel: number,
  ): Pick<PlanHost, LimitName> {
    const { dispatcher, clock } = this.#parts;
    const limits = addressLimitsOf(pace, { cap, crawlDelayMs, now: clock.now() });
    const lanesMax = dispatcher.addresses ?? 1;
    const lanes = Math.max(1, Math.min(limits.lanes, lanesMax));
    return {
      gapMs: unguardedGapMs(laneTimes(limits, lanes).usualGapMs) / lanes,
      parallel,
      addresses: { ...limits, lanesMax },
      ...(limits.isRising ? { permitMs: SHORT_PERMIT_MS } : {}),
      ...(limits.isTrying ? { permitsMax: 1 } : {}),
    };
  }

  /** Tasks that robots.txt forbids are settled here; the rest goes out, robots.txt first where it is not known. */
  async #send(
    planned: PlannedBatch,
    leased: LeasedBatch,
    now: number,
    bytesPerTask: number | null,
  ): Promise<void> {
    const { job } = this.#parts;
    const used = new Set([...leased.tasks.map((task) => task.hostId), ...(leased.piggybacked ?? [])]);
    const grants = planned.grants.filter((grant) => used.has(grant.hostId));
    for (const { permit, hostId } of grants)
      this.#grant(permit, withoutExpiredPace(leased.hosts.find(({ id }) => id === hostId)!, now));
    const { refused, robots, found, late } = await this.#parts.robotsGate.check(grants, leased.tasks, now);
    const budgetMs = this.#budgetMs(grants, now, leased.tasks);
    const open = makeBatch(job, grants, leased, {
      budgetMs,
      leaseUntil: now + budgetMs + LEASE_GRACE_MS,
      epoch: this.#parts.batches.epoch,
      robots,
    });
    open.plannedAt = now;
    this.#noteDeferred(open, refused, 'robots');
    if (refused.length > 0) await this.#refuse(open, refused, found);
    // Planned ahead of their time they would only be put off again, over and over until it has come.
    const later = late.map((host) => ({ ...host, until: host.until + LOOK_AHEAD_MS }));
    if (later.length > 0) await this.#parts.store.frontier.postpone(job.id, later);
    for (const { hostId, until } of later) {
      const grant = grants.find((one) => one.hostId === hostId);
      if (grant) this.#parts.accountant.noteHostWait(grant.permit.host, until, 'robots');
    }
    if (open.tasks.size > 0) {
      this.#parts.escalation?.assign(open.batch, now);
      await this.#deferBrowserTasks(open);
      if (open.batch.tasks.some(({ fetchMethod }) => fetchMethod?.fetcher === 'browser'))
        open.batch.needs = 'browser';
      if (open.tasks.size > 0) await this.#attachAccess(open, grants);
    }
    if (open.tasks.size === 0) {
      this.#parts.wake.notify();
      return;
    }
    if (bytesPerTask !== null) open.batch.bytesMax = Math.ceil(bytesPerTask * open.tasks.size);
    const { dispatcher, store, access, batches } = this.#parts;
    // What is learned of proxies needs what they are, which is a secret.
    const handover = access ? null : handoverOf(open);
    if (dispatcher.replyTo !== undefined)
      await store.frontier.noteSent(open.batch.id, { replyTo: dispatcher.replyTo, handover });
    batches.add(open);
    this.#parts.dispatch(open);
  }

  /** A report may have come between plan and lease: what it says of refusals counts for this permit, too. */
  #grant(permit: Permit, health: HostHealth): void {
    const { permits } = this.#parts;
    permits.grant(permit, health);
    const timeoutMs = this.#parts.timeouts?.timeoutMsOf(permit.host) ?? null;
    if (timeoutMs !== null) permit.timeoutMs = timeoutMs;
    const left = refusalsLeft(permits.entry(permit.host)!.ban);
    if (left !== null && permit.probe === undefined) permit.refusalsMax = left;
  }

  /** Pages for which there is no browser now. */
  async #deferBrowserTasks(open: OpenBatch): Promise<void> {
    const left = this.#parts.browserSlots.deferBrowserTasks(open.batch);
    if (left.length === 0) return;
    const { permits, robots } = open.batch;
    this.#noteDeferred(open, left, 'browserRoom');
    await this.#refuse(open, left);
    if (open.tasks.size > 0) return;
    for (const { permit } of robots) this.#parts.robots.doneAsking(permits[permit]!.host);
  }

  /** Hosts that can only be asked through a proxy wait for one, and with them their robots.txt. */
  async #attachAccess(open: OpenBatch, grants: Grant[]): Promise<void> {
    const { store, job } = this.#parts;
    const asked = open.batch.robots;
    const left = this.#parts.access?.attachSecrets(open);
    if (!left || left.outcomes.length === 0) return;
    this.#noteDeferred(open, left.outcomes, 'proxy');
    for (const { permit, until } of left.permits)
      this.#parts.accountant.noteHostWait(grants[permit]!.permit.host, until, 'proxy');
    await this.#refuse(open, left.outcomes);
    for (const fetch of asked)
      if (!open.batch.robots.includes(fetch)) this.#parts.robots.doneAsking(fetch.origin);
    const hosts = left.permits.map(({ permit, until }) => ({ hostId: grants[permit]!.hostId, until }));
    if (hosts.length > 0) await store.frontier.postpone(job.id, hosts);
  }

  /** Before they are settled: by then the batch has them no longer. */
  #noteDeferred({ tasks, batch }: OpenBatch, outcomes: readonly Outcome[], reason: IdleReason): void {
    for (const outcome of outcomes) {
      if (outcome.kind !== 'deferred') continue;
      const permit = tasks.get(outcome.taskId)?.permit;
      if (permit !== undefined) this.#stop(batch.permits[permit]!.host, reason, 1);
      if (outcome.until !== undefined) this.#parts.accountant.noteTaskWait(Math.ceil(outcome.until), reason);
    }
  }

  /** Settles tasks without a worker, and the whole batch when nothing else is in it. */
  async #refuse(open: OpenBatch, refused: Outcome[], found: RobotsEntry[] = []): Promise<void> {
    const { batch } = open;
    const all = refused.length === open.tasks.size;
    const report = refusalReport(batch, refused, { all, now: this.#parts.clock.now() });
    await this.#parts.settler.settle(open, report, found);
    open.batch.tasks = batch.tasks.filter((task) => open.tasks.has(task.id));
  }

  /** Under a limit of pages or bytes, or with a budget, no more may be out than could still count. */
  async #allowance(): Promise<Allowance> {
    const { store, job, budget } = this.#parts;
    if (!hasLimit(job)) return UNLIMITED;
    const counters = await store.jobs.counters(job.id);
    const allowance = this.#allowanceOf(counters);
    const tasks = await budget.tasksLeft(counters);
    return tasks === null ? allowance : { ...allowance, tasks: Math.min(tasks, allowance.tasks) };
  }

  #allowanceOf({ accepted, attempted, leased, bytes }: Counters): Allowance {
    const { job, pageSizes } = this.#parts;
    const { limits } = job.spec;
    const isLimited = limits.pages !== null && accepted > limits.pages;
    const pages = isLimited ? limits.pages! - attempted - leased : Number.POSITIVE_INFINITY;
    if (limits.bytes === null) return { tasks: Math.max(0, pages), bytesPerTask: null };
    const bytesLeft = Math.max(0, limits.bytes - bytes);
    return {
      tasks: Math.max(0, Math.min(pages, pagesWithin(bytesLeft, leased, pageSizes.sizes))),
      bytesPerTask: expectedBytes(pageSizes.sizes, bytesLeft),
    };
  }

  /** Where timeouts are learned and no page has failed before, a batch needs the longest of its hosts only. */
  #budgetMs(grants: Grant[], now: number, tasks: readonly { attempt: number }[] | null = null): number {
    const { taskMs: wholeMs } = this.#parts.job.spec.timeouts;
    const isLearned = tasks?.every(({ attempt }) => attempt === 1) ?? false;
    const taskMs = isLearned
      ? Math.max(...grants.map(({ permit }) => (permit.gapMs > 0 ? permit.timeoutMs : null) ?? wholeMs))
      : wholeMs;
    const permitMs = Math.max(...grants.map(({ permit }) => (permit.gapMs > 0 ? permit.endAt - now : 0)));
    return Math.ceil(taskMs + permitMs + 5_000);
  }
}

function sum(hosts: readonly DueHost[]): number {
  return hosts.reduce((ready, host) => ready + host.ready, 0);
}

/** A key may have a limit of its own. */
function hasLimit({ spec, owner }: Job): boolean {
  const { pages, bytes, requests, dollars, browserSeconds } = spec.limits;
  return owner !== null || [pages, bytes, requests, dollars, browserSeconds].some((limit) => limit != null);
}

/** What calibration found counts for some days: after that the pace is learned again. */
function withoutExpiredPace<Host extends Pick<DueHost, 'pace'>>(host: Host, now: number): Host {
  return isExpired(host.pace, now) ? { ...host, pace: null } : host;
}
