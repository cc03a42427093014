import type { HostStore } from '../store.ts';
import type { Views } from '../views.ts';
import type { JobStore } from './job-store.ts';
import type { KeyStore } from './key-store.ts';
import type { RollupStore } from './rollup-store.ts';
import type { SlotTimeStore } from './slot-time-store.ts';
import type { WorkerStore } from './worker-store.ts';

/**
 * The part of a store that a server reads for its callers, over connections of its own: what they ask for never waits behind
 * a settle, and no settle waits behind it. What was written before a read is seen by it.
 */
export interface ReadStore {
  readonly jobs: Pick<JobStore, 'get' | 'byId' | 'find' | 'listBefore' | 'counters' | 'running' | 'sources'>;
  readonly hosts: Pick<HostStore, 'listAfter' | 'listStep'>;
  readonly views: Pick<
    Views,
    | 'attemptsOf'
    | 'attemptStep'
    | 'dead'
    | 'lastQualityPass'
    | 'numberedTask'
    | 'quality'
    | 'record'
    | 'recordStep'
    | 'recordsOf'
    | 'tallies'
    | 'taskStep'
    | 'versionsOf'
  >;
  readonly rollups: Omit<RollupStore, 'add'>;
  readonly slotTimes: Pick<SlotTimeStore, 'load'>;
  readonly workers: Omit<WorkerStore, 'note'>;
  readonly keys: Pick<KeyStore, 'byHash' | 'hasSome'>;
  close(): Promise<void>;
}
