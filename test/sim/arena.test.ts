import { describe, expect, test } from 'vitest';
import { explainSituation, judge, rateWithScaling, SITUATIONS } from './arena.ts';

/** Of virtual time; `npm run explain-arena` takes more, and tries every change. */
const VIRTUAL_MS = 40_000;
const SHORT_MS = 15_000;

describe('why a crawl is slow', () => {
  test.each(SITUATIONS.filter(({ isCheap }) => !isCheap))('$name: $cause', async (situation) => {
    const { shares, limiting } = await explainSituation(situation, SHORT_MS);
    expect(limiting).toBe(situation.cause);
    expect(Object.values(shares).reduce((sum, share) => sum + Math.round(share * 10), 0)).toBe(1_000);
  });

  test.each(SITUATIONS.filter(({ isCheap }) => isCheap))(
    '$name: $cause, and $change gives what was predicted',
    async (situation) => {
      const { explanation, predicted, after } = await judge(situation, VIRTUAL_MS);
      expect(explanation.limiting).toBe(situation.cause);
      expect(Math.abs(predicted / after - 1)).toBeLessThan(0.15);
    },
  );
});

test('batches that follow what hosts need bring nearly as much as all slots, with no more of them', async () => {
  const all = await rateWithScaling(false, SHORT_MS);
  const some = await rateWithScaling(true, SHORT_MS);
  expect(some.rate).toBeGreaterThan(all.rate * 0.8);
  expect(some.batches).toBeGreaterThan(8);
  expect(some.batches).toBeLessThanOrEqual(all.batches);
});
