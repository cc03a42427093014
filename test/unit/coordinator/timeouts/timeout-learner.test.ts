import { expect, test } from 'vitest';
import { TimeoutLearner } from '../../../../src/coordinator/timeouts/timeout-learner.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { HostProfile } from '../../../../src/core/calibration/host-profile.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { traceOf } from '../../../support/fixtures.ts';

const HOST = 'a.example';
const TASK_MS = 60_000;

function setup() {
  const told: string[] = [];
  const timeouts = { connectMs: 1, headersMs: 1, bodyMs: 1, taskMs: TASK_MS, adaptive: true };
  const learner = new TimeoutLearner({
    job: { spec: { timeouts } },
    logger: { info: (message) => told.push(message) },
  });
  return { learner, told };
}

const answers = (count: number, durationMs: number): Outcome[] =>
  Array.from({ length: count }, (_, taskId) => ({
    ...{ kind: 'unchanged', taskId, page: null, trace: traceOf({ durationMs }) },
  }));

const failures = (
  count: number,
  code: FailureCode,
  durationMs: number,
  httpStatus: number | null,
): Outcome[] =>
  Array.from({ length: count }, (_, taskId) => ({
    ...{ kind: 'failed', taskId, code, detail: '', page: null, retryAfterMs: null },
    trace: traceOf({ durationMs, httpStatus }),
  }));

test('a host that is not known has the time of the job, and then one and a half times its tail', () => {
  const { learner, told } = setup();
  learner.learn(HOST, answers(49, 4_000));
  expect(learner.timeoutMsOf(HOST)).toBeNull();
  learner.learn(HOST, answers(1, 4_000));
  expect(learner.timeoutMsOf(HOST)).toBe(6_000);
  learner.learn(HOST, answers(100, 4_100));
  expect(told).toEqual([`requests to ${HOST} may take 6000 ms`]);
  expect(learner.timeoutMsOf('other.example')).toBeNull();
});

test('it follows a host that becomes slower, though its requests are cut, and one that becomes faster again', () => {
  const { learner } = setup();
  learner.learn(HOST, answers(600, 2_000));
  expect(learner.timeoutMsOf(HOST)).toBe(3_000);
  const seen: number[] = [];
  for (let round = 0; round < 6; round++) {
    const timeoutMs = learner.timeoutMsOf(HOST)!;
    // Each request would take 8 s.
    const cut = timeoutMs < 8_000;
    learner.learn(HOST, cut ? failures(50, 'task-timeout', timeoutMs, null) : answers(50, 8_000));
    seen.push(learner.timeoutMsOf(HOST)!);
  }
  expect(seen).toEqual([4_500, 6_750, 10_125, 12_000, 12_000, 12_000]);
  learner.learn(HOST, answers(600, 2_000));
  expect(learner.timeoutMsOf(HOST)).toBe(3_000);
});

test('refusals and failures of ours say nothing, and the job decides what is the longest', () => {
  const { learner } = setup();
  learner.learn(HOST, answers(50, 10_000));
  learner.learn(HOST, failures(600, 'throttled', 1, 429));
  learner.learn(HOST, failures(600, 'internal', 1, null));
  learner.learn(HOST, failures(600, 'connect', 1, null));
  expect(learner.timeoutMsOf(HOST)).toBe(15_000);
  learner.learn(HOST, answers(600, 50_000));
  expect(learner.timeoutMsOf(HOST)).toBeNull();
});

test('it begins with what calibration found, unless that has expired', () => {
  const { learner } = setup();
  const profile = (host: string, timeoutMs: number | null, expiresAt: number) =>
    ({ host, timeoutMs, expiresAt }) as HostProfile;
  learner.begin(
    [profile(HOST, 5_000, 10), profile('b.example', 5_000, 5), profile('c.example', null, 10)],
    5,
  );
  expect([HOST, 'b.example', 'c.example'].map((host) => learner.timeoutMsOf(host))).toEqual([
    5_000,
    null,
    null,
  ]);
  learner.learn(HOST, answers(10, 100));
  expect(learner.timeoutMsOf(HOST)).toBe(5_000);
});
