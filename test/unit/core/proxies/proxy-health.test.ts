import { expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { asOf, newHealth, patienceFor } from '../../../../src/core/proxies/proxy-health.ts';

const NOW = 1_700_000_000_000;
const DAY_MS = 86_400_000;

test('a rest that was noted under a clock a day ahead is over, one that can be is kept', () => {
  const resting = { ...newHealth(NOW), bad: 3, rests: 2, until: NOW + LIMITS.proxyRestMsMax };
  expect(asOf(resting, NOW)).toEqual(resting);
  const ahead = { ...resting, at: NOW + DAY_MS, until: NOW + DAY_MS + 1_000 };
  expect(asOf(ahead, NOW)).toEqual({ ...resting, at: NOW, until: 0 });
});

test('the more a host refuses, the more refusals in a row are chance, within bounds', () => {
  expect([0, 0.05, 0.2, 0.5, 0.8, 1].map(patienceFor)).toEqual([1, 1, 2, 5, 17, 17]);
});
