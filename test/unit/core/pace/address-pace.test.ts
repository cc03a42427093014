import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AddressLearner } from '../../../../src/coordinator/pace/address-learner.ts';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import {
  addressLimitsOf,
  addressOf,
  isLaneTaken,
  laneTimes,
  permitAt,
  startOfAddress,
  withAddress,
} from '../../../../src/core/pace/address-pace.ts';
import { type HostPace, startPace } from '../../../../src/core/pace/pace.ts';
import { guardedGapMs } from '../../../../src/core/politeness/permits.ts';
import { pageOf, T0, traceOf } from '../../../support/fixtures.ts';

const MINUTE = 60_000;
const CAP = 20;
const settled = (rate: number): HostPace => ({ ...startPace(CAP), rate, clean: rate, refused: rate * 1.05 });

/** What a host knows of addresses with these rates. */
const knownOf = (rates: Record<string, number>): HostPace =>
  Object.entries(rates).reduce<HostPace | null>(
    (pace, [address, rate]) => withAddress(pace, address, settled(rate), T0),
    null,
  )!;
const limitsOf = (pace: HostPace | null, crawlDelayMs: number | null = null, now = T0) =>
  addressLimitsOf(pace, { cap: CAP, crawlDelayMs, now });

test.each([
  ['thread-3', 'local'],
  ['suspects', 'local'],
  ['machine-12-ab/thread-1', 'machine-12-ab'],
  ['machine-12-ab/suspects', 'machine-12-ab'],
  ['lambda-0a1b2c3d', 'lambda-0a1b2c3d'],
  ['thread-of-mine', 'thread-of-mine'],
])('the worker %s has the address %s', (worker, address) => {
  expect(addressOf(worker)).toBe(address);
});

describe('what addresses may do', () => {
  test('one alone begins, at half of the cap, while nothing was refused', () => {
    const limits = limitsOf(null);
    expect([limits.lanes, limits.gapsMs]).toEqual([1, {}]);
    expect(limits.otherMs).toBe(guardedGapMs(1_000 / (CAP / 2), null));
    expect(limitsOf(withAddress(null, 'a', startPace(CAP), T0)).lanes).toBe(1);
  });

  test('as many as come to the cap, by the one in the middle', () => {
    const limits = limitsOf(knownOf({ a: 2, b: 4, c: 5 }));
    expect(limits.lanes).toBe(5);
    expect(limits.otherMs).toBe(guardedGapMs(250, null));
    expect(limits.gapsMs).toEqual({
      a: guardedGapMs(500, null),
      b: guardedGapMs(250, null),
      c: guardedGapMs(200, null),
    });
  });

  test('robots.txt counts for the host as a whole: no address makes up for a delay', () => {
    expect(limitsOf(knownOf({ a: 2, b: 4 }), 1_000).lanes).toBe(1);
  });

  test('those that were not heard of for ten minutes do not count, and are forgotten after a day', () => {
    const pace = knownOf({ a: 1, b: 1 });
    const later = withAddress(pace, 'c', settled(8), T0 + 11 * MINUTE);
    expect(limitsOf(later, null, T0 + 11 * MINUTE)).toMatchObject({ lanes: 3 });
    expect(later.rate).toBe(8);
    const next = withAddress(later, 'c', settled(8), T0 + 25 * 60 * MINUTE);
    expect(Object.keys(next.addresses!)).toEqual(['c']);
  });

  test('no more than a hundred are kept: those that reported last', () => {
    let pace: HostPace | null = null;
    for (let index = 0; index < 130; index++)
      pace = withAddress(pace, `lambda-${index}`, settled(2), T0 + index);
    const kept = Object.keys(pace!.addresses!);
    expect(kept).toHaveLength(100);
    expect(kept).toContain('lambda-129');
    expect(kept).not.toContain('lambda-20');
  });

  test('a new one begins with what the one in the middle has learned; jobs without addresses with the slowest', () => {
    const pace = knownOf({ a: 2, b: 4, c: 5 });
    expect(startOfAddress(pace, CAP, T0)).toMatchObject({ rate: 4, clean: 4, refused: 4.2 });
    expect(pace.rate).toBe(2);
    // What calibration or an earlier job found.
    expect(startOfAddress(settled(3), CAP, T0)).toMatchObject({ rate: 3, clean: 3 });
  });

  test('all lanes together keep to the cap, whatever the addresses may do', () => {
    const rates = fc.dictionary(fc.string({ minLength: 1 }), fc.double({ min: 0.05, max: 50, noNaN: true }));
    const cap = fc.double({ min: 0.1, max: 100, noNaN: true });
    fc.assert(
      fc.property(
        rates,
        cap,
        fc.integer({ min: 1, max: 50 }),
        fc.nat(5_000),
        (known, most, lanes, delayMs) => {
          const pace = Object.keys(known).length > 0 ? knownOf(known) : null;
          const limits = addressLimitsOf(pace, { cap: most, crawlDelayMs: delayMs || null, now: T0 });
          const { gapMs } = laneTimes(limits, lanes);
          const { gapsMs, otherMs } = limits;
          const permit: Permit = {
            ...{ host: 'a', startAt: 0, endAt: 1, gapMs, parallel: 1 },
            addresses: { gapsMs, otherMs, lanes, knownPage: null },
          };
          for (const address of [...Object.keys(known), 'another', '__proto__']) {
            const rate = (1_000 / permitAt(permit, address).gapMs) * lanes;
            expect(rate).toBeLessThanOrEqual(most * (1 + 1e-9));
            if (delayMs > 0) expect(rate).toBeLessThanOrEqual((1_000 / delayMs) * (1 + 1e-9));
          }
        },
      ),
    );
  });
});

