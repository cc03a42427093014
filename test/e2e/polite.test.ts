import { expect, test } from 'vitest';
import { runPolitely } from '../support/polite-run.ts';

const HOSTS = 50;
const RATE = 5;
const GAP_MS = 1_000 / RATE;

/** `npm run polite` is the longer form. */
test(`${HOSTS} hosts, 3 threads, restarts: no gap under ${GAP_MS} ms, at least 90 % of the rate`, async () => {
  // One gentle stop and one kill, each in the middle of the work.
  const facts = await runPolitely({
    hosts: HOSTS,
    workers: 3,
    rate: RATE,
    pagesPerHost: 70,
    ends: ['SIGTERM', 'SIGKILL'],
    requestsPerRun: 20,
  });
  console.log(JSON.stringify(facts));
  expect(facts.codes).toEqual([130, null, 0]);
  expect(facts.stderr).toBe('');
  expect(facts.hostsSeen).toBe(HOSTS);
  // robots.txt was read once per host, over all restarts but the one that a kill may have cut off.
  expect(facts.smallestGapMs).toBeGreaterThanOrEqual(GAP_MS);
  expect(facts.tooShort).toBe(0);
  for (const rate of facts.rates) expect(rate).toBeGreaterThanOrEqual(0.9 * RATE);
}, 120_000);
