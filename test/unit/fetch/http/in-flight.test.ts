import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { InFlight, type TimedExchange } from '../../../../src/fetch/http/in-flight.ts';

const SWEEP_MS = 50;
const TIMEOUTS = { connectMs: 60_000, headersMs: 60_000, bodyMs: 60_000, taskMs: 60_000 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Requests that wait for headers, on a clock of the test's own: sweeps come when it says, early or late. */
function open() {
  let now = 0;
  const inFlight = new InFlight({ now: () => now }, () => {});
  const failed = new Map<string, number>();
  return {
    failed,
    begin(name: string, timeouts: { headersMs: number; taskMs: number }): void {
      const exchange: TimedExchange = {
        startedAt: inFlight.nowMs,
        since: inFlight.nowMs,
        stage: 'headers',
        slot: null,
        wireBytes: 0,
        place: -1,
        request: { timeouts: { ...TIMEOUTS, ...timeouts }, signal: new AbortController().signal },
        fail: () => {
          if (!failed.has(name)) failed.set(name, now);
        },
        abort: () => {},
      };
      inFlight.add(exchange);
    },
    at(time: number): void {
      now = time;
    },
    sweepAt(time: number): void {
      now = time;
      vi.advanceTimersByTime(SWEEP_MS);
    },
    close: () => inFlight.close(),
  };
}

test.each([
  ['headers', { headersMs: 200, taskMs: 60_000 }],
  ['the whole task', { headersMs: 60_000, taskMs: 200 }],
])('the time for %s is never over early, however late a sweep comes', (_, timeouts) => {
  const stage = open();
  stage.begin('first', timeouts);
  stage.at(190);
  stage.begin('second', timeouts);
  stage.sweepAt(200);
  stage.sweepAt(250);
  expect(stage.failed.has('second')).toBe(false);
  for (let time = 300; time <= 600; time += SWEEP_MS) stage.sweepAt(time);
  expect(stage.failed.get('second')).toBeGreaterThan(190 + 200);
  expect(stage.failed.get('second')).toBeLessThanOrEqual(190 + 200 + SWEEP_MS);
  stage.close();
});

test('a process that stands still takes little from the time of its requests: a second is slow, and a stall is not', () => {
  const stage = open();
  stage.begin('page', { headersMs: 1_000, taskMs: 60_000 });
  for (let time = SWEEP_MS; time <= 500; time += SWEEP_MS) stage.sweepAt(time);
  stage.sweepAt(3_500);
  expect(stage.failed.size).toBe(0);
  for (let time = 3_500 + SWEEP_MS; time <= 4_500; time += SWEEP_MS) stage.sweepAt(time);
  expect(stage.failed.get('page')).toBeLessThanOrEqual(4_000 + SWEEP_MS);
  stage.close();
});

test('a connection that is not made in time says so, and nothing of names or proxies', () => {
  let now = 0;
  const inFlight = new InFlight({ now: () => now }, () => {});
  const failures: string[][] = [];
  const timeouts = { ...TIMEOUTS, connectMs: 200, taskMs: 60_000 };
  inFlight.add({
    ...{
      startedAt: inFlight.nowMs,
      since: inFlight.nowMs,
      stage: 'dialling',
      wireBytes: 0,
      slot: null,
      place: -1,
    },
    request: { timeouts, signal: new AbortController().signal },
    fail: (...failure) => void failures.push(failure),
    abort: () => {},
  });
  now = 150;
  vi.advanceTimersByTime(SWEEP_MS);
  expect(failures).toEqual([]);
  now = 201;
  vi.advanceTimersByTime(SWEEP_MS);
  expect(failures).toEqual([['connect-timeout', 'no connection within 200 ms']]);
  inFlight.close();
});

test('after a full collection, what has ended is still collected with the young', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
  const inFlight = new InFlight({ now: () => 0 }, () => {});
  const { signal } = new AbortController();
  const begin = () => {
    const page = Buffer.alloc(PAGE_BYTES);
    const exchange: TimedExchange = {
      ...{ startedAt: 0, since: 0, stage: 'body', slot: null, wireBytes: page.length, place: -1 },
      request: { timeouts: TIMEOUTS, signal },
      fail: () => {},
      abort: () => void page.fill(0),
    };
    inFlight.add(exchange);
    return exchange;
  };
  const underWay = Array.from({ length: PARALLEL }, begin);
  const turnOver = (count: number) => {
    for (let done = 0; done < count; done++) {
      inFlight.remove(underWay[done % PARALLEL]!);
      underWay[done % PARALLEL] = begin();
    }
  };
  turnOver(10 * PARALLEL);
  collect();
  const before = process.memoryUsage().arrayBuffers;
  let grewMax = 0;
  for (let round = 0; round < ROUNDS; round++) {
    turnOver(4 * PARALLEL);
    collect({ type: 'minor' });
    grewMax = Math.max(grewMax, process.memoryUsage().arrayBuffers - before);
  }
  // What is under way, and what was in the round before. All rounds together are ten times as much.
  expect(grewMax).toBeLessThan(16 * PARALLEL * PAGE_BYTES);
  inFlight.close();
});

const PARALLEL = 32;
const PAGE_BYTES = 8 * 1024;
const ROUNDS = 40;
