import { describe, expect, test } from 'vitest';
import type { Batch, WorkerKind } from '../../../src/core/batch/batch.ts';
import { deferredReport } from '../../../src/core/batch/report.ts';
import { SeineError } from '../../../src/core/errors.ts';
import type { Delivery, Dispatcher } from '../../../src/ports/dispatcher.ts';
import { LOSSES_MAX } from '../../../src/transport/weighted-choice.ts';
import { openWeightedDispatcher } from '../../../src/transport/weighted-dispatcher.ts';
import { batchOf } from '../../support/coordinator/progress-reports.ts';

/** A dispatcher whose answers the test gives. */
class TestDispatcher implements Dispatcher {
  workers = 1;
  slots = 2;
  kinds: WorkerKind[] = ['http', 'browser'];
  closed = 0;
  drained = 0;
  readonly open = new Map<number, { batch: Batch; resolve(delivery: Delivery): void }>();

  serves(kind: WorkerKind): boolean {
    return this.kinds.includes(kind);
  }
  dispatch(batch: Batch): Promise<Delivery> {
    return new Promise((resolve) => this.open.set(batch.id, { batch, resolve }));
  }
  async drain(): Promise<void> {
    this.drained++;
  }
  async close(): Promise<void> {
    this.closed++;
  }

  get ids(): number[] {
    return [...this.open.keys()];
  }
  answer(id = this.ids[0]!): void {
    const { batch, resolve } = this.open.get(id)!;
    this.open.delete(id);
    resolve({ kind: 'report', report: deferredReport(batch, { worker: 'test', now: 0 }) });
  }
  lose(id = this.ids[0]!): void {
    const { resolve } = this.open.get(id)!;
    this.open.delete(id);
    resolve({ kind: 'lost', batchId: id, reason: 'gone' });
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const send = (dispatcher: Dispatcher, id: number, needs: WorkerKind = 'http') =>
  dispatcher.dispatch({ ...batchOf(id, ['a.example'], 2), needs }, () => {});

function openPair(waitMs = 60_000) {
  const one = new TestDispatcher();
  const two = new TestDispatcher();
  const parts = [
    { dispatcher: one, weight: 2 },
    { dispatcher: two, weight: 1 },
  ];
  return { one, two, both: openWeightedDispatcher(parts, { waitMs }) };
}

/** The share of the first is lost again and again, until it rests. */
async function wearOut(both: Dispatcher, one: TestDispatcher, two: TestDispatcher): Promise<void> {
  for (let id = 1_000, losses = 0; losses < LOSSES_MAX; id++) {
    void send(both, id);
    if (one.open.has(id)) {
      one.lose(id);
      losses++;
    } else two.answer(id);
    await settled();
  }
}

describe('several dispatchers as one', () => {
  test('have the workers and slots of all, and share batches by weight', async () => {
    const { one, two, both } = openPair();
    one.slots = 20;
    two.slots = 20;
    expect([both.workers, both.slots]).toEqual([2, 40]);
    for (let id = 1; id <= 9; id++) void send(both, id);
    expect([one.open.size, two.open.size]).toEqual([6, 3]);
    expect(both.slots).toBe(40);
  });

  test('a full one gets nothing more, and what waits goes where a place becomes free', async () => {
    const { one, two, both } = openPair();
    const answers = [1, 2, 3, 4, 5].map((id) => send(both, id));
    expect([one.open.size, two.open.size]).toEqual([2, 2]);
    two.answer();
    await settled();
    expect(two.ids).toContain(5);
    for (const dispatcher of [one, two]) for (const id of dispatcher.ids) dispatcher.answer(id);
    expect((await Promise.all(answers)).map(({ kind }) => kind)).toEqual(Array(5).fill('report'));
  });

  test('one without workers gets nothing until it has some again, and does not make the others look full', async () => {
    const { one, two, both } = openPair();
    one.workers = 0;
    expect([both.workers, both.slots]).toEqual([1, 2]);
    void send(both, 1);
    void send(both, 2);
    expect([one.open.size, two.open.size]).toEqual([0, 2]);
    one.workers = 3;
    expect([both.workers, both.slots]).toEqual([4, 4]);
    void send(both, 3);
    expect(one.ids).toEqual([3]);
  });

  test('one that loses batches again and again rests, and the others have all', async () => {
    const { one, two, both } = openPair();
    await wearOut(both, one, two);
    expect([both.workers, both.slots]).toEqual([1, 2]);
    void send(both, 1);
    void send(both, 2);
    expect([one.open.size, two.open.size]).toEqual([0, 2]);
  });

  test('tasks that nobody can take come back untouched and uncounted', async () => {
    const { one, two, both } = openPair(30);
    one.workers = 0;
    two.workers = 0;
    expect(both.slots).toBe(0);
    const delivery = await send(both, 7);
    expect(delivery).toMatchObject({
      kind: 'report',
      report: { batchId: 7, final: true, permits: [{ sent: 0, finished: true }] },
    });
    const { outcomes } = (delivery as Extract<Delivery, { kind: 'report' }>).report;
    expect(outcomes.map(({ kind }) => kind)).toEqual(['deferred', 'deferred']);
    expect([one.open.size, two.open.size]).toEqual([0, 0]);
  });

  test('batches that need a browser go only where one can be', async () => {
    const { one, two, both } = openPair(30);
    one.kinds = ['http'];
    two.slots = 20;
    expect(both.serves?.('browser')).toBe(true);
    for (let id = 1; id <= 6; id++) void send(both, id, 'browser');
    expect([one.open.size, two.open.size]).toEqual([0, 6]);
    two.kinds = ['http'];
    expect(both.serves?.('browser')).toBe(false);
    expect(await send(both, 7, 'browser')).toMatchObject({ kind: 'report', report: { worker: 'none' } });
  });

  test('a drain reaches all, sends home what waits, and afterwards everything comes back', async () => {
    const { one, two, both } = openPair();
    const answers = [1, 2, 3, 4, 5].map((id) => send(both, id));
    await both.drain();
    expect([one.drained, two.drained]).toEqual([1, 1]);
    expect(await answers[4]).toMatchObject({ kind: 'report', report: { batchId: 5 } });
    expect(await send(both, 6)).toMatchObject({ kind: 'report', report: { batchId: 6 } });
    expect(one.open.size + two.open.size).toBe(4);
  });

  test('all are closed once, also when one of them cannot be', async () => {
    const { one, two, both } = openPair();
    one.close = () => Promise.reject(new Error('stuck'));
    await expect(both.close()).rejects.toThrow('stuck');
    await expect(both.close()).rejects.toThrow('stuck');
    expect(two.closed).toBe(1);
  });

  test('one that breaks its promise costs its own batch', async () => {
    const { one, two, both } = openPair();
    two.workers = 0;
    one.dispatch = () => Promise.reject(new Error('bug'));
    expect(await send(both, 3)).toEqual({ kind: 'lost', batchId: 3, reason: 'bug' });
  });

  test('heartbeats and cost are those of the parts that have them', async () => {
    const { both, one, two } = openPair();
    expect([both.heartbeats, both.cost]).toEqual([undefined, undefined]);
    const cost = { invocations: 2, gbSeconds: 1.5, usd: 0.25 };
    const heartbeat = {
      worker: 'w',
      kind: 'http' as const,
      at: 1,
      cpu: 0,
      memoryBytes: 1,
      batches: 0,
      hosts: [],
    };
    const paid = Object.assign(one, { cost: () => cost, heartbeats: async () => [heartbeat] });
    const more = Object.assign(two, { cost: () => cost });
    const parts = [paid, more, new TestDispatcher()].map((dispatcher) => ({ dispatcher, weight: 1 }));
    const all = openWeightedDispatcher(parts);
    expect(all.cost?.()).toEqual({ invocations: 4, gbSeconds: 3, usd: 0.5 });
    expect(await all.heartbeats?.()).toEqual([heartbeat]);
  });
});

test('several dispatchers have room for a kind where somebody serves it, and refuse only what all refuse', () => {
  const [one, other] = [new TestDispatcher(), new TestDispatcher()];
  one.kinds = ['http'];
  const both = openWeightedDispatcher([
    { dispatcher: one, weight: 1 },
    { dispatcher: other, weight: 1 },
  ]);
  expect([both.slotsFor?.('http'), both.slotsFor?.('browser')]).toEqual([4, 2]);
  const refusal = new SeineError('no browser');
  Object.assign(one, { refusal: () => refusal });
  expect(both.refusal?.('browser')).toBeNull();
  Object.assign(other, { refusal: () => refusal });
  expect(both.refusal?.('browser')).toBe(refusal);
});
