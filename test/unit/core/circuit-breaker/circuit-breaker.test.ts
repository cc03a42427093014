import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import {
  brokenCode,
  CLOSED,
  type CodeFailures,
  type HostBreaker,
  hasFailedProbes,
  isJobTripped,
  isProbing,
  nextCodeFailures,
  nextFailedBatches,
  nextHostBreaker,
  restMs,
} from '../../../../src/core/circuit-breaker/circuit-breaker.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { pageOf, T0, traceOf } from '../../../support/fixtures.ts';

const POLICY = { hostFailures: 3, hostProbes: 2, hostRestMs: 1_000, isGroup: false };
const trace = traceOf();
const answered: Outcome = {
  ...{ kind: 'fetched', taskId: 1, page: pageOf(), links: [], records: [], shows: [], trace },
};
const failed = (code: FailureCode): Outcome => ({
  ...{ kind: 'failed', taskId: 1, code, detail: '', page: null, retryAfterMs: null, trace },
});
const fault = failed('connect');

describe('the breaker of a host', () => {
  const next = (before: HostBreaker, results: Outcome[], now = T0, policy = POLICY) =>
    nextHostBreaker(before, results, policy, now);

  test('stays closed below the limit, and opens with the fault that reaches it', () => {
    const closed = next(CLOSED, [fault, fault]);
    expect(closed).toEqual({ failuresInRow: 2, rests: 0, restUntil: 0, answeredAt: 0 });
    expect(isProbing(closed.failuresInRow, POLICY.hostFailures)).toBe(false);
    const open = next(closed, [fault]);
    expect(open).toEqual({ failuresInRow: 3, rests: 1, restUntil: T0 + 1_000, answeredAt: 0 });
    expect(isProbing(open.failuresInRow, POLICY.hostFailures)).toBe(true);
  });

  test('rests no longer for batches that were out before', () => {
    const open = next(CLOSED, [fault, fault, fault]);
    expect(next(open, [fault, fault], T0 + 999)).toEqual({ ...open, failuresInRow: 5 });
  });

  test('takes a probe that was put off for none', () => {
    const open = next(CLOSED, [fault, fault, fault]);
    expect(next(open, [{ kind: 'deferred', taskId: 1 }], T0 + 5_000)).toEqual(open);
  });

  test('rests twice as long after each failed probe, until all have failed', () => {
    let breaker = next(CLOSED, [fault, fault, fault]);
    const rests: number[] = [];
    const out: boolean[] = [];
    for (let probe = 1; probe <= POLICY.hostProbes; probe++) {
      const now = breaker.restUntil;
      breaker = next(breaker, [fault], now);
      rests.push(breaker.restUntil - now);
      out.push(hasFailedProbes(breaker.rests, POLICY.hostProbes));
    }
    expect(rests).toEqual([2_000, 4_000]);
    expect(out).toEqual([false, true]);
  });

  test('closes with any other response', () => {
    for (const result of [answered, failed('not-found'), failed('throttled')]) {
      const breaker = next(
        { failuresInRow: 9, rests: 2, restUntil: T0, answeredAt: 0 },
        [fault, result],
        T0 + 1,
      );
      expect(breaker).toEqual({ ...CLOSED, restUntil: T0, answeredAt: trace.startedAt });
    }
    expect(next(CLOSED, [answered, fault]).failuresInRow).toBe(1);
  });

  test('takes a page for sick whose request began before one that was answered, in whatever report that stands', () => {
    const begun = (at: number, result: Outcome): Outcome =>
      ({ ...result, trace: { ...trace, startedAt: at } }) as Outcome;
    const late = begun(T0, failed('headers-timeout'));
    expect(next(CLOSED, [begun(T0 + 1, answered), late, late], T0 + 5)).toMatchObject({ failuresInRow: 0 });
    const before = next(CLOSED, [begun(T0 + 1, answered)], T0 + 5);
    expect(next(before, [late, late, late], T0 + 5)).toEqual(before);
    const newer = begun(T0 + 2, failed('headers-timeout'));
    expect(next(before, [newer, late, newer], T0 + 5)).toMatchObject({ failuresInRow: 2 });
  });

  test('counts faults as before when the clock was ahead while the host answered', () => {
    const ahead = T0 + 86_400_000;
    const before = next(CLOSED, [{ ...answered, trace: { ...trace, startedAt: ahead } }], ahead);
    expect(next(before, [fault, fault], T0)).toMatchObject({ failuresInRow: 2 });
    // That of a worker alone is not believed at all.
    const other = next(CLOSED, [{ ...answered, trace: { ...trace, startedAt: ahead } }], T0);
    expect(next(other, [{ ...fault, trace: { ...trace, startedAt: T0 } } as Outcome], T0)).toMatchObject({
      failuresInRow: 1,
    });
  });

  test('takes pages for sick that failed before, where others of the same report are answered', () => {
    const isAgain = (result: object) => 'taskId' in result && result.taskId === 2;
    const again: Outcome = { ...fault, taskId: 2 };
    const nextOf = (results: Outcome[]) => nextHostBreaker(CLOSED, results, POLICY, T0, isAgain);
    expect(nextOf([answered, again, again, again])).toMatchObject({ failuresInRow: 0, restUntil: 0 });
    expect(nextOf([answered, again, fault, again])).toMatchObject({ failuresInRow: 1 });
    // Where nothing is answered, the host may be down.
    expect(nextOf([again, again, again])).toMatchObject({ failuresInRow: 3, restUntil: T0 + 1_000 });
  });

  test('learns nothing from what was not sent, and from failures of our own', () => {
    const before = { failuresInRow: 2, rests: 1, restUntil: 5, answeredAt: 0 };
    const results: Outcome[] = [
      { kind: 'deferred', taskId: 1 },
      { kind: 'skipped', taskId: 1, code: 'robots', detail: null, trace: null },
      ...(['internal', 'proxy', 'api', 'browser', 'host-down', 'robots-unreachable'] as const).map(failed),
    ];
    expect(next(before, results)).toEqual(before);
  });

  test('gives the others of a group a first, short rest when one of them failed the last probe', () => {
    const group = { ...POLICY, isGroup: true };
    const last = { failuresInRow: 5, rests: 2, restUntil: T0, answeredAt: 0 };
    expect(next(last, [fault], T0, group)).toEqual({
      failuresInRow: 6,
      rests: 3,
      restUntil: T0 + 1_000,
      answeredAt: 0,
    });
    const later = { failuresInRow: 6, rests: 3, restUntil: T0, answeredAt: 0 };
    expect(next(later, [fault], T0, group)).toMatchObject({ rests: 3, restUntil: T0 + 1_000 });
  });

  test('rests double from the first, up to the limit', () => {
    expect([1, 2, 3, 4].map((rests) => restMs(rests, 5_000))).toEqual([5_000, 10_000, 20_000, 40_000]);
    expect(restMs(50, 5_000)).toBe(LIMITS.hostRestMsMax);
    expect(restMs(10_000, 1)).toBe(LIMITS.hostRestMsMax);
  });
});

