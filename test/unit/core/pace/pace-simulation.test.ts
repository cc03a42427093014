import { describe, expect, test } from 'vitest';
import { askInPermits, type PacedHost } from '../../../support/sites/paced-host.ts';

const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1);

/** The worst of all seeds, from `fromSeconds` on; rates as shares of the limit. */
function worstOf(host: Omit<PacedHost, 'seed'>, fromSeconds: number) {
  const worst = { refused: 0, slowest: Number.POSITIVE_INFINITY, fastest: 0 };
  const perSecond = (host.limit * 1_000) / (host.windowMs ?? 1_000);
  for (const seed of SEEDS) {
    const log = askInPermits({ ...host, seed }).filter(({ at }) => at > fromSeconds * 1_000);
    const refused = log.filter((entry) => entry.refused).length;
    const seconds = (log.at(-1)!.at - log[0]!.at) / 1_000;
    const rate = (log.length - refused) / seconds / perSecond;
    worst.refused = Math.max(worst.refused, refused / log.length);
    worst.slowest = Math.min(worst.slowest, rate);
    worst.fastest = Math.max(worst.fastest, rate);
  }
  return worst;
}

/** A quiet machine, a busy one, and one that now and then stands still for longer than the pace leaves room for. */
const MACHINES = [
  { stallMs: 5, stallsPerSecond: 0.1 },
  { stallMs: 80, stallsPerSecond: 0.5 },
  { stallMs: 150, stallsPerSecond: 0.2 },
];

describe('the pace of a host that refuses what is above its limit', () => {
  test.each(
    [
      { limit: 5, cap: 20 },
      { limit: 5, cap: 100 },
      { limit: 2, cap: 8 },
      { limit: 40, cap: 100 },
    ].flatMap((host) => MACHINES.map((machine) => ({ ...host, ...machine }))),
  )('$limit a second of $cap, stalls up to $stallMs ms: within a fifth of it, hardly a refusal', (host) => {
    // As many requests of fast hosts as of slow ones.
    const worst = worstOf({ ...host, seconds: Math.max(360, 9_000 / host.limit) }, 90);
    expect(worst.refused).toBeLessThan(0.005);
    expect(worst.slowest).toBeGreaterThan(0.8);
    expect(worst.fastest).toBeLessThan(1);
  });

  test('the longer a run, the fewer of its requests are refused', () => {
    const host = { limit: 5, cap: 20, ...MACHINES[1]!, seconds: 14_400 };
    expect(worstOf(host, 600).refused).toBeLessThan(0.001);
  });

  test.each(
    [
      { limit: 50, windowMs: 10_000, cap: 20 },
      { limit: 100, windowMs: 10_000, cap: 50 },
      { limit: 60, windowMs: 60_000, cap: 4 },
      { limit: 120, windowMs: 60_000, cap: 20 },
      { limit: 300, windowMs: 60_000, cap: 100 },
      { limit: 1_000, windowMs: 60_000, cap: 100 },
    ].flatMap((host) =>
      (['sliding', 'windows', 'bucket'] as const).flatMap((counts) =>
        [false, true].map((tells) => ({ ...host, counts, tells })),
      ),
    ),
  )(
    '$limit in $windowMs ms of $cap a second, $counts, says when: $tells: found within minutes, and held',
    (host) => {
      const worst = worstOf({ ...host, ...MACHINES[1]!, seconds: 3_600 }, 1_200);
      expect(worst.refused).toBeLessThan(0.005);
      expect(worst.slowest).toBeGreaterThan(0.8);
      expect(worst.fastest).toBeLessThan(1.01);
    },
  );

  test('pages that are always 503 slow a host down for a moment each, and not for good', () => {
    const host = { limit: 1_000, cap: 10, ...MACHINES[0]!, seconds: 1_800, brokenPages: 0.03 };
    const log = askInPermits({ ...host, seed: 1 }).filter(({ at }) => at > 60_000);
    expect(log.length / ((log.at(-1)!.at - log[0]!.at) / 1_000)).toBeGreaterThan(3);
  });
});
