import type { Rollup, RollupRow, RollupStep } from '../../core/rollups/rollup.ts';

/** How many attempts of a host failed with a code. */
export interface FailureCell {
  host: string;
  code: string;
  count: number;
}

/** What happened over time. What a settle means for its job is counted in its transaction; the rest comes by `add`. */
export interface RollupStore {
  /** Adds to the rows of every step, and deletes those that are too old at `now`. */
  add(jobId: number, rows: readonly RollupRow[], now: number): Promise<void>;
  /** Rows of one step that have something, the oldest first; `from` inclusive, `to` exclusive, epoch milliseconds. */
  series(
    jobId: number,
    options: { step: RollupStep; from: number; to: number; host: string },
  ): Promise<{ at: number; rollup: Rollup }[]>;
  /** Everything since the job began. */
  total(jobId: number): Promise<Rollup>;
  /** The same by host, as far as rows are kept, the most requests first; of whole minutes from `since` on. */
  hosts(
    jobId: number,
    options: { limit: number; since?: number },
  ): Promise<{ host: string; rollup: Rollup }[]>;
  /** Failures of the hosts that have rows, as far as they are kept, the most first. */
  failures(jobId: number, options: { limit: number }): Promise<FailureCell[]>;
}
