import { expect, test } from 'vitest';
import { zeroCounters } from '../../../../src/core/model.ts';
import {
  jobEndMessage,
  nextTryAt,
  progressMessage,
  webhookBody,
} from '../../../../src/core/webhooks/webhook.ts';

test('tries come ten times within four days, each a little later than the last time by chance', () => {
  const delays = Array.from({ length: 11 }, (_, tries) => nextTryAt(tries, 0, 0));
  expect(delays.map((ms) => ms && ms / 1_000)).toEqual([
    0,
    5,
    300,
    1_800,
    7_200,
    18_000,
    36_000,
    50_400,
    72_000,
    86_400,
    null,
  ]);
  expect(nextTryAt(1, 1_000, 1)).toBe(7_000);
});

test('a body stays below 20 KB', () => {
  const message = { type: 'page.failed', data: { url: 'x'.repeat(30_000), code: 'dns' } } as const;
  const body = JSON.parse(webhookBody(message, { note: 'x'.repeat(3_000) }, 0));
  expect(body.data).toEqual({ code: 'dns', truncated: true });
});

test('a job is failed when it stopped early or no page of it was reached', () => {
  const job = { id: 1, name: 'a', run: 1, reason: null } as const;
  const counts = { ...zeroCounters(), accepted: 2, dead: 2 };
  const end = (state: 'done' | 'tripped' | 'cancelled', counters = zeroCounters()) => {
    const { type, data } = jobEndMessage({ ...job, state }, counters);
    return [type, data.status];
  };
  expect(end('done')).toEqual(['job.completed', 'completed']);
  expect(end('done', counts)).toEqual(['job.failed', 'failed']);
  expect(end('done', { ...counts, dead: 1, done: 1 })).toEqual(['job.completed', 'completed']);
  expect(end('tripped')).toEqual(['job.failed', 'failed']);
  expect(end('cancelled')).toEqual(['job.failed', 'cancelled']);
});

test('progress is told at each tenth, and not at the start or the end', () => {
  const at = (pending: number) =>
    progressMessage({ id: 1, pass: 1 }, { ...zeroCounters(), accepted: 100, pending })?.data.percent ?? null;
  expect([100, 91, 90, 45, 1, 0].map(at)).toEqual([null, null, 10, 50, 90, null]);
});
