import type { OutcomeKind, Trace } from '../batch/outcome.ts';
import type { CostLine } from '../cost/cost.ts';
import type { FailureCode } from '../failures.ts';
import {
  addHistogram,
  addLatency,
  emptyHistogram,
  type Histogram,
  type Quantiles,
  quantilesOf,
} from './histogram.ts';

/**
 * Roll-ups: what happened within a stretch of time, of a job or of one of its hosts. Two of them add up to a third, so
 * rows of any length, process or shard can be merged.
 *
 * Step      length of a stretch in seconds; each thing that happens is counted in one row of every step.
 * Host      empty for the whole job; the busiest hosts have rows of their own, all others share `_other`.
 * Page      a task that came to its end: succeeded (done, unchanged), failed (dead) or skipped.
 * Failures  attempts that failed, by code, also those that were tried again.
 * Costs     dollars by item of the bill.
 * Proxied   attempts that went through a proxy, and those of them that failed, by provider: see `providerOf`.
 */

export const ROLLUP_STEPS = [10, 60, 3_600] as const;
export type RollupStep = (typeof ROLLUP_STEPS)[number];

/** The step of the row that everything of a job is counted in, from its beginning on. */
export const WHOLE_JOB_STEP = 0;
/** The host of rows that tell of the whole job. */
export const ALL_HOSTS = '';
/** The host of rows that tell of all hosts without rows of their own. */
export const OTHER_HOSTS = '_other';

/** How long rows are kept, by step, in seconds: 720, 1,440 and 2,160 of them for a job. */
export const ROLLUP_SECONDS_KEPT: Record<RollupStep, number> = { 10: 7_200, 60: 86_400, 3600: 90 * 86_400 };
/** The same for rows of a host, of which there are many. */
export const HOST_SECONDS_KEPT: Record<RollupStep, number> = { 10: 1_800, 60: 21_600, 3600: 14 * 86_400 };

/** What is counted by name; names are few: codes of failures, items of the bill. */
type CountKind = 'failure' | 'cost' | 'proxied' | 'proxied-failure';

export interface Rollup {
  succeeded: number;
  failed: number;
  skipped: number;
  requests: number;
  bytes: number;
  latency: Histogram;
  /** By kind and name, see `countName`. */
  counts: Map<string, number>;
}

/** A row of the store: the roll-up of one host, or of all, that belongs to the stretch around `at`. */
export interface RollupRow {
  host: string;
  /** Epoch milliseconds. */
  at: number;
  rollup: Rollup;
}

export function emptyRollup(): Rollup {
  return {
    succeeded: 0,
    failed: 0,
    skipped: 0,
    requests: 0,
    bytes: 0,
    latency: emptyHistogram(),
    counts: new Map(),
  };
}

export function pagesOf({ succeeded, failed, skipped }: Rollup): number {
  return succeeded + failed + skipped;
}

/** Names have no spaces at their beginning, and kinds have none at all. */
export function countName(kind: CountKind, name: string): string {
  return `${kind} ${name}`;
}

function addCount(rollup: Rollup, kind: CountKind, name: string, amount: number): void {
  if (amount === 0) return;
  const key = countName(kind, name);
  rollup.counts.set(key, (rollup.counts.get(key) ?? 0) + amount);
}

/** What was counted of one kind, the most first. */
export function countsOf({ counts }: Rollup, kind: CountKind): [name: string, amount: number][] {
  const prefix = `${kind} `;
  return [...counts]
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, amount]): [string, number] => [key.slice(prefix.length), amount])
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
}

export function costOf(rollup: Rollup): number {
  return countsOf(rollup, 'cost').reduce((sum, [, amount]) => sum + amount, 0);
}

export function addRollup(into: Rollup, other: Rollup): void {
  into.succeeded += other.succeeded;
  into.failed += other.failed;
  into.skipped += other.skipped;
  into.requests += other.requests;
  into.bytes += other.bytes;
  addHistogram(into.latency, other.latency);
  for (const [key, amount] of other.counts) into.counts.set(key, (into.counts.get(key) ?? 0) + amount);
}

/** What became of a task, as it is settled. */
export interface SettledTask {
  outcome: OutcomeKind;
  to: 'done' | 'unchanged' | 'skipped' | 'dead' | 'pending';
  code: string | null;
  trace: Trace | null;
}

export function addSettled(rollup: Rollup, { outcome, to, code, trace }: SettledTask): void {
  if (to === 'done' || to === 'unchanged') rollup.succeeded++;
  else if (to === 'dead') rollup.failed++;
  else if (to === 'skipped') rollup.skipped++;
  if (outcome === 'failed' && code !== null) addCount(rollup, 'failure', code, 1);
  if (trace === null) return;
  if (trace.via?.proxy) {
    const provider = providerOf(trace.via.proxy);
    addCount(rollup, 'proxied', provider, 1);
    if (outcome === 'failed') addCount(rollup, 'proxied-failure', provider, 1);
  }
  rollup.bytes += trace.bytes;
  addLatency(rollup.latency, trace.durationMs);
}

/** The provider of a proxy, by its id: the site of its host. Lists of addresses are one, so that names stay few. */
function providerOf(proxyId: string): string {
  const host = proxyId.replace(/^\w+:\/\//, '').replace(/(:\d+)?(#.*)?$/, '');
  if (/^\[|^[\d.]+$/.test(host)) return 'addresses';
  return host.split('.').slice(-2).join('.');
}

/** What happened at one hour of the day (UTC), over all days that are kept. */
interface HourOfDay {
  hour: number;
  pages: number;
  failures: number;
}

/** Rows of an hour each; hours without any are there with zeros. */
export function byHourOfDay(rows: readonly { at: number; rollup: Rollup }[]): HourOfDay[] {
  const hours = Array.from({ length: 24 }, (_, hour): HourOfDay => ({ hour, pages: 0, failures: 0 }));
  for (const { at, rollup } of rows) {
    const entry = hours[new Date(at).getUTCHours()]!;
    entry.pages += pagesOf(rollup);
    entry.failures += countsOf(rollup, 'failure').reduce((sum, [, count]) => sum + count, 0);
  }
  return hours;
}

export function addCosts(rollup: Rollup, lines: readonly CostLine[]): void {
  for (const { item, dollars } of lines) addCount(rollup, 'cost', item, dollars);
}

/** Of what is paid beside reports. */
export function rollupOfCosts(lines: readonly CostLine[]): Rollup {
  const rollup = emptyRollup();
  addCosts(rollup, lines);
  return rollup;
}

/** Tasks that were out with a worker that never answered; some of them were given up because of that. */
export function lostTasks(lost: number, dead: number): Rollup {
  const rollup = { ...emptyRollup(), failed: dead };
  addCount(rollup, 'failure', 'worker-lost' satisfies FailureCode, lost);
  return rollup;
}

export function latencyOf({ latency }: Rollup): Quantiles {
  return quantilesOf(latency);
}

/** The beginning of the stretch that a time belongs to, in epoch milliseconds. */
export function stretchOf(at: number, step: RollupStep): number {
  return Math.floor(at / (step * 1_000)) * step * 1_000;
}
