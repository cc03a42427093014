import { describe, expect, test } from 'vitest';
import { changeOf } from '../../../../src/coordinator/settle/settle-tasks.ts';
import type { BatchTask } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { type FailureCode, isRefusal, isThrottling } from '../../../../src/core/failures.ts';
import { specOf, T0, traceOf } from '../../../support/fixtures.ts';

const spec = specOf({ retry: { attempts: 3 } });

function settled(code: FailureCode, attempt: number, escalates: boolean) {
  const task: BatchTask = {
    id: 7,
    url: 'https://a.example/1',
    permit: 0,
    depth: 0,
    route: null,
    attempt,
    hops: 0,
    meta: null,
    lastVisit: null,
  };
  const trace = traceOf({ httpStatus: 403 });
  const outcome: Outcome = {
    kind: 'failed',
    taskId: 7,
    code,
    detail: '',
    page: null,
    retryAfterMs: null,
    trace,
  };
  const escalating = new Set(escalates ? [7] : []);
  const change = changeOf(task, outcome, { spec, follow: [], now: T0, random: () => 0.5, escalating });
  return [change.to, change.countsAsAttempt, change.dueAt !== null && change.dueAt > T0];
}

describe('a refused task', () => {
  test('goes on while another way is left, whatever its attempts', () => {
    expect(settled('forbidden', 1, true)).toEqual(['pending', true, true]);
    expect(settled('captcha', 9, true)).toEqual(['pending', true, true]);
  });

  test('is over without another way: at once when forbidden, after its attempts when blocked', () => {
    expect(settled('forbidden', 1, false)).toEqual(['dead', true, false]);
    for (const code of ['blocked', 'captcha', 'soft-block'] as const) {
      expect(settled(code, 2, false)).toEqual(['pending', true, true]);
      expect(settled(code, 3, false)).toEqual(['dead', true, false]);
    }
  });
});

test('refusals are what concerns who asks, and never 429', () => {
  for (const code of ['blocked', 'captcha', 'soft-block', 'forbidden'] as const)
    expect(isRefusal(code, 403)).toBe(true);
  expect(isRefusal('client-error', 406)).toBe(true);
  expect(isRefusal('client-error', 400)).toBe(false);
  for (const code of ['throttled', 'unavailable', 'not-found', 'reset', 'unauthorized'] as const)
    expect(isRefusal(code, null)).toBe(false);
});

test('a challenge page with 429 asks for less as any 429 does', () => {
  expect(isThrottling('throttled', 429)).toBe(true);
  expect(isThrottling('captcha', 429)).toBe(true);
  expect(isThrottling('unavailable', 503)).toBe(true);
  expect(isThrottling('captcha', 403)).toBe(false);
  expect(isThrottling('forbidden', null)).toBe(false);
});
