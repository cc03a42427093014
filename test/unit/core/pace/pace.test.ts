import { describe, expect, test } from 'vitest';
import {
  adaptPace,
  type HostPace,
  isTrying,
  notedCap,
  type PaceEvidence,
  paceUnder,
  startPace,
} from '../../../../src/core/pace/pace.ts';

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
    const { stretch: _, ...known } = slower;
    expect(adaptPace(slower, { ...calm, rate: 8 }, 8, 0)).toMatchObject(known);
    expect(adaptPace(slower, { ...calm, rate: 6, refused: 1 }, 8, 0)).toMatchObject({ ...known, refused: 6 });
  });

  test('a permit without answers teaches nothing', () => {
    const pace = startPace(4);
    expect(adaptPace(pace, at(pace, { ...calm, answers: 0, latencyMs: null }), 4, 0)).toEqual(pace);
  });

  test('without a cap it has no limit until the first refusal, which shows one', () => {
    const free = paceAfter(20, calm, Number.POSITIVE_INFINITY);
    expect(free.rate).toBe(Number.POSITIVE_INFINITY);
    const slow = at(free, { ...calm, faults: 9, latencyMs: 5_000 });
    const { stretch: _, ...known } = free;
    expect(adaptPace(free, slow, Number.POSITIVE_INFINITY, 0)).toMatchObject(known);
    const refused = adaptPace(
      free,
      at(free, { ...calm, refused: 3, sentRate: 200 }),
      Number.POSITIVE_INFINITY,
      0,
    );
    expect(refused.rate).toBe(100);
  });
});

describe('a host that takes many requests and then none for a while', () => {
  /** 300 answers in six seconds from the start; refusals until it answers again at 70 seconds. */
  const closed = (answers: number, refusedAt = 6_000) => {
    const fast: HostPace = { ...startPace(100), clean: 40 };
    const burst = adaptPace(fast, at(fast, { ...calm, answers: answers + 1, refused: 1 }), 100, refusedAt);
    const only = { ...calm, answers: 1, refused: 1 };
    return [8_000, 16_000].reduce(
      (pace, now) => adaptPace(pace, at(pace, only), 100, refusedAt + now),
      burst,
    );
  };
  const open = (pace: HostPace, now: number) => adaptPace(pace, at(pace, { ...calm, answers: 1 }), 100, now);

  test('counts over a longer time, whatever held for seconds', () => {
    const learned = open(closed(300), 70_000);
    expect(learned.clean).toBeCloseTo(300 / 70, 0);
    expect(learned.rate).toBe(learned.clean);
    expect(learned.refused).toBeCloseTo(300 / 22, 0);
    expect(learned.proofMs).toBeCloseTo(70_000, -3);
    // It is not believed again before it held for so long.
    expect(learned.provenAt).toBeGreaterThan(130_000);
  });

  test('is not taken for that when it took few, took them for long, or was not asked for long', () => {
    expect(open(closed(20), 70_000).rate).toBeGreaterThan(20);
    const busy = open({ ...closed(300), stretch: { ...closed(300).stretch!, from: -200_000 } }, 70_000);
    expect(busy.rate).toBeGreaterThan(20);
    expect(open(closed(300), 3_600_000).rate).toBeGreaterThan(20);
  });

  test('is not taken for that when the clock was set back meanwhile', () => {
    const dayMs = 86_400_000;
    const ahead = closed(300, dayMs);
    const { stretch } = ahead;
    // Refused before the clock was set, or once more after it.
    const before = open(ahead, 70_000);
    const across = open({ ...ahead, stretch: { ...stretch!, refusedAt: 20_000, closedAt: 30_000 } }, 70_000);
    for (const pace of [before, across]) {
      expect(pace.rate).toBeGreaterThan(20);
      expect(pace.stretch!.from).toBeLessThan(70_000);
    }
  });
});

