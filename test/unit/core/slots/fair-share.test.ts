import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Claimant, fairShares, weightOfPriority } from '../../../../src/core/slots/fair-share.ts';

const claim = (wanted: number, more: Partial<Claimant> = {}): Claimant => ({
  owner: 'a',
  ownerWeight: 1,
  weight: 1,
  wanted,
  ...more,
});

describe('fair shares', () => {
  test('are equal where all want more than there is', () => {
    expect(fairShares(12, [claim(99), claim(99), claim(99)])).toEqual([4, 4, 4]);
  });

  test('are what is wanted where there is enough', () => {
    expect(fairShares(12, [claim(1), claim(2), claim(3)])).toEqual([1, 2, 3]);
  });

  test('leave to the others what one does not want', () => {
    expect(fairShares(12, [claim(2), claim(99), claim(99)])).toEqual([2, 5, 5]);
  });

  test('follow the weights', () => {
    const weights = [0, 1, 2].map((priority) => claim(99, { weight: weightOfPriority(priority) }));
    expect(fairShares(14, weights)).toEqual([2, 4, 8]);
  });

  test('are divided between owners first, however many jobs each has', () => {
    const jobs = [claim(99), claim(99), claim(99), claim(99, { owner: 'b' })];
    expect(fairShares(12, jobs)).toEqual([2, 2, 2, 6]);
    const heavy = jobs.map((job) => (job.owner === 'b' ? { ...job, ownerWeight: 3 } : job));
    expect(fairShares(12, heavy)).toEqual([1, 1, 1, 9]);
  });

  test('never exceed what is there or wanted, leave nothing unused that is wanted, and starve none', () => {
    const claims = fc.array(
      fc.record({
        owner: fc.constantFrom('a', 'b', 'c'),
        ownerWeight: fc.constant(1),
        weight: fc.integer({ min: 1, max: 8 }),
        wanted: fc.integer({ min: 0, max: 50 }),
      }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), claims, (total, claimants) => {
        const shares = fairShares(total, claimants);
        const sum = shares.reduce((all, share) => all + share, 0);
        const wanted = claimants.reduce((all, each) => all + each.wanted, 0);
        expect(sum).toBeCloseTo(Math.min(total, wanted), 6);
        for (const [index, share] of shares.entries()) {
          expect(share).toBeLessThanOrEqual(claimants[index]!.wanted + 1e-9);
          if (claimants[index]!.wanted > 0) expect(share).toBeGreaterThan(0);
        }
      }),
    );
  });
});
