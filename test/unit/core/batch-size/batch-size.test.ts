import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addBatchTime,
  BATCH_TASKS_MAX,
  type BatchTimes,
  batchSizes,
  NO_BATCH_TIMES,
} from '../../../../src/core/batch-size/batch-size.ts';

const timesOf = (...batches: [tasks: number, durationMs: number][]): BatchTimes =>
  batches.reduce((times, [tasks, durationMs]) => addBatchTime(times, { tasks, durationMs }), NO_BATCH_TIMES);

describe('batchSizes', () => {
  test.each([
    ['nothing is known', [], 120],
    ['pages take half a millisecond', [[120, 60]], 300],
    ['pages take 10 ms', [[120, 1_200]], 120],
    ['pages take next to nothing', [[120, 1]], 1_000],
    [
      'one of the last batches was slow',
      [
        [120, 60],
        [120, 90],
        [120, 60],
      ],
      200,
    ],
    [
      'a few tasks took long',
      [
        [120, 60],
        [59, 60_000],
      ],
      300,
    ],
  ] as [string, [number, number][], number][])('%s', (_, batches, size) => {
    expect(batchSizes(undefined, timesOf(...batches))).toEqual({ batchSize: 120, openBatchSize: size });
  });

  test('a slow batch is forgotten after eight others', () => {
    const fast = (count: number) => Array.from({ length: count }, () => [120, 60] as [number, number]);
    expect(batchSizes(undefined, timesOf([120, 60_000], ...fast(7))).openBatchSize).toBe(120);
    expect(batchSizes(undefined, timesOf([120, 60_000], ...fast(8))).openBatchSize).toBe(300);
  });

  test('what the job says counts, however fast pages come', () => {
    expect(batchSizes(7, timesOf([120, 1]))).toEqual({ batchSize: 7, openBatchSize: 7 });
  });

  test('always a whole number within the limits', () => {
    const batch = fc.record({
      tasks: fc.nat(2_000),
      durationMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true })),
    });
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 30 }), (batches) => {
        const times = batches.reduce<BatchTimes>(addBatchTime, NO_BATCH_TIMES);
        const { batchSize, openBatchSize } = batchSizes(undefined, times);
        expect(times.length).toBeLessThanOrEqual(8);
        expect(Number.isInteger(openBatchSize)).toBe(true);
        expect(openBatchSize).toBeGreaterThanOrEqual(batchSize);
        expect(openBatchSize).toBeLessThanOrEqual(BATCH_TASKS_MAX);
      }),
    );
  });
});