describe('once the limit is known', () => {
  const known: HostPace = {
    ...{ rate: 4.65, clean: 5, refused: 5.4, tryAt: 60_000, refusals: 0, latencyMs: 50 },
    since: 300,
  };
  const refused = { ...calm, refused: 1 };

  test('the pace keeps below what held, and tries more only at its time, with one permit at once', () => {
    expect(adaptPace(known, at(known, calm), 20, 1_000)).toMatchObject({ rate: 4.65, clean: 5 });
    expect(isTrying(known)).toBe(false);
    const tried = adaptPace(known, at(known, calm), 20, 60_000);
    expect(tried.rate).toBeCloseTo(5.25);
    expect(isTrying(tried)).toBe(true);
    const held = adaptPace(tried, at(tried, calm), 20, 66_000);
    expect(held.clean).toBeCloseTo(5.25);
    expect(held.rate).toBeCloseTo(5.25 * 0.93);
  });

  test('each try that is refused makes the next one wait twice as long', () => {
    const pauses: number[] = [];
    let pace = known;
    for (let turn = 0; turn < 4; turn++) {
      const tried = adaptPace(pace, at(pace, calm), 20, pace.tryAt);
      const slower = adaptPace(tried, at(tried, refused), 20, pace.tryAt);
      pauses.push(slower.tryAt - pace.tryAt);
      pace = adaptPace(slower, at(slower, calm), 20, pace.tryAt + 1);
      expect(pace.rate).toBeCloseTo(4.65);
    }
    expect(pauses.map((pause) => pause / pauses[0]!)).toEqual([1, 2, 4, 8]);
  });

  test('a refusal in between is a slip, and moves it a little; a second one soon after is believed', () => {
    const slipped = adaptPace(known, at(known, refused), 20, 1_000);
    expect(slipped.rate).toBeCloseTo(4.65 / 2);
    const back = adaptPace(slipped, at(slipped, calm), 20, 2_000);
    expect(back.rate).toBeCloseTo(4.65 * 0.97);
    const again = adaptPace(back, at(back, refused), 20, 3_000);
    expect(again).toMatchObject({ clean: null, refused: back.rate });
  });

  test('a host that refuses everything is waited for, not asked ever slower', () => {
    const only = { ...calm, answers: 1, refused: 1 };
    let pace = adaptPace(known, at(known, refused), 20, 0);
    const { rate } = pace;
    for (let turn = 1; turn <= 5; turn++) {
      pace = adaptPace(pace, at(pace, only), 20, turn);
      expect(pace).toMatchObject({ rate, blocked: turn });
    }
    expect(adaptPace(pace, at(pace, calm), 20, 10).blocked).toBe(0);
  });

  test('503 of a few pages slows down for one permit, 503 of many for good', () => {
    const unavailable = { ...refused, unavailable: 1 };
    const once = adaptPace(known, at(known, unavailable), 20, 0);
    expect(once).toMatchObject({ rate: 4.65 / 2, clean: 5, refused: 5.4 });
    expect(adaptPace(once, at(once, calm), 20, 1).rate).toBeCloseTo(4.65);
    const many = { ...calm, answers: 5, refused: 3, unavailable: 3 };
    const first = { ...startPace(8), clean: 8, rate: 8 };
    expect(adaptPace(first, at(first, many), 8, 0)).toMatchObject({ rate: 4, refused: 8 });
    // Nor does one among many take away that a host has no limit.
    const free = startPace(Number.POSITIVE_INFINITY);
    expect(adaptPace(free, at(free, unavailable), Number.POSITIVE_INFINITY, 0).rate).toBe(free.rate);
  });

  test('no refusal makes it slower than a sixteenth of the cap, or one in a second', () => {
    for (const [cap, floor] of [
      [8, 0.5],
      [100, 1],
      [Number.POSITIVE_INFINITY, 1],
      [0.02, 0.01],
    ] as const) {
      let pace = startPace(cap);
      for (let turn = 0; turn < 20; turn++) {
        pace = adaptPace(pace, at(pace, { ...calm, refused: 5, sentRate: 9 }), cap, turn);
      }
      expect(pace.rate).toBe(floor);
    }
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

describe('a pace under another cap', () => {
  test('begins anew where what is stored is no pace', () => {
    for (const rate of [-0.001, 0, Number.NaN]) expect(paceUnder({ ...startPace(8), rate }, 8).rate).toBe(4);
  });

  const learned = (cap: number) => notedCap(paceAfter(50, calm, cap), cap);

  test('begins as that of a new host where a lower one held it back', () => {
    expect(paceUnder(null, 8)).toEqual(startPace(8));
    expect(paceUnder(learned(1), 8).rate).toBe(4);
    expect(paceUnder(learned(1), Number.POSITIVE_INFINITY).rate).toBe(Number.POSITIVE_INFINITY);
    // Its first permit was at half the cap.
    expect(paceUnder(notedCap(startPace(1), 1), 8).rate).toBe(4);
  });

  test('stays where it is known better', () => {
    const top = learned(4);
    expect(paceUnder(top, 4)).toEqual(top);
    expect(paceUnder(top, 5)).toEqual(top);
    expect(paceUnder(top, 1)).toEqual(top);
    const refused = { ...top, refused: 4 };
    expect(paceUnder(refused, 100)).toEqual(refused);
    const strained = { ...top, rate: 1 };
    expect(paceUnder(strained, 100)).toEqual(strained);
    const calibrated = { ...top, knownUntil: 9e12 };
    expect(paceUnder(calibrated, 100)).toEqual(calibrated);
  });

  test('of a job with a lower one is not taken for what was learned under it', () => {
    expect(notedCap({ ...learned(8), rate: 3 }, 1).cap).toBe(8);
    expect(notedCap(learned(8), Number.POSITIVE_INFINITY).cap).toBe(8);
  });
});
