import { expect, test } from 'vitest';
import type { Report } from '../../../../src/core/batch/batch.ts';
import { WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import { deferredReport } from '../../../../src/core/batch/report.ts';
import type { Delivery } from '../../../../src/ports/dispatcher.ts';
import { DEAD_MS, type Heartbeat, LiveWorkers } from '../../../../src/transport/bullmq/heartbeat.ts';
import { SentBatches } from '../../../../src/transport/bullmq/sent-batches.ts';
import { coordinatorOf, TAKE_MS } from '../../../../src/transport/bullmq/wire.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';

const COORDINATOR = 'abcdef012345';
const BATCH = batchOf(7, ['a.example'], 2);

function openOne() {
  const sentBatches = new SentBatches(COORDINATOR);
  const parts: number[] = [];
  const { sent, delivery } = sentBatches.open(BATCH, (report) => parts.push(report.part), 0);
  const deliveries: Delivery[] = [];
  void delivery.then((each) => deliveries.push(each));
  return {
    sentBatches,
    sent,
    parts,
    /** After what was resolved has come through. */
    async end(): Promise<Delivery | undefined> {
      await Promise.resolve();
      return deliveries[0];
    },
  };
}

const partOf = (part: number, final = false): Report => ({
  ...deferredReport(BATCH, { worker: 'w', now: 0 }),
  // Workers have numbers of their own.
  batchId: 1,
  part,
  final,
});

const heartbeatOf = (worker: string, beat: number, sentIds: string[] = []): Heartbeat => ({
  version: WIRE_VERSION,
  worker,
  beat,
  sentIds,
  kind: 'http',
  at: 0,
  cpu: 0,
  memoryBytes: 0,
  batches: sentIds.length,
  hosts: [],
  threads: 1,
  slots: 8,
  software: '',
  isDraining: false,
  batchesDone: 0,
  tasksDone: 0,
});

test('a batch that two workers have taken is lost, so that their reports are not mixed', async () => {
  const { sentBatches, sent, end } = openOne();
  sentBatches.hear({ kind: 'taken', sentId: sent.id, worker: 'one' }, 1);
  sentBatches.hear({ kind: 'taken', sentId: sent.id, worker: 'one' }, 2);
  expect(sentBatches.isOpen(sent.id)).toBe(true);
  sentBatches.hear({ kind: 'taken', sentId: sent.id, worker: 'two' }, 3);
  expect(await end()).toMatchObject({ kind: 'lost', batchId: 7, blameless: true });
  expect(sentBatches.isOpen(sent.id)).toBe(false);
});

test('parts come once and in order, however often Redis repeats them, and carry the number of the batch', async () => {
  const { sentBatches, sent, parts, end } = openOne();
  const say = (report: Report) => sentBatches.hear({ kind: 'report', sentId: sent.id, report }, 1);
  for (const part of [0, 0, 1, 0, 1]) say(partOf(part));
  say(partOf(2, true));
  say(partOf(2, true));
  expect(parts).toEqual([0, 1]);
  expect(await end()).toMatchObject({ kind: 'report', report: { part: 2, final: true, batchId: 7 } });
  expect(sentBatches.all()).toEqual([]);
});

test('a part that is missing makes the rest of the batch lost, without blame', async () => {
  const { sentBatches, sent, parts, end } = openOne();
  sentBatches.hear({ kind: 'report', sentId: sent.id, report: partOf(0) }, 1);
  sentBatches.hear({ kind: 'report', sentId: sent.id, report: partOf(2, true) }, 1);
  expect(parts).toEqual([0]);
  expect(await end()).toMatchObject({ kind: 'lost', batchId: 7, blameless: true });
});

test('a batch that was not there is lost only while nobody has it', async () => {
  const one = openOne();
  one.sentBatches.hear({ kind: 'taken', sentId: one.sent.id, worker: 'w' }, 1);
  one.sentBatches.hear({ kind: 'gone', sentId: one.sent.id }, 2);
  expect(await one.end()).toBeUndefined();
  const other = openOne();
  other.sentBatches.hear({ kind: 'gone', sentId: other.sent.id }, 2);
  expect(await other.end()).toMatchObject({ kind: 'lost', blameless: true });
});

test('a worker is dead when its heartbeats stay away, not when Redis did', async () => {
  const { sentBatches, sent, end } = openOne();
  const liveWorkers = new LiveWorkers();
  sentBatches.hear({ kind: 'taken', sentId: sent.id, worker: 'w' }, 0);
  liveWorkers.note([heartbeatOf('w', 1, [sent.id])], 0);
  // The same heartbeat again is none.
  liveWorkers.note([heartbeatOf('w', 1, [sent.id])], DEAD_MS);
  sentBatches.judge(liveWorkers, DEAD_MS);
  expect(await end()).toBeUndefined();
  liveWorkers.forgive(DEAD_MS + 1);
  sentBatches.judge(liveWorkers, DEAD_MS + 2);
  expect(await end()).toBeUndefined();
  sentBatches.judge(liveWorkers, 2 * DEAD_MS + 2);
  expect(await end()).toEqual({
    kind: 'lost',
    batchId: 7,
    reason: 'the worker w stopped sending heartbeats',
  });
});

test('a report that got lost shows by heartbeats that do not name its batch any more', async () => {
  const { sentBatches, sent, end } = openOne();
  const liveWorkers = new LiveWorkers();
  sentBatches.hear({ kind: 'taken', sentId: sent.id, worker: 'w' }, 0);
  for (const [beat, named] of [
    [1, true],
    [2, false],
    [3, true],
    [4, false],
    [5, false],
  ] as const) {
    liveWorkers.note([heartbeatOf('w', beat, named ? [sent.id] : [])], beat);
    sentBatches.judge(liveWorkers, beat);
    sentBatches.judge(liveWorkers, beat);
    expect(await end()).toBeUndefined();
  }
  liveWorkers.note([heartbeatOf('w', 6)], 6);
  sentBatches.judge(liveWorkers, 6);
  expect(await end()).toMatchObject({
    kind: 'lost',
    blameless: true,
    reason: 'its report was lost in Redis',
  });
});

test('a batch that is not in Redis belongs to the worker that names it, else to nobody', async () => {
  const liveWorkers = new LiveWorkers();
  const taken = openOne();
  liveWorkers.note([heartbeatOf('w', 1, [taken.sent.id])], 1);
  taken.sentBatches.miss(taken.sent, liveWorkers, 1);
  expect(taken.sent.worker).toBe('w');
  const lost = openOne();
  liveWorkers.note([heartbeatOf('w', 2)], 2);
  lost.sentBatches.miss(lost.sent, liveWorkers, 2);
  lost.sentBatches.miss(lost.sent, liveWorkers, 4_000);
  expect(await lost.end()).toBeUndefined();
  lost.sentBatches.miss(lost.sent, liveWorkers, 6_000);
  expect(await lost.end()).toMatchObject({ kind: 'lost', blameless: true, reason: 'Redis lost it' });
});

test('a batch that was taken back is deferred; one that never comes back ends with its lease', async () => {
  const back = openOne();
  back.sentBatches.withdraw(back.sent, 1);
  expect(await back.end()).toMatchObject({
    kind: 'report',
    report: { final: true, permits: [{ sent: 0, finished: true }], outcomes: [{ kind: 'deferred' }, {}] },
  });
  const late = openOne();
  const lastMs = TAKE_MS + BATCH.budgetMs + 15_000;
  late.sentBatches.judge(new LiveWorkers(), lastMs);
  expect(await late.end()).toBeUndefined();
  late.sentBatches.judge(new LiveWorkers(), lastMs + 1);
  expect(await late.end()).toMatchObject({ kind: 'lost', blameless: true });
});

test('only workers of our version are given work', () => {
  const liveWorkers = new LiveWorkers();
  liveWorkers.note([heartbeatOf('w', 1), { ...heartbeatOf('old', 1), version: 0 }], 1);
  expect(liveWorkers.live(1).map(({ worker }) => worker)).toEqual(['w']);
  expect(liveWorkers.strangers(1).map(({ worker }) => worker)).toEqual(['old']);
  liveWorkers.note([], 2);
  expect(liveWorkers.live(2)).toEqual([]);
});

test('the id of a sent batch names its coordinator, and nothing else does', () => {
  const { sent } = openOne();
  expect(coordinatorOf(sent.id)).toBe(COORDINATOR);
  for (const id of ['1', 'repeat:x:1', `${COORDINATOR}-x`, `x${COORDINATOR}-1`])
    expect(coordinatorOf(id)).toBeNull();
});

test('room is counted by kind: one with a browser takes all batches, one without leaves those for a browser', () => {
  const liveWorkers = new LiveWorkers();
  const http = { ...heartbeatOf('http', 1), slots: 5 };
  liveWorkers.note([http], 0);
  expect([liveWorkers.slotsFor('http', 0), liveWorkers.slotsFor('browser', 0)]).toEqual([5, 0]);
  liveWorkers.note([http, { ...heartbeatOf('shows', 1), kind: 'browser', slots: 2 }], 0);
  expect([liveWorkers.slotsFor('http', 0), liveWorkers.slotsFor('browser', 0)]).toEqual([7, 2]);
  expect(liveWorkers.slotsFor('browser', DEAD_MS + 1)).toBe(0);
});

test('a batch that is taken over goes on with whatever part comes next, without what was settled before', async () => {
  const sentBatches = new SentBatches('fedcba987654');
  const parts: Report[] = [];
  const [settled, held] = BATCH.tasks;
  const left = { ...BATCH, tasks: [held!] };
  const { sent, delivery } = sentBatches.adopt(left, COORDINATOR, (part) => parts.push(part), 0);
  expect(coordinatorOf(sent.id)).toBe(COORDINATOR);
  const say = (part: number, final: boolean) =>
    sentBatches.hear({ kind: 'report', sentId: sent.id, report: partOf(part, final) }, 1);
  say(3, false);
  say(3, false);
  say(4, true);
  expect(parts.map(({ part, batchId }) => [part, batchId])).toEqual([[3, BATCH.id]]);
  const outcomes = parts[0]!.outcomes.map(({ taskId }) => taskId);
  expect(outcomes).toEqual([held!.id]);
  expect(outcomes).not.toContain(settled!.id);
  expect(await delivery).toMatchObject({ kind: 'report', report: { part: 4, final: true } });
});
