import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import { Lateness, Pace } from '../../../../src/worker/batch/pace.ts';

/** Time passes only where a timer is waited for: what is late here is late by as much as the test says. */
beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

const clock = { now: () => Date.now() };
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Lets time pass until this is done. */
async function played<T>(work: Promise<T>): Promise<T> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  work.then(end, end);
  await vi.advanceTimersByTimeAsync(0);
  while (!isDone) await vi.advanceTimersToNextTimerAsync();
  return work;
}

function permitOf(change: Partial<Permit> & { lastsMs?: number } = {}): Permit {
  const startAt = change.startAt ?? clock.now();
  return {
    host: 'a.example',
    startAt,
    endAt: startAt + (change.lastsMs ?? 60_000),
    gapMs: 20,
    parallel: 4,
    ...change,
  };
}

const never = new AbortController().signal;
const gapsOf = (times: number[]) => times.slice(1).map((time, index) => time - times[index]!);

/** So many runners taking turns until there are none; `lateMs` passes before each request leaves. */
async function run(
  pace: Pace,
  runners: number,
  turnsMax: number,
  lateMs: (turn: number) => number = () => 0,
): Promise<number[]> {
  const times: number[] = [];
  let taken = 0;
  await played(
    Promise.all(
      Array.from({ length: runners }, async () => {
        while (taken < turnsMax) {
          const number = taken++;
          const turn = await pace.turn();
          if (!turn) return;
          const late = lateMs(number);
          if (late > 0) await sleep(late);
          times.push(clock.now());
          turn.left();
          turn.end();
        }
      }),
    ),
  );
  return times;
}

