import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { OpenPermits } from '../../../../src/coordinator/hosts/open-permits.ts';
import {
  banDecisionOf,
  type HostReport,
  hostChangeOf,
} from '../../../../src/coordinator/settle/settle-hosts.ts';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { pageOf, specOf, T0, traceOf } from '../../../support/fixtures.ts';

const HOST = 'a.example';
const spec = specOf({ politeness: { adaptive: false } });

function permitOf(change: Partial<Permit> = {}): Permit {
  return { host: HOST, startAt: T0, endAt: T0 + 3_000, gapMs: 250, parallel: 2, ...change };
}

function reportOf(permit: Permit, change: Partial<HostReport> & Partial<HostReport['use']> = {}): HostReport {
  const { sent = 1, lastSentAt = T0 + 100, finished = true, ...rest } = change;
  return {
    permit,
    use: { host: HOST, sent, lastSentAt, finished },
    outcomes: [],
    robots: [],
    crawlDelayMs: null,
    ...rest,
  };
}

const fetched: Outcome = {
  kind: 'fetched',
  taskId: 1,
  page: pageOf(),
  links: [],
  records: [],
  shows: [],
  trace: traceOf(),
};
const failed = (code: FailureCode, retryAfterMs: number | null = null): Outcome => ({
  kind: 'failed',
  taskId: 1,
  code,
  detail: '',
  page: null,
  retryAfterMs,
  trace: traceOf(),
});
const times = (count: number, outcome: Outcome) => Array.from({ length: count }, () => outcome);

