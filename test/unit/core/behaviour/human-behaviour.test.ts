import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  moveSteps,
  scrollSteps,
  seededNumbers,
  typingPauses,
} from '../../../../src/core/behaviour/human-behaviour.ts';

const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);

test('a pointer goes along a curve, fastest in the middle, and arrives', () => {
  const steps = moveSteps({ x: 0, y: 0 }, { x: 600, y: 0 }, seededNumbers(3));
  expect(steps.at(-1)).toMatchObject({ x: 600, y: 0 });
  expect(Math.max(...steps.map(({ y }) => Math.abs(y)))).toBeGreaterThan(1);
  const lengths = steps.map(({ x }, index) => x - (steps[index - 1]?.x ?? 0));
  expect(lengths[Math.floor(lengths.length / 2)]).toBeGreaterThan(3 * lengths[0]!);
  expect(moveSteps({ x: 0, y: 0 }, { x: 600, y: 0 }, seededNumbers(3))).toEqual(steps);
  expect(moveSteps({ x: 0, y: 0 }, { x: 600, y: 0 }, seededNumbers(4))).not.toEqual(steps);
});

test('whatever the distance and the text, steps and time have a bound', () => {
  fc.assert(
    fc.property(fc.nat(100_000), fc.string({ maxLength: 3_000 }), fc.nat(), (pixels, text, seed) => {
      const next = seededNumbers(seed);
      const moves = moveSteps({ x: 5, y: 5 }, { x: pixels, y: 5 }, next);
      expect(moves.length).toBeLessThanOrEqual(40);
      expect(sum(moves.map(({ waitMs }) => waitMs))).toBeLessThan(2_000);
      const scrolls = scrollSteps(pixels, next);
      expect(scrolls.length).toBeLessThanOrEqual(61);
      expect(sum(scrolls.map((step) => step.pixels))).toBeCloseTo(pixels, 3);
      expect(sum(typingPauses(text, next))).toBeLessThan(10_001);
    }),
    { numRuns: 100 },
  );
});
