import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { SlowRequests } from '../../../../src/worker/batch/slow-requests.ts';
import { T0, traceOf } from '../../../support/fixtures.ts';

const NEVER = Number.POSITIVE_INFINITY;
const answered = (durationMs: number): Outcome => ({
  kind: 'unchanged',
  taskId: 1,
  page: null,
  trace: { ...traceOf(), durationMs },
});

function setUp({
  parallel = 4,
  usualMs,
  attempts = [1],
}: {
  parallel?: number;
  usualMs?: number;
  attempts?: number[];
}) {
  const clock = { time: T0, now: () => clock.time };
  const tasks = attempts.map((attempt) => ({ attempt }));
  const slow = new SlowRequests({ parallel, ...(usualMs === undefined ? {} : { usualMs }) }, tasks, clock);
  const send = () => {
    const request = slow.add();
    slow.onSent(request);
    return request;
  };
  return { slow, send, clock };
}

describe('requests that do not answer', () => {
  test('get their whole time while no other page of the host answers', () => {
    const { slow, send, clock } = setUp({ parallel: 1 });
    const request = send();
    clock.time += 60_000;
    expect(slow.headersMs(request, true)).toBe(NEVER);
    slow.onOutcome(answered(10));
    expect(slow.headersMs(request, true)).toBe(1_000);
  });

  test('hold at most half of the parallel requests, the oldest first', () => {
    const { slow, send, clock } = setUp({ parallel: 4, usualMs: 200 });
    const requests = [send(), send(), send(), send()];
    const times = () => requests.map((request) => slow.headersMs(request, false));
    clock.time += 1_999;
    expect(times().slice(0, 2)).toEqual([NEVER, NEVER]);
    clock.time += 1;
    expect(times()).toEqual([NEVER, NEVER, 2_000, 2_000]);
    slow.delete(requests[0]!);
    expect(slow.headersMs(requests[2]!, false)).toBe(NEVER);
  });

  test('do not hold the permit once everything else is done', () => {
    const { slow, send, clock } = setUp({ parallel: 4, usualMs: 200 });
    const old = send();
    clock.time += 10_000;
    const young = send();
    expect(slow.headersMs(old, false)).toBe(NEVER);
    // The other one may still answer in time.
    expect(slow.headersMs(old, true)).toBe(NEVER);
    slow.delete(young);
    expect(slow.headersMs(old, true)).toBe(2_000);
  });

  test('are waited for in a permit of nothing but pages that failed before', () => {
    const { slow, send, clock } = setUp({ usualMs: 200, attempts: [2, 3] });
    const request = send();
    clock.time += 60_000;
    expect(slow.headersMs(request, true)).toBe(NEVER);
  });

  test('are measured by what others take', () => {
    const { slow, send, clock } = setUp({ parallel: 1, usualMs: 2_000 });
    const request = send();
    clock.time += 19_999;
    slow.add();
    expect(slow.headersMs(request, false)).toBe(20_000);
    for (let count = 0; count < 50; count++) slow.onOutcome(answered(100));
    expect(slow.headersMs(request, false)).toBeLessThan(1_100);
  });
});
