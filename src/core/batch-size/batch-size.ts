/**
 * Batch size: how many tasks one batch has at most.
 *
 * A job may say it (`batchSize`). Where it does not, a batch has `BATCH_TASKS`, and more where pages come fast: what a batch
 * takes besides its pages (plan, lease, message, file, transaction) is paid once for all of them. So hosts without a gap
 * get as many tasks at once as were done in `BATCH_MS` lately, and a slow page makes the next batches small again.
 */

/** A batch is leased, sent and lost as a whole, so that it never has more than this. */
export const BATCH_TASKS_MAX = 1_000;
/** What the job gets without a number of its own, where nothing is known of its pages or they are slow. */
const BATCH_TASKS = 120;
/**
 * Larger batches are hardly cheaper: a crawl of 60,000 pages took 233 µs of CPU a page with 120 tasks in a batch, 211 with
 * 360 and 220 with 1,000. But they take memory, 15 MB with 250 ms, and an urgent job waits while the report of one is
 * written: with 500 ms it took 2.3 to 2.7 times as long beside a large crawl of the same hosts as alone, with 250 ms 2.1 to
 * 2.4 times, with 120 tasks 1.4 to 2.9 times.
 */
const BATCH_MS = 150;
/** So many batches are looked at: the slowest of them decides. */
const REMEMBERED = 8;
/** Of batches with fewer tasks, most of the time is not that of pages. */
const TELLING_TASKS = 60;

/** Milliseconds for each task of the last batches, the newest last. */
export type BatchTimes = readonly number[];

export const NO_BATCH_TIMES: BatchTimes = [];

export function addBatchTime(times: BatchTimes, batch: { tasks: number; durationMs: number }): BatchTimes {
  if (batch.tasks < TELLING_TASKS) return times;
  return [...times.slice(1 - REMEMBERED), batch.durationMs / batch.tasks];
}

/** What the job's batches have at most: with a gap between requests, and without. */
export function batchSizes(
  chosen: number | undefined,
  times: BatchTimes,
): { batchSize: number; openBatchSize: number } {
  if (chosen !== undefined) return { batchSize: chosen, openBatchSize: chosen };
  const fitting = times.length === 0 ? 0 : Math.floor(BATCH_MS / Math.max(...times));
  return {
    batchSize: BATCH_TASKS,
    openBatchSize: Math.min(BATCH_TASKS_MAX, Math.max(BATCH_TASKS, fitting)),
  };
}
