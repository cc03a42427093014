import { describe, expect, test } from 'vitest';
import { createProgress } from '../../../../src/coordinator/reports/progress.ts';
import { batchOf, deliver, look, reportOf, START } from '../../../support/coordinator/progress-reports.ts';

describe('rates', () => {
  test('a steady 100 pages/s shows as 100, however often one looks', () => {
    for (const looks of [1, 50]) {
      const progress = createProgress({ startedAt: START });
      for (let i = 0; i < 60; i++) {
        const startedAt = START + i * 500;
        deliver(progress, batchOf(i, ['a.test'], 50), { startedAt, endedAt: startedAt + 500 });
        for (let n = 1; n < looks; n++) look(progress, startedAt + 500, { accepted: 9_000, pending: 10 });
      }
      const view = look(progress, START + 30_000, { accepted: 9_000, pending: 10 });
      expect(view.pagesPerSecond).toBeCloseTo(100, -0.5);
      expect(view.bytesPerSecond).toBeCloseTo(100_000, -4);
      expect(view.averagePagesPerSecond).toBeCloseTo(100, 0);
      expect(view.hosts[0]!.requestsPerSecond).toBeGreaterThan(90);
      expect(view.hosts[0]!.requestsPerSecond).toBeLessThan(110);
    }
  });

  test('a polite host that reports once in ten seconds still shows a level rate', () => {
    const progress = createProgress({ startedAt: START });
    const seen: number[] = [];
    const hostSeen: number[] = [];
    for (let i = 0; i < 6; i++) {
      const startedAt = START + i * 10_000;
      const batch = batchOf(i, ['slow.test'], 40);
      progress.onDispatch(batch, startedAt);
      for (let second = 0; second < 10; second++) {
        const view = look(progress, startedAt + second * 1_000, { accepted: 1_000, pending: 500 });
        if (i >= 2) seen.push(view.pagesPerSecond);
        if (i >= 2) hostSeen.push(view.hosts[0]!.requestsPerSecond);
      }
      const report = reportOf(batch, { startedAt, endedAt: startedAt + 10_000 });
      progress.onDelivery({ kind: 'report', report }, startedAt + 10_000);
    }
    for (const rate of [...seen, ...hostSeen]) {
      expect(rate).toBeGreaterThan(3.5);
      expect(rate).toBeLessThan(4.5);
    }
  });

  test('the rate falls to zero ten seconds after the last page', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    expect(look(progress, START + 1_000, {}).pagesPerSecond).toBe(60);
    expect(look(progress, START + 12_000, {}).pagesPerSecond).toBe(0);
    expect(look(progress, START + 12_000, {}).history.at(-1)).toBe(0);
  });

  test('a batch slower than the window, or a worker whose clock is wrong, is not lost from the rate', () => {
    for (const [startedAt, endedAt] of [
      [START, START + 60_000],
      [START - 86_400_000, START - 86_399_000],
      [START + 86_400_000, START + 86_401_000],
    ] as const) {
      const progress = createProgress({ startedAt: START });
      const batch = batchOf(1, ['a.test'], 60);
      progress.onDispatch(batch, START);
      progress.onDelivery(
        { kind: 'report', report: reportOf(batch, { startedAt, endedAt }) },
        START + 60_000,
      );
      const rate = look(progress, START + 60_000, {}).pagesPerSecond;
      expect(rate).toBeGreaterThan(5);
      expect(rate).toBeLessThan(7);
    }
  });

  test('history has one entry per step and ends where the reports do', () => {
    const progress = createProgress({ startedAt: START });
    for (let i = 0; i < 300; i++) {
      const startedAt = START + i * 1_000;
      deliver(progress, batchOf(i, ['a.test'], 10), { startedAt, endedAt: startedAt + 1_000 });
    }
    const view = look(progress, START + 300_000, {});
    expect(view.historyStepMs).toBe(500);
    expect(view.history.length).toBeLessThanOrEqual(240);
    expect(view.history.length).toBeGreaterThan(200);
    expect(view.history.slice(-100).reduce((a, b) => a + b) / 100).toBeCloseTo(10, 0);
  });
});

