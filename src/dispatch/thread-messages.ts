import type { Batch, Report } from '../core/batch.ts';

/** What the dispatcher and its threads say to each other. */
export type ToThread = { kind: 'batch'; batch: Batch } | { kind: 'drain' } | { kind: 'close' };
export type FromThread =
  | { kind: 'ready' }
  | { kind: 'part'; report: Report }
  | { kind: 'report'; report: Report };

export interface ThreadData {
  name: string;
  blobsDir: string;
  sync: boolean;
}
