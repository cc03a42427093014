import { describe, expect, test } from 'vitest';
import { simulate } from './simulate.ts';

/** Seeds and tasks of each; `npm run sim` does many more. */
const SEEDS = 200;
const TASKS = 40;

describe('the simulation', () => {
  test(`${SEEDS} seeds keep every invariant, and every task ends`, async () => {
    const failures: string[] = [];
    let faults = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulate({ seed, tasks: TASKS });
      faults += result.faults;
      if (result.failure !== null)
        failures.push(`npm run sim -- --seed ${seed} --tasks ${TASKS}: ${result.failure}`);
    }
    expect(failures).toEqual([]);
    expect(faults).toBeGreaterThan(SEEDS);
  });

  test('the same seed does the same', async () => {
    const [first, second] = [
      await simulate({ seed: 7, tasks: TASKS }),
      await simulate({ seed: 7, tasks: TASKS }),
    ];
    expect(first.failure).toBeNull();
    expect({ ...second, trace: [] }).toEqual({ ...first, trace: [] });
  });
});
