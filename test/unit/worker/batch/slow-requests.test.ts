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
  marginMs = 0,
}: {
  parallel?: number;
  usualMs?: number;
  attempts?: number[];
  marginMs?: number;
}) {
  const clock = { time: T0, now: () => clock.time };
  const tasks = attempts.map((attempt) => ({ attempt }));
  const permit = { parallel, ...(usualMs === undefined ? {} : { usualMs }) };
  const slow = new SlowRequests(permit, tasks, clock, { marginMs });
  const send = () => {
    const request = slow.add();
    slow.onSent(request);
    return request;
  };
  const answer = (ms = 5) => {
    clock.time++;
    const request = send();
    clock.time += ms;
    slow.delete(request);
    slow.onOutcome(request, answered(ms));
  };
  return { slow, send, answer, clock };
}

describe('requests that do not answer', () => {
  test('get their whole time while no other page of the host answers', () => {
    const { slow, send, clock } = setUp({ parallel: 1 });
    const request = send();
    clock.time += 60_000;
    expect(slow.headersMs(request, true)).toBe(NEVER);
    slow.onOutcome(request, answered(10));
    expect(slow.headersMs(request, true)).toBe(1_000);
  });

  test('hold at most half of the parallel requests: the oldest have to go', () => {
    const { slow, send, clock } = setUp({ parallel: 4, usualMs: 200 });
    const requests = [send(), send(), send(), send()];
    const times = () => requests.map((request) => slow.headersMs(request, false));
    clock.time += 1_999;
    expect(times()).toEqual([NEVER, NEVER, NEVER, NEVER]);
    clock.time += 1;
    expect(times()).toEqual([2_000, 2_000, NEVER, NEVER]);
    slow.delete(requests[0]!);
    expect(times().slice(1)).toEqual([2_000, NEVER, NEVER]);
  });

  test('go sooner when later ones have answered, and nothing can be sent because of them', () => {
    const { slow, send, answer, clock } = setUp({ parallel: 2, usualMs: 5 });
    const first = send();
    for (let count = 0; count < 3; count++) answer();
    clock.time = T0 + 400;
    // Half of the places are free for others.
    expect(slow.headersMs(first, false)).toBe(NEVER);
    const second = send();
    clock.time += 99;
    expect(slow.headersMs(first, false)).toBe(NEVER);
    clock.time += 1;
    expect(slow.headersMs(first, false)).toBe(300);
    // Nothing waits for its place.
    expect(slow.headersMs(first, true)).toBe(NEVER);
    expect(slow.headersMs(second, false)).toBe(NEVER);
  });

  test('do not go before their second is over when none has answered since, as on a machine that stands still', () => {
    const { slow, send, answer, clock } = setUp({ parallel: 2, usualMs: 5 });
    answer();
    answer();
    const requests = [send(), send()];
    clock.time += 999;
    expect(requests.map((request) => slow.headersMs(request, false))).toEqual([NEVER, NEVER]);
    clock.time += 1;
    expect(requests.map((request) => slow.headersMs(request, false))).toEqual([1_000, NEVER]);
  });

  test('get more time where this machine is late itself', () => {
    const { slow, send, answer, clock } = setUp({ parallel: 2, usualMs: 5, marginMs: 200 });
    const first = send();
    for (let count = 0; count < 3; count++) answer();
    send();
    clock.time = T0 + 499;
    expect(slow.headersMs(first, false)).toBe(NEVER);
    clock.time = T0 + 500;
    expect(slow.headersMs(first, false)).toBe(500);
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
    clock.time += 20_000;
    slow.add();
    expect(slow.headersMs(request, false)).toBe(20_000);
    for (let count = 0; count < 50; count++) slow.onOutcome({ sentAt: null, overtakenBy: 0 }, answered(100));
    expect(slow.headersMs(request, false)).toBeLessThan(1_100);
  });
});
