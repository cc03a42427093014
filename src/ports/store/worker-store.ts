import type { RollupStep } from '../../core/rollups/rollup.ts';
import type { KnownWorker, WorkerPoint, WorkerSample } from '../../core/workers/worker-health.ts';

/** How workers fared over time, whoever they worked for. */
export interface WorkerStore {
  /** Adds to the rows of every step, and deletes those that are too old at `now`. */
  note(samples: readonly WorkerSample[], now: number): Promise<void>;
  /** The one that was seen last first. */
  list(options: { limit: number }): Promise<KnownWorker[]>;
  /** Rows of one step, the oldest first; `from` inclusive, `to` exclusive, epoch milliseconds. */
  series(worker: string, options: { step: RollupStep; from: number; to: number }): Promise<WorkerPoint[]>;
}
