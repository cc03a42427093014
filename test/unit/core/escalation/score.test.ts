import { expect, test } from 'vitest';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { levelToRetry, STALE_MS, type Verdict, verdictOf } from '../../../../src/core/escalation/score.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { traceOf } from '../../../support/fixtures.ts';

function failed(code: FailureCode, httpStatus: number | null): Outcome {
  const trace = traceOf({ httpStatus });
  return { kind: 'failed', taskId: 1, code, detail: '', page: null, retryAfterMs: null, trace };
}

test.each<[FailureCode, number | null, Verdict | null]>([
  ['not-found', 404, 'answered'],
  ['parse-error', 200, 'answered'],
  ['forbidden', 403, 'forbidden'],
  ['captcha', 200, 'refused'],
  ['client-error', 406, 'refused'],
  ['script-only', 200, 'scripts'],
  ['validation', 200, 'lacking'],
  // The host or the way to it, whoever asks.
  ['unavailable', 503, null],
  ['server-error', 500, null],
  ['throttled', 429, null],
  ['reset', null, null],
  // Of our own making.
  ['internal', 200, null],
])('%s with status %s says %s of the fetch method', (code, status, verdict) => {
  expect(verdictOf(failed(code, status))).toBe(verdict);
});

test('what was not sent says nothing, and whatever else came back is an answer', () => {
  expect(verdictOf({ kind: 'deferred', taskId: 1 })).toBeNull();
  const skipped = { kind: 'skipped', taskId: 1, code: 'robots', detail: null } as const;
  expect(verdictOf({ ...skipped, trace: null })).toBeNull();
  expect(verdictOf({ ...skipped, trace: traceOf() })).toBe('answered');
});

test('a level below is tried again when it is unknown or old, often when it is promising, and else now and then', () => {
  const NOW = 100 * STALE_MS;
  const retried = (rates: (number | null)[], chance: number, at = NOW) =>
    levelToRetry(
      rates.length,
      (level) => (rates[level] === null ? undefined : { tries: 10, rate: rates[level]!, at }),
      NOW,
      () => chance,
    );
  expect(retried([0, null], 0.99)).toBe(1);
  expect(retried([0, 0], 0.99, NOW - STALE_MS - 1)).toBe(0);
  expect(retried([0, 0.2], 0.24)).toBe(1);
  expect(retried([0, 0.2], 0.26)).toBeNull();
  expect(retried([0, 0.1], 0.24)).toBeNull();
  expect([0.001, 0.011, 0.021].map((chance) => retried([0, 0], chance))).toEqual([0, 1, null]);
  expect(retried([], 0)).toBeNull();
});
