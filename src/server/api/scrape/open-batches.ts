import { randomBytes } from 'node:crypto';
import type { Job, Store } from '../../../ports/store.ts';

/** A batch is kept open while its list of URLs is read, so that it is not finished before. */

const PREFIX = 'batch-';
const ID_BYTES = 12;
/** A batch with an Idempotency-Key is probably sent again: to end it before that would tell its callback twice. */
const SENT_AGAIN_MS = 600_000;
const BATCH_NAME = /(^|\.)batch-[0-9a-f]{24}$/;

export function batchName(): string {
  return PREFIX + randomBytes(ID_BYTES).toString('hex');
}

/** More URLs may come, although all that came so far are finished. */
export function isBeingRead({ name, keepOpen }: Pick<Job, 'name' | 'keepOpen'>): boolean {
  return keepOpen && BATCH_NAME.test(name);
}

/**
 * Ends batches whose server was killed while it read their lists: they have what was written down of them, and would be
 * open for ever. One that is being read after all stays whole: to add URLs makes it run again.
 */
export async function closeCutOffBatches(
  { jobs }: Pick<Store, 'jobs'>,
  { madeBefore, now }: { madeBefore: number; now: number },
): Promise<void> {
  for (const job of await jobs.keptOpen(PREFIX)) {
    const isAwaited = job.requestId !== null && job.createdAt > now - SENT_AGAIN_MS;
    if (isBeingRead(job) && job.createdAt < madeBefore && !isAwaited) await jobs.closeToMore(job.id, now);
  }
}
