import { isJobTripped } from '../core/circuit-breaker/circuit-breaker.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import type { Counters, JobState, RequestedState } from '../core/model.ts';

export interface StopReason {
  state: Extract<JobState, 'stopped' | 'tripped' | 'cancelled'>;
  /**
   * `limit` is a success: the job did what it was allowed to. `restart`: only the process ends, and whoever comes after it
   * continues the job.
   */
  cause: 'request' | 'limit' | 'breaker' | 'signal' | 'source' | 'restart';
  message: string;
}

interface StopInput {
  requestedState: RequestedState;
  counters: Counters;
  limits: JobSpec['limits'];
  workedMs: number;
  failedBatchesInRow: number;
  /** What is wrong with the code of the job. */
  brokenCode: string | null;
  /** Why no worker will ever take a batch. */
  noWorkers: string | null;
  storage: { readonly troublesInRow: number; readonly reason: string | null };
  jobBatches: number;
  /** A host that has banned us for a day, while nothing else is left to request. */
  lastingBan: string | null;
  /** No host could be reached for a day. */
  isLastingOutage: boolean;
  /** Which budget is used up, in words. */
  exhausted: string | null;
  /** Why the last tasks are left for the next run; null while they are not. */
  tail?: string | null;
}

/** After about five minutes of waiting, somebody has to look. */
const STORAGE_TROUBLES_MAX = 10;

/** Whether a job must end before its tasks do. */
export function checkStop(input: StopInput): StopReason | null {
  const { requestedState, counters, limits } = input;
  if (requestedState === 'cancel') return { state: 'cancelled', cause: 'request', message: 'cancelled' };
  if (requestedState === 'stop') return { state: 'stopped', cause: 'request', message: 'stopped by request' };
  if (isJobTripped(input.failedBatchesInRow, input.jobBatches)) {
    return {
      state: 'tripped',
      cause: 'breaker',
      message: `${input.failedBatchesInRow} batches in a row failed completely`,
    };
  }
  if (input.brokenCode !== null) return { state: 'tripped', cause: 'breaker', message: input.brokenCode };
  if (input.noWorkers !== null) return { state: 'tripped', cause: 'breaker', message: input.noWorkers };
  if (input.storage.troublesInRow >= STORAGE_TROUBLES_MAX) {
    return { state: 'tripped', cause: 'breaker', message: `cannot store results: ${input.storage.reason}` };
  }
  if (input.lastingBan !== null) {
    return {
      state: 'stopped',
      cause: 'breaker',
      message: `${input.lastingBan} has refused every page for 24 hours, and nothing else is left to request`,
    };
  }
  if (input.isLastingOutage)
    return { state: 'stopped', cause: 'breaker', message: 'no host could be reached for 24 hours' };
  const unfinished = counters.pending > 0 || counters.leased > 0;
  const limit = (message: string): StopReason => ({ state: 'stopped', cause: 'limit', message });
  // As long as there are no more pages than are allowed, those that failed are tried again.
  const isLimited = limits.pages !== null && counters.accepted > limits.pages;
  if (isLimited && counters.attempted >= limits.pages! && unfinished)
    return limit(`limit of ${limits.pages} pages reached`);
  if (limits.bytes !== null && counters.bytes >= limits.bytes)
    return limit(`limit of ${limits.bytes} bytes reached`);
  if (input.exhausted !== null && unfinished) return limit(input.exhausted);
  if (input.tail) return limit(input.tail);
  if (limits.seconds !== null && input.workedMs >= limits.seconds * 1_000)
    return limit(`limit of ${limits.seconds} seconds reached`);
  return null;
}

/** Whether a job was stopped by one of its limits, from what was written down of it. */
export function isLimitReached(reason: string | null): boolean {
  return reason !== null && /^limit of .+ reached$/.test(reason);
}
