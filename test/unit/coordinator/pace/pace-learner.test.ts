import { describe, expect, test } from 'vitest';
import { PaceLearner } from '../../../../src/coordinator/pace/pace-learner.ts';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { guardedGapMs } from '../../../../src/core/politeness/permits.ts';
import { pageOf, traceOf } from '../../../support/fixtures.ts';

const T0 = 1_700_000_000_000;
const permitAt = (startAt: number, rate = 4): Permit => ({
  host: 'a.example',
  startAt,
  endAt: startAt + 5_000,
  gapMs: guardedGapMs(1_000 / rate, null),
  parallel: 4,
});
const use = (finished: boolean) => ({ host: 'a.example', sent: 1, lastSentAt: T0, finished });
const fetched: Outcome = {
  kind: 'fetched',
  taskId: 1,
  page: pageOf(),
  links: [],
  records: [],
  shows: [],
  trace: traceOf(),
};
const failed = (code: FailureCode): Outcome => ({
  kind: 'failed',
  taskId: 1,
  code,
  detail: '',
  page: null,
  retryAfterMs: null,
  trace: traceOf(),
});

describe('learning the pace of a host', () => {
  test('a permit counts once it is over, with all its parts', () => {
    const learner = new PaceLearner(null);
    const permit = permitAt(T0, 2);
    expect(learner.learn({ permit, use: use(false), outcomes: [fetched] }, 4, T0 + 1)).toBeNull();
    expect(learner.learn({ permit, use: use(true), outcomes: [fetched] }, 4, T0 + 2)?.rate).toBe(3);
  });

  test('a refusal counts at once, and permits of before it do not slow the host down a second time', () => {
    const learner = new PaceLearner({
      rate: 4,
      clean: null,
      refused: null,
      tryAt: 0,
      refusals: 0,
      latencyMs: null,
    });
    const refusal = { permit: permitAt(T0), use: use(false), outcomes: [failed('throttled')] };
    expect(learner.learn(refusal, 4, T0 + 1_000)?.rate).toBe(2);
    const older = { permit: permitAt(T0 + 500), use: use(true), outcomes: [failed('throttled')] };
    expect(learner.learn(older, 4, T0 + 2_000)?.rate).toBe(2);
    const newer = {
      permit: permitAt(T0 + 3_000, 2),
      use: use(true),
      outcomes: [fetched, failed('throttled')],
    };
    expect(learner.learn(newer, 4, T0 + 4_000)?.rate).toBe(1);
  });

  test.each([
    { held: 'a crawl delay', cap: 50, crawlDelayMs: 500 },
    { held: 'a crawl delay where there is no other limit', cap: Number.POSITIVE_INFINITY, crawlDelayMs: 500 },
    { held: 'the cap of this job', cap: 2, crawlDelayMs: null },
  ])(
    'a refusal at the rate of $held slows the host down, though its pace was higher',
    ({ cap, crawlDelayMs }) => {
      const learner = new PaceLearner({
        ...{
          rate: Math.max(25, cap / 2),
          clean: null,
          refused: null,
          tryAt: 0,
          refusals: 0,
          latencyMs: null,
        },
      });
      const about = { use: use(true), crawlDelayMs };
      const calm = { ...about, permit: permitAt(T0, 2), outcomes: [fetched] };
      expect(learner.learn(calm, cap, T0)?.rate ?? 25).toBe(25);
      const refusal = { ...about, permit: permitAt(T0, 2), outcomes: [failed('throttled')] };
      const { rate, refused } = learner.learn(refusal, cap, T0 + 1_000)!;
      expect([rate, refused]).toEqual([expect.closeTo(1), expect.closeTo(2)]);
      const closed = { ...about, permit: permitAt(T0 + 2_000, rate), outcomes: [failed('throttled')] };
      expect(learner.learn(closed, cap, T0 + 3_000)).toMatchObject({ rate, blocked: 1 });
      let kept = rate;
      for (let again = 1; again < 9; again++) {
        const open = { ...about, permit: permitAt(T0, kept), outcomes: [fetched] };
        kept = learner.learn(open, cap, T0 + again * 60_000)!.rate;
        expect(kept).toBeLessThanOrEqual(2);
      }
      expect(kept).toBeGreaterThan(1.5);
    },
  );

  test('failures of our own and tasks that were not sent teach nothing', () => {
    const learner = new PaceLearner(null);
    const outcomes: Outcome[] = [failed('internal'), { kind: 'deferred', taskId: 2 }];
    expect(learner.learn({ permit: permitAt(T0), use: use(true), outcomes }, 4, T0)).toBeNull();
  });

  test('a host without a limit is not noted down until it refuses', () => {
    const learner = new PaceLearner(null);
    const cap = Number.POSITIVE_INFINITY;
    const open = { ...permitAt(T0), gapMs: 0 };
    const calm = { permit: open, use: use(true), outcomes: [fetched] };
    expect(learner.learn(calm, cap, T0 + 1_000)).toBeNull();
    const refusal = {
      permit: { ...open, startAt: T0 + 1_000 },
      use: use(true),
      outcomes: [
        ...Array.from({ length: 100 }, (_, index) => ({
          ...fetched,
          trace: { ...traceOf(), startedAt: T0 + index * 10 },
        })),
        { ...failed('throttled'), trace: { ...traceOf(), startedAt: T0 + 1_000 } } as Outcome,
      ],
    };
    expect(learner.learn(refusal, cap, T0 + 2_000)?.rate).toBe(50);
  });

  test('a host without a limit that refuses a lone request begins low, and is soon as fast as before', () => {
    const learner = new PaceLearner(null);
    const cap = Number.POSITIVE_INFINITY;
    const lone = { permit: { ...permitAt(T0), gapMs: 0 }, use: use(true), outcomes: [failed('throttled')] };
    let pace = learner.learn(lone, cap, T0)!;
    expect(pace).toMatchObject({ rate: 1, clean: null, refused: null });
    const early = { ...fetched, trace: { ...traceOf(), startedAt: traceOf().startedAt - 9_000 } } as Outcome;
    const few = { ...lone, outcomes: [early, ...lone.outcomes] };
    expect(new PaceLearner(null).learn(few, cap, T0)).toMatchObject({ rate: 1, refused: null });
    const again = { permit: permitAt(T0 + 2_000, pace.rate), use: use(true), outcomes: lone.outcomes };
    pace = learner.learn(again, cap, T0 + 3_000)!;
    expect(pace).toMatchObject({ rate: 1, blocked: 1 });
    for (let permits = 0; permits < 8; permits++)
      pace = learner.learn(
        { ...lone, permit: permitAt(T0, pace.rate), outcomes: [fetched] },
        cap,
        T0 + 9_000,
      )!;
    expect(pace.rate).toBeGreaterThan(20);
  });

  test.each(['unavailable', 'server-error', 'reset', 'headers-timeout'] as const)(
    'a page that fails with %s while others answer is its own trouble',
    (code) => {
      const learner = new PaceLearner(null);
      const outcomes = [failed(code), fetched, fetched, fetched, failed(code)];
      const pace = learner.learn({ permit: permitAt(T0, 2), use: use(true), outcomes }, 4, T0);
      expect(pace?.rate).toBe(3);
      expect(learner.wasUnavailable).toBe(false);
    },
  );

  test('a third of different pages that are unavailable are the host', () => {
    const learner = new PaceLearner(null);
    const outcomes = [...Array(3).fill(failed('unavailable')), ...Array(5).fill(fetched)];
    expect(learner.learn({ permit: permitAt(T0, 2), use: use(true), outcomes }, 4, T0)?.rate).toBe(1);
    expect(learner.wasUnavailable).toBe(true);
  });

  test('pages that are unavailable and answer the next time were refused by the host', () => {
    const outcomes = [failed('unavailable'), ...Array(6).fill(fetched)];
    const retried = (result: Outcome) => {
      const learner = new PaceLearner(null);
      const again = {
        permit: permitAt(T0, 2),
        use: use(true),
        outcomes: [result, result],
        attemptOf: () => 2,
      };
      const rate = learner.learn(again, 4, T0)!.rate;
      const seen = { permit: permitAt(T0, rate), use: use(true), outcomes };
      return learner.learn(seen, 4, T0 + 1_000)!.rate < rate;
    };
    expect(retried(fetched)).toBe(true);
    expect(retried(failed('unavailable'))).toBe(false);
  });
});
