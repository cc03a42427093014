import type { RollupStep } from '../rollups/rollup.ts';

/**
 * Worker health: what processes that work on batches say of themselves every few seconds, kept as roll-ups.
 *
 * Sample   one look at one worker. Several coordinators may look at the same one: means and maxima do not mind.
 * Row      samples of a stretch of time; a worker has one in every step.
 */

export interface WorkerSample {
  worker: string;
  kind: string;
  /** Epoch milliseconds. */
  at: number;
  /** Version of Seine; empty when it does not say. */
  software: string;
  threads: number;
  /** Batches that it can have at once. */
  slots: number;
  /** It takes no more batches, and ends when it has finished those that it has. */
  isDraining: boolean;
  /** Share of one core that it used lately. */
  cpu: number;
  memoryBytes: number;
  batches: number;
  /** Since it began. */
  batchesDone: number;
  tasksDone: number;
}

/** A worker that was seen, with its last sample. */
export interface KnownWorker extends Omit<WorkerSample, 'at'> {
  firstSeenAt: number;
  lastSeenAt: number;
}

/** What a worker was like within a stretch of time. */
export interface WorkerPoint {
  /** Epoch milliseconds of its beginning. */
  at: number;
  /** Means. */
  cpu: number;
  memoryBytes: number;
  batches: number;
  cpuMax: number;
  memoryBytesMax: number;
  slots: number;
  /** Since the worker began, at the end of the stretch. */
  batchesDone: number;
  tasksDone: number;
}

/** How often workers are looked at. */
export const WORKER_LOOK_MS = 10_000;
/** How long rows are kept, by step, in seconds: at most 180, 360 and 336 of them for a worker. */
export const WORKER_SECONDS_KEPT: Record<RollupStep, number> = { 10: 1_800, 60: 21_600, 3600: 14 * 86_400 };
/** Workers of which rows are written at a time; of larger fleets, those with the first names. */
export const WORKERS_NOTED_MAX = 200;
/** Workers that are remembered: when there are more, those that were seen last. */
export const WORKERS_KEPT_MAX = 1_000;

/** Two looks and some patience: one that was not seen for longer has ended. */
const GONE_MS = 3 * WORKER_LOOK_MS;

export type WorkerState = 'live' | 'draining' | 'gone';

export function workerStateOf(
  { lastSeenAt, isDraining }: Pick<KnownWorker, 'lastSeenAt' | 'isDraining'>,
  now: number,
): WorkerState {
  if (now - lastSeenAt > GONE_MS) return 'gone';
  return isDraining ? 'draining' : 'live';
}
