import { expect, test } from 'vitest';
import { crawlSickPages } from '../../support/runs/sick-run.ts';

/** How long healthy pages take beside sick ones is measured by `npm run sick`. */
test.each(['503', '500', 'reset'] as const)(
  'pages that always end with %s are given up, and the others of their host are fetched meanwhile',
  async (sickness) => {
    const run = await crawlSickPages({ sickness, sick: 3, healthy: 24, hosts: 2, rate: 20 });
    expect(run.served).toBe(48);
    expect(run.counters).toMatchObject({ state: 'done', done: 48, dead: 6 });
    // Healthy pages once, sick ones once for each attempt, and most of those after the healthy ones. A reset of a used
    // connection may mean that it was closed just then: such a request is sent once more.
    const times = sickness === 'reset' ? 2 : 1;
    expect(run.requests).toBeGreaterThanOrEqual(48 + 6 * 4);
    expect(run.requests).toBeLessThanOrEqual(48 + 6 * 4 * times);
    expect(run.sickBefore).toBeLessThanOrEqual(6 * 3 * times);
    // Alone they take two seconds; with a pause of the host after each failure it took minutes.
    expect(run.ms).toBeLessThan(60_000);
  },
);
