import { describe, expect, test } from 'vitest';
import {
  firstThreads,
  fixedThreads,
  nextThreads,
  type ThreadFacts,
  type ThreadRange,
  type ThreadState,
} from '../../../../src/core/scaling/threads.ts';

const RANGE: ThreadRange = { min: 1, max: 8, first: 1, keepMs: 300_000, lookMs: 1_000 };

/** A process that does nothing, on a machine with room for everything. */
const IDLE: ThreadFacts = {
  ...{ now: 0, batches: 0, computing: 0, tasksPerSecond: 0, wanted: null },
  ...{ cpu: 0, cores: 64, room: 64, slotsPerThread: 8 },
};

/** Looks once in a second of virtual time. */
class Pool {
  state: ThreadState;
  now = 0;
  readonly reasons: string[] = [];
  readonly #range: ThreadRange;

  constructor(range: ThreadRange = RANGE) {
    this.#range = range;
    this.state = firstThreads(range);
  }

  look(seconds: number, facts: (threads: number, now: number) => Partial<ThreadFacts>): number {
    for (let second = 0; second < seconds; second++) {
      this.now += 1_000;
      const seen = { ...IDLE, ...facts(this.state.threads, this.now), now: this.now };
      const { state, reason } = nextThreads(this.state, seen, this.#range);
      this.state = state;
      if (reason !== null) this.reasons.push(`${state.threads}: ${reason}`);
    }
    return this.state.threads;
  }
}

/** So many cores' worth of pages that take a second of computing each. */
const computes =
  (work: number, cores = 64) =>
  (threads: number): Partial<ThreadFacts> => ({
    batches: threads * 8,
    computing: Math.min(threads, work),
    tasksPerSecond: Math.min(threads, work, cores),
    cores,
    cpu: Math.min(threads, work, cores),
  });

describe('threads', () => {
  test('that compute all the time become more, by twice at the most, each step after it is known what the last one brought', () => {
    const pool = new Pool();
    expect(pool.look(4, computes(20))).toBe(1);
    const counts: number[] = [];
    for (let second = 0; second < 60; second++) counts.push(pool.look(1, computes(20)));
    expect(counts.at(-1)).toBe(8);
    expect(counts.every((count, at) => count <= (counts[at - 1] ?? 1) * 2)).toBe(true);
    expect(pool.reasons[0]).toBe('2: 8 batches at once');
  });

  test('stay as they are where the number is fixed', () => {
    const pool = new Pool(fixedThreads(3));
    expect(pool.look(60, computes(20))).toBe(3);
    expect(pool.look(1_000, () => ({}))).toBe(3);
    expect(pool.reasons).toEqual([]);
  });

  test('are added for code that takes one of them, although few batches are under way', () => {
    const pool = new Pool();
    expect(pool.look(30, (threads) => ({ ...computes(3)(threads), batches: 3 }))).toBe(3);
    expect(pool.reasons[0]).toBe('2: the code of pages takes 1 threads');
    // One batch cannot be computed by two.
    const alone = new Pool();
    expect(alone.look(30, () => ({ batches: 1, computing: 1, tasksPerSecond: 1 }))).toBe(1);
  });

  test('are no more than the jobs can use', () => {
    const pool = new Pool();
    const wanted = { slots: 20, workers: 3, reason: 'hosts take 40 pages/s, and a batch brings 2/s' };
    const network = (threads: number) => ({ batches: threads * 8, tasksPerSecond: threads * 16, wanted });
    expect(pool.look(60, network)).toBe(3);
    expect(pool.reasons[0]).toBe('2: 8 batches at once, and hosts take 40 pages/s, and a batch brings 2/s');
  });

  test.each([
    [
      'while hosts refuse',
      { wanted: { slots: 8, workers: 1, reason: 'hosts refuse', limit: 'refusals' as const } },
      'no more: hosts refuse more requests than they should',
    ],
    ['without memory', { room: 0 }, 'no more: there is no memory for another'],
    ['while the core is in use', { cores: 1, cpu: 0.95 }, 'no more: the core is in use'],
    ['while all cores are in use', { cores: 2, cpu: 1.9 }, 'no more: all 2 cores are in use'],
  ])('are not added %s', (_, facts, reason) => {
    const pool = new Pool();
    expect(pool.look(60, () => ({ ...computes(20)(1), ...facts }))).toBe(1);
    expect(new Set(pool.reasons)).toEqual(new Set([`1: ${reason}`]));
  });

  test('that bring nothing end again, and the next try comes later and later', () => {
    const pool = new Pool();
    // Something else does all that it can: the store, a proxy, another process on the same cores.
    const stuck = (threads: number, now: number) => ({
      batches: threads * 8,
      tasksPerSecond: 10 + ((now / 1_000) % 3) / 100,
    });
    const changedAt: number[] = [];
    let before = 1;
    for (let second = 0; second < 7_200; second++) {
      const count = pool.look(1, stuck);
      if (count > before) changedAt.push(second);
      before = count;
      expect(count).toBeLessThanOrEqual(2);
    }
    expect(pool.reasons[1]).toMatch(/^1: 1 more brought [\d.]+ % at most$/);
    const gaps = changedAt.slice(1).map((at, index) => at - changedAt[index]!);
    expect(gaps.length).toBeLessThanOrEqual(5);
    expect(gaps.every((gap, at) => gap >= 300 * 2 ** at)).toBe(true);
  });

  test('are kept when they bring something', () => {
    const pool = new Pool({ ...RANGE, max: 2 });
    expect(pool.look(120, computes(20))).toBe(2);
    expect(pool.reasons).toHaveLength(1);
  });

  test('become fewer when fewer were enough for five minutes, and as many again at once', () => {
    const pool = new Pool({ ...RANGE, first: 8 });
    expect(pool.look(300, () => ({}))).toBe(8);
    // Some work in between: the most that was needed meanwhile counts.
    expect(pool.look(1, () => ({ batches: 10 }))).toBe(2);
    expect(pool.reasons).toEqual(['2: fewer were enough for 5 min']);
    expect(pool.look(301, () => ({}))).toBe(1);
    expect(pool.look(1, () => ({ batches: 8, computing: 1 }))).toBe(2);
    const wanted = { slots: 64, workers: 8, reason: 'all are taken, and no host limits' };
    expect(pool.look(1, () => ({ batches: 16, wanted }))).toBe(8);
  });

  test('do not flap when the need goes up and down', () => {
    const pool = new Pool({ ...RANGE, first: 4 });
    pool.look(3_600, (_, now) => ({ batches: now % 120_000 < 60_000 ? 20 : 1, tasksPerSecond: 5 }));
    expect(pool.state.threads).toBe(4);
    expect(pool.reasons).toEqual([]);
  });
});
