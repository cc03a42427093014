import { expect, test } from 'vitest';
import { runAdaptively } from '../../support/runs/adaptive-run.ts';

const LIMIT = 5;
const CAP = 20;
const SERVED = 80;

/**
 * How close to its limit a host is held is shown in virtual time by `test/unit/core/pace/pace-simulation.test.ts`, and on this
 * machine by `npm run speeds`. Here the parts work together: counts only, since a busy machine is late now and then.
 */
test('a host that refuses more than 5 requests a second is found out and kept below that', async () => {
  const { log, host } = await runAdaptively({
    limit: LIMIT,
    cap: CAP,
    pages: 400,
    isEnough: (seen) => seen.filter(({ refused }) => !refused).length >= SERVED,
  });
  const refused = log.filter((entry) => entry.refused).length;
  console.log(JSON.stringify({ requests: log.length, refused, rate: host.rate }));
  expect(refused).toBeGreaterThan(0);
  // At the rate of the job three of four would be refused; each refusal stops a permit and halves the pace.
  expect(refused).toBeLessThan(SERVED / 4);
  expect(host).toMatchObject({ lastError: 'throttled: status 429' });
  expect(host.limitedBy).toContain('adaptive rate: below');
  expect(host.rate).toBeLessThan(CAP / 2);
});