describe('what a report means for its host', () => {
  let permits: OpenPermits;
  const grant = (permit: Permit, health = { failuresInRow: 0, rests: 0, pace: null }) => {
    permits.grant(permit, health);
    return permit;
  };
  beforeEach(() => {
    permits = new OpenPermits();
  });

  test('the last permit frees the host a gap after its last request', () => {
    const permit = grant(permitOf());
    const change = hostChangeOf(
      reportOf(permit, { sent: 5, lastSentAt: T0 + 1_000.5 }),
      permits,
      spec,
      T0 + 1_200,
    );
    expect(change).toEqual({
      host: HOST,
      sent: 5,
      nextAt: T0 + 1_251,
      failuresInRow: 0,
      rests: 0,
      pace: null,
      span: null,
      takenUntil: T0 + 3_000,
      isPaced: true,
      smallestGapMs: null,
      lastError: null,
    });
    expect(permits.size).toBe(0);
  });

  test('a host that asked for a pause waits for more than the gap', () => {
    const permit = grant(permitOf());
    const outcomes = [failed('throttled', 60_000)];
    const report = reportOf(permit, { lastSentAt: T0 + 1_000, outcomes });
    const change = hostChangeOf(report, permits, spec, T0 + 1_200);
    expect(change.nextAt).toBe(T0 + 61_200);
    expect(change.isPaced).toBeUndefined();
  });

  test('a host without a gap that several jobs want is free from the end of its last permit', () => {
    const { nextAt } = hostChangeOf(reportOf(grant(permitOf({ gapMs: 0 }))), permits, spec, T0 + 9_000);
    expect(nextAt).toBe(T0);
    permits = new OpenPermits({ isShared: true });
    const first = grant(permitOf({ gapMs: 0 }));
    const last = grant(permitOf({ gapMs: 0 }));
    expect(hostChangeOf(reportOf(first), permits, spec, T0 + 8_000).nextAt).toBeNull();
    expect(hostChangeOf(reportOf(last), permits, spec, T0 + 9_000).nextAt).toBe(T0 + 9_000);
  });

  test('a permit that sent nothing gives its whole time back', () => {
    const permit = grant(permitOf());
    expect(hostChangeOf(reportOf(permit, { sent: 0, lastSentAt: null }), permits, spec, T0 + 9).nextAt).toBe(
      T0,
    );
  });

  test('a forbidden page of a host that never answered is tried again while another permit is out', () => {
    const outcome: Outcome = { ...failed('forbidden'), trace: { ...traceOf(), httpStatus: 403 } } as Outcome;
    const report = reportOf(grant(permitOf()), { outcomes: [outcome] });
    expect([...banDecisionOf(report, permits, spec, T0)!.again]).toEqual([]);
    grant(permitOf());
    const decision = banDecisionOf(report, permits, spec, T0)!;
    expect([...decision.again]).toEqual([1]);
    // It is only counted here: in the store it could replace what a report of the same time says of the host.
    expect(hostChangeOf(report, permits, spec, T0, undefined, decision)).not.toHaveProperty('ban');
    expect(permits.entry(HOST)!.ban.refusals).toBe(1);
  });

  test('a report under a permit that came back before changes neither time nor rests nor pace', () => {
    permits.know(HOST, { failuresInRow: 3, rests: 2, pace: null });
    const late = reportOf(permitOf(), { sent: 4, outcomes: [fetched], isLate: true });
    const decision = banDecisionOf(late, permits, spec, T0);
    expect(hostChangeOf(late, permits, spec, T0 + 9, undefined, decision)).toEqual({
      ...{ host: HOST, sent: 4, nextAt: null, failuresInRow: 3, rests: 2, pace: null },
      ...{ smallestGapMs: null, span: null, lastError: null, reachedAt: T0 + 9 },
      ban: expect.objectContaining({ known: { url: '', at: T0 } }),
    });
    expect(permits.entry(HOST)).toMatchObject({ permits: 0, reachedAt: T0 + 9, ban: { since: null } });
  });

  test('a part leaves the time as it is', () => {
    const permit = grant(permitOf());
    expect(hostChangeOf(reportOf(permit, { finished: false }), permits, spec, T0 + 200).nextAt).toBeNull();
    expect(permits.load(HOST)).toMatchObject({ permits: 1, parallel: 2 });
  });

  test('while another permit is out, the time stays taken', () => {
    const first = grant(permitOf());
    grant(permitOf({ startAt: T0 + 3_000, endAt: T0 + 6_000 }));
    expect(hostChangeOf(reportOf(first), permits, spec, T0 + 3_100).nextAt).toBeNull();
    expect(permits.load(HOST)).toMatchObject({ permits: 1, parallel: 2 });
  });

  test('a first permit that comes back last does not undo the requests of the second', () => {
    const first = grant(permitOf());
    const second = grant(permitOf({ startAt: T0 + 3_000, endAt: T0 + 6_000 }));
    // The last request under the first permit was answered late; the second was through by then.
    hostChangeOf(reportOf(second, { lastSentAt: T0 + 5_000 }), permits, spec, T0 + 5_050);
    const change = hostChangeOf(reportOf(first, { lastSentAt: T0 + 2_500 }), permits, spec, T0 + 5_100);
    expect(change.nextAt === null || change.nextAt >= T0 + 5_250).toBe(true);
  });

  test('a new crawl delay counts from the last request', () => {
    const permit = grant(permitOf());
    const change = hostChangeOf(reportOf(permit, { crawlDelayMs: 5_000 }), permits, spec, T0 + 200);
    expect(change.nextAt).toBeGreaterThanOrEqual(T0 + 100 + 5_000);
    const open = grant(permitOf({ gapMs: 0 }));
    const delayed = hostChangeOf(reportOf(open, { crawlDelayMs: 5_000 }), permits, spec, T0 + 200);
    expect(delayed.nextAt).toBeGreaterThanOrEqual(T0 + 100 + 5_000);
  });

  test('a host without a gap is free at once', () => {
    const permit = grant(permitOf({ gapMs: 0, endAt: T0 + 90_000 }));
    expect(hostChangeOf(reportOf(permit), permits, spec, T0 + 500).nextAt).toBeLessThanOrEqual(T0 + 500);
  });

  describe('throttling', () => {
    test.each(['throttled', 'unavailable'] as const)('%s pauses the host as long as it asks', (code) => {
      const permit = grant(permitOf());
      const report = reportOf(permit, { outcomes: [failed(code, 30_000), fetched] });
      expect(hostChangeOf(report, permits, spec, T0 + 500).nextAt).toBe(T0 + 30_500);
    });

    test('a 503 that does not say for how long is the trouble of its page', () => {
      const permit = grant(permitOf());
      const report = reportOf(permit, { outcomes: [failed('unavailable'), fetched] });
      expect(hostChangeOf(report, permits, spec, T0 + 500).nextAt).toBeLessThanOrEqual(T0 + 500);
    });

    test('without a Retry-After, for the first backoff', () => {
      const permit = grant(permitOf());
      const report = reportOf(permit, { outcomes: [failed('throttled')] });
      expect(hostChangeOf(report, permits, spec, T0 + 500).nextAt).toBe(T0 + 500 + spec.retry.baseMs);
    });

    test('a pause holds also while other permits are out, and never shortens what is taken', () => {
      const first = grant(permitOf());
      grant(permitOf({ startAt: T0 + 3_000, endAt: T0 + 6_000 }));
      const report = reportOf(first, { outcomes: [failed('throttled', 100)] });
      expect(hostChangeOf(report, permits, spec, T0 + 500).nextAt).toBe(T0 + 6_000);
    });

    test('a pause is not forgotten when another permit of the host comes back', () => {
      const first = grant(permitOf());
      const second = grant(permitOf({ startAt: T0 + 3_000, endAt: T0 + 6_000 }));
      hostChangeOf(reportOf(first, { outcomes: [failed('throttled', 60_000)] }), permits, spec, T0 + 3_100);
      const change = hostChangeOf(reportOf(second, { lastSentAt: T0 + 3_000 }), permits, spec, T0 + 3_200);
      expect(change.nextAt === null || change.nextAt >= T0 + 63_100).toBe(true);
    });

    test('a pause is not forgotten by the last part of the same batch', () => {
      const permit = grant(permitOf());
      const part = reportOf(permit, { finished: false, outcomes: [failed('throttled', 60_000)] });
      expect(hostChangeOf(part, permits, spec, T0 + 1_500).nextAt).toBe(T0 + 61_500);
      const change = hostChangeOf(reportOf(permit, { lastSentAt: T0 + 2_000 }), permits, spec, T0 + 2_100);
      expect(change.nextAt === null || change.nextAt >= T0 + 61_500).toBe(true);
    });
  });

  describe('the breaker', () => {
    const limit = spec.breaker.hostFailures;

    test('failures of the host are counted over batches, and one success wipes them', () => {
      const first = grant(permitOf(), { failuresInRow: 3, rests: 0, pace: null });
      const report = reportOf(first, { outcomes: times(2, failed('connect')) });
      expect(hostChangeOf(report, permits, spec, T0 + 500)).toMatchObject({
        failuresInRow: 5,
        rests: 0,
        pace: null,
      });
      const second = grant(permitOf(), { failuresInRow: 5, rests: 2, pace: null });
      const mixed = reportOf(second, { outcomes: [failed('connect'), fetched, failed('reset')] });
      expect(hostChangeOf(mixed, permits, spec, T0 + 500)).toMatchObject({
        failuresInRow: 1,
        rests: 0,
        pace: null,
      });
    });

    test('what is no fault of the host, or no answer, is not counted', () => {
      const permit = grant(permitOf(), { failuresInRow: 4, rests: 1, pace: null });
      const outcomes: Outcome[] = [
        { kind: 'deferred', taskId: 1 },
        { kind: 'skipped', taskId: 2, code: 'robots', detail: null, trace: null },
      ];
      expect(hostChangeOf(reportOf(permit, { outcomes }), permits, spec, T0)).toMatchObject({
        failuresInRow: 4,
        rests: 1,
      });
      const other = grant(permitOf(), { failuresInRow: 4, rests: 1, pace: null });
      const answered = reportOf(other, { outcomes: [failed('not-found')] });
      expect(hostChangeOf(answered, permits, spec, T0)).toMatchObject({
        failuresInRow: 0,
        rests: 0,
        pace: null,
      });
    });

    test('a failure of our own says nothing about the host', () => {
      const permit = grant(permitOf(), { failuresInRow: 9, rests: 3, pace: null });
      const report = reportOf(permit, { outcomes: [failed('internal')] });
      expect(hostChangeOf(report, permits, spec, T0)).toMatchObject({
        failuresInRow: 9,
        rests: 3,
        pace: null,
      });
    });

    test('enough failures rest the host, longer each time, up to a limit', () => {
      const rests: number[] = [];
      let health = { failuresInRow: limit, rests: 0, pace: null };
      for (let probe = 0; probe < 12; probe++) {
        const permit = grant(permitOf(), health);
        const change = hostChangeOf(
          reportOf(permit, { outcomes: [failed('connect')] }),
          permits,
          spec,
          T0 + 500,
        );
        rests.push(change.nextAt! - T0 - 500);
        health = { failuresInRow: change.failuresInRow, rests: change.rests, pace: null };
      }
      expect(rests.slice(0, 3)).toEqual([5_000, 10_000, 20_000]);
      expect(rests.at(-1)).toBe(LIMITS.hostRestMsMax);
      expect(health.rests).toBe(12);
    });

    test('batches that were out when the rest began do not lengthen it', () => {
      const granted = [
        grant(permitOf({ gapMs: 0 })),
        grant(permitOf({ gapMs: 0 })),
        grant(permitOf({ gapMs: 0 })),
      ];
      const outcomes = times(limit, failed('connect'));
      const changes = granted.map((permit, index) =>
        hostChangeOf(reportOf(permit, { outcomes }), permits, spec, T0 + 500 + index),
      );
      expect(changes.map((change) => change.rests)).toEqual([1, 1, 1]);
      expect(changes.map((change) => change.nextAt)).toEqual(Array.from({ length: 3 }, () => T0 + 5_500));
    });

    test('a page that answered before tells whether the host is down, when nothing else is left to request', () => {
      const health = { failuresInRow: 10, rests: 1, pace: null };
      const permit = permitOf({ probe: { url: `http://${HOST}/known` } });
      const use = { host: HOST, sent: 1, lastSentAt: T0, finished: true };
      const changeAfter = (about: Partial<HostReport['use']>, outcomes: Outcome[]) => {
        permits = new OpenPermits();
        grant(permit, health);
        return hostChangeOf({ ...reportOf(permit), use: { ...use, ...about }, outcomes }, permits, spec, T0);
      };
      const deferred: Outcome = { kind: 'deferred', taskId: 1 };
      expect(changeAfter({ probe: 'answered' }, [failed('server-error')])).toMatchObject({
        failuresInRow: 1,
        rests: 0,
      });
      expect(changeAfter({ probe: 'refused' }, [deferred])).toMatchObject({ failuresInRow: 0, rests: 0 });
      const down = { code: 'connect', detail: 'refused', trace: traceOf() } as const;
      expect(changeAfter({ probe: 'failed', probeFailure: down }, [deferred])).toMatchObject({
        failuresInRow: 11,
        rests: 2,
        lastError: { code: 'connect' },
      });
      const ours = { code: 'proxy', detail: 'gone', trace: null } as const;
      expect(changeAfter({ probe: 'failed', probeFailure: ours }, [deferred])).toMatchObject({
        failuresInRow: 10,
        rests: 1,
      });
    });

    test('robots.txt that cannot be had counts like a page', () => {
      const permit = grant(permitOf());
      const robots = [
        {
          kind: 'failed' as const,
          origin: 'https://a.example',
          code: 'connect' as const,
          detail: '',
          trace: traceOf(),
        },
      ];
      expect(hostChangeOf(reportOf(permit, { robots }), permits, spec, T0)).toMatchObject({
        failuresInRow: 1,
      });
    });
  });

  test('whatever comes back in whatever order, no two requests are closer than the gap', () => {
    const latencies = fc.array(fc.integer({ min: 1, max: 6_000 }), { minLength: 30, maxLength: 30 });
    fc.assert(
      fc.property(latencies, fc.integer({ min: 50, max: 1_000 }), (waits, gapMs) => {
        const sent: number[] = [];
        const open = new OpenPermits();
        let nextAt = T0;
        let now = T0;
        let out: { permit: Permit; lastSentAt: number; doneAt: number }[] = [];
        const settleUntil = (time: number) => {
          for (const each of out.filter((one) => one.doneAt <= time).sort((a, b) => a.doneAt - b.doneAt)) {
            const report = reportOf(each.permit, { lastSentAt: each.lastSentAt });
            nextAt = hostChangeOf(report, open, spec, each.doneAt).nextAt ?? nextAt;
          }
          out = out.filter((one) => one.doneAt > time);
        };
        for (const waitMs of waits) {
          // Planned as soon as there is room: at most two permits are out, the next follows the last.
          now = Math.max(now, nextAt - 400);
          if (out.length === 2) now = Math.max(now, Math.min(...out.map((one) => one.doneAt)));
          settleUntil(now);
          const startAt = Math.ceil(Math.max(now, nextAt));
          const permit: Permit = { host: HOST, startAt, endAt: startAt + 3 * gapMs, gapMs, parallel: 2 };
          open.grant(permit, { failuresInRow: 0, rests: 0, pace: null });
          nextAt = permit.endAt;
          for (let request = 0; request < 3; request++) sent.push(startAt + request * gapMs);
          out.push({ permit, lastSentAt: sent.at(-1)!, doneAt: sent.at(-1)! + waitMs });
        }
        for (const [index, time] of sent.entries()) {
          if (index > 0) expect(time - sent[index - 1]!).toBeGreaterThanOrEqual(gapMs);
        }
      }),
      { numRuns: 200 },
    );
  });
});
