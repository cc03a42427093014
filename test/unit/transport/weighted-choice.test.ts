import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  chooseShare,
  freeOf,
  LOSSES_MAX,
  noteAnswer,
  noteLoss,
  type Share,
  startShare,
} from '../../../src/transport/weighted-choice.ts';

const ROOM = { workers: 2, slots: 8 };
const always = () => true;

function chooseMany(shares: Share[], count: number, open: (index: number) => boolean = always) {
  return Array.from({ length: count }, () => chooseShare(shares, open));
}

/** One after the other, each sent when the one before was lost. */
function lose(share: Share, times: number, from: number): void {
  for (let count = 0; count < times; count++)
    noteLoss(share, { sentAt: from + count * 10, now: from + count * 10 + 5 });
}

describe('shares', () => {
  test('are taken by weight, evenly mixed', () => {
    const shares = [startShare(3), startShare(1)];
    expect(chooseMany(shares, 8)).toEqual([0, 0, 1, 0, 0, 0, 1, 0]);
  });

  test('are exact after every round of any weights, and never far from it in between', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 6 }), (weights) => {
        const shares = weights.map(startShare);
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const got = weights.map(() => 0);
        for (let count = 1; count <= total; count++) {
          got[chooseShare(shares, always)!]!++;
          for (const [index, weight] of weights.entries())
            expect(Math.abs(got[index]! - (count * weight) / total)).toBeLessThan(weights.length);
        }
        expect(got).toEqual(weights);
      }),
    );
  });

  test('of those without room go to the others, and are not made up for later', () => {
    const shares = [startShare(1), startShare(1)];
    expect(chooseMany(shares, 5, (index) => index === 1)).toEqual([1, 1, 1, 1, 1]);
    const after = chooseMany(shares, 4);
    expect(after.filter((index) => index === 0)).toHaveLength(2);
    expect(chooseShare(shares, () => false)).toBeNull();
  });
});

describe('room', () => {
  test('is what is not out, and none without workers', () => {
    const share = startShare(1);
    share.out = 3;
    expect(freeOf(share, ROOM, 0)).toBe(5);
    expect(freeOf(share, { workers: 0, slots: 8 }, 0)).toBe(0);
    expect(freeOf(share, { workers: 1, slots: 2 }, 0)).toBe(0);
  });

  test('is none after losses in a row, then one to prove itself, then all again', () => {
    const share = startShare(1);
    lose(share, LOSSES_MAX - 1, 0);
    expect(freeOf(share, ROOM, 100)).toBe(8);
    lose(share, 1, 200);
    expect(freeOf(share, ROOM, 210)).toBe(0);
    expect(freeOf(share, ROOM, share.restUntil)).toBe(1);
    share.out = 1;
    expect(freeOf(share, ROOM, share.restUntil)).toBe(0);
    share.out = 0;
    noteAnswer(share);
    expect(freeOf(share, ROOM, 220)).toBe(8);
  });

  test('comes back later each time that the proof fails, but within a minute', () => {
    const share = startShare(1);
    lose(share, LOSSES_MAX, 0);
    const rests: number[] = [];
    for (let count = 0; count < 30; count++) {
      const now = share.restUntil;
      noteLoss(share, { sentAt: now, now });
      rests.push(share.restUntil - now);
    }
    expect(rests.slice(0, 3)).toEqual([4_000, 8_000, 16_000]);
    expect(Math.max(...rests)).toBe(60_000);
  });

  test('is not lost by one death that takes many batches with it', () => {
    const share = startShare(1);
    for (let count = 0; count < 20; count++) noteLoss(share, { sentAt: 10 + count, now: 100 });
    expect(share.lossesInRow).toBe(1);
    expect(freeOf(share, ROOM, 101)).toBe(8);
  });

  test('counts losses in a row only', () => {
    const share = startShare(1);
    for (let round = 0; round < 10; round++) {
      lose(share, LOSSES_MAX - 1, round * 1_000);
      noteAnswer(share);
    }
    expect(freeOf(share, ROOM, 10_000)).toBe(8);
  });
});
