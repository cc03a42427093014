import { expect, test } from 'vitest';
import type { RunEvidence } from '../../../../src/core/calibration/calibration.ts';
import { profileOf } from '../../../../src/core/calibration/host-profile.ts';
import { drawProfile } from '../../../../src/core/calibration/picture.ts';

test('every rate has a point, and labels do not cover each other', () => {
  const runOf = (rate: number): RunEvidence => ({
    ...{ purpose: 'climb', rate, sent: 200, answered: 200, refused: 0, failed: 0 },
    ...{ ms: 30_000, verdict: 'accepted', reason: 'it held' },
  });
  const rates = [1, 1.6, 10.5, 18.9, 20, 21.2, 26.8];
  const result = {
    ...({ end: 'held', rate: 18.6, held: 20, refusedRate: null, parallel: 2, requests: 1_400 } as const),
    ...{ refusals: 0, windowMs: 0, evidence: rates.map(runOf) },
  };
  const svg = drawProfile(profileOf('shop.example', result, [], 0));
  expect(svg.match(/<circle /g)).toHaveLength(rates.length);
  const places = [...svg.matchAll(/<text x="([\d.]+)" [^>]*font-size="9"/g)].map((match) => Number(match[1]));
  expect(places.length).toBeGreaterThan(3);
  for (let index = 1; index < places.length; index++)
    expect(places[index]! - places[index - 1]!).toBeGreaterThanOrEqual(24);
});
