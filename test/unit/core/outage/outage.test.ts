import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import {
  isReachedSince,
  type Network,
  nextNetwork,
  nextReachedAt,
  ONLINE,
  probed,
  type Reach,
  reachOf,
} from '../../../../src/core/outage/outage.ts';
import { pageOf, T0, traceOf } from '../../../support/fixtures.ts';

const HOUR = 3_600_000;

const unreached = (host: string | number, more: Partial<Reach> = {}): Reach => ({
  ...{ host: `h${host}`, isReached: false, isOwn: false, isOffline: false, wasReached: false, at: T0 },
  ...more,
});
const reached = (host: string | number, at = Number.MAX_VALUE): Reach => ({
  ...unreached(host),
  ...{ isReached: true, at },
});
const lost = (host: string | number) => unreached(host, { wasReached: true });
const own = (host: string | number) => unreached(host, { isOwn: true });
const offline = (host: string | number) => unreached(host, { isOwn: true, isOffline: true });
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => unreached(from + index));

const next = (network: Network, results: Reach[], now = T0) => nextNetwork(network, results, now);
const used = next(
  ONLINE,
  [1, 2, 3, 4].map((host) => reached(host)),
);

describe('the network', () => {
  test('is not back because of a report of requests from before it went', () => {
    const gone = next(used, [1, 2, 3].map(lost));
    const late = next(gone, [reached(4, T0 - 1)], T0 + 500);
    expect(late).toEqual(gone);
    expect(next(late, [reached(4, T0 + 1_000)], T0 + 1_100)).toMatchObject({ outage: null, tolerance: 2 });
  });

  test('is there as long as some host is reached, however many are not', () => {
    let network = ONLINE;
    for (let round = 0; round < 50; round++) {
      network = next(network, [...many(19, round * 100)]);
      expect(network.outage).toBeNull();
      network = next(network, [...many(50, round * 100), reached('up')]);
      expect(network).toMatchObject({ outage: null, unreached: [] });
    }
  });

  test.each<[string, Network, Reach[]]>([
    ['three hosts that were reached before are not', used, [1, 2, 3].map(lost)],
    [
      'both of two hosts that were reached before are not',
      next(ONLINE, [reached(1), reached(2)]),
      [lost(1), lost(2)],
    ],
    ['twenty different hosts are not reached', ONLINE, many(20)],
    ['three hosts are not reached for a reason of our own', ONLINE, [own(1), own(2), own(3)]],
    [
      'one that was is not reached for a reason of our own',
      used,
      [unreached(1, { isOwn: true, wasReached: true })],
    ],
    ['this machine has no network, and no host was ever reached', ONLINE, [offline(1)]],
    ['both hosts that an earlier run reached are not', ONLINE, [lost(1), lost(2)]],
  ])('is gone when %s', (_, before, results) => {
    const network = next(before, results);
    expect(network.outage).toEqual({ since: T0, probes: 0, probeAt: T0 + 1_000 });
    expect(next(network, results.slice(0, -1)).outage).not.toBeNull();
    expect(next(before, results.slice(0, -1)).outage).toBeNull();
  });

  test('is not gone because one host has an address of a kind that this machine has no network for', () => {
    expect(next(used, [offline(5)]).outage).toBeNull();
  });

  test('is taken for gone for five minutes at most when a single host was never reached', () => {
    const network = next(ONLINE, [offline(1)]);
    expect(next(network, [offline(1)], T0 + 5 * 60_000 - 1).outage).not.toBeNull();
    expect(next(network, [offline(1)], T0 + 5 * 60_000)).toMatchObject({ outage: null, isResigned: true });
  });

  test('when a host was last reached is kept to about a minute, and counts for a day', () => {
    const answer: Outcome = { kind: 'unchanged', taskId: 1, page: pageOf(), trace: traceOf() };
    const nothing: Outcome = { kind: 'deferred', taskId: 1 };
    expect(nextReachedAt(null, [nothing], T0)).toBeNull();
    expect(nextReachedAt(null, [nothing, answer], T0 + 0.5)).toBe(T0);
    expect(nextReachedAt(T0, [answer], T0 + 59_000)).toBeNull();
    expect(nextReachedAt(T0, [answer], T0 + 60_000)).toBe(T0 + 60_000);
    expect(isReachedSince(null, T0)).toBe(false);
    expect(isReachedSince(T0, T0 + 24 * HOUR - 1)).toBe(true);
    expect(isReachedSince(T0, T0 + 24 * HOUR)).toBe(false);
  });

  test('is not gone because one host fails again and again', () => {
    const times = Array.from({ length: 100 }, () => lost(1));
    expect(next(used, times).outage).toBeNull();
  });

  test('gets probes at gaps that double, up to five minutes', () => {
    let network = next(used, [1, 2, 3].map(lost));
    const gaps: number[] = [];
    for (let count = 0; count < 12; count++) {
      const now = network.outage!.probeAt;
      network = next(probed(network, now), [lost(1)], now + 10);
      gaps.push((network.outage!.probeAt - now) / 1_000);
    }
    expect(gaps).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
  });

  test('is back with one host that is reached', () => {
    const network = next(next(used, [1, 2, 3].map(lost)), [reached(9)], T0 + HOUR);
    expect(network).toMatchObject({ outage: null, unreached: [] });
  });

  test('dead hosts that are left over hold a run up less and less', () => {
    let network = used;
    let outages = 0;
    for (let host = 0; host < 3_000; host++) {
      network = next(network, [unreached(host)]);
      if (network.outage === null) continue;
      outages++;
      network = next(network, [reached('reference')]);
    }
    expect(outages).toBeLessThanOrEqual(8);
    expect(next(next(used, many(20)), [reached(1)]).tolerance).toBe(2);
    expect(next(next(next(used, many(20)), [reached(1)]), [reached(1)]).tolerance).toBe(1);
  });

  test.each<[string, Network, number]>([
    ['a list of dead hosts, after five minutes', next(ONLINE, many(20)), 5 * 60_000],
    ['a few hosts that went at once, after an hour', next(used, [1, 2, 3].map(lost)), HOUR],
  ])('gives up on %s', (_, outage, patienceMs) => {
    expect(next(outage, [unreached(1)], T0 + patienceMs - 1).outage).not.toBeNull();
    const resigned = next(outage, [unreached(1)], T0 + patienceMs);
    expect(resigned).toMatchObject({ outage: null, isResigned: true });
    expect(next(resigned, many(100)).outage).toBeNull();
    expect(next(resigned, [reached(1)])).toMatchObject({ isResigned: false });
  });

  test('gives up on no host when many are unreached after others were reached, or for a reason of our own', () => {
    expect(next(next(used, many(20)), [unreached(1)], T0 + 23 * HOUR).outage).not.toBeNull();
    expect(next(next(ONLINE, [1, 2, 3].map(own)), [own(1)], T0 + 23 * HOUR).outage).not.toBeNull();
  });

  test('resigns to a host that is gone, where it failed for a reason of our own before', () => {
    const gone = next(ONLINE, [unreached(1, { isOwn: true, isOffline: true, wasReached: true })]);
    expect(next(gone, [own(1)], T0 + 2 * HOUR).outage).not.toBeNull();
    const refused = next(gone, [lost(1)], T0 + HOUR - 1);
    expect(refused.outage).not.toBeNull();
    expect(next(refused, [lost(1)], T0 + HOUR)).toMatchObject({ outage: null, isResigned: true });
  });

  test('resigns to hosts that are gone, where one that is not asked any more failed for a reason of our own', () => {
    const offlineAndLost = (host: number) => unreached(host, { ...offline(host), wasReached: true });
    const gone = next(used, [offlineAndLost(1), offlineAndLost(2)], T0);
    const refused = next(gone, [lost(2)], T0 + HOUR - 1);
    expect(refused.outage).not.toBeNull();
    expect(next(refused, [lost(2)], T0 + HOUR)).toMatchObject({ outage: null, isResigned: true });
  });

  test('counts a reason of our own again, also of a host that it had no place to note', () => {
    const gone = next(ONLINE, [1, 2, 3, ...Array.from({ length: 17 }, (_, at) => at + 10)].map(own));
    expect(next(gone, [own(99)], T0 + 5 * HOUR).outage).not.toBeNull();
  });
});

