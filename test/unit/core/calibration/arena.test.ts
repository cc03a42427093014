import { expect, test } from 'vitest';
import { compete, hostsOf, isWithinBar } from '../../../sim/arena/arena.ts';
import { HOST_KINDS } from '../../../sim/arena/hosts.ts';

/** Seeds are fixed here: `npm run arena` takes new ones, and says how many hosts meet the bar. */
const SEED = 11;

test('the arena has more than twenty kinds of hosts, and most of them are calibrated within the bar', () => {
  const kinds = Object.keys(HOST_KINDS);
  expect(kinds.length).toBeGreaterThanOrEqual(20);
  const results = [...hostsOf(kinds.length, SEED)].map(({ kind, seed }) => compete(kind, seed, true));
  expect(results.filter(isWithinBar).length).toBeGreaterThanOrEqual(kinds.length * 0.7);
});

test('a run at the pace that was found is hardly refused, where the others are', () => {
  const { seine, crawlee } = compete('sliding 1 s', SEED);
  expect(seine!.refused / seine!.requests).toBeLessThan(0.001);
  expect(seine!.throughput).toBeGreaterThan(0.7);
  expect(crawlee!.refused / crawlee!.requests).toBeGreaterThan(0.1);
});
