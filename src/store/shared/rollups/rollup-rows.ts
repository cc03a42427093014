import { BoundedMap } from '../../../core/lru.ts';
import { LATENCY_BUCKETS } from '../../../core/rollups/histogram.ts';
import {
  ALL_HOSTS,
  addRollup,
  emptyRollup,
  HOST_SECONDS_KEPT,
  ROLLUP_SECONDS_KEPT,
  ROLLUP_STEPS,
  type Rollup,
  type RollupRow,
  stretchOf,
  WHOLE_JOB_STEP,
} from '../../../core/rollups/rollup.ts';

/** The tables are the same in both stores: sums in columns, so that adding to a row needs no reading of it. */

const BUCKET_COLUMNS = Array.from({ length: LATENCY_BUCKETS }, (_, index) => `b${index}`);

/** Columns that are added to. */
export const SUM_COLUMNS = [
  'succeeded',
  'failed',
  'skipped',
  'requests',
  'bytes',
  'latency_sum_ms',
  ...BUCKET_COLUMNS,
] as const;

/** What tells rows apart. Shard: rows that many transactions add to at once are kept apart in PostgreSQL. */
export const ROW_KEY = ['job_id', 'step', 'host', 'at', 'shard'] as const;
export const COUNT_KEY = [...ROW_KEY, 'name'] as const;

interface SumRow {
  step: number;
  host: string;
  at: number;
  /** As in SUM_COLUMNS. */
  sums: number[];
  latencyMaxMs: number;
}

interface CountRow {
  step: number;
  host: string;
  at: number;
  name: string;
  amount: number;
}

/** What is to be written: each row once, in the order in which all transactions write, so that they do not block each other. */
export function rowsOf(added: readonly RollupRow[]): { sums: SumRow[]; counts: CountRow[] } {
  const sums: SumRow[] = [];
  const counts: CountRow[] = [];
  for (const { step, host, at, rollup } of stretches(added)) {
    const columns = sumsOf(rollup);
    if (columns.some((sum) => sum !== 0))
      sums.push({ step, host, at, sums: columns, latencyMaxMs: Math.ceil(rollup.latency.maxMs) });
    for (const [name, amount] of rollup.counts) counts.push({ step, host, at, name, amount });
  }
  return { sums, counts };
}

interface Stretch extends RollupRow {
  step: number;
}

/** Several rows may be of the same minute, and are of the same hour more often than not. */
function stretches(added: readonly RollupRow[]): Stretch[] {
  const merged = new Map<string, Stretch>();
  for (const { host, at, rollup } of added)
    for (const [step, from] of stretchesOf(host, at)) {
      const key = `${step} ${from} ${host}`;
      const known = merged.get(key);
      if (!known)
        merged.set(key, { step, host, at: from, rollup: added.length === 1 ? rollup : copyOf(rollup) });
      else addRollup(known.rollup, rollup);
    }
  return added.length === 1 ? [...merged.values()] : [...merged.values()].sort(byKey);
}

function copyOf(rollup: Rollup): Rollup {
  const copy = emptyRollup();
  addRollup(copy, rollup);
  return copy;
}

function byKey(a: Stretch, b: Stretch): number {
  return a.step - b.step || (a.host < b.host ? -1 : a.host > b.host ? 1 : 0) || a.at - b.at;
}

/** Hosts come and go: there is no row for all time of each. */
function stretchesOf(host: string, at: number): [step: number, from: number][] {
  const stretches = ROLLUP_STEPS.map((step): [number, number] => [step, stretchOf(at, step)]);
  return host === ALL_HOSTS ? [[WHOLE_JOB_STEP, 0], ...stretches] : stretches;
}

function sumsOf({ succeeded, failed, skipped, requests, bytes, latency }: Rollup): number[] {
  const { sumMs, buckets } = latency;
  return [succeeded, failed, skipped, requests, Math.round(bytes), Math.round(sumMs), ...buckets];
}

interface SumColumns {
  succeeded: number;
  failed: number;
  skipped: number;
  requests: number;
  bytes: number;
  latency_sum_ms: number;
  latency_max_ms: number;
}

export type SumColumnsRow = SumColumns & { host: string; at: number };

export function toRollup(row: SumColumns): Rollup {
  return {
    ...emptyRollup(),
    succeeded: row.succeeded,
    failed: row.failed,
    skipped: row.skipped,
    requests: row.requests,
    bytes: row.bytes,
    latency: {
      buckets: BUCKET_COLUMNS.map((name) => (row as SumColumns & Record<string, number>)[name]!),
      sumMs: row.latency_sum_ms,
      maxMs: row.latency_max_ms,
    },
  };
}

/** Rows from before these times are of no use any more. */
export function staleRows(now: number): { step: number; ofJobBefore: number; ofHostsBefore: number }[] {
  return ROLLUP_STEPS.map((step) => ({
    step,
    ofJobBefore: now - ROLLUP_SECONDS_KEPT[step] * 1_000,
    ofHostsBefore: now - HOST_SECONDS_KEPT[step] * 1_000,
  }));
}

const PRUNE_MS = 60_000;
/** Forgetting when rows were last pruned costs one more time. */
const JOBS_MAX = 1_000;

/** Says once a minute for each job that it is time to delete old rows. */
export class PruneTimes {
  readonly #prunedAt = new BoundedMap<number, number>(JOBS_MAX);

  isDue(jobId: number, now: number): boolean {
    const last = this.#prunedAt.get(jobId);
    if (last !== undefined && Math.abs(now - last) < PRUNE_MS) return false;
    this.#prunedAt.set(jobId, now);
    return true;
  }
}
