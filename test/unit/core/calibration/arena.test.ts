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

/** Hosts that were not within the bar before. */
test.each([
  ['what held is kept where the host opened between its refusals', 'bucket of 1 s', 717_711],
  ['the same where two counters are weighted', 'two counters 1 min', 503_898],
  [
    'a rate much lower does not show that a closure was an outage',
    'closed for 1 min after a refusal',
    1_572_963,
  ],
  ['a rate that is refused at once for what was sent before is tried again', 'sliding 1 min', 488_060],
  ['a rate is not raised when its refusals may be more than are left', 'fixed 10 s', 20_839],
])('%s', (_, kind, seed) => {
  const { kept, refusals } = compete(kind, seed, true);
  expect(isWithinBar({ kept, refusals })).toBe(true);
});
