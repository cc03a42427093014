import { expect, test } from 'vitest';
import type { CalibrationResult } from '../../../../src/core/calibration/calibration.ts';
import { paceOfProfile, profileOf, startRateFor } from '../../../../src/core/calibration/host-profile.ts';
import type { HostPace } from '../../../../src/core/pace/pace.ts';

const NOW = 1_000_000;
const pace = (more: Partial<HostPace>): HostPace => ({
  ...{ rate: 18, clean: 20, refused: 21, tryAt: 0, refusals: 3, latencyMs: 100 },
  ...more,
});

test('a host of which nothing is known begins at one request per second, or at half of a lower cap', () => {
  expect(startRateFor(null, 100, NOW)).toBe(1);
  expect(startRateFor(null, 0.5, NOW)).toBe(0.25);
});

test('a known host begins at its pace, and never above the cap', () => {
  expect(startRateFor(pace({}), 100, NOW)).toBe(18);
  expect(startRateFor(pace({}), 4, NOW)).toBe(4);
  expect(startRateFor(pace({ rate: 0.2, clean: 0.25, refused: 0.3 }), 100, NOW)).toBe(0.2);
  // A try for more is under way: only what held counts.
  expect(startRateFor(pace({ rate: 25 }), 100, NOW)).toBe(20);
});

test('what never held, is closed or has expired counts for nothing', () => {
  expect(startRateFor(pace({ clean: null }), 100, NOW)).toBe(1);
  expect(startRateFor(pace({ blocked: 2 }), 100, NOW)).toBe(1);
  expect(startRateFor(pace({ knownUntil: NOW }), 100, NOW)).toBe(1);
  expect(startRateFor(pace({ rate: 0.2, clean: 4, refused: null }), 100, NOW)).toBe(1);
});

test('a second calibration goes on where the first ended', () => {
  const result: CalibrationResult = {
    ...{ end: 'held', rate: 40, held: 43, refusedRate: 45, parallel: 4 },
    ...{ requests: 9_000, refusals: 4, windowMs: 0, evidence: [] },
  };
  const profile = profileOf('a.example', result, [], NOW);
  const start = startRateFor(paceOfProfile(profile), 500, NOW);
  expect(start).toBeGreaterThan(38);
  expect(start).toBeLessThan(44);
});