describe('what a result says of the network', () => {
  const failed = (code: FailureCode, detail = ''): Outcome => ({
    ...{ kind: 'failed', taskId: 1, code, detail, page: null, retryAfterMs: null },
    trace: { ...traceOf(), httpStatus: null },
  });

  test.each<[string, Outcome, ReturnType<typeof reachOf>]>([
    [
      'a name that cannot be resolved now',
      failed('dns', 'not resolved (EAI_AGAIN)'),
      { isReached: false, isOwn: true, isOffline: false, at: T0 },
    ],
    [
      'a name that does not exist',
      failed('dns', 'not resolved (ENOTFOUND)'),
      { isReached: false, isOwn: false, isOffline: false, at: T0 },
    ],
    [
      'no network',
      failed('connect', 'failed (ENETUNREACH)'),
      { isReached: false, isOwn: true, isOffline: true, at: T0 },
    ],
    [
      'a refused connection',
      failed('connect', 'failed (ECONNREFUSED)'),
      { isReached: false, isOwn: false, isOffline: false, at: T0 },
    ],
    ['a broken connection', failed('reset'), null],
    ['a bad certificate', failed('tls'), { isReached: true, isOwn: false, isOffline: false, at: T0 }],
    ['a proxy that is down', failed('proxy'), null],
    ['nothing was sent', { kind: 'deferred', taskId: 1 }, null],
  ])('%s', (_, result, expected) => {
    expect(reachOf(result)).toEqual(expected);
  });
});
