import type { IdleReason } from './slot-states.ts';

/** What a plan knows when it leaves slots free. */
export interface IdleFacts {
  /** Results cannot be stored now. */
  isStoragePaused: boolean;
  /** Tasks that the limits of the job still allow. */
  tasksLeft: number;
  /** Tasks that could start now but for one of these, by what stopped them. */
  stopped: Partial<Record<IdleReason, number>>;
  /** Tasks that wait, with those of `stopped`. */
  pending: number;
  isSourceDone: boolean;
  /** The host that may be asked first of those with tasks, and why not earlier. */
  nextHost: { at: number; reason: IdleReason } | null;
  /** The task that is due first of those that wait by themselves, and why. */
  nextTask: { at: number; reason: IdleReason } | null;
}

/**
 * What stops the next task. What could start now comes first: of several reasons the one that stops most tasks. Then
 * whatever is due next. Without anything that waits, it is the source, or there is no work.
 */
export function idleReason(facts: IdleFacts): IdleReason {
  const { stopped, nextHost, nextTask } = facts;
  if (facts.isStoragePaused) return 'store';
  if (facts.tasksLeft <= 0 && facts.pending > 0) return 'budget';
  const [most] = Object.entries(stopped).sort(([, a], [, b]) => b - a);
  if (most && most[1] > 0) return most[0] as IdleReason;
  if (facts.pending > 0 && (nextHost || nextTask)) {
    if (!nextHost) return nextTask!.reason;
    return nextTask && nextTask.at < nextHost.at ? nextTask.reason : nextHost.reason;
  }
  return facts.isSourceDone ? 'noWork' : 'source';
}
