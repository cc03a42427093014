import { describe, expect, test } from 'vitest';
import { tailBound, timeoutFor } from '../../../../src/core/timeouts/task-timeout.ts';

const runtimes = (count: number, msOf: (index: number) => number) =>
  Array.from({ length: count }, (_, index) => ({ ms: msOf(index), isCut: false }));

describe('the bound of the 99th percentile', () => {
  test('lies above the percentile itself, and below the longest of many', () => {
    const bound = tailBound(runtimes(10_000, (index) => index))!;
    expect(bound.ms).toBeGreaterThan(9_900);
    expect(bound.ms).toBeLessThan(9_950);
  });

  test('is the longest where there are few, and unknown where there are hardly any', () => {
    expect(tailBound(runtimes(100, (index) => index))!.ms).toBe(99);
    expect(tailBound(runtimes(10, () => 5))).toBeNull();
  });

  test('lies beyond the timeout where that cut more than one in a hundred', () => {
    const cut = Array.from({ length: 30 }, () => ({ ms: 9_000, isCut: true }));
    expect(tailBound([...runtimes(970, () => 4_000), ...cut])).toEqual({ ms: 9_000, isCut: true });
  });

  test('is right although an earlier, shorter timeout cut many', () => {
    // Of a thousand, 12 take 8 s and 28 take 3 s. At first all of those were cut at 2 s.
    const msOf = (index: number) => (index < 12 ? 8_000 : index < 40 ? 3_000 : 1_000);
    const late = runtimes(1_000, msOf);
    const early = late.map(({ ms }) => ({ ms: Math.min(ms, 2_000), isCut: ms > 2_000 }));
    expect(tailBound([...early, ...late])).toEqual({ ms: 8_000, isCut: false });
  });
});

describe('a timeout', () => {
  test('is one and a half times the bound, within reason', () => {
    expect(
      timeoutFor(
        runtimes(1_000, () => 10_000),
        300_000,
      ),
    ).toBe(15_000);
    expect(
      timeoutFor(
        runtimes(1_000, () => 10),
        300_000,
      ),
    ).toBe(3_000);
    expect(
      timeoutFor(
        runtimes(1_000, () => 900_000),
        300_000,
      ),
    ).toBe(300_000);
    expect(timeoutFor([], 300_000)).toBeNull();
  });

  test('grows where the present one cuts too many', () => {
    const cut = Array.from({ length: 50 }, () => ({ ms: 20_000, isCut: true }));
    expect(timeoutFor([...runtimes(950, () => 100), ...cut], 300_000)).toBe(30_000);
  });
});
