import { type Batch, type Report, WIRE_VERSION } from './batch.ts';

/** What is said of a batch that no worker has seen: nothing was asked, and every task goes back. */
export function deferredReport(batch: Batch, options: { worker: string; now: number }): Report {
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: true,
    worker: options.worker,
    startedAt: options.now,
    durationMs: 0,
    permits: batch.permits.map(({ host }) => ({ host, sent: 0, lastSentAt: null, finished: true })),
    robots: batch.robots.map(({ origin }) => ({ kind: 'deferred', origin })),
    outcomes: batch.tasks.map(({ id }) => ({ kind: 'deferred', taskId: id })),
    quality: [],
    archive: null,
  };
}
