import type { RecordChanges } from './record-changes.ts';

/** What may be wrong with a run that has ended, for `--fail-on` and `notify`. */
export const RUN_PROBLEMS = ['drop', 'dead', 'gone'] as const;
export type RunProblem = (typeof RUN_PROBLEMS)[number];

interface EndedRun {
  dead: number;
  changes?: RecordChanges;
  quality: readonly { drops: readonly unknown[] }[];
}

/** `drop`: a field is filled less often than before. `dead`: dead letters. `gone`: records whose page is gone. */
export function problemsOf({ dead, changes, quality }: EndedRun): RunProblem[] {
  const found: Record<RunProblem, boolean> = {
    drop: quality.some(({ drops }) => drops.length > 0),
    dead: dead > 0,
    gone: (changes?.gone ?? 0) > 0,
  };
  return RUN_PROBLEMS.filter((problem) => found[problem]);
}
