import { describe, expect, test, vi } from 'vitest';
import type { Batch, Report } from '../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import { deferredReport, isGivenBackPart } from '../../../src/core/batch/report.ts';
import type { Delivery, Dispatcher } from '../../../src/ports/dispatcher.ts';
import { SlotAllocator } from '../../../src/server/slot-allocator.ts';
import { batchOf } from '../../support/coordinator/progress-reports.ts';

/** Carries batches until they are ended by hand. */
class HeldDispatcher implements Dispatcher {
  readonly workers = 2;
  readonly suspectSlots = 1;
  readonly slots: number;
  readonly recalled: number[] = [];
  isClosed = false;
  readonly #open = new Map<number, (delivery: Delivery) => void>();

  constructor(slots: number) {
    this.slots = slots;
  }

  dispatch(batch: Batch): Promise<Delivery> {
    return new Promise((resolve) => this.#open.set(batch.id, resolve));
  }

  end(batchId: number): void {
    this.#open.get(batchId)!({ kind: 'lost', batchId, reason: 'ended by the test' });
  }

  report(report: Report): void {
    this.#open.get(report.batchId)!({ kind: 'report', report });
  }

  recall(batchId: number): void {
    this.recalled.push(batchId);
  }

  async drain(): Promise<void> {
    throw new Error('what is shared is not drained');
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

function open(slots: number, overcommitMax = 1) {
  const held = new HeldDispatcher(slots);
  let now = 0;
  const allocator = new SlotAllocator({ overcommitMax, clock: { now: () => ++now } });
  let ids = 0;
  let jobs = 0;
  const join = (weight = 1, owner = 'a', ownerWeight = 1, priority = 0) => {
    const claim = { owner, ownerWeight, weight, priority };
    const dispatcher = allocator.join({ dispatcher: held, isShared: true }, claim, ++jobs);
    const batches: number[] = [];
    const ended: Promise<Delivery>[] = [];
    const fill = (most = Number.POSITIVE_INFINITY) => {
      const room = Math.min(most, dispatcher.slots - batches.length);
      for (let nth = 0; nth < room; nth++) {
        const id = ++ids;
        batches.push(id);
        ended.push(dispatcher.dispatch({ id, needs: 'http' } as Batch, () => {}));
      }
      return batches.length;
    };
    const end = async (count = 1) => {
      for (let nth = 0; nth < count; nth++) {
        held.end(batches.shift()!);
        await ended.shift();
      }
    };
    return { dispatcher, fill, end, batches };
  };
  return { held, join, allocator };
}

test('a job knows those of its owner that are less urgent, while they are there', async () => {
  const { join } = open(8);
  const [low, middle, , high] = [join(), join(1, 'a', 1, 5), join(1, 'b'), join(1, 'a', 1, 9)];
  expect([low, middle, high].map(({ dispatcher }) => dispatcher.lessUrgent?.())).toEqual([[], [1], [1, 2]]);
  await middle.dispatcher.close();
  expect(high.dispatcher.lessUrgent?.()).toEqual([1]);
});

test('hosts of a batch that is back are free for an urgent job before its report has its turn, except those that refused', async () => {
  const { held, join, allocator } = open(8);
  const sent = batchOf(1, ['healthy.example', 'refusing.example', 'paced.example'], 3);
  const [healthy, refusing, paced] = sent.permits;
  const batch = { ...sent, permits: [healthy!, refusing!, { ...paced!, gapMs: 100 }] };
  const parts: Report[] = [];
  const crawl = join();
  const taken = vi.fn();
  const delivery = crawl.dispatcher.dispatch(batch, (part) => void parts.push(part)).then(taken);
  join(1, 'a', 1, 9);
  const deferred = deferredReport(batch, { worker: 'w', now: 0 });
  const refusal = { code: 'throttled', detail: '', page: null, retryAfterMs: null, trace: null } as const;
  const outcomes = deferred.outcomes.map(
    ({ taskId }, index): Outcome =>
      index === 1 ? { kind: 'failed', taskId, ...refusal } : { kind: 'deferred', taskId },
  );
  const report = { ...deferred, outcomes };
  held.report(report);
  await expect.poll(() => parts).toHaveLength(1);
  expect(taken).not.toHaveBeenCalled();
  expect(isGivenBackPart(parts[0]!)).toBe(true);
  expect(parts[0]!.permits.map(({ underWay }) => underWay)).toEqual([0, undefined, undefined]);
  allocator.reports.endHeadStart(9);
  await delivery;
  expect(taken).toHaveBeenCalledWith({ kind: 'report', report });
});

describe('slots of several jobs', () => {
  test('are all for one that is alone', () => {
    const { join } = open(8);
    expect(join().fill()).toBe(8);
  });

  test('are lent while others do not want them, and come back when they do', async () => {
    const { join } = open(8);
    const [big, small] = [join(), join()];
    expect(big.fill()).toBe(8);
    // The one that begins does not wait until the other has ended something.
    expect(small.fill()).toBe(4);
    await big.end(2);
    expect(big.fill()).toBe(6);
    await big.end(3);
    expect(big.fill()).toBe(4);
    await small.end(4);
    expect(small.fill(0)).toBe(0);
    expect(big.fill()).toBe(8);
  });

  test('are not lent to those that stand still for an urgent job, and wake them when that is over', () => {
    const { join, allocator } = open(8);
    const crawl = join();
    const woken = vi.fn();
    crawl.dispatcher.onSlotsFree!(woken);
    expect(crawl.fill(6)).toBe(6);
    join(1, 'a', 1, 9);
    expect(crawl.fill()).toBe(6);
    expect(woken).not.toHaveBeenCalled();
    allocator.reports.endHeadStart(9);
    expect(woken).toHaveBeenCalledOnce();
    expect(crawl.fill()).toBe(8);
  });

  test('follow the priority of the job and the owner', () => {
    const { join } = open(12);
    const [plain, heavy] = [join(), join(2)];
    plain.fill();
    expect(heavy.fill()).toBe(8);
    const other = join(1, 'b');
    expect(other.fill()).toBe(6);
  });

  test('go in turns where there are more jobs than slots, and none is left out', async () => {
    const { join } = open(2);
    const jobs = [join(), join(), join(), join(), join()];
    const served = jobs.map(() => 0);
    for (let round = 0; round < 50; round++) {
      for (const [index, job] of jobs.entries()) {
        const before = job.batches.length;
        served[index]! += job.fill() - before;
      }
      expect(jobs.reduce((sum, job) => sum + job.batches.length, 0)).toBeLessThanOrEqual(4);
      for (const job of jobs) if (job.batches.length > 0) await job.end();
    }
    for (const count of served) expect(count).toBeGreaterThan(50 / 5 / 2);
    expect(Math.max(...served) / Math.min(...served)).toBeLessThan(2);
  });

  test('with room for more batches than slots, each job may have one out', async () => {
    const { join } = open(2, 4);
    const jobs = Array.from({ length: 9 }, () => join());
    for (const job of jobs) job.fill();
    // The first began alone, and used both slots.
    expect(jobs.map((job) => job.batches.length)).toEqual([2, 1, 1, 1, 1, 1, 1, 1, 0]);
    await jobs[0]!.end();
    expect(jobs[0]!.fill()).toBe(1);
    expect(jobs[8]!.fill()).toBe(0);
    await jobs[0]!.end();
    expect(jobs[8]!.fill()).toBe(1);
  });

  test('with more jobs than slots, many jobs of one owner take nothing from another, and weights of owners hold', async () => {
    for (const ownerWeight of [1, 3]) {
      const { join } = open(4, 4);
      const many = Array.from({ length: 40 }, () => join());
      const single = join(1, 'b', ownerWeight);
      for (let round = 0; round < 20; round++) {
        for (const job of [...many, single]) job.fill();
        for (const job of [...many, single]) if (job.batches.length > 0) await job.end();
      }
      for (const job of [...many, single]) job.fill();
      const ofMany = many.reduce((sum, job) => sum + job.batches.length, 0);
      const ratio = single.batches.length / ofMany / ownerWeight;
      expect(ratio).toBeGreaterThan(0.7);
      expect(ratio).toBeLessThan(1.4);
    }
  });

  test('of an owner with little weight are few, but never none for good', async () => {
    const { join } = open(2, 4);
    const heavy = Array.from({ length: 20 }, () => join(1, 'a', 100));
    const light = [join(1, 'b', 1), join(1, 'b', 1)];
    const served = [0, 0];
    for (let round = 0; round < 100; round++) {
      for (const job of heavy) job.fill();
      for (const [index, job] of light.entries()) served[index]! += job.fill();
      for (const job of [...heavy, ...light]) if (job.batches.length > 0) await job.end();
    }
    for (const count of served) expect(count).toBeGreaterThan(0);
  });

  test('for suspects are one for all jobs, as there is one process for them', async () => {
    const { join, held } = open(8);
    const [one, other] = [join(), join()];
    expect([one.dispatcher.suspectSlots, other.dispatcher.suspectSlots]).toEqual([1, 1]);
    const sent = one.dispatcher.dispatch({ id: 99, needs: 'http', suspects: true } as Batch, () => {});
    expect([one.dispatcher.suspectSlots, other.dispatcher.suspectSlots]).toEqual([1, 0]);
    held.end(99);
    await sent;
    expect(other.dispatcher.suspectSlots).toBe(1);
  });

  test('wake a job that could use one when it becomes free', async () => {
    const { join } = open(2);
    const [one, other] = [join(), join()];
    one.fill();
    other.fill();
    let woken = 0;
    other.dispatcher.onSlotsFree!(() => woken++);
    await one.end();
    expect(woken).toBeGreaterThan(0);
  });

  test('of one that stops are recalled, and those of the others go on', async () => {
    const { join, held } = open(8);
    const [one, other] = [join(), join()];
    one.fill(2);
    other.fill(2);
    await one.dispatcher.drain();
    expect(held.recalled).toEqual(one.batches);
    await one.end(2);
    await one.dispatcher.close();
    expect(held.isClosed).toBe(false);
    expect(other.fill()).toBe(8);
  });
});