describe('the breaker of a job', () => {
  test('counts failed and lost batches in a row', () => {
    const reported = (succeeded: number, failed: number, relapsed = 0) =>
      nextFailedBatches(4, { kind: 'reported', succeeded, failed, relapsed }, true);
    expect(reported(0, 3)).toBe(5);
    expect(reported(1, 3)).toBe(0);
    expect(reported(0, 0)).toBe(4);
    expect(nextFailedBatches(4, { kind: 'lost', blameless: false }, true)).toBe(5);
    expect(nextFailedBatches(4, { kind: 'lost', blameless: true }, true)).toBe(4);
  });

  test('takes pages that fail again for sick ones, once any page of the job has answered', () => {
    const batch = { kind: 'reported', succeeded: 0, failed: 3, relapsed: 3 } as const;
    expect(nextFailedBatches(4, batch, true)).toBe(4);
    expect(nextFailedBatches(4, { ...batch, relapsed: 2 }, true)).toBe(5);
    expect(nextFailedBatches(4, batch, false)).toBe(5);
  });

  test('opens with the last batch that is allowed to fail', () => {
    expect([19, 20, 21].map((count) => isJobTripped(count, 20))).toEqual([false, true, true]);
  });
});

describe('code of a route that throws', () => {
  const thrown = (detail: string, route = 'product'): Outcome => ({
    ...{ kind: 'failed', taskId: 1, code: 'parse-error', detail, retryAfterMs: null, trace },
    page: pageOf({ route }),
  });
  const read = (route: string): Outcome => ({
    ...{ kind: 'fetched', taskId: 1, links: [], records: [], shows: [], trace },
    page: pageOf({ route }),
  });
  const times = (count: number, outcome: Outcome) => Array.from({ length: count }, () => outcome);
  const failuresAfter = (...reports: Outcome[][]) =>
    reports.reduce(nextCodeFailures, new Map<string, CodeFailures>() as ReadonlyMap<string, CodeFailures>);

  test('20 times in a row ends the job, with what it said first, whatever other routes do', () => {
    const first = [thrown('no price (shop.ts:3)'), read('list')];
    expect(brokenCode(failuresAfter(first, times(18, thrown('other'))))).toBeNull();
    expect(brokenCode(failuresAfter(first, times(19, thrown('other')), [read('list')]))).toBe(
      "the code of route 'product' failed 20 times in a row, first with: no price (shop.ts:3)",
    );
  });

  test('begins anew with a page that it reads; other failures say nothing of it', () => {
    const [many, one] = [times(19, thrown('a')), [thrown('b')]];
    expect(brokenCode(failuresAfter(many, [read('product')], many))).toBeNull();
    expect(brokenCode(failuresAfter(many, [fault, failed('validation')], one))).toContain('with: a');
    expect(brokenCode(failuresAfter(times(30, failed('parse-error'))))).toBeNull();
  });
});
