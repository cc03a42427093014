import { describe, expect, test } from 'vitest';
import { OpenPermits } from '../../../../src/coordinator/hosts/open-permits.ts';
import { planBatches } from '../../../../src/coordinator/plan/plan-batches.ts';
import { hostChangeOf } from '../../../../src/coordinator/settle/settle-hosts.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import type { HostPace } from '../../../../src/core/pace/pace.ts';
import { guardedGapMs } from '../../../../src/core/politeness/permits.ts';
import { specOf, T0, traceOf } from '../../../support/fixtures.ts';

const refused = (retryAfterMs: number | null): Outcome => ({
  kind: 'failed',
  taskId: 1,
  code: 'throttled',
  detail: 'status 429',
  page: null,
  retryAfterMs,
  trace: traceOf({ httpStatus: 429 }),
});

/** A host at two requests a second that has just refused, and refuses the next request as well. */
function changeAfter(outcome: Outcome, politeness: JobInput['politeness'] = {}) {
  const pace: HostPace = {
    ...{ rate: 2, clean: null, refused: 4, tryAt: 0, refusals: 0, latencyMs: 20 },
    since: 0,
  };
  const permit = {
    ...{ host: 'a.example', startAt: T0, endAt: T0 + 3_000, parallel: 2 },
    gapMs: guardedGapMs(500, null),
  };
  const permits = new OpenPermits();
  permits.grant(permit, { failuresInRow: 0, rests: 0, pace });
  const use = { host: 'a.example', sent: 1, lastSentAt: T0, finished: true };
  const report = { permit, use, outcomes: [outcome], robots: [], crawlDelayMs: null };
  return hostChangeOf(report, permits, specOf({ politeness: { rate: 8, ...politeness } }), T0 + 100);
}

describe('a host that refuses everything', () => {
  test('is left alone for longer, unless it says for how long', () => {
    expect(changeAfter(refused(null))).toMatchObject({
      nextAt: T0 + 100 + 8_000,
      pace: { rate: 2, blocked: 1 },
    });
    expect(changeAfter(refused(3_000)).nextAt).toBe(T0 + 100 + 3_000);
    expect(changeAfter(refused(null), { adaptive: false }).nextAt).toBe(T0 + 100 + 1_000);
  });
});

test('a host that refuses at the rate of its crawl delay is asked less often', () => {
  const gapMs = guardedGapMs(0, 500);
  const permit = { host: 'a.example', startAt: T0, endAt: T0 + 3_000, parallel: 2, gapMs };
  const pace: HostPace = {
    ...{ rate: 25, clean: null, refused: null, tryAt: 0, refusals: 0, latencyMs: null, cap: 50 },
  };
  const permits = new OpenPermits();
  permits.grant(permit, { failuresInRow: 0, rests: 0, pace, crawlDelayMs: 500 });
  const use = { host: 'a.example', sent: 1, lastSentAt: T0, finished: true };
  // The report brings no robots.txt: the delay is known from before.
  const report = { permit, use, outcomes: [refused(null)], robots: [], crawlDelayMs: null };
  const change = hostChangeOf(report, permits, specOf({ politeness: { rate: 50 } }), T0 + 100);
  expect(change.pace).toMatchObject({ rate: expect.closeTo(1), refused: expect.closeTo(2) });
});

describe('a host that is given up without a request', () => {
  test.each(['host-down', 'robots-unreachable'] as const)('by %s is no healthier for it', (code) => {
    const permits = new OpenPermits();
    const permit = { host: 'ip:1', startAt: T0, endAt: T0 + 9, gapMs: 5, parallel: 1 };
    permits.grant(permit, { failuresInRow: 12, rests: 4, pace: null });
    const outcome: Outcome = {
      ...{ kind: 'failed', taskId: 1, code, detail: '' },
      ...{ page: null, retryAfterMs: null, trace: null },
    };
    const use = { host: 'ip:1', sent: 0, lastSentAt: null, finished: true };
    const report = { permit, use, outcomes: [outcome], robots: [], crawlDelayMs: null };
    expect(hostChangeOf(report, permits, specOf(), T0)).toMatchObject({ failuresInRow: 12 });
  });
});

test('a rate that is only tried gets no second permit before the first is answered for', () => {
  const host = {
    ...{ id: 1, host: 'a.example', ready: 100, nextAt: T0, crawlDelayMs: null, failuresInRow: 0, rests: 0 },
    ...{
      pace: null,
      ban: null,
      reachedAt: null,
      load: { permits: 1, eased: 0, parallel: 2 },
      needsRobots: false,
    },
  };
  const input = {
    ...{
      now: T0,
      slots: 4,
      workers: 2,
      batchSize: 60,
      openBatchSize: 60,
      gapMs: 250,
      parallel: 4,
      probeAfter: 10,
    },
    ...{ openMs: 1_000, tasksLeft: 100 },
  };
  expect(planBatches({ ...input, hosts: [host] })).toHaveLength(1);
  expect(planBatches({ ...input, hosts: [{ ...host, permitsMax: 1 }] })).toEqual([]);
});
