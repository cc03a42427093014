import type { TaskChange } from '../../ports/store.ts';

/**
 * Pages that keep failing are retried after all others of their host. In the table their priority is lower by this much, far
 * below what a job can give; everywhere else they have the priority that the job gave them.
 */
const LAST = 1_000_000;
/** Priorities below this are lowered ones. */
export const LOWERED_MAX = -LAST / 2;

/** What a change does to the priority of its task: leaves it, lowers it, or gives it back when the task has ended. */
export function priorityStepOf({ to, lowersPriority }: TaskChange): 0 | 1 | 2 {
  if (to !== 'pending') return 2;
  return lowersPriority ? 1 : 0;
}

/** SQL for the new priority, in both stores. */
export const nextPriority = (step: string, priority: string) => `
  CASE WHEN ${step} = 1 AND ${priority} > ${LOWERED_MAX} THEN ${priority} - ${LAST}
    WHEN ${step} = 2 AND ${priority} <= ${LOWERED_MAX} THEN ${priority} + ${LAST} ELSE ${priority} END`;

/** The priority that the job gave. */
export function givenPriority(priority: number): number {
  return priority <= LOWERED_MAX ? priority + LAST : priority;
}

/** SQL for another given priority, in both stores. */
export const withGivenPriority = (given: string, priority: string) =>
  `CASE WHEN ${priority} <= ${LOWERED_MAX} THEN ${given} - ${LAST} ELSE ${given} END`;
