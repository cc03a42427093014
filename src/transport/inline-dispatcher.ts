import type { Batch, Report } from '../core/batch/batch.ts';
import { messageOf } from '../core/errors.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';

type Process = (
  batch: Batch,
  options: { onPart: (report: Report) => void; drain: AbortSignal },
) => Promise<Report>;

/** Batches in this very thread: for handlers that are closures and cannot travel. */
export function openInlineDispatcher(process: Process, onClose: () => Promise<void>): Dispatcher {
  const drain = new AbortController();
  return {
    workers: 1,
    slots: 8,
    async dispatch(batch, onPart) {
      try {
        return { kind: 'report', report: await process(batch, { onPart, drain: drain.signal }) };
      } catch (error) {
        return { kind: 'lost', batchId: batch.id, reason: messageOf(error) };
      }
    },
    async drain() {
      drain.abort();
    },
    close: onClose,
  };
}
