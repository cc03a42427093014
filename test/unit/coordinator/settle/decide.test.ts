import { describe, expect, test } from 'vitest';
import { makeBatch } from '../../../../src/coordinator/plan/open-batch.ts';
import { type DecisionRules, decide, type Judgement } from '../../../../src/coordinator/settle/decide.ts';
import type { Report } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { batchTaskOf, jobOf, reportOf } from '../../../support/coordinator/batches.ts';
import { hostChange, pageOf, T0, traceOf } from '../../../support/fixtures.ts';

const HOST = 'a.example';
const job = jobOf({ retry: { attempts: 3 }, breaker: { hostProbes: 2 } });
const rules: DecisionRules = {
  job,
  follow: [],
  tellsReferrers: false,
  inherit: () => null,
  areGroups: false,
  random: () => 0,
};
const trace = traceOf();

const fetched = (taskId: number): Outcome => ({
  ...{ kind: 'fetched', taskId, page: pageOf(), links: [], records: [], shows: [], trace },
});
const failed = (taskId: number, code: FailureCode): Outcome => ({
  ...{ kind: 'failed', taskId, code, detail: '', page: pageOf({ route: 'r' }), retryAfterMs: null, trace },
});

/** What is decided on a report of a batch with four tasks. */
function decided(
  judged: Partial<Judgement>,
  {
    report = {},
    more = {},
    attempt = 1,
  }: { report?: Partial<Report>; more?: Partial<DecisionRules>; attempt?: number } = {},
) {
  const permit = { host: HOST, startAt: T0, endAt: T0, gapMs: 0, parallel: 1 };
  const tasks = [1, 2, 3, 4].map((id) => {
    const { permit: _, ...task } = batchTaskOf(id, `https://x.${HOST}/${id}`, { attempt });
    return { ...task, hostId: 1 };
  });
  const grants = [{ hostId: 1, count: 4, nextAt: T0, permit }];
  const open = makeBatch(job, grants, { id: 1, tasks }, { budgetMs: 1, epoch: '', robots: [] });
  const judgement: Judgement = {
    ...{ now: T0 + 0.5, outcomes: [], isRejudged: false, escalating: new Set(), untried: new Set() },
    ...{ banned: new Set(), forbidden: new Set() },
    ...{ robots: [], hosts: [], costs: [], groupOf: (host: string) => host },
    ...judged,
  };
  return decide(open, reportOf(report), judgement, { ...rules, ...more });
}

describe('what is decided on a report', () => {
  test('each outcome changes its task, and the settlement says what the report did', () => {
    const permits = [{ host: HOST, sent: 5, lastSentAt: T0, finished: true }];
    const { settlement } = decided(
      { outcomes: [fetched(1), failed(2, 'connect'), failed(3, 'not-found')], hosts: [hostChange(HOST)] },
      { report: { permits, durationMs: 7.4, worker: 'w1' } },
    );
    expect(settlement.tasks.map(({ id, to }) => [id, to])).toEqual([
      [1, 'done'],
      [2, 'pending'],
      [3, 'dead'],
    ]);
    expect(settlement).toMatchObject({ now: T0, requests: 5, durationMs: 7, worker: 'w1', final: true });
    expect(settlement.hosts).toEqual([hostChange(HOST)]);
  });

  test('a task that escalates is not dead, and counts neither as a failure nor as a success', () => {
    const {
      settlement,
      failed: failures,
      succeeded,
    } = decided({
      outcomes: [fetched(1), failed(2, 'forbidden'), failed(3, 'forbidden')],
      escalating: new Set([2]),
    });
    expect(settlement.tasks.map(({ to }) => to)).toEqual(['done', 'pending', 'dead']);
    expect({ failures, succeeded }).toEqual({ failures: 1, succeeded: 1 });
  });

  test('a task whose proxy is down was not tried', () => {
    const { settlement } = decided({ outcomes: [failed(1, 'proxy')], untried: new Set([1]) }, { attempt: 3 });
    expect(settlement.tasks).toMatchObject([{ to: 'pending', countsAsAttempt: false }]);
  });

  test('deferred tasks are no success, refusals of the coordinator no failure, dead proxies are one', () => {
    const outcomes: Outcome[] = [{ kind: 'deferred', taskId: 1 }, failed(2, 'connect')];
    expect(decided({ outcomes })).toMatchObject({ failed: 1, succeeded: 0 });
    expect(decided({ outcomes }, { report: { part: -1 } })).toMatchObject({ failed: 0, succeeded: 0 });
    const proxyFaults = [{ id: 'p', count: 2 }];
    expect(decided({ outcomes: [] }, { report: { proxyFaults } })).toMatchObject({ failed: 1 });
  });

  test('pages whose records did not pass count against their route once they are given up', () => {
    const outcomes = [failed(1, 'validation'), failed(2, 'validation')];
    expect(decided({ outcomes }).settlement.quality).toEqual([]);
    expect(decided({ outcomes }, { attempt: 3 }).settlement.quality).toEqual([
      { route: 'r', records: 0, invalid: 2, filled: {} },
    ]);
  });

  test('links are lost with trouble, with pages that turn out to be refusals, and with failures of our own', () => {
    expect(decided({ outcomes: [fetched(1), failed(2, 'connect')] }).lostLinks).toBe(false);
    expect(decided({}, { report: { trouble: 'disk full' } }).lostLinks).toBe(true);
    expect(decided({ isRejudged: true }).lostLinks).toBe(true);
    expect(decided({ outcomes: [failed(1, 'internal')] }).lostLinks).toBe(true);
  });

  test('a host that failed its probes is given up; in a group, only the host that was at fault', () => {
    const judged = { outcomes: [failed(1, 'connect')], hosts: [hostChange(HOST, { rests: 3 })] };
    expect(decided(judged)).toMatchObject({
      failedHosts: [{ host: HOST, code: 'host-down' }],
      failedPlaces: [],
    });
    expect(decided(judged, { more: { areGroups: true } })).toMatchObject({
      failedHosts: [],
      failedPlaces: [{ place: `x.${HOST}`, code: 'host-down' }],
    });
  });
});
