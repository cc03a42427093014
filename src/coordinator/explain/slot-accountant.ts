import { randomUUID } from 'node:crypto';
import type { Report } from '../../core/batch/batch.ts';
import type { SlotAccount } from '../../core/explain/explain.ts';
import { type IdleFacts, idleReason } from '../../core/explain/idle-reason.ts';
import { type HostBacklog, hostSeconds, pagesPerSecond, usablePaceOf } from '../../core/explain/predict.ts';
import type { ScalingDecision } from '../../core/explain/scaling-decision.ts';
import { addSums, copySums, SlotLedger, type SlotSums } from '../../core/explain/slot-ledger.ts';
import type { IdleReason } from '../../core/explain/slot-states.ts';
import { isThrottling } from '../../core/failures.ts';
import { BoundedMap } from '../../core/lru.ts';
import type { Job, Store } from '../../ports/store.ts';

interface AccountantParts {
  store: {
    readonly slotTimes: Pick<Store['slotTimes'], 'save'>;
    readonly frontier: Pick<Store['frontier'], 'nextDue'>;
    readonly jobs: Pick<Store['jobs'], 'counters'>;
  };
  job: Pick<Job, 'id' | 'pass'>;
}

/** What a plan left behind, for whoever asks why slots are free. */
interface PlanLeft extends Pick<IdleFacts, 'isStoragePaused' | 'tasksLeft' | 'stopped' | 'isSourceDone'> {
  /** Slots that the plan did not fill. */
  freeSlots: number;
}

/** Hosts that are remembered with their backlog, and with why they wait. */
const HOSTS_MAX = 1_000;
const HOSTS_SAVED = 20;
const TASK_WAITS_MAX = 64;
/** Why slots are free is not looked up more often. */
const LOOK_MS = 100;
/** The last minutes, in steps of which each is remembered. */
const STEP_MS = 10_000;
const STEPS_MAX = 30;
const REQUESTS_MAX = 2_000;
/** Hosts limit a run when they have tasks for at least so long. */
const BACKLOG_SECONDS = 5;
/** Times of hosts and tasks are rounded and moved a little on their way. */
const ABOUT_MS = 1_000;

/** Accounts for the time of the slots of one run, at each plan and report; see core/explain. */
export class SlotAccountant {
  readonly #parts: AccountantParts;
  readonly #run = randomUUID();
  #ledger: SlotLedger | null = null;
  readonly #hosts = new BoundedMap<string, HostBacklog>(HOSTS_MAX);
  readonly #hostWaits = new BoundedMap<string, { until: number; reason: IdleReason }>(HOSTS_MAX);
  #taskWaits: { until: number; reason: IdleReason }[] = [];
  #lookedAt = Number.NEGATIVE_INFINITY;
  #slots = 0;
  #workers = 0;
  /** What requests take, the newer ones more than the older ones. */
  readonly #requests = { count: 0, ms: 0, refused: 0 };
  /** Sums at the ends of the last steps. */
  readonly #steps: { at: number; sums: SlotSums }[] = [];

  constructor(parts: AccountantParts) {
    this.#parts = parts;
  }

