import { guardedGapMs } from '../politeness/permits.ts';
import type { SlotSums } from './slot-ledger.ts';
import type { SlotState } from './slot-states.ts';
import { sumOf } from './slot-states.ts';

/**
 * What a change would give.
 *
 * X    pages per second, as measured.
 * p    share of the wall time in which all slots were taken; q(r): in which slots were free because of r. p + Σ q = 1.
 * b(s) share of state s in the time of taken slots.
 *
 * | change | time for the same pages, of now |
 * |---|---|
 * | k times the workers | Σ q + p ÷ k |
 * | state s k times as fast | 1 - (q(s) + p × b(s)) × (1 - 1 ÷ k) |
 * | other rate or parallelism of a host | the same for the waits for hosts, with k = sum of host paces then ÷ now |
 *
 * The new rate is X ÷ that, and not more than the slots can do, n × rate of a slot, nor the hosts with a backlog, the sum
 * of their paces, nor a store that writes all the time. The time that is left is the larger one of tasks ÷ rate and, for each host, its tasks ÷ its pace.
 */
export type Change =
  | { kind: 'workers'; workers: number }
  | { kind: 'rate'; host: string; rate: number }
  | { kind: 'parallel'; host: string; parallel: number }
  | { kind: 'speed'; state: SlotState; factor: number };

/** Tasks of a host that wait, and what it takes. */
export interface HostBacklog {
  host: string;
  ready: number;
  /** Least time between two requests; 0 without one. */
  gapMs: number;
  parallel: number;
  /** What its pages take to answer; null when not known. */
  latencyMs: number | null;
}

/** What is known of a run, for predictions. */
export interface RunFacts {
  sums: SlotSums;
  slots: number;
  workers: number;
  /** Those with the longest backlogs. */
  hosts: readonly HostBacklog[];
  /** Paces of all hosts with a backlog, those of `hosts` too, in requests per second; infinite where one has no limit. */
  hostsPerSecond: number;
  /** What writing a report takes when it need not wait for others; null when not known. */
  writeMs: number | null;
}

/** A host that has tasks for a shorter time than this does not count with its whole pace. */
const HORIZON_SECONDS = 5;

/** Requests per second that a host takes while it has enough tasks. */
function paceOf({ gapMs, parallel, latencyMs }: Omit<HostBacklog, 'host' | 'ready'>): number {
  const byGap = gapMs > 0 ? 1_000 / gapMs : Number.POSITIVE_INFINITY;
  const byParallel = latencyMs ? (parallel * 1_000) / latencyMs : Number.POSITIVE_INFINITY;
  return Math.min(byGap, byParallel);
}

/** What a host adds to the pace of all. */
export function usablePaceOf(host: HostBacklog): number {
  const pace = paceOf(host);
  return Number.isFinite(pace) ? Math.min(pace, host.ready / HORIZON_SECONDS) : pace;
}

export function pagesPerSecond({ pages, wallMs }: SlotSums): number {
  return wallMs > 0 ? (pages * 1_000) / wallMs : 0;
}

/** By the measured partition of the time, see above. */
export function predictRate(facts: RunFacts, change: Change): number {
  const { sums } = facts;
  const now = pagesPerSecond(sums);
  if (now === 0) return 0;
  const full = sums.fullMs / sums.wallMs;
  const hosts = hostsAfter(facts, change);
  const time =
    change.kind === 'workers'
      ? 1 - full + (full * facts.workers) / change.workers
      : change.kind === 'speed'
        ? 1 - weightOf(sums, change.state) * (1 - 1 / change.factor)
        : 1 - (weightOf(sums, 'hostGap') + weightOf(sums, 'hostParallelism')) * (1 - 1 / hosts.factor);
  const isLess = time > 1 || (change.kind === 'workers' && change.workers < facts.workers);
  const most = Math.min(
    storePerSecond(facts, change),
    slotsPerSecond(facts, change, hosts.factor),
    Math.max(hosts.perSecond, isLess ? 0 : now),
  );
  return Math.min(now / time, isLess ? most : Math.max(now, most));
}

/** Share of the wall time that goes when the state takes no time any more. */
export function weightOf(sums: SlotSums, state: SlotState): number {
  if (sums.wallMs === 0) return 0;
  const busy = sumOf(sums.busy);
  const inSlot = busy > 0 ? ((sums.fullMs / sums.wallMs) * (sums.busy[state] ?? 0)) / busy : 0;
  return (sums.waits[state] ?? 0) / sums.wallMs + inSlot;
}

/** Above this share of the time the store does nothing else than write. */
const SATURATED = 0.8;

/**
 * What the store can write, where that is known: it writes one report after the other, nearly all the time. A store that
 * writes several at once has no limit that could be seen.
 */
function storePerSecond({ sums, writeMs }: RunFacts, change: Change): number {
  const { writingMs, wallMs, writes } = sums;
  if (writeMs === null || writingMs < wallMs * SATURATED) return Number.POSITIVE_INFINITY;
  if (writes * writeMs > writingMs * 1.5) return Number.POSITIVE_INFINITY;
  const factor = change.kind === 'speed' && change.state === 'store' ? change.factor : 1;
  return (pagesPerSecond(sums) * wallMs * factor) / writingMs;
}

/** n × rate of a slot. */
function slotsPerSecond({ sums, slots, workers }: RunFacts, change: Change, hostFactor: number): number {
  const { busy, pages } = sums;
  // While all workers are gone, what was measured was done by those that were there.
  if (workers === 0) return Number.POSITIVE_INFINITY;
  let msPerPage = sumOf(busy) / pages;
  if (change.kind === 'speed') msPerPage -= ((busy[change.state] ?? 0) / pages) * (1 - 1 / change.factor);
  else if (change.kind !== 'workers') msPerPage -= ((busy.hostGap ?? 0) / pages) * (1 - 1 / hostFactor);
  const count = change.kind === 'workers' ? (slots * change.workers) / workers : slots;
  return msPerPage > 0 ? (count * 1_000) / msPerPage : Number.POSITIVE_INFINITY;
}

/** The hosts as a change leaves them: what they take together, and how many times as much as now. */
function hostsAfter(facts: RunFacts, change: Change): { perSecond: number; factor: number } {
  const now = facts.hostsPerSecond;
  const host = 'host' in change ? facts.hosts.find((one) => one.host === change.host) : undefined;
  if (!host) return { perSecond: now, factor: 1 };
  const then = Number.isFinite(now)
    ? now - usablePaceOf(host) + usablePaceOf(changedHost(host, change))
    : Number.POSITIVE_INFINITY;
  return { perSecond: then, factor: Number.isFinite(now) && now > 0 ? then / now : 1 };
}

function changedHost(host: HostBacklog, change: Change): HostBacklog {
  if (change.kind === 'rate' && change.host === host.host)
    return { ...host, gapMs: guardedGapMs(1_000 / change.rate, null) };
  if (change.kind === 'parallel' && change.host === host.host) return { ...host, parallel: change.parallel };
  return host;
}

/** Seconds until `remaining` tasks are done; null when there is no telling. */
export function secondsLeft(
  remaining: number,
  rate: number,
  hosts: readonly HostBacklog[],
  change: Change | null = null,
): number | null {
  if (remaining === 0) return 0;
  if (rate <= 0) return null;
  const slowest = Math.max(0, ...hosts.map((host) => hostSeconds(change ? changedHost(host, change) : host)));
  return Math.max(remaining / rate, slowest);
}

export function hostSeconds(host: HostBacklog): number {
  return host.ready / paceOf(host);
}
