import { describe, expect, test } from 'vitest';
import type { RobotsOutcome } from '../../../../src/core/batch/outcome.ts';
import { FAILURES, type FailureCode } from '../../../../src/core/failures.ts';
import {
  codeOfRobotsFailure,
  failedHostsOf,
  failedPlacesOf,
  isOutOfAttempts,
} from '../../../../src/core/giving-up/giving-up.ts';
import { robotsEntry, specOf } from '../../../support/fixtures.ts';

const ORIGIN = 'https://a.example';
const spec = specOf({ retry: { attempts: 3 }, breaker: { hostProbes: 2 } });
const answer = (code: FailureCode): RobotsOutcome => ({
  ...{ kind: 'failed', origin: ORIGIN, code, detail: 'no', trace: null },
});
const unread = (failures: number) => robotsEntry(ORIGIN, { text: null, failures });

test('a task is out of attempts after the last, and at once where a retry would only repeat the failure', () => {
  expect([1, 2, 3, 4].map((attempt) => isOutOfAttempts('connect', attempt, spec.retry))).toEqual([
    ...[false, false, true, true],
  ]);
  expect(isOutOfAttempts('not-found', 1, spec.retry)).toBe(true);
});

describe('a host is given up', () => {
  test('when it failed all its probes', () => {
    const hosts = [2, 3].map((rests) => ({ host: `h${rests}.example`, rests }));
    expect(failedHostsOf(hosts, [], [], spec)).toEqual([
      { host: 'h3.example', code: 'host-down', detail: '2 probes failed' },
    ]);
  });

  test('when its robots.txt failed in all attempts, or for good', () => {
    const failed = (code: FailureCode, failures: number) =>
      failedHostsOf([], [answer(code)], [unread(failures)], spec);
    expect(failed('unavailable', 2)).toEqual([]);
    expect(failed('unavailable', 3)).toEqual([
      { host: 'a.example', code: 'robots-unreachable', detail: 'robots.txt: no' },
    ]);
    expect(failed('tls', 1)).toMatchObject([{ code: 'tls' }]);
    expect(failedHostsOf([], [{ kind: 'deferred', origin: ORIGIN }], [unread(9)], spec)).toEqual([]);
    expect(failedHostsOf([], [answer('tls')], [], spec)).toEqual([]);
  });

  test('with a code that says what is the matter with robots.txt', () => {
    const codes = (Object.keys(FAILURES) as FailureCode[]).filter(
      (code) => codeOfRobotsFailure(code) === 'robots-unreachable',
    );
    expect(codes).toEqual(['throttled', 'unavailable', 'server-error', 'robots-unreachable']);
    expect(codeOfRobotsFailure('dns')).toBe('dns');
  });
});

describe('in a group, only one place is given up', () => {
  const group = '*.a.example';

  test('the host that was at fault', () => {
    const failed = [{ host: group, code: 'host-down' as const, detail: 'd' }];
    const faults = [
      { group, url: 'https://x.a.example/1' },
      { group: 'b.example', url: 'https://b.example/' },
    ];
    expect(failedPlacesOf(failed, faults, [])).toEqual([
      { place: 'x.a.example', code: 'host-down', detail: 'd' },
    ]);
  });

  test('the origin whose robots.txt cannot be fetched', () => {
    const failed = [{ host: group, code: 'dns' as const, detail: 'd' }];
    const entries = [
      { ...unread(3), host: group },
      robotsEntry('https://b.a.example', { host: group, text: 'x' }),
      robotsEntry('https://c.a.example', { host: group, text: null, redirectTo: 'https://d.example/' }),
      robotsEntry('https://e.example', { text: null }),
    ];
    expect(failedPlacesOf(failed, [{ group, url: 'https://x.a.example/1' }], entries)).toEqual([
      { place: ORIGIN, code: 'robots-unreachable', detail: 'd' },
    ]);
  });
});
