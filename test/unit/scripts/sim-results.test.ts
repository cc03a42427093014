import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addChunk, noteAgain, readResults, tableOf } from '../../../scripts/sim-results.ts';
import { temporaryFolder } from '../../support/fixtures.ts';

const sums = { runs: 25, tasks: 5_000, faults: 1_000, steps: 90_000, virtualMs: 86_400_000 };

test('what simulations came to adds up, and seeds that hold now have failed no longer', async () => {
  const folder = await temporaryFolder();
  try {
    const path = join(folder.dir, 'results.jsonl');
    const failed = [1, 7].map((seed) => ({ seed, failure: `wrong ${seed}` }));
    await addChunk(path, 200, 0, { sums, sources: 'a', failed });
    await addChunk(path, 200, 0, { sums, sources: 'a', failed });
    await addChunk(path, 200, 1, { sums, sources: 'b', failed: [{ seed: 30, failure: 'wrong 30' }] });
    const again = [
      { seed: 1, failure: null },
      { seed: 7, failure: 'otherwise' },
      { seed: 8, failure: null },
    ];
    await noteAgain(path, 200, again);
    const results = readResults(path, 200);
    expect(results).toMatchObject({ done: [[0, 1]], runsOf: { a: 25, b: 25 } });
    expect(results.failed).toEqual([
      { seed: 7, failure: 'otherwise' },
      { seed: 30, failure: 'wrong 30' },
    ]);
    expect(tableOf(results)).toContain('| 50 | 10000 | 2000 | 180000 | 2 days | 2 |');
  } finally {
    await folder.remove();
  }
});