describe('one process', () => {
  const lane = (startAt: number, lanes = 2, host = 'a'): { permits: Permit[] } => ({
    permits: [
      {
        ...{ host, startAt, endAt: startAt + 5_000, gapMs: 200, parallel: 1 },
        addresses: { gapsMs: {}, otherMs: 200, lanes, knownPage: null },
      },
    ],
  });

  test('takes one lane of a host at a time', () => {
    expect(isLaneTaken(lane(T0), [])).toBe(false);
    expect(isLaneTaken(lane(T0), [lane(T0 + 50)])).toBe(true);
    expect(isLaneTaken(lane(T0 + 5_000), [lane(T0)])).toBe(false);
    expect(isLaneTaken(lane(T0), [lane(T0, 2, 'b')])).toBe(false);
    // A host with one lane has no overlapping permits anyway.
    expect(isLaneTaken(lane(T0, 1), [lane(T0, 1)])).toBe(false);
  });
});

describe('what a report teaches', () => {
  const permitOf = (gapMs: number, gapsMs: Record<string, number> = {}, otherMs = gapMs): Permit => ({
    ...{ host: 'a', startAt: T0, endAt: T0 + 5_000, gapMs, parallel: 2 },
    addresses: { gapsMs, otherMs, lanes: 4, knownPage: null },
  });
  const use = { host: 'a', sent: 10, lastSentAt: T0 + 4_000, finished: true };
  const fetched = Array.from({ length: 10 }, (_, taskId) => ({
    ...{ kind: 'fetched' as const, taskId, page: pageOf(), links: [], records: [], shows: [] },
    trace: traceOf(),
  }));
  const refused = {
    ...{ kind: 'failed' as const, taskId: 11, code: 'throttled' as const, detail: '', page: null },
    ...{ retryAfterMs: null, trace: traceOf({ httpStatus: 429 }) },
  };

  test('is about the address that it comes from', () => {
    const learner = new AddressLearner(knownOf({ a: 4, b: 4 }));
    const gapMs = guardedGapMs(250, null);
    const report = { permit: permitOf(gapMs, { a: gapMs, b: gapMs }), use, outcomes: [...fetched, refused] };
    const pace = learner.learn(report, 'a', CAP, T0 + 5_000)!;
    expect(pace.addresses!.a!.rate).toBeCloseTo(2);
    expect(pace.addresses!.b!.rate).toBe(4);
    expect(pace.rate).toBe(2);
  });

  test('of a new address begins with the rate that it was given', () => {
    const learner = new AddressLearner(knownOf({ a: 4 }));
    const gapMs = guardedGapMs(250, null);
    const report = { permit: permitOf(gapMs), use, outcomes: [...fetched, refused] };
    expect(learner.learn(report, 'new', CAP, T0 + 5_000)!.addresses!.new!.rate).toBeCloseTo(2);
  });

  test('of one that had to be slower than it could be, because of the others, is about the rate that it kept', () => {
    const learner = new AddressLearner(knownOf({ a: 8 }));
    const kept = guardedGapMs(250, null);
    const report = {
      ...{ permit: permitOf(kept, { a: guardedGapMs(125, null) }), use },
      outcomes: [...fetched, refused],
    };
    expect(learner.learn(report, 'a', CAP, T0 + 5_000)!.addresses!.a!.rate).toBeCloseTo(2);
  });

  test('of a ban slows all of them', () => {
    const learner = new AddressLearner(knownOf({ a: 4, b: 8 }));
    const { addresses } = learner.slowDown(CAP, T0)!;
    expect([addresses!.a!.rate, addresses!.b!.rate]).toEqual([2, 4]);
  });
});
