import type { Batch, Report } from '../core/batch.ts';

/** `lost`: the worker died or never answered; its tasks go back, and the dispatcher never retries. */
export type Delivery = { kind: 'report'; report: Report } | { kind: 'lost'; batchId: number; reason: string };

export interface Dispatcher {
  /** Workers that compute at the same time. */
  readonly workers: number;
  /** Batches that may be under way at once: more than workers, since most of a batch is waiting. */
  readonly slots: number;
  /** Carries one batch to one worker, once. Early parts of the report come by `onPart`. Never rejects. */
  dispatch(batch: Batch, onPart: (report: Report) => void): Promise<Delivery>;
  /** Asks workers to return what they have; open dispatches still resolve. */
  drain(): Promise<void>;
  close(): Promise<void>;
}
