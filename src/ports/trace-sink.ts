import type { BatchTrace } from '../core/traces/batch-trace.ts';

/** Takes what became of batches, for whoever looks at traces. Absent where nobody does, which costs nothing. */
export interface TraceSink {
  /** Whether the next batch is traced: a share of them may be enough. */
  isSampled(): boolean;
  /** Never throws, and keeps a bounded number. */
  add(trace: BatchTrace): void;
  /** Sends what it has, for a few seconds at most. */
  close(): Promise<void>;
}