describe('pace', () => {
  test('30 turns with a gap of 20 ms are never closer than that', async () => {
    const times = await run(new Pace(permitOf(), clock, never), 1, 30);
    expect(times).toHaveLength(30);
    expect(new Set(gapsOf(times))).toEqual(new Set([20]));
  });

  test('parallel runners share the gap', async () => {
    const pace = new Pace(permitOf(), clock, never);
    const times = await run(pace, 4, 24);
    expect(times).toHaveLength(24);
    expect(Math.min(...gapsOf(times))).toBeGreaterThanOrEqual(20);
    expect(pace.sent).toBe(24);
    expect(pace.lastLeftAt).toBeGreaterThanOrEqual(times.at(-1)!);
  });

  test('the gap counts from when a request really left, however late', async () => {
    const pace = new Pace(permitOf({ gapMs: 15 }), clock, never);
    const times = await run(pace, 3, 12, (turn) => (turn % 3 === 0 ? 25 : 0));
    expect(times).toHaveLength(12);
    expect(Math.min(...gapsOf(times))).toBeGreaterThanOrEqual(15);
  });

  test('on a machine that is late the last request keeps clear of the end, and of that only', async () => {
    const lateness = new Lateness();
    lateness.note(100);
    const permit = permitOf({ gapMs: 20, lastsMs: 400 });
    const pace = new Pace(permit, clock, never, () => 0, lateness);
    const times = await run(pace, 1, 50);
    expect(times.length).toBeGreaterThan(1);
    expect(times.at(-1)!).toBeLessThanOrEqual(permit.endAt - 20 - 100);
    for (let quiet = 0; quiet < 300; quiet++) lateness.note(0);
    expect(lateness.marginMs).toBeLessThan(1);
    lateness.note(10_000);
    expect(lateness.marginMs).toBe(300);
  });

  test('a turn that sends nothing costs nothing', async () => {
    const pace = new Pace(permitOf({ gapMs: 10_000 }), clock, never);
    for (let number = 0; number < 5; number++) (await pace.turn())!.end();
    const turn = await pace.turn();
    turn!.left();
    turn!.end();
    turn!.end();
    expect(pace.sent).toBe(1);
  });

  test('no turn before the permit starts', async () => {
    const permit = permitOf({ startAt: clock.now() + 60 });
    const [first] = await run(new Pace(permit, clock, never), 2, 1);
    expect(first).toBe(permit.startAt);
  });

  test('the last turn leaves a whole gap before the end of the permit', async () => {
    const permit = permitOf({ lastsMs: 110 });
    const times = await run(new Pace(permit, clock, never), 2, 100);
    expect(times).toHaveLength(5);
    expect(times.at(-1)).toBeLessThanOrEqual(permit.endAt - permit.gapMs);
  });

  test('a machine that was very late does not make short permits useless', async () => {
    const lateness = new Lateness();
    lateness.note(10_000);
    const clock = { now: () => 1_000 };
    const permit = { host: 'a', startAt: 1_000, endAt: 1_150, gapMs: 10, parallel: 1 };
    expect(await new Pace(permit, clock, never, () => 0, lateness).turn()).not.toBeNull();
  });

  test('after the end there are no turns, at once', async () => {
    const before = clock.now();
    const pace = new Pace(permitOf({ startAt: before - 1_000, lastsMs: 990 }), clock, never);
    expect(await pace.turn()).toBeNull();
    expect(await new Pace(permitOf({ startAt: before - 5, lastsMs: 15 }), clock, never).turn()).toBeNull();
    const open = new Pace(permitOf({ startAt: before - 1_000, lastsMs: 990, gapMs: 0 }), clock, never);
    expect(await open.turn()).toBeNull();
    expect(clock.now()).toBe(before);
  });

  test('a sleep that ends after the permit gives no turn', async () => {
    let now = 1_000;
    const clock = { now: () => now };
    const pace = new Pace({ host: 'a', startAt: 1_020, endAt: 1_100, gapMs: 50, parallel: 1 }, clock, never);
    const turn = pace.turn();
    // The machine slept: the timer fires, and the time is far past the end.
    now = 5_000;
    expect(await played(Promise.resolve(turn))).toBeNull();
  });

  test('an abort ends all waiting turns, and gives no more', async () => {
    const controller = new AbortController();
    const pace = new Pace(permitOf({ gapMs: 30_000, lastsMs: 600_000 }), clock, controller.signal);
    const first = await pace.turn();
    first!.left();
    first!.end();
    const waiting = [pace.turn(), pace.turn(), pace.turn()];
    const before = clock.now();
    controller.abort();
    expect(await Promise.all(waiting)).toEqual([null, null, null]);
    expect(await pace.turn()).toBeNull();
    expect(clock.now()).toBe(before);
    expect(pace.sent).toBe(1);
  });

  test('a slow down holds from the next turn on, and is never undone', async () => {
    const pace = new Pace(permitOf({ gapMs: 10 }), clock, never);
    await run(pace, 1, 1);
    pace.slowDown(60);
    pace.slowDown(1);
    const last = pace.lastLeftAt!;
    const times = await run(pace, 3, 3);
    expect(Math.min(...gapsOf([last, ...times]))).toBeGreaterThanOrEqual(60);
  });

  test('a slow down of a permit without a gap gives it one', async () => {
    const pace = new Pace(permitOf({ gapMs: 0 }), clock, never);
    await run(pace, 4, 8);
    pace.slowDown(25);
    const last = pace.lastLeftAt!;
    const times = await run(pace, 4, 6);
    expect(Math.min(...gapsOf([last, ...times]))).toBeGreaterThanOrEqual(25);
  });

  test('a slow down that no longer fits into the permit ends it', async () => {
    const pace = new Pace(permitOf({ gapMs: 10, lastsMs: 300 }), clock, never);
    await run(pace, 1, 1);
    pace.slowDown(200);
    expect(await pace.turn()).toBeNull();
  });

  test('without a gap nobody waits for anybody', async () => {
    const pace = new Pace(permitOf({ gapMs: 0 }), clock, never);
    const turns = await Promise.all(Array.from({ length: 50 }, () => pace.turn()));
    expect(turns.every((turn) => turn !== null)).toBe(true);
  });

  test('jitter makes gaps longer, never shorter, and now and then much longer', async () => {
    const shares = [0.5, 0.5, 0.01, 1, 0.9, 0];
    let next = 0;
    const pace = new Pace(permitOf({ gapMs: 10, jitter: 1 }), clock, never, () => shares[next++ % 6]!);
    const gaps = gapsOf(await run(pace, 1, 4));
    // By pairs: half as long again, eight times longer, not at all.
    for (const [index, atLeast] of [15, 90, 10].entries())
      expect(gaps[index]).toBeGreaterThanOrEqual(atLeast);
    expect(pace.takeSmallestGapMs()).toBeGreaterThanOrEqual(9.9);
    expect(pace.takeSmallestGapMs()).toBeNull();
  });

  test.each([0, 20])('no request leaves after the hours of the host, with a gap of %d ms', async (gapMs) => {
    const closesAt = clock.now() + 200;
    const pace = new Pace(permitOf({ gapMs, closesAt }), clock, never);
    const times = await run(pace, 2, 100, () => 7);
    expect(times.length).toBeGreaterThan(5);
    expect(pace.lastLeftAt!).toBeLessThanOrEqual(closesAt);
    const late = new Pace(permitOf({ gapMs, closesAt: clock.now() + 50 }), clock, never);
    const turn = (await late.turn())!;
    // A connection that takes long, and a turn that comes too late.
    await played(sleep(60));
    expect(turn.left()).toBe(false);
    turn.end();
    expect(await late.turn()).toBeNull();
    expect(late.sent).toBe(0);
  });

  test('a host that asked for less gets no further turn', async () => {
    const pace = new Pace(permitOf(), clock, never);
    expect(await run(pace, 1, 2)).toHaveLength(2);
    const waiting = run(pace, 2, 5);
    pace.close();
    expect(await waiting).toHaveLength(0);
  });
});