  /** A plan begins. */
  onPlan({ slots, workers, now }: { slots: number; workers: number; now: number }): void {
    this.#slots = slots;
    this.#workers = workers;
    if (this.#ledger) this.#ledger.setSlots(slots, now);
    else {
      this.#ledger = new SlotLedger(now, slots);
      this.#steps.push({ at: now, sums: this.#ledger.sums(now) });
    }
    const last = this.#steps.at(-1)!;
    if (now - last.at < STEP_MS) return;
    this.#steps.push({ at: now, sums: this.#ledger.sums(now) });
    if (this.#steps.length > STEPS_MAX + 1) this.#steps.shift();
  }

  /** Since the plan began, free slots have waited for the store. */
  onLeased(now: number): void {
    this.#ledger?.advanceAs('store', now);
  }

  onDispatch(batchId: number, now: number): void {
    this.#ledger?.open(batchId, now);
  }

  onReport({ batchId, times = {}, startedAt, final, outcomes }: Report, now: number): void {
    let pages = 0;
    for (const outcome of outcomes) {
      if (outcome.kind === 'deferred') continue;
      pages++;
      if (outcome.trace === null) continue;
      this.#requests.count++;
      this.#requests.ms += outcome.trace.durationMs;
      if (outcome.kind === 'failed' && isThrottling(outcome.code, outcome.trace.httpStatus))
        this.#requests.refused++;
    }
    if (this.#requests.count > REQUESTS_MAX) {
      this.#requests.count /= 2;
      this.#requests.ms /= 2;
      this.#requests.refused /= 2;
    }
    this.#ledger?.report(batchId, { times, startedAt, pages, final }, now);
  }

  onEnd(batchId: number, now: number): void {
    this.#ledger?.close(batchId, now);
  }

  /** What a host has left after a plan. */
  noteHost(host: HostBacklog): void {
    if (host.ready > 0) this.#hosts.set(host.host, host);
    else this.#hosts.delete(host.host);
  }

  noteHostWait(host: string, until: number, reason: IdleReason): void {
    this.#hostWaits.set(host, { until, reason });
  }

  noteTaskWait(until: number, reason: IdleReason): void {
    if (this.#taskWaits.some((wait) => wait.until === until && wait.reason === reason)) return;
    if (this.#taskWaits.length >= TASK_WAITS_MAX) this.#taskWaits.shift();
    this.#taskWaits.push({ until, reason });
  }

  /** A plan has ended and left slots free: finds out what stops the next task. */
  async onPlanned(left: PlanLeft, now: number): Promise<void> {
    if (!this.#ledger || left.freeSlots <= 0 || now - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = now;
    const { store, job } = this.#parts;
    const { pending } = await store.jobs.counters(job.id);
    const isKnown = left.isStoragePaused || Object.keys(left.stopped).length > 0 || pending === 0;
    const next = isKnown ? { host: null, taskAt: null } : await store.frontier.nextDue(job.id);
    const reason = idleReason({
      ...left,
      pending,
      nextHost: next.host && { at: next.host.at, reason: this.#hostReason(next.host) },
      nextTask: next.taskAt === null ? null : { at: next.taskAt, reason: this.#taskReason(next.taskAt) },
    });
    this.#ledger.setReason(reason, now);
  }

  #hostReason({ host, at }: { host: string; at: number }): IdleReason {
    const wait = this.#hostWaits.get(host);
    return wait && wait.until >= at - ABOUT_MS ? wait.reason : 'hostGap';
  }

  #taskReason(at: number): IdleReason {
    return this.#taskWaits.find(({ until }) => Math.abs(until - at) <= 1)?.reason ?? 'retryBackoff';
  }

  async save(now: number, decisions: ScalingDecision[] = []): Promise<void> {
    const account = this.account(now);
    const made = decisions.length > 0 ? { decisions } : {};
    if (account)
      await this.#parts.store.slotTimes.save(this.#parts.job.id, this.#run, { ...account, ...made });
  }

  /** What has become of the time so far; null before the first plan. */
  account(now: number): SlotAccount | null {
    if (!this.#ledger) return null;
    const total = this.#ledger.sums(now);
    const recent = copySums(total);
    addSums(recent, this.#steps[0]!.sums, -1);
    const rates = this.#steps.slice(1).map(({ at, sums }, index) => {
      const before = this.#steps[index]!;
      return ((sums.pages - before.sums.pages) * 1_000) / (at - before.at);
    });
    const { count, ms, refused } = this.#requests;
    const usualMs = count === 0 ? null : ms / count;
    const hosts = [...this.#hosts.values()]
      .map((host) => ({ ...host, latencyMs: host.latencyMs ?? usualMs }))
      .sort((a, b) => hostSeconds(b) - hostSeconds(a) || b.ready - a.ready);
    const backlog = hosts.reduce((sum, { ready }) => sum + ready, 0);
    const isEnough = backlog >= pagesPerSecond(recent) * BACKLOG_SECONDS;
    const perSecond = hosts.reduce((sum, host) => sum + usablePaceOf(host), 0);
    return {
      pass: this.#parts.job.pass,
      at: now,
      slots: this.#slots,
      workers: this.#workers,
      total,
      recent,
      rates,
      hosts: hosts.slice(0, HOSTS_SAVED),
      writeMs: this.#ledger.shortestWriteMs,
      refusedShare: count === 0 ? 0 : refused / count,
      hostsPerSecond: isEnough && Number.isFinite(perSecond) ? perSecond : null,
    };
  }
}
