import type { Batch, Report, WorkerKind } from '../core/batch/batch.ts';
import { aheadOfReport, isGivenBackPart } from '../core/batch/report.ts';
import type { ScalingDecision } from '../core/explain/scaling-decision.ts';
import { type Wanted, wantedTogether } from '../core/scaling/scaling.ts';
import { fairShares } from '../core/slots/fair-share.ts';
import { HostRequests } from '../core/slots/give-back.ts';
import type { Clock } from '../ports/ambient.ts';
import type { Delivery, DispatchCost, Dispatcher, WorkerHeartbeat } from '../ports/dispatcher.ts';
import { ReportTurns } from './report-turns.ts';

export interface JobClaim {
  /** Whose jobs share among themselves. */
  owner: string;
  ownerWeight: number;
  weight: number;
  /** Of the job, among all that workers have. */
  priority: number;
}

interface AllocatorOptions {
  /**
   * A slot is a batch under way, and most of a batch is waiting for hosts: with more jobs than slots each job may have one
   * batch out all the same, until there are so many times as many batches as slots. 1 where slots are exact.
   */
  overcommitMax: number;
  clock: Clock;
  /** See `ReportTurns`. */
  afterArrivals?: (run: () => void) => void;
}

/** How workers are reached by one job. */
interface Carrier {
  dispatcher: Dispatcher;
  /** Other jobs use it, too: it is not drained or closed with this one. */
  isShared: boolean;
}

/** Shares the slots of all workers between the jobs of this process. Each job gets a dispatcher of its own from it. */
export class SlotAllocator {
  readonly #jobs = new Set<JobSlots>();
  readonly #overcommitMax: number;
  readonly #requests = new HostRequests();
  readonly #clock: Clock;
  readonly reports: ReportTurns;

  constructor({ overcommitMax, clock, ...turns }: AllocatorOptions) {
    this.#overcommitMax = overcommitMax;
    this.#clock = clock;
    this.reports = new ReportTurns({ clock, ...turns, onHeadStartEnd: () => this.wakeNext() });
  }

  now(): number {
    return this.#clock.now();
  }

