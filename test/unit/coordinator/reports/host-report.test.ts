import { describe, expect, test } from 'vitest';
import { hostReporter } from '../../../../src/coordinator/reports/host-report.ts';
import { NO_BAN } from '../../../../src/core/bans/bans.ts';
import type { HostFacts } from '../../../../src/ports/store.ts';
import { robotsEntry, specOf, T0 } from '../../../support/fixtures.ts';

const facts = (more: Partial<HostFacts> = {}): HostFacts => ({
  host: 'a.example',
  ready: 5,
  waiting: null,
  requests: 10,
  nextAt: 0,
  failuresInRow: 0,
  rests: 0,
  pace: null,
  ban: null,
  smallestGapMs: null,
  lastError: null,
  robots: [],
  sharedWith: [],
  profile: null,
  ...more,
});

const pace = { rate: 2, clean: 2, refused: null, tryAt: 0, refusals: 0, latencyMs: 40 };

describe('what is said of a host', () => {
  const report = hostReporter(specOf({ politeness: { rate: 4 } }), 'seine');

  test.each<[string, Partial<HostFacts>, string, string]>([
    ['nothing to do', { ready: 0 }, 'idle', 'no tasks waiting'],
    [
      'a retry',
      { ready: 0, waiting: { count: 2, until: T0 + 9_000, code: 'timeout' } },
      'waiting',
      `2 tasks wait to be tried again after timeout: the next at ${new Date(T0 + 9_000).toISOString()}`,
    ],
    [
      'what a worker needs for its task',
      { ready: 0, waiting: { count: 1, until: T0 + 9_000, code: null } },
      'waiting',
      `1 task waits until ${new Date(T0 + 9_000).toISOString()} for a browser, a proxy or robots.txt`,
    ],
    ['the rate of the job', {}, 'ready', 'job settings: 4 requests per second'],
    ['other jobs', { sharedWith: ['news-1', 'shop-2'] }, 'ready', 'second; in turns with news-1, shop-2'],
    [
      'other jobs that it does not compete with',
      { ready: 0, sharedWith: ['x-1'] },
      'idle',
      'no tasks waiting',
    ],
    [
      'a pause that the host asked for',
      { nextAt: T0 + 60_000, lastError: { at: T0, code: 'rate-limited', detail: 'status 429' } },
      'waiting',
      `pauses until ${new Date(T0 + 60_000).toISOString()} after rate-limited: status 429`,
    ],
    ['a pace that still rises', { pace }, 'ready', 'adaptive rate: still rising'],
    [
      'refusals',
      { pace: { ...pace, refused: 2.25 } },
      'ready',
      'adaptive rate: below 2.25 requests per second',
    ],
    [
      'a ban',
      { ban: { ...NO_BAN, since: T0 - 60_000, rests: 2, restUntil: T0 + 9_000 }, nextAt: T0 + 9_000 },
      'banned',
      `one probe at ${new Date(T0 + 9_000).toISOString()}`,
    ],
    ['a circuit breaker', { rests: 2, failuresInRow: 12, nextAt: T0 + 9_000 }, 'resting', '12 failures'],
    [
      'robots.txt',
      { robots: [robotsEntry('http://a.example', { text: 'User-agent: *', crawlDelayMs: 5_000 })] },
      'ready',
      'asks for 5 s between requests',
    ],
  ])('limited by %s', (_, more, state, text) => {
    const row = report(facts(more), T0);
    expect(row.state).toBe(state);
    expect(row.limitedBy).toContain(text);
  });

  test('what the whole job waits for', () => {
    const waits = hostReporter(specOf(), 'seine', 'no worker with a browser since 12 s');
    const row = waits(facts({ ready: 0, waiting: { count: 1, until: T0 + 9_000, code: null } }), T0);
    expect(row.limitedBy).toBe('1 task waits: no worker with a browser since 12 s');
    expect(row).toMatchObject({ waitingTasks: 1, waitingUntil: new Date(T0 + 9_000).toISOString() });
    expect(waits(facts({ ready: 0 }), T0).limitedBy).toBe('no tasks waiting');
  });

  test('each address with its own pace, where the job learns them', () => {
    const own = { ...pace, rate: 1.5, refused: 1.8, at: T0 - 1_000 };
    const addresses = {
      'lambda-a': own,
      'lambda-b': { ...own, rate: 2 },
      'lambda-c': { ...own, at: T0 - 3_600_000 },
    };
    const known = facts({ pace: { ...pace, rate: 1.5, refused: 1.8, addresses } });
    const perAddress = hostReporter(specOf({ politeness: { rate: 4, perAddress: true } }), 'seine');
    const row = perAddress(known, T0);
    expect(row.rate).toBe(3.5);
    expect(row.addresses).toEqual([
      {
        address: 'lambda-b',
        rate: 2,
        refusedRate: 1.8,
        latencyMs: 40,
        reportedAt: new Date(T0 - 1_000).toISOString(),
      },
      {
        address: 'lambda-a',
        rate: 1.5,
        refusedRate: 1.8,
        latencyMs: 40,
        reportedAt: new Date(T0 - 1_000).toISOString(),
      },
    ]);
    expect(report(known, T0)).not.toHaveProperty('addresses');
    expect(report(known, T0).rate).toBe(1.5);
  });

  test('hours that are closed, and parallelism alone', () => {
    const window = { from: '00:00', to: '00:01' };
    const closed = hostReporter(specOf({ politeness: { hosts: { 'a.example': { window } } } }), 'seine');
    expect(closed(facts(), Date.UTC(2026, 0, 1, 12))).toMatchObject({
      state: 'closed',
      limitedBy: expect.stringContaining('2026-01-02T00:00:00.000Z'),
    });
    const free = hostReporter(specOf({ politeness: { rate: 'max' } }), 'seine');
    expect(free(facts(), T0)).toMatchObject({
      rate: null,
      limitedBy: 'job settings: 32 concurrent requests',
    });
  });

  test('the proof of politeness: robots.txt by its hash, opt-outs, permitted and smallest gap', () => {
    const row = report(
      facts({
        pace,
        smallestGapMs: 527.456,
        robots: [robotsEntry('http://a.example', { text: 'User-agent: *\nDisallow: /' })],
        lastError: { at: T0, code: 'throttled', detail: 'status 429' },
      }),
      T0,
    );
    expect(row).toMatchObject({
      permittedGapMs: 500,
      smallestGapMs: 527.46,
      lastError: 'throttled: status 429',
      robots: [{ optedOut: true, rules: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
  });
});
