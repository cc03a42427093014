import fc from 'fast-check';
import type { Blame } from '../../../../src/core/suspicion/suspicion.ts';

/** What may happen to a store; numbers choose among what there is at that moment. */
export type Step =
  | { kind: 'enqueue'; job: number; urls: number[]; priority: number; age: number | null }
  | { kind: 'lease'; job: number; count: number; parts: number; waitMs: number; suspectBatchesMax: number }
  | { kind: 'settle'; batch: number; outcomes: number[]; final: boolean }
  | { kind: 'release'; batch: number; blame: Blame }
  | { kind: 'fail-host'; job: number; host: number; limit: number }
  | { kind: 'retry'; job: number; host: number | null }
  | { kind: 'pass'; job: number }
  | { kind: 'revisit'; job: number; limit: number; age: number }
  | { kind: 'restart' };

const index = fc.nat(99);
const which = fc.nat(1);
export const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      job: which,
      urls: fc.array(index, { maxLength: 12 }),
      priority: fc.integer({ min: -1, max: 1 }),
      age: fc.option(fc.integer({ min: -20, max: 60 })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('lease' as const),
      job: which,
      count: fc.integer({ min: 1, max: 5 }),
      parts: fc.integer({ min: 1, max: 3 }),
      waitMs: fc.nat(150),
      suspectBatchesMax: fc.nat(2),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      batch: index,
      outcomes: fc.array(fc.nat(9), { maxLength: 8 }),
      final: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('release' as const),
      batch: index,
      blame: fc.constantFrom<Blame>('none', 'worker', 'coordinator', { running: [] }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fail-host' as const),
      job: which,
      host: fc.nat(2),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('retry' as const),
      job: which,
      host: fc.option(fc.nat(2)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pass' as const), job: which }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('revisit' as const),
      job: which,
      limit: fc.integer({ min: 1, max: 9 }),
      age: fc.nat(40),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);
