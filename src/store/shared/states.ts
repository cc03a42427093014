import type { TaskState } from '../../core/model.ts';

/** How task states are written down; `waiting` is pending with a due time in the future. */
export const READY = 2;
export const LEASED = 3;
export const STATE_NUMBERS = { done: 4, unchanged: 5, skipped: 6, dead: 7 } as const;
export const WAITING = 8;

const STATE_NAMES: Record<number, TaskState> = {
  [READY]: 'pending',
  [LEASED]: 'leased',
  [STATE_NUMBERS.done]: 'done',
  [STATE_NUMBERS.unchanged]: 'unchanged',
  [STATE_NUMBERS.skipped]: 'skipped',
  [STATE_NUMBERS.dead]: 'dead',
  [WAITING]: 'pending',
};

export function stateName(state: number): TaskState {
  const name = STATE_NAMES[state];
  if (!name) throw new Error(`unknown task state ${state}`);
  return name;
}

export function isFinished(state: number): boolean {
  return state >= STATE_NUMBERS.done && state <= STATE_NUMBERS.dead;
}

export function numbersOf(states: readonly TaskState[]): number[] {
  return Object.entries(STATE_NAMES).flatMap(([number, name]) =>
    states.includes(name) ? [Number(number)] : [],
  );
}