describe('a run that stands still', () => {
  test('says why, has no ETA, and its rate falls to zero', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    progress.onDispatch(batchOf(2, ['a.test'], 60), START + 1_000);
    const left = { accepted: 600, done: 60, pending: 480, leased: 60 };
    const waitingFor = 'waiting for Redis since 12 s';
    const explanation = { sentence: 'It waits for the host.', eta: null };
    const still = look(progress, START + 13_000, left, { waitingFor, explanation });
    expect(still).toMatchObject({ waitingFor, explanation: null, etaMs: null, pagesPerSecond: 0 });
    expect(still.workers.map(({ tasksPerSecond }) => tasksPerSecond)).toEqual([0]);
    expect(still.hosts[0]!.requestsPerSecond).toBe(0);
    expect(look(progress, START + 61_500, left, { waitingFor }).workers).toEqual([]);
    expect(still.workers).toHaveLength(1);
  });

  test('names the host that pauses, and until when', () => {
    const progress = createProgress({ startedAt: START });
    const left = { accepted: 2, pending: 2 };
    const nextDueAt = START + 60_000;
    const until = new Date(nextDueAt).toTimeString().slice(0, 8);
    expect(look(progress, START, left, { nextDueAt }).waitingFor).toBe(`the next task is due at ${until}`);
    expect(look(progress, START, left, { nextDueAt: START + 500 }).waitingFor).toBeNull();
    expect(look(progress, START, { ...left, leased: 1 }, { nextDueAt }).waitingFor).toBeNull();
    const shape = { startedAt: START, endedAt: START + 1_000, kinds: ['failed' as const] };
    const waiting = () => look(progress, START + 1_000, left, { nextDueAt }).waitingFor;
    deliver(progress, batchOf(1, ['shop.example'], 3), { ...shape, codes: ['reset'] });
    expect(waiting()).toBe(`shop.example pauses until ${until} after 3 × reset`);
    deliver(progress, batchOf(2, ['shop.example'], 4), { ...shape, codes: ['unavailable'], httpStatus: 503 });
    expect(waiting()).toBe(`shop.example pauses until ${until} after 4 × 503`);
  });

  test('keeps the last three warnings, however many pages fail', () => {
    const progress = createProgress({ startedAt: START });
    for (const text of ['a', 'b', 'c', 'd']) progress.warn(text, START, 'warn');
    for (let i = 0; i < 20; i++) progress.note(`reset  https://a.test/${i}`, START, 'warn');
    expect(look(progress, START, {}).warnings.map(({ text }) => text)).toEqual(['b', 'c', 'd']);
  });
});

