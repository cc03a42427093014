import { type HostBan, NO_BAN } from '../../core/bans/bans.ts';
import type { Permit } from '../../core/batch/batch.ts';
import type { DueHost } from '../../ports/store.ts';
import { AddressLearner } from '../pace/address-learner.ts';
import { PaceLearner } from '../pace/pace-learner.ts';
import type { HostLoad } from '../plan/plan-batches.ts';

export interface HostEntry {
  permits: number;
  parallel: number;
  /** Of the permits, those that were given back or have only late pages left: nothing more begins under them. */
  eased: number;
  /** Reports about it that are not in the store yet: who asks the store does not see what they say. */
  unsettled: number;
  /** End of the last permit that is out. */
  takenUntil: number;
  /** When the host is free after the permits that came back, which may be in any order. */
  freeAt: number;
  failuresInRow: number;
  rests: number;
  restUntil: number;
  /** When the latest request began that was answered; 0 where none is known. */
  answeredAt: number;
  /** The latest pause that a report asked for; an older report must not shorten it. */
  pauseUntil: number;
  ban: HostBan;
  reachedAt: number | null;
  /** Under which the last permit was granted. */
  crawlDelayMs: number | null;
  learning: PaceLearner;
  /** For permits with paces by address. */
  addresses: AddressLearner;
}

/** What is known of a host when it gets a permit. */
type GrantedHealth = Pick<DueHost, 'failuresInRow' | 'rests' | 'pace'> &
  Partial<Pick<DueHost, 'ban' | 'reachedAt' | 'crawlDelayMs'>>;

const NO_LOAD: HostLoad = { permits: 0, eased: 0, parallel: 0 };

/** Woken by a permit that comes back: its own job may be the first of those that wait, and all of them would be too many. */
const WOKEN_MAX = 2;

/**
 * What is out for which host. Has only hosts with open permits, with reports that are being settled, or that the store
 * is asked about: memory grows with the work that is under way.
 */
export class OpenPermits {
  readonly #hosts = new Map<string, HostEntry>();
  /** Jobs that want more of a host than is free, in the order in which they came. */
  readonly #waiting = new Map<string, Set<() => void>>();
  /** By host: how many wait for what the store says of it. */
  readonly #held = new Map<string, number>();
  /** By permit that was given back: what is under way. */
  readonly #underWay = new WeakMap<Permit, number>();
  /** Several jobs of this process have permits here. */
  readonly isShared: boolean;

  constructor({ isShared = false }: { isShared?: boolean } = {}) {
    this.isShared = isShared;
  }

  load(host: string): HostLoad {
    const entry = this.#hosts.get(host);
    if (!entry) return NO_LOAD;
    const { permits, eased, parallel } = entry;
    return { permits: permits - eased, eased, parallel };
  }

