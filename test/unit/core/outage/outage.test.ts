import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import {
  type Network,
  nextNetwork,
  ONLINE,
  probed,
  type Reach,
  reachOf,
} from '../../../../src/core/outage/outage.ts';
import { T0, traceOf } from '../../../support/fixtures.ts';

const HOUR = 3_600_000;

const unreached = (host: string | number, more: Partial<Reach> = {}): Reach => ({
  ...{ host: `h${host}`, isReached: false, isOwn: false, wasReached: false },
  ...more,
});
const reached = (host: string | number): Reach => ({ ...unreached(host), isReached: true });
const lost = (host: string | number) => unreached(host, { wasReached: true });
const own = (host: string | number) => unreached(host, { isOwn: true });
const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => unreached(from + index));

const next = (network: Network, results: Reach[], now = T0) => nextNetwork(network, results, now);
const used = next(ONLINE, [1, 2, 3, 4].map(reached));

describe('the network', () => {
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
  ])('is gone when %s', (_, before, results) => {
    const network = next(before, results);
    expect(network.outage).toEqual({ since: T0, probes: 0, probeAt: T0 + 1_000 });
    expect(next(network, results.slice(0, -1)).outage).not.toBeNull();
    expect(next(before, results.slice(0, -1)).outage).toBeNull();
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
    expect(network).toMatchObject({ outage: null, unreached: [], lost: 0 });
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
    for (const network of [next(used, many(20)), next(ONLINE, [own(1), own(2), own(3)])])
      expect(next(network, [unreached(1)], T0 + 23 * HOUR).outage).not.toBeNull();
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
      { isReached: false, isOwn: true },
    ],
    [
      'a name that does not exist',
      failed('dns', 'not resolved (ENOTFOUND)'),
      { isReached: false, isOwn: false },
    ],
    ['no network', failed('connect', 'failed (ENETUNREACH)'), { isReached: false, isOwn: true }],
    ['a refused connection', failed('connect', 'failed (ECONNREFUSED)'), { isReached: false, isOwn: false }],
    ['a broken connection', failed('reset'), null],
    ['a bad certificate', failed('tls'), { isReached: true, isOwn: false }],
    ['a proxy that is down', failed('proxy'), null],
    ['nothing was sent', { kind: 'deferred', taskId: 1 }, null],
  ])('%s', (_, result, expected) => {
    expect(reachOf(result)).toEqual(expected);
  });
});
