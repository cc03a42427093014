import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import {
  freeAfterLoss,
  freeAgainAt,
  guardedGapMs,
  jitteredGapMs,
  permitFor,
  tasksPerPermit,
} from '../../../../src/core/politeness/permits.ts';

const NOW = 1_700_000_000_000;
const gap = fc.double({ min: 0.01, max: 60_000, noNaN: true });

describe('gaps', () => {
  test('with jitter they are longer by a share of it, and one in fifty is a longer pause', () => {
    expect(jitteredGapMs(100, 0, 0.5, 0.9)).toBe(100);
    expect(jitteredGapMs(100, 0.5, 0.5, 0)).toBe(100);
    expect(jitteredGapMs(100, 0.5, 0.5, 0.5)).toBe(125);
    expect(jitteredGapMs(100, 0.5, 0.02, 0.5)).toBe(125);
    expect(jitteredGapMs(100, 0.5, 0.019, 0.5)).toBe(300);
  });

  test('no gap and no crawl delay is no gap', () => {
    expect(guardedGapMs(0, null)).toBe(0);
    expect(guardedGapMs(0, 0)).toBe(0);
  });

  test('the longer of both, with a margin of 5.5 percent, at most 30 ms', () => {
    fc.assert(
      fc.property(gap, fc.option(fc.integer({ min: 0, max: 60_000 })), (gapMs, delayMs) => {
        const asked = Math.max(gapMs, delayMs ?? 0);
        const marginMs = guardedGapMs(gapMs, delayMs) - asked;
        expect(marginMs).toBeGreaterThanOrEqual(Math.min(29.99, asked * 0.0549));
        expect(marginMs).toBeLessThanOrEqual(30.01);
      }),
    );
  });
});

test.each([0.2, 1, 2, 4, 10, 25, 50, 200])(
  'of %d requests a second, margin and slack leave more than nine tenths',
  (rate) => {
    const gapMs = guardedGapMs(1_000 / rate, null);
    const count = tasksPerPermit(gapMs);
    const { startAt, endAt } = permitFor('a', {
      now: NOW,
      nextAt: NOW + 400,
      gapMs,
      parallel: 4,
      count,
      openMs: 0,
    });
    expect((count / (endAt - startAt)) * 1_000).toBeGreaterThan(0.92 * rate);
  },
);

describe('permits', () => {
  const options = { now: NOW, nextAt: 0, gapMs: 250, parallel: 3, count: 10, openMs: 90_000 };

  test('start now, or when the host is free', () => {
    expect(permitFor('a', options)).toMatchObject({ host: 'a', startAt: NOW, gapMs: 250, parallel: 3 });
    expect(permitFor('a', { ...options, nextAt: NOW + 40.2 }).startAt).toBe(NOW + 41);
    expect(permitFor('a', { ...options, now: NOW + 0.3 }).startAt).toBe(NOW + 1);
  });

  test('fit all their requests, each with a gap after it, in whole milliseconds', () => {
    fc.assert(
      fc.property(gap, fc.integer({ min: 1, max: 1_000 }), (gapMs, count) => {
        const permit = permitFor('a', { ...options, gapMs, count });
        expect(permit.endAt - permit.startAt).toBeGreaterThanOrEqual(count * gapMs);
        expect(Number.isInteger(permit.startAt) && Number.isInteger(permit.endAt)).toBe(true);
      }),
    );
  });

  test('reserve no more of a host than the limit, unless a single request takes longer', () => {
    fc.assert(
      fc.property(gap, (gapMs) => {
        const count = tasksPerPermit(gapMs);
        const { startAt, endAt } = permitFor('a', { ...options, gapMs, count });
        expect(count).toBeGreaterThanOrEqual(1);
        expect(endAt - startAt).toBeLessThanOrEqual(Math.max(LIMITS.permitMsMax, gapMs * 1.01 + 1_000));
      }),
    );
  });

  test('bear a worker that gets them a moment late, also for a single request', () => {
    const permit = permitFor('a', { ...options, count: 1 });
    const latestStart = permit.endAt - permit.gapMs;
    expect(latestStart - permit.startAt).toBeGreaterThanOrEqual(100);
  });

  test('without a gap, are good for as long as they may stay open', () => {
    expect(permitFor('a', { ...options, gapMs: 0 }).endAt).toBe(NOW + 90_000);
  });
});

describe('free again', () => {
  const permit = { host: 'a', startAt: NOW, endAt: NOW + 5_000, gapMs: 250, parallel: 1 };

  test('a gap after the last request, or as if the permit had never been', () => {
    expect(freeAgainAt(permit, NOW + 1_000.4, 0)).toBe(NOW + 1_251);
    expect(freeAgainAt(permit, NOW + 1_000, 2_000)).toBe(NOW + 3_000);
    expect(freeAgainAt(permit, null, 0)).toBe(NOW);
    expect(freeAgainAt({ ...permit, gapMs: 0 }, NOW + 1_000, 0)).toBeLessThanOrEqual(NOW + 1_000);
    expect(freeAgainAt({ ...permit, gapMs: 0 }, NOW + 1_000, 700)).toBe(NOW + 1_700);
  });
});

describe('a permit whose worker was lost', () => {
  const permit = { host: 'a', startAt: NOW, endAt: NOW + 5_000, gapMs: 250, parallel: 1 };

  test('is free a gap after the worker ended, or when it could not have been used at all', () => {
    expect(freeAfterLoss(permit, { now: NOW + 1_000, ended: true })).toBe(NOW + 1_250);
    expect(freeAfterLoss(permit, { now: NOW - 1_000, ended: true })).toBe(NOW);
    expect(freeAfterLoss(permit, { now: NOW + 4_900, ended: true })).toBe(NOW + 5_000);
  });

  test('holds until its end when the worker may still be sending, and never without a gap', () => {
    expect(freeAfterLoss(permit, { now: NOW + 1_000, ended: false })).toBe(NOW + 5_000);
    const open = { ...permit, gapMs: 0, endAt: NOW + 90_000 };
    expect(freeAfterLoss(open, { now: NOW + 1_000, ended: false })).toBeLessThanOrEqual(NOW + 1_000);
  });
});
