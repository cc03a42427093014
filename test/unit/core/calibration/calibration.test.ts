import { describe, expect, test } from 'vitest';
import { Calibration } from '../../../../src/core/calibration/calibration.ts';
import { calibrateHost } from '../../../sim/arena/calibrate-host.ts';
import { type ArenaHost, type HostAnswer, openHost, randomOf } from '../../../sim/arena/hosts.ts';
import { Network } from '../../../sim/arena/network.ts';

const OK: HostAnswer = { kind: 'answered', byLimiter: false, latencyMs: 50, retryAfterMs: null };

const hostOf = (take: (now: number) => HostAnswer): ArenaHost => ({
  ...{ kind: 'test', windowMs: 1_000, limit: 10, limitAt: () => 10 },
  take,
});

const networkOf = (host: ArenaHost) => new Network(host, randomOf(1));

describe('calibration', () => {
  test('finds the limit of a host that counts by the second', () => {
    const network = networkOf(openHost('fixed 1 s', 5));
    const { limit } = openHost('fixed 1 s', 5);
    const result = calibrateHost(network);
    expect(result.end).toBe('held');
    expect(result.rate! / limit).toBeGreaterThan(0.8);
    expect(result.rate! / limit).toBeLessThanOrEqual(1);
    expect(result.refusals).toBeLessThanOrEqual(20);
    expect(result.evidence.some(({ purpose }) => purpose === 'control')).toBe(true);
    expect(result.evidence.at(-1)).toMatchObject({ purpose: 'hold', verdict: 'accepted' });
  });

  test('never exceeds the cap, and keeps it whole where it held', () => {
    const network = networkOf(hostOf(() => OK));
    const result = calibrateHost(network, { cap: 5 });
    expect(result).toMatchObject({ end: 'cap', rate: 5, refusals: 0 });
    expect(Math.max(...result.evidence.map(({ rate }) => rate))).toBe(5);
    // Five a second, and never more, for as long as it took.
    expect(network.requests).toBeLessThanOrEqual((network.now / 1_000) * 5 + 1);
  });

  test('stops at once when the host answers with 403', () => {
    let answers = 0;
    const network = networkOf(hostOf(() => (++answers > 300 ? { ...OK, kind: 'blocked' } : OK)));
    const result = calibrateHost(network);
    expect(result.end).toBe('blocked');
    expect(answers).toBeLessThan(310);
    expect(result.rate).not.toBeNull();
  });

  test('does not take an outage for a limit', () => {
    const isOut = (now: number) => now > 200_000 && now < 260_000;
    const refused: HostAnswer = { ...OK, kind: 'refused', retryAfterMs: 10_000 };
    const result = calibrateHost(networkOf(hostOf((now) => (isOut(now) ? refused : OK))), { cap: 8 });
    expect(result).toMatchObject({ end: 'cap', rate: 8 });
    expect(result.refusals).toBeGreaterThan(0);
    const failing = calibrateHost(networkOf(hostOf((now) => (isOut(now) ? { ...OK, kind: 'failed' } : OK))), {
      cap: 8,
    });
    expect(failing).toMatchObject({ end: 'cap', rate: 8, refusals: 0 });
  });

  test('asks a host ever more seldom that stays closed after the pause it asked for', () => {
    const isOut = (now: number) => now % 400_000 > 285_000;
    const refused: HostAnswer = { ...OK, kind: 'refused', retryAfterMs: 10_000 };
    const network = networkOf(hostOf((now) => (isOut(now) ? refused : OK)));
    const result = calibrateHost(network, { cap: 3 });
    expect(result).toMatchObject({ end: 'cap', rate: 3 });
    // Each outage lasts for almost two minutes.
    expect(result.refusals).toBeLessThan(7 * Math.ceil(network.now / 400_000));
  });

  test('does not give up a host for the requests that were under way when it failed', () => {
    const slow: HostAnswer = { ...OK, latencyMs: 2_000 };
    const isOut = (now: number) => now > 20_000 && now < 80_000;
    const host = hostOf((now) => (isOut(now) ? { ...slow, kind: 'failed' } : slow));
    const result = calibrateHost(networkOf(host), { cap: 40, startRate: 40 });
    expect(result).toMatchObject({ end: 'cap', rate: 40 });
  });

  test('learns a long window from one closure, where many requests are under way and refused together', () => {
    const WINDOW_MS = 600_000;
    const LIMIT = 30;
    const counts = new Map<number, number>();
    const host = hostOf((now) => {
      const window = Math.floor((now + 200_000) / WINDOW_MS);
      const count = (counts.get(window) ?? 0) + 1;
      counts.set(window, count);
      const opensAt = (window + 1) * WINDOW_MS - 200_000;
      const retryAfterMs = Math.ceil((opensAt - now) / 1_000) * 1_000;
      const slow: HostAnswer = { ...OK, latencyMs: 300 };
      return count <= (LIMIT * WINDOW_MS) / 1_000 ? slow : { ...slow, kind: 'refused', retryAfterMs };
    });
    const result = calibrateHost(networkOf(host), { startRate: 15 });
    const closures = result.evidence.filter(({ refused }) => refused > 0);
    expect(closures).toHaveLength(1);
    expect(result.windowMs).toBe(WINDOW_MS);
    expect(result.rate! / LIMIT).toBeGreaterThan(0.8);
    expect(result.rate! / LIMIT).toBeLessThanOrEqual(1);
  });

  test('believes of a rate with refusals only what was answered', () => {
    // Refuses each request that comes too soon after a refusal, which is too few for the test to reject the rate.
    const network = networkOf(openHost('slow tails', 1_208_145_878));
    const { limit } = openHost('slow tails', 1_208_145_878);
    expect(calibrateHost(network).rate! / limit).toBeLessThanOrEqual(1);
  });

  test('keeps to its budgets of requests and refusals', () => {
    const few = networkOf(openHost('fixed 1 s', 5));
    expect(calibrateHost(few, { requestsMax: 300 })).toMatchObject({ end: 'requests' });
    expect(few.requests).toBe(300);
    // Many are under way at once.
    const slow = networkOf(hostOf(() => ({ ...OK, latencyMs: 2_000 })));
    expect(calibrateHost(slow, { requestsMax: 40, cap: 50, startRate: 50 })).toMatchObject({
      end: 'requests',
      requests: 40,
    });
    expect(slow.requests).toBe(40);
    const always: HostAnswer = { ...OK, kind: 'refused' };
    const closed = calibrateHost(networkOf(hostOf(() => always)), { refusalsMax: 5 });
    expect(closed).toMatchObject({ end: 'refusals', rate: null, refusals: 5 });
  });

  test('sends at the rate that is tested, though timers are late', () => {
    const calibration = new Calibration(
      { cap: 100, startRate: 50, parallelMax: 4, requestsMax: null, refusalsMax: 20 },
      0,
    );
    let now = 0;
    for (let sent = 0; sent < 500; sent++) {
      const step = calibration.next(now);
      if (step.kind !== 'send') throw new Error(step.kind);
      now = Math.max(now, step.at) + 3;
      calibration.sent(now);
      calibration.answered(now + 5, now, { kind: 'answered' });
    }
    expect(500 / (now / 1_000)).toBeGreaterThan(49.5);
    expect(500 / (now / 1_000)).toBeLessThanOrEqual(50.5);
  });

  test('its gaps are never shorter than those of the cap, however late requests were', () => {
    const calibration = new Calibration(
      { cap: 50, startRate: 50, parallelMax: 4, requestsMax: null, refusalsMax: 20 },
      0,
    );
    const sent: number[] = [];
    for (let now = 0; sent.length < 200; ) {
      const step = calibration.next(now);
      if (step.kind !== 'send') throw new Error(step.kind);
      now = Math.max(now, step.at) + (sent.length % 7);
      calibration.sent(now);
      calibration.answered(now + 1, now, { kind: 'answered' });
      sent.push(now);
    }
    const gaps = sent.slice(1).map((at, index) => at - sent[index]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(20);
  });

  test('its evidence is in round figures', () => {
    const { evidence } = calibrateHost(networkOf(openHost('fixed 1 s', 5)));
    for (const { rate, ms } of evidence) {
      expect(Number.isInteger(ms)).toBe(true);
      expect(String(rate).length).toBeLessThan(10);
    }
  });

  test('waits as long as the host asks for', () => {
    const calibration = new Calibration(
      { cap: 10, startRate: 1, parallelMax: 4, requestsMax: null, refusalsMax: 20 },
      0,
    );
    expect(calibration.next(0)).toEqual({ kind: 'send', at: 0 });
    calibration.sent(0);
    calibration.answered(100, 0, { kind: 'refused', retryAfterMs: 30_000 });
    expect(calibration.next(100)).toEqual({ kind: 'send', at: 30_100 });
  });

  test('gives up on a host that stops answering', () => {
    const network = networkOf(hostOf((now) => (now > 100_000 ? { ...OK, kind: 'failed' } : OK)));
    expect(calibrateHost(network).end).toBe('unreachable');
  });
});
