import { expect, test } from 'vitest';
import { runCrashes } from '../../support/crash/crash-harness.ts';
import { testSeed } from '../../support/seed.ts';

/** `npm run crash` has the long version, of 200 kills. */
const KILLS = 10;

test(`kill -9 of the whole tree at ${KILLS} random moments loses nothing and doubles nothing`, async () => {
  const facts = await runCrashes({ kills: KILLS, pages: 900, seed: testSeed() });
  console.log(JSON.stringify(facts));
  expect(facts.kills).toBe(KILLS);
  expect(facts.lost).toBe(0);
  expect(facts.forgotten).toBe(0);
  expect(facts.unreadable).toBe(0);
  expect(facts.failedOpens).toBe(0);
  expect(facts.refetched).toBeLessThanOrEqual(facts.kills * facts.inFlightMax);
});
