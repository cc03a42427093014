import { describe, expect, test } from 'vitest';
import { noSums } from '../../../../src/core/explain/slot-ledger.ts';
import { nextScaling, type ScalingFacts, wantedWorkers } from '../../../../src/core/scaling/scaling.ts';

/** Ten slots of two workers, all taken for a minute; each brings 2 pages a second. */
function factsOf(more: Partial<ScalingFacts> = {}): ScalingFacts {
  const sums = { ...noSums(), wallMs: 60_000, slotMs: 600_000, fullMs: 60_000, pages: 1_200 };
  return {
    sums: { ...sums, busy: { network: 600_000 } },
    ...{ slots: 10, workers: 2, hosts: [], hostsPerSecond: 70, writeMs: null, rates: [] },
    ...{ remaining: 100_000, finishSeconds: null, refusedShare: 0 },
    ...more,
  };
}

describe('wanted are', () => {
  test('as many as the hosts take, with some to spare', () => {
    expect(wantedWorkers(factsOf())).toEqual({
      ...{ slots: 50, workers: 10, reason: 'hosts take 70 pages/s, and a batch brings 2/s' },
    });
    expect(wantedWorkers(factsOf({ hostsPerSecond: 7 }))).toMatchObject({ slots: 5, workers: 1 });
  });

  test('as many as the wanted time needs, where that is less', () => {
    const facts = factsOf({ finishSeconds: 1_000, remaining: 28_000 });
    expect(wantedWorkers(facts)).toEqual({
      ...{ slots: 20, workers: 4, reason: '28000 tasks in 1000 s, and a batch brings 2/s' },
    });
    expect(wantedWorkers(factsOf({ finishSeconds: 1, remaining: 1e6 }))).toMatchObject({ slots: 50 });
  });

  test('no more than there are tasks, and at least one', () => {
    expect(wantedWorkers(factsOf({ remaining: 3 }))).toMatchObject({ slots: 3, workers: 1 });
    expect(wantedWorkers(factsOf({ remaining: 0 }))).toMatchObject({ slots: 1, workers: 1 });
  });

  test('more while all are taken and no host limits, else as many as are used', () => {
    const unlimited = { hostsPerSecond: Number.POSITIVE_INFINITY };
    expect(wantedWorkers(factsOf(unlimited))).toMatchObject({ slots: 16 });
    const { sums } = factsOf();
    const idle = { ...sums, fullMs: 0, busy: { network: 210_000 }, waits: { source: 60_000 } };
    expect(wantedWorkers(factsOf({ ...unlimited, sums: idle }))).toMatchObject({ slots: 5, workers: 1 });
  });

  test('no more where hosts refuse, or where something else limits', () => {
    expect(wantedWorkers(factsOf({ refusedShare: 0.03 }))).toEqual({
      ...{ slots: 10, workers: 2, reason: 'hosts refuse 3 % of the requests: no more than now' },
      limit: 'refusals',
    });
    const { sums } = factsOf();
    const waiting = { ...sums, fullMs: 1_200, waits: { source: 58_800 } };
    expect(wantedWorkers(factsOf({ sums: waiting }))).toMatchObject({
      ...{ slots: 10, workers: 2, reason: expect.stringMatching(/^more would bring [\d.]+ % at most$/) },
    });
    // A rate that varies much may hide a gain.
    const rates = [10, 30, 12, 28];
    expect(wantedWorkers(factsOf({ sums: waiting, rates }))).toMatchObject({ slots: 50 });
  });

  test('unknown before anything is measured', () => {
    expect(wantedWorkers(factsOf({ sums: noSums() }))).toBeNull();
  });
});

describe('what is in force', () => {
  const at = (now: number, slotsMax = 100) => ({ slotsMax, now });

  test('goes up at once, by twice at the most, and never over what workers take', () => {
    expect(nextScaling({ slots: 8, lower: null }, 50, at(0))).toEqual({ slots: 16, lower: null });
    expect(nextScaling({ slots: 8, lower: null }, 9, at(0))).toEqual({ slots: 9, lower: null });
    expect(nextScaling({ slots: 8, lower: null }, 50, at(0, 12))).toEqual({ slots: 12, lower: null });
    expect(nextScaling({ slots: 8, lower: null }, 50, at(0, 5))).toEqual({ slots: 5, lower: null });
  });

  test('goes down after five minutes, to the most that was wanted meanwhile', () => {
    let state = nextScaling({ slots: 40, lower: null }, 10, at(0));
    expect(state.slots).toBe(40);
    state = nextScaling(state, 20, at(100_000));
    state = nextScaling(state, 5, at(299_999));
    expect(state.slots).toBe(40);
    expect(nextScaling(state, 5, at(300_000))).toEqual({ slots: 20, lower: null });
  });

  test('stays when it is wanted again in between', () => {
    let state = nextScaling({ slots: 40, lower: null }, 10, at(0));
    state = nextScaling(state, 40, at(200_000));
    expect(nextScaling(state, 10, at(300_000)).slots).toBe(40);
  });
});
