import { expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { asOf, newHealth } from '../../../../src/core/proxies/proxy-health.ts';

const NOW = 1_700_000_000_000;
const DAY_MS = 86_400_000;

test('a rest that was noted under a clock a day ahead is over, one that can be is kept', () => {
  const resting = { ...newHealth(NOW), bad: 3, rests: 2, until: NOW + LIMITS.proxyRestMsMax };
  expect(asOf(resting, NOW)).toEqual(resting);
  const ahead = { ...resting, at: NOW + DAY_MS, until: NOW + DAY_MS + 1_000 };
  expect(asOf(ahead, NOW)).toEqual({ ...resting, at: NOW, until: 0 });
});
