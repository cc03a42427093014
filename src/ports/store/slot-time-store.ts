import type { SlotAccount } from '../../core/explain/explain.ts';

/** Where the time of slots went, by job, so that it can be asked after a run and from other processes. */
export interface SlotTimeStore {
  /** Replaces what this run of a coordinator has written before. */
  save(jobId: number, run: string, account: SlotAccount): Promise<void>;
  /** Of the runs that wrote last, the newest first. */
  load(jobId: number): Promise<SlotAccount[]>;
}

/** Runs of one job that are kept: a job that is resumed again and again must not grow a table. */
export const SLOT_TIME_RUNS_MAX = 20;
