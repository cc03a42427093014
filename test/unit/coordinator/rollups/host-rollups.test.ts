import { expect, test } from 'vitest';
import { HostRollups } from '../../../../src/coordinator/rollups/host-rollups.ts';
import { OTHER_HOSTS, type SettledTask } from '../../../../src/core/rollups/rollup.ts';

const HOUR_MS = 3_600_000;
const DONE: SettledTask = { outcome: 'fetched', to: 'done', code: null, trace: null };

test('few hosts all have rows of their own, one for each stretch of ten seconds', () => {
  const rollups = new HostRollups();
  for (let n = 0; n < 3; n++) rollups.add('a.example', [DONE], 1, 1_000 * n);
  rollups.add('a.example', [DONE], 1, 10_000);
  rollups.add('b.example', [DONE, DONE], 2, 0);
  const rows = rollups.take().map(({ host, at, rollup }) => [host, at, rollup.succeeded, rollup.requests]);
  expect(rows.sort()).toEqual([
    ['a.example', 0, 3, 3],
    ['a.example', 10_000, 1, 1],
    ['b.example', 0, 2, 2],
  ]);
  expect(rollups.take()).toEqual([]);
});

test('of many hosts the busiest have rows, and nothing of the others is lost', () => {
  const rollups = new HostRollups();
  for (let n = 0; n < 500; n++) rollups.add(`h${n}.example`, [DONE], 1 + n, 0);
  const rows = rollups.take();
  expect(rows.length).toBe(31);
  expect(rows.map(({ host }) => host)).toContain('h499.example');
  expect(rows.at(-1)!.host).toBe(OTHER_HOSTS);
  expect(rows.reduce((sum, { rollup }) => sum + rollup.succeeded, 0)).toBe(500);
});

test('the names of an hour are bounded, whoever is busy, and the next hour has its own', () => {
  const rollups = new HostRollups();
  const names = (from: number) => {
    const seen = new Set<string>();
    for (let round = 0; round < 100; round++) {
      for (let n = 0; n < 40; n++) rollups.add(`h${round}-${n}.example`, [], 100 * (round + 1), from + round);
      for (const { host } of rollups.take()) if (host !== OTHER_HOSTS) seen.add(host);
    }
    return seen;
  };
  expect(names(0).size).toBe(50);
  const later = names(HOUR_MS);
  expect(later.size).toBeGreaterThan(0);
  expect(later.size).toBeLessThanOrEqual(50);
});
