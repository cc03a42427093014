import { expect, test } from 'vitest';
import { runPolitely } from '../../support/runs/polite-run.ts';

const HOSTS = 50;
const RATE = 5;
const GAP_MS = 1_000 / RATE;
const PAGES_PER_HOST = 30;

/** `npm run polite` is the longer form, and says how much of the rate is reached. */
test(`${HOSTS} hosts, 3 threads, restarts: no gap under ${GAP_MS} ms, nothing lost, robots.txt first`, async () => {
  // One gentle stop and one kill, each in the middle of the work.
  const facts = await runPolitely({
    hosts: HOSTS,
    workers: 3,
    rate: RATE,
    pagesPerHost: PAGES_PER_HOST,
    ends: ['SIGTERM', 'SIGKILL'],
    requestsPerRun: 10,
  });
  console.log(JSON.stringify(facts));
  expect(facts.codes).toEqual([130, null, 0]);
  expect(facts.stderr).toBe('');
  expect(facts).toMatchObject({ hostsSeen: HOSTS, lost: 0, done: HOSTS * PAGES_PER_HOST });
  expect(facts.smallestGapMs).toBeGreaterThanOrEqual(GAP_MS);
  expect(facts.tooShort).toBe(0);
  // Once for all runs; a second time only where the kill came before the answer was written down.
  expect(facts.withoutRobots).toBe(0);
  expect(facts.robotsMax).toBeLessThanOrEqual(2);
  // How fast is no matter of a test, and a busy machine is slow: this only tells a pace from a host that stands still,
  // and ten requests in two seconds from ten in a minute.
  for (const rate of facts.rates) expect(rate).toBeGreaterThanOrEqual(RATE / 30);
});
