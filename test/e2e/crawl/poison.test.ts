import { expect, test } from 'vitest';
import { CRASHES_MAX } from '../../../src/core/suspicion/suspicion.ts';
import { crawlPoison } from '../../support/runs/poison-run.ts';

/** More kinds of poison, and how long they take, are measured by `npm run poison`. */
test('a page that ends the whole process each time is found and given up, and the run ends', async () => {
  const run = await crawlPoison({ deed: 'a death of the whole process', pages: 24, poison: [5] });
  expect(run.counters).toMatchObject({ state: 'done', done: 23, dead: 1 });
  expect(run.dead).toEqual([{ path: '/5', code: 'worker-lost' }]);
  // From then on it runs in a process of its own.
  expect(run.starts).toBe(CRASHES_MAX + 1);
});