describe('ETA and fraction', () => {
  test('know the limits of the job', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    const counters = { accepted: 6_000, done: 60, attempted: 60, pending: 5_940 };
    const at = (limits: { pages: number | null; seconds: number | null }) =>
      look(progress, START + 1_000, counters, { limits });
    expect(at({ pages: 120, seconds: null }).fraction).toBeCloseTo(0.5);
    expect(at({ pages: 120, seconds: null }).etaMs).toBeLessThan(1_500);
    expect(at({ pages: null, seconds: 10 }).fraction).toBeCloseTo(0.1);
    expect(at({ pages: null, seconds: 10 }).etaMs).toBe(9_000);
    expect(at({ pages: null, seconds: null }).fraction).toBeCloseTo(0.01);
  });

  test('are those of the explanation where there is one, for the tasks that are left now', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    const sentence = 'Done in about 90 s (80 s to 120 s).';
    const explanation = { sentence, eta: { seconds: 90, low: 80, high: 120, tasks: 100 } };
    const at = (pending: number, limits = { pages: null, seconds: null as number | null }) =>
      look(progress, START + 1_000, { accepted: 160, done: 60, pending }, { explanation, limits });
    expect(at(100)).toMatchObject({
      explanation: sentence,
      etaMs: 90_000,
      etaBandMs: { low: 80_000, high: 120_000 },
    });
    expect(at(50)).toMatchObject({ etaMs: 45_000, etaBandMs: { low: 40_000, high: 60_000 } });
    expect(at(100, { pages: null, seconds: 11 }).etaMs).toBe(10_000);
    expect(look(progress, START + 1_000, { accepted: 160, done: 60, pending: 100 }).etaBandMs).toBeNull();
  });

  test('know how much of the sources is read, where that is known', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    const counters = { accepted: 120, done: 60, attempted: 60, pending: 60 };
    const at = (sourcesRead: number | null) =>
      look(progress, START + 1_000, counters, { sourcesDone: false, sourcesRead });
    expect(at(null)).toMatchObject({ fraction: 0.5, discovering: true });
    const known = at(0.25);
    expect(known).toMatchObject({ fraction: 0.125, discovering: false });
    expect(known.etaMs).toBeGreaterThan(5 * at(null).etaMs!);
  });

  test('null before there is a rate, exactly zero at the end', () => {
    const progress = createProgress({ startedAt: START });
    expect(look(progress, START + 100, { accepted: 60, pending: 60 }).etaMs).toBeNull();
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    const end = look(progress, START + 2_000, { accepted: 60, done: 60 });
    expect(end.etaMs).toBe(0);
    expect(end.fraction).toBe(1);
    expect(
      look(progress, START + 2_000, { accepted: 60, done: 60 }, { sourcesDone: false }).etaMs,
    ).toBeNull();
  });

  test('a simulated run counts down to zero and is about right on the way', () => {
    const progress = createProgress({ startedAt: START });
    const total = 6_000;
    let done = 0;
    for (let i = 0; done < total; i++) {
      const startedAt = START + i * 600;
      deliver(progress, batchOf(i, ['a.test'], 60), { startedAt, endedAt: startedAt + 600 });
      done += 60;
      const view = look(progress, startedAt + 600, { accepted: total, done, pending: total - done });
      expect(view.fraction).toBeCloseTo(done / total, 9);
      const truth = ((total - done) / 100) * 1_000;
      if (done > 600) expect(Math.abs(view.etaMs! - truth)).toBeLessThanOrEqual(truth * 0.12 + 1);
      if (done === total) expect(view.etaMs).toBe(0);
      else expect(view.etaMs).toBeGreaterThan(0);
    }
  });

  test('stays finite through a lull, and waits for the task that is due next', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test'], 60), { startedAt: START, endedAt: START + 1_000 });
    const now = START + 120_000;
    const left = { accepted: 63, done: 60, pending: 3 };
    expect(Number.isFinite(look(progress, now, left).etaMs)).toBe(true);
    expect(look(progress, now, left, { nextDueAt: now + 42_000 }).etaMs).toBe(42_000);
    expect(look(progress, now, left, { job: { name: 'test', state: 'stopped' } }).etaMs).toBeNull();
  });

  test('discovering while tasks come in, and not once they have stopped', () => {
    const progress = createProgress({ startedAt: START });
    expect(look(progress, START, { accepted: 1, pending: 1 }).discovering).toBe(true);
    expect(look(progress, START + 10_000, { accepted: 50, pending: 9 }).discovering).toBe(true);
    expect(look(progress, START + 14_000, { accepted: 50, pending: 9 }).discovering).toBe(false);
    expect(look(progress, START + 15_000, { accepted: 51, done: 51 }).discovering).toBe(false);
    expect(
      look(progress, START + 20_000, { accepted: 51, pending: 9 }, { sourcesDone: false }).discovering,
    ).toBe(true);
  });
});