  grant(permit: Permit, health: GrantedHealth): void {
    const entry = this.#hosts.get(permit.host);
    if (entry) {
      entry.permits++;
      entry.parallel += permit.parallel;
      entry.takenUntil = Math.max(entry.takenUntil, permit.endAt);
      entry.crawlDelayMs = health.crawlDelayMs ?? null;
      // What is known here is newer, unless another coordinator had the host meanwhile: that it answered is never forgotten.
      if (entry.ban.known === null && health.ban?.known) entry.ban = health.ban;
      return;
    }
    this.#hosts.set(permit.host, {
      ...newEntry(health),
      permits: 1,
      parallel: permit.parallel,
      takenUntil: permit.endAt,
    });
  }

  /** Notes what the store says of a host that has no permit out, for as long as it is held. */
  know(host: string, health: GrantedHealth): void {
    if (!this.#hosts.has(host)) this.#hosts.set(host, newEntry(health));
  }

  entry(host: string): HostEntry | null {
    return this.#hosts.get(host) ?? null;
  }

  /** Wakes the job, once, when a permit of the host comes back: the reports of another job would not. */
  wakeOnRelease(host: string, wake: () => void): void {
    if (!this.isShared || !this.#hosts.has(host)) return;
    const waiting = this.#waiting.get(host);
    if (waiting) waiting.add(wake);
    else this.#waiting.set(host, new Set([wake]));
  }

  #wakeFirst(host: string, count = WOKEN_MAX): void {
    const waiting = this.#waiting.get(host);
    if (!waiting) return;
    for (const wake of [...waiting].slice(0, count)) {
      waiting.delete(wake);
      wake();
    }
    if (waiting.size === 0) this.#waiting.delete(host);
  }

  /**
   * The permit was given back, or has only late pages left: so many tasks are under way, and nothing more begins. Another may
   * have the rest of what it allowed. Who it was given back for waits among others: all of them look.
   */
  ease(permit: Permit, underWay: number): void {
    const entry = this.#hosts.get(permit.host);
    if (!entry) return;
    const told = this.#underWay.get(permit);
    const before = told ?? permit.parallel;
    // Of two that overtook each other, the smaller is the later one.
    const left = Math.min(underWay, before);
    if (told === left) return;
    this.#underWay.set(permit, left);
    if (told === undefined) entry.eased++;
    entry.parallel -= before - left;
    this.#wakeFirst(permit.host, Number.POSITIVE_INFINITY);
  }

  /** Null while other permits of the host are out; else when the host is free again. */
  release(permit: Permit, freeAt: number): number | null {
    const entry = this.#hosts.get(permit.host);
    this.#wakeFirst(permit.host);
    if (!entry) return freeAt;
    const underWay = this.#underWay.get(permit);
    entry.permits--;
    entry.parallel -= underWay ?? permit.parallel;
    if (underWay !== undefined) entry.eased--;
    entry.freeAt = Math.max(entry.freeAt, freeAt);
    if (entry.permits > 0) return null;
    this.#forget(permit.host, entry);
    return entry.freeAt;
  }

  /** What a report says of the host is known here before it is in the store: until then it is kept. */
  keep(host: string): void {
    const entry = this.#hosts.get(host);
    if (entry) entry.unsettled++;
  }

  /** A report about the host is in the store. */
  settled(host: string): void {
    const entry = this.#hosts.get(host);
    if (!entry) return;
    entry.unsettled--;
    this.#forget(host, entry);
  }

  /**
   * While the store is asked about these hosts, and until permits are granted on its answer. What it says of their health may
   * be older than a report that comes to its end before the answer, so what is known here is kept: a permit that began with
   * the older health forgot that the host had answered, and took its next ban for pages that are forbidden.
   */
  async holding<T>(hosts: ReadonlySet<string>, work: () => Promise<T>): Promise<T> {
    for (const host of hosts) this.#held.set(host, (this.#held.get(host) ?? 0) + 1);
    try {
      return await work();
    } finally {
      for (const host of hosts) this.#letGo(host);
    }
  }

  #letGo(host: string): void {
    const left = this.#held.get(host)! - 1;
    if (left > 0) this.#held.set(host, left);
    else this.#held.delete(host);
    const entry = this.#hosts.get(host);
    if (entry) this.#forget(host, entry);
  }

  #forget(host: string, { permits, unsettled }: HostEntry): void {
    if (permits > 0 || unsettled > 0 || this.#held.has(host)) return;
    this.#hosts.delete(host);
    // Nothing comes back any more: who still waits looks by itself.
    this.#waiting.delete(host);
  }

  get size(): number {
    return this.#hosts.size;
  }
}

function newEntry(health: GrantedHealth): HostEntry {
  return {
    permits: 0,
    parallel: 0,
    eased: 0,
    unsettled: 0,
    takenUntil: 0,
    freeAt: 0,
    failuresInRow: health.failuresInRow,
    rests: health.rests,
    restUntil: 0,
    answeredAt: 0,
    pauseUntil: 0,
    ban: health.ban ?? NO_BAN,
    reachedAt: health.reachedAt ?? null,
    crawlDelayMs: health.crawlDelayMs ?? null,
    learning: new PaceLearner(health.pace),
    addresses: new AddressLearner(health.pace),
  };
}
