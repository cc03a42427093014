import { describe, expect, test } from 'vitest';
import { adaptPace, type HostPace, type PaceEvidence, startPace } from '../../src/core/host-pace.ts';

const calm = { answers: 10, refused: 0, faults: 0, latencyMs: 50, sentRate: 4 };

/** A permit at the very pace. */
const at = (pace: HostPace, seen: Omit<PaceEvidence, 'rate'>): PaceEvidence => ({ rate: pace.rate, ...seen });

function paceAfter(
  rounds: number,
  seen: Omit<PaceEvidence, 'rate'>,
  cap: number,
  pace = startPace(cap),
): HostPace {
  let now = 0;
  for (let round = 0; round < rounds; round++) {
    now += 5_000;
    pace = adaptPace(pace, at(pace, seen), cap, now);
  }
  return pace;
}

describe('the pace of a host', () => {
  test('starts at half the cap, and rises to it and never above while all is well', () => {
    expect(startPace(4).rate).toBe(2);
    expect(paceAfter(1, calm, 4).rate).toBe(3);
    expect(paceAfter(50, calm, 4).rate).toBe(4);
  });

  test('a refusal halves it, and what was refused is tried again only later', () => {
    const top = paceAfter(50, calm, 8);
    const refused = adaptPace(top, at(top, { ...calm, refused: 1 }), 8, 0);
    expect(refused).toMatchObject({ rate: 4, refused: 8 });
    expect(paceAfter(100, calm, 8, refused).rate).toBe(8);
    const again = adaptPace(refused, at(refused, { ...calm, refused: 1 }), 8, 0);
    expect(again).toMatchObject({ rate: 2, refused: 4, clean: null });
  });

  test('answers that take much longer slow it down, without any error', () => {
    const pace = paceAfter(50, calm, 8);
    const strained = adaptPace(pace, at(pace, { ...calm, latencyMs: 400 }), 8, 0);
    expect(strained.rate).toBeLessThan(pace.rate);
    expect(strained.refused).toBeNull();
  });

  test('a few faults stop the rise, many slow it down', () => {
    const pace = paceAfter(1, calm, 8);
    expect(adaptPace(pace, at(pace, { ...calm, faults: 1 }), 8, 0).rate).toBe(pace.rate);
    expect(adaptPace(pace, at(pace, { ...calm, faults: 8 }), 8, 0).rate).toBeLessThan(pace.rate);
  });

  test('a permit of before the last change teaches nothing but what was refused', () => {
    const pace = paceAfter(50, calm, 8);
    const slower = adaptPace(pace, at(pace, { ...calm, refused: 1 }), 8, 0);
    expect(adaptPace(slower, { ...calm, rate: 8 }, 8, 0)).toEqual(slower);
    expect(adaptPace(slower, { ...calm, rate: 6, refused: 1 }, 8, 0)).toEqual({ ...slower, refused: 6 });
  });

  test('a permit without answers teaches nothing', () => {
    const pace = startPace(4);
    expect(adaptPace(pace, at(pace, { ...calm, answers: 0, latencyMs: null }), 4, 0)).toEqual(pace);
  });

  test('without a cap it has no limit until the first refusal, which shows one', () => {
    const free = paceAfter(20, calm, Number.POSITIVE_INFINITY);
    expect(free.rate).toBe(Number.POSITIVE_INFINITY);
    const slow = at(free, { ...calm, faults: 9, latencyMs: 5_000 });
    expect(adaptPace(free, slow, Number.POSITIVE_INFINITY, 0)).toEqual(free);
    const refused = adaptPace(
      free,
      at(free, { ...calm, refused: 3, sentRate: 200 }),
      Number.POSITIVE_INFINITY,
      0,
    );
    expect(refused.rate).toBe(100);
  });
});

/** A host that refuses whatever is above its limit within a second, asked in permits of five seconds. */
function simulate(limit: number, cap: number, seconds: number) {
  let pace = startPace(cap);
  let now = 0;
  const log: { at: number; refused: boolean; rate: number }[] = [];
  let served: number[] = [];
  while (now < seconds * 1_000) {
    const gap = 1_000 / pace.rate;
    const seen = { rate: pace.rate, answers: 0, refused: 0, faults: 0, latencyMs: 50, sentRate: pace.rate };
    for (const until = now + 5_000; now < until && seen.refused === 0; now += gap) {
      served = served.filter((at) => at > now - 1_000);
      const isRefused = served.length >= limit;
      if (!isRefused) served.push(now);
      seen.answers++;
      if (isRefused) seen.refused++;
      log.push({ at: now, refused: isRefused, rate: pace.rate });
    }
    if (seen.refused > 0) now += 1_000;
    pace = adaptPace(pace, seen, cap, now);
  }
  return log;
}

describe('a host that refuses more than so many requests a second', () => {
  test.each([
    [5, 20],
    [5, 100],
    [2, 8],
    [40, 100],
  ])('limit %i under a cap of %i: found, held within a fifth of it, with hardly a refusal', (limit, cap) => {
    const settled = simulate(limit, cap, 3_600).filter(({ at }) => at > 300_000);
    const refused = settled.filter((entry) => entry.refused).length;
    expect(refused / settled.length).toBeLessThan(0.01);
    const rate = (settled.length - refused) / ((settled.at(-1)!.at - settled[0]!.at) / 1_000);
    expect(rate).toBeGreaterThan(limit * 0.8);
    expect(rate).toBeLessThanOrEqual(limit * 1.01);
  });
});
