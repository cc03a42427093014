import type { Batch, Report, WorkerKind } from '../core/batch/batch.ts';
import type { Usage } from '../core/cost/cost.ts';
import type { SeineError } from '../core/errors.ts';
import type { ScalingDecision } from '../core/explain/scaling-decision.ts';
import type { Wanted } from '../core/scaling/scaling.ts';
import type { WorkerSample } from '../core/workers/worker-health.ts';

/** `lost`: the worker died or never answered; its tasks go back, and the dispatcher never retries. */
export type Delivery = {
  /** What carrying it cost, where that is paid by use. */
  used?: Usage;
} & (
  | { kind: 'report'; report: Report }
  | {
      kind: 'lost';
      batchId: number;
      reason: string;
      /** The batch cannot be the cause: what carried it broke. Its tasks are not suspected of killing workers. */
      blameless?: true;
      /** Its worker is known to have ended: nothing is sent under the permits of the batch any more. */
      ended?: true;
      /** Tasks whose code was running when the worker died: the others are not suspected. */
      running?: number[];
    }
);

/** What a process that works on batches says of itself. */
export interface WorkerHeartbeat extends WorkerSample {
  /** `threads`: those of the coordinator's own process, which end with it. */
  kind: WorkerKind | 'threads';
  /** Some of the hosts that it asks now. */
  hosts: string[];
}

/** What workers took that are paid by use. */
export interface DispatchCost {
  invocations: number;
  gbSeconds: number;
  usd: number;
}

export interface Dispatcher {
  /** Workers that compute at the same time. */
  readonly workers: number;
  /** Batches that may be under way at once: more than workers, since most of a batch is waiting. */
  readonly slots: number;
  /** Addresses that requests of batches come from, of which each takes batches by itself. Absent: one. */
  readonly addresses?: number;
  /** How many batches of suspects may be under way at once, each on a worker of its own. Absent: as many as others. */
  readonly suspectSlots?: number;
  /** How many of them may be of this kind, where workers differ. Absent: all. */
  slotsFor?(kind: WorkerKind): number;
  /** Carries one batch to one worker, once. Early parts of the report come by `onPart`, in their order. Never rejects. */
  dispatch(batch: Batch, onPart: (report: Report) => void): Promise<Delivery>;
  /** Where reports of its batches go, for whoever has to take them over. Absent: its workers end with it. */
  readonly replyTo?: string | undefined;
  /** Waits for what is left of the reports of a batch that another dispatcher sent, which is gone. Never rejects. */
  adopt?(batch: Batch, replyTo: string, onPart: (report: Report) => void): Promise<Delivery>;
  /** Asks workers to return what they have; open dispatches still resolve. */
  drain(): Promise<void>;
  /** Asks for what there is of one batch; its dispatch still resolves. */
  recall?(batchId: number): void;
  /**
   * Asks for hosts of one batch, as far as they have no gap: nothing more begins there. An early part says how much is under
   * way, and what has not begun comes back as deferred. Absent: the batch keeps them until it ends.
   */
  giveBack?(batchId: number, hosts: readonly string[]): void;
  /** A job of that priority begins: workers may make room for its first batch. Absent: they find out with the batch. */
  announce?(priority: number): void;
  /** How many batches at once the job can use, as measured; null while that is not known. For workers that come and go with it. */
  want?(wanted: Wanted | null): void;
  /** Slots of workers that would come if they were needed. Absent: none. */
  readonly spareSlots?: number;
  /** What was decided about workers that come and go, and why; the newest last. */
  readonly decisions?: readonly ScalingDecision[];
  /** Where slots are shared with other jobs: calls back when one may be free for this one. */
  onSlotsFree?(listener: () => void): void;
  /** Where hosts are shared with other jobs: tasks of these wait for permits. Those of lower priority may give them back. */
  wantHosts?(hosts: readonly string[]): void;
  /** Jobs beside this one, by id, that are less urgent and of the same owner. Absent: none. */
  lessUrgent?(): number[];
  /** Whether its workers can do such batches now. Absent: they can do all. */
  serves?(kind: WorkerKind): boolean;
  /** Why its workers will never do such batches, with what to do about it. Absent or null: they can, or may later. */
  refusal?(kind: WorkerKind): SeineError | null;
  /** Why no batch reaches a worker now, in words; null while they do. */
  trouble?(): string | null;
  /** The processes whose threads work on its batches, as far as they are alive. */
  heartbeats?(): Promise<WorkerHeartbeat[]>;
  /** Where workers are paid by use: what this dispatcher has spent. */
  cost?(): DispatchCost;
  close(): Promise<void>;
}