  join(carrier: Carrier, claim: JobClaim, jobId: number): Dispatcher {
    const slots = new JobSlots(carrier, claim, jobId, this);
    if (carrier.isShared) carrier.dispatcher.announce?.(claim.priority);
    const isUrgent = [...this.#jobs].some((job) => job.used > 0 && job.priority < claim.priority);
    if (isUrgent) this.reports.beginHeadStart(claim.priority);
    this.#jobs.add(slots);
    return slots;
  }

  leave(job: JobSlots): void {
    this.#jobs.delete(job);
    this.tellWanted(job.carrier);
    this.reports.endHeadStart(job.priority);
    this.wakeNext();
  }

  /**
   * How many batches the job may have out. Who asks could use more; of the others, those that used up what they were
   * allowed are taken to want more, and what the rest leaves unused is lent. A job that begins may so have its share at
   * once, while others still use what they were lent: they get nothing new until they are back at their own share. Nor do
   * they while they stand still: workers would begin none of it, and to lend it takes the time of the job that begins.
   */
  allowed(asking: JobSlots): number {
    if (this.reports.standsStill(asking.priority)) return asking.used;
    const jobs = [...this.#jobs];
    const wants = jobs.filter((job) => job === asking || job.isHungry || job.used > 0).length;
    const most = Math.floor(asking.slotsInAll * this.#overcommitMax);
    // With more jobs than slots there is one batch for each, as far as that goes.
    const total = Math.min(Math.max(asking.slotsInAll, wants), most);
    const wanted = (job: JobSlots) => (job === asking || job.isHungry ? total : job.used);
    const shares = fairShares(
      total,
      jobs.map((job) => ({ ...job.claim, wanted: wanted(job) })),
    );
    const share = shares[jobs.indexOf(asking)] ?? 0;
    if (share >= 1) return Math.floor(share);
    const { owner } = asking.claim;
    const ofOwner = shares.reduce((sum, each, at) => (jobs[at]!.claim.owner === owner ? sum + each : sum), 0);
    return this.#turnOf(asking, jobs, { most, ofOwner });
  }

  /** Less than a slot for each job of its owner: one batch at a time, and who waited longest is next. */
  #turnOf(asking: JobSlots, jobs: readonly JobSlots[], limits: { most: number; ofOwner: number }): number {
    if (asking.used > 0) return 1;
    const own = jobs.filter(({ claim }) => claim.owner === asking.claim.owner);
    // However small the share of an owner is, one of its jobs has its turn.
    const free = Math.min(
      limits.most - sumOfUsed(jobs),
      Math.max(1, Math.floor(limits.ofOwner)) - sumOfUsed(own),
    );
    const before = own.filter(
      (job) => job !== asking && job.isHungry && job.used === 0 && job.servedAt < asking.servedAt,
    );
    return before.length < free ? 1 : 0;
  }

  /** Slots of all workers that jobs of this process use, those of workers that would come, and batches under way. */
  get use(): { slots: number; spare: number; busy: number } {
    const jobs = [...this.#jobs];
    const carriers = [...new Set(jobs.map(({ carrier }) => carrier))];
    return {
      slots: carriers.reduce((sum, { slots }) => sum + slots, 0),
      spare: carriers.reduce((sum, { spareSlots = 0 }) => sum + spareSlots, 0),
      busy: jobs.reduce((sum, job) => sum + job.used, 0),
    };
  }

  /** What the jobs of a dispatcher can use together; nothing is said while one of them does not know. */
  tellWanted(carrier: Dispatcher): void {
    if (!carrier.want) return;
    const wanted = [...this.#jobs].filter((job) => job.carrier === carrier).map((job) => job.wanted);
    carrier.want(wanted.includes(null) ? null : wantedTogether(wanted.filter((each) => each !== null)));
  }

  /** A slot is free: who waited longest looks first. */
  wakeNext(): void {
    const hungry = [...this.#jobs].filter((job) => job.isHungry);
    for (const job of hungry.sort((one, other) => one.servedAt - other.servedAt).slice(0, WOKEN_MAX))
      job.wake();
  }

  /** Batches of lower priority give back hosts for which the job finds no room. */
  takeBack(asking: JobSlots, hosts: readonly string[]): void {
    const { owner, priority } = asking;
    for (const { holder, batchId, hosts: own } of this.#requests.ask(
      { owner, priority, hosts },
      this.#jobs,
      this.now(),
    ))
      holder.carrier.giveBack?.(batchId, own);
  }

  lessUrgentThan({ owner, priority }: JobSlots): number[] {
    return [...this.#jobs]
      .filter((job) => job.owner === owner && job.priority < priority)
      .map(({ jobId }) => jobId);
  }

  /** Batches of suspects that other jobs have out: there is one process for those of all jobs. */
  suspectsUsedBeside(asking: JobSlots): number {
    let used = 0;
    for (const job of this.#jobs) if (job !== asking) used += job.suspectsUsed;
    return used;
  }

  /** Batches for a browser that other jobs have out. */
  browsersUsedBeside(asking: JobSlots): number {
    let used = 0;
    for (const job of this.#jobs) if (job !== asking) used += job.browsersUsed;
    return used;
  }
}

function sumOfUsed(jobs: readonly JobSlots[]): number {
  return jobs.reduce((sum, job) => sum + job.used, 0);
}

/** The others look by themselves soon. */
const WOKEN_MAX = 4;

class JobSlots implements Dispatcher {
  readonly claim: JobClaim;
  readonly jobId: number;
  readonly #carrier: Carrier;
  readonly #allocator: SlotAllocator;
  readonly #open = new Map<number, Batch>();
  #allowed = 0;
  #isAsking = false;
  #listener: (() => void) | null = null;
  /** What it can use, as it said last. */
  wanted: Wanted | null = null;
  /** When it last got a slot. */
  servedAt = 0;
  browsersUsed = 0;
  suspectsUsed = 0;
  readonly cost?: () => DispatchCost;
  readonly heartbeats?: () => Promise<WorkerHeartbeat[]>;
  readonly adopt?: NonNullable<Dispatcher['adopt']>;

  constructor(carrier: Carrier, claim: JobClaim, jobId: number, allocator: SlotAllocator) {
    this.#carrier = carrier;
    this.claim = claim;
    this.jobId = jobId;
    this.#allocator = allocator;
    const { dispatcher } = carrier;
    if (dispatcher.cost) this.cost = () => dispatcher.cost!();
    if (dispatcher.heartbeats) this.heartbeats = () => dispatcher.heartbeats!();
    if (dispatcher.adopt)
      this.adopt = (batch, replyTo, onPart) =>
        this.#hold(batch, () => dispatcher.adopt!(batch, replyTo, onPart), onPart);
  }

  get replyTo(): string | undefined {
    return this.#carrier.dispatcher.replyTo;
  }

  get suspectSlots(): number {
    const { suspectSlots, slots } = this.#carrier.dispatcher;
    if (suspectSlots === undefined) return slots;
    // One that waits behind those of other jobs would hold its hosts, and be over before it begins.
    return Math.max(0, suspectSlots - this.#allocator.suspectsUsedBeside(this));
  }

  get owner(): string {
    return this.claim.owner;
  }

  get priority(): number {
    return this.claim.priority;
  }

  /** Its batches, with the hosts that workers could give back. */
  get batches(): Iterable<{ id: number; hosts: string[] }> {
    if (!this.carrier.giveBack) return [];
    return [...this.#open.values()].map(({ id, permits }) => ({
      id,
      hosts: permits.flatMap(({ host, gapMs }) => (gapMs === 0 ? [host] : [])),
    }));
  }

  lessUrgent(): number[] {
    return this.#allocator.lessUrgentThan(this);
  }

  wantHosts(hosts: readonly string[]): void {
    this.#allocator.takeBack(this, hosts);
  }

  get used(): number {
    return this.#open.size;
  }

  /** It used all that it was allowed when it last asked: it could use more. */
  get isHungry(): boolean {
    return this.#isAsking && this.used >= this.#allowed;
  }

  /** Where its slots are: jobs may share it. */
  get carrier(): Dispatcher {
    return this.#carrier.dispatcher;
  }

  want(wanted: Wanted | null): void {
    this.wanted = wanted;
    this.#allocator.tellWanted(this.carrier);
  }

  get decisions(): readonly ScalingDecision[] {
    return this.carrier.decisions ?? [];
  }

  get slotsInAll(): number {
    return this.#carrier.dispatcher.slots;
  }

  get workers(): number {
    return this.#carrier.dispatcher.workers;
  }

  get addresses(): number {
    return this.#carrier.dispatcher.addresses ?? 1;
  }

  get slots(): number {
    this.#isAsking = true;
    this.#allowed = this.#allocator.allowed(this);
    return this.#allowed;
  }

  slotsFor(kind: WorkerKind): number {
    const { dispatcher } = this.#carrier;
    const slots = dispatcher.slotsFor?.(kind) ?? dispatcher.slots;
    return kind === 'http' ? this.slots : Math.max(0, slots - this.#allocator.browsersUsedBeside(this));
  }

  /** Tells when a slot may be free for it. */
  onSlotsFree(listener: () => void): void {
    this.#listener = listener;
  }

  wake(): void {
    this.#listener?.();
  }

  dispatch(batch: Batch, onPart: (report: Report) => void): Promise<Delivery> {
    const { reports } = this.#allocator;
    const take = (part: Report) =>
      isGivenBackPart(part) ? reports.afterArrivals(() => onPart(part)) : onPart(part);
    return this.#hold(batch, () => this.#carrier.dispatcher.dispatch(batch, take), onPart);
  }

  async #hold(
    batch: Batch,
    deliver: () => Promise<Delivery>,
    onPart: (report: Report) => void,
  ): Promise<Delivery> {
    this.#open.set(batch.id, batch);
    this.servedAt = this.#allocator.now();
    if (batch.needs === 'browser') this.browsersUsed++;
    if (batch.suspects) this.suspectsUsed++;
    try {
      const delivery = await deliver();
      await this.#allocator.reports.turn(this.priority, () => {
        const ahead = delivery.kind === 'report' ? aheadOfReport(batch, delivery.report) : null;
        if (ahead) onPart(ahead);
      });
      return delivery;
    } finally {
      this.#open.delete(batch.id);
      if (batch.needs === 'browser') this.browsersUsed--;
      if (batch.suspects) this.suspectsUsed--;
      this.#allocator.wakeNext();
    }
  }

  async drain(): Promise<void> {
    const { dispatcher, isShared } = this.#carrier;
    if (!isShared) return dispatcher.drain();
    for (const batchId of this.#open.keys()) dispatcher.recall?.(batchId);
  }

  serves(kind: WorkerKind): boolean {
    return this.#carrier.dispatcher.serves?.(kind) ?? true;
  }

  trouble(): string | null {
    return this.#carrier.dispatcher.trouble?.() ?? null;
  }

  refusal(kind: WorkerKind) {
    return this.#carrier.dispatcher.refusal?.(kind) ?? null;
  }

  async close(): Promise<void> {
    this.#allocator.leave(this);
    if (!this.#carrier.isShared) await this.#carrier.dispatcher.close();
  }
}
