import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backoffMs, parseRetryAfter, RETRY_AFTER_MS_MAX } from '../../../../src/core/retry/retry.ts';

const NOW = Date.UTC(2026, 0, 15, 12, 0, 0);

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['007', 7_000],
    ['Thu, 15 Jan 2026 12:00:30 GMT', 30_000],
    ['Thu, 15 Jan 2026 11:00:00 GMT', 0],
    ['Thursday, 15-Jan-26 12:01:00 GMT', 60_000],
    ['Thu Jan 15 12:00:09 2026 GMT', 9_000],
  ])('%j asks for %i ms', (header, ms) => {
    expect(parseRetryAfter(header, NOW)).toBe(ms);
  });

  test.each(['999999', '999999999999', 'Thu, 15 Jan 2099 12:00:00 GMT'])('%j is capped', (header) => {
    expect(parseRetryAfter(header, NOW)).toBe(RETRY_AFTER_MS_MAX);
  });

  test.each([null, '', ' ', '-5', '1.5', '+3', 'soon', 'NaN', '2026-01-15', '12:30', '١٢'])(
    '%j says nothing usable',
    (header) => {
      expect(parseRetryAfter(header, NOW)).toBeNull();
    },
  );

  test('whatever a site sends, the pause is bounded and whole', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.nat().map(String),
          fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
        ),
        (header) => {
          const ms = parseRetryAfter(header, NOW);
          if (ms === null) return;
          expect(ms).toBeGreaterThanOrEqual(0);
          expect(ms).toBeLessThanOrEqual(RETRY_AFTER_MS_MAX);
          expect(Number.isInteger(ms)).toBe(true);
        },
      ),
    );
  });
});

describe('backoff', () => {
  const policy = { baseMs: 1_000, maxMs: 300_000 };

  test('doubles, with jitter over the upper half', () => {
    expect([1, 2, 3, 4].map((attempt) => backoffMs(attempt, policy, 1))).toEqual([
      1_000, 2_000, 4_000, 8_000,
    ]);
    expect([1, 2, 3, 4].map((attempt) => backoffMs(attempt, policy, 0))).toEqual([500, 1_000, 2_000, 4_000]);
  });

  test('stays between half the base and the maximum', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempt, random) => {
          const ms = backoffMs(attempt, policy, random);
          expect(ms).toBeGreaterThanOrEqual(500);
          expect(ms).toBeLessThanOrEqual(300_000);
        },
      ),
    );
  });

  test('a maximum below the base is the maximum', () => {
    expect(backoffMs(1, { baseMs: 5_000, maxMs: 100 }, 1)).toBe(100);
  });
});
