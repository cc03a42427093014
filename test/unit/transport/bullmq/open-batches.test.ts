import { expect, test } from 'vitest';
import type { Report } from '../../../../src/core/batch/batch.ts';
import { WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import { deferredReport } from '../../../../src/core/batch/report.ts';
import type { Delivery } from '../../../../src/ports/dispatcher.ts';
import { DEAD_MS, type Heartbeat, LiveWorkers } from '../../../../src/transport/bullmq/heartbeat.ts';
import { SentBatches } from '../../../../src/transport/bullmq/open-batches.ts';
import { coordinatorOf, TAKE_MS } from '../../../../src/transport/bullmq/wire.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';

const COORDINATOR = 'abcdef012345';
const BATCH = batchOf(7, ['a.example'], 2);

function openOne() {
  const tickets = new SentBatches(COORDINATOR);
  const parts: number[] = [];
  const { ticket, delivery } = tickets.open(BATCH, (report) => parts.push(report.part), 0);
  const deliveries: Delivery[] = [];
  void delivery.then((each) => deliveries.push(each));
  return {
    tickets,
    ticket,
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

const signOf = (worker: string, beat: number, tickets: string[] = []): Heartbeat => ({
  version: WIRE_VERSION,
  worker,
  beat,
  tickets,
  kind: 'http',
  at: 0,
  cpu: 0,
  memoryBytes: 0,
  batches: tickets.length,
  hosts: [],
  threads: 1,
  slots: 8,
});

test('a batch that two workers have taken is lost, so that their reports are not mixed', async () => {
  const { tickets, ticket, end } = openOne();
  tickets.hear({ kind: 'taken', ticket: ticket.id, worker: 'one' }, 1);
  tickets.hear({ kind: 'taken', ticket: ticket.id, worker: 'one' }, 2);
  expect(tickets.isOpen(ticket.id)).toBe(true);
  tickets.hear({ kind: 'taken', ticket: ticket.id, worker: 'two' }, 3);
  expect(await end()).toMatchObject({ kind: 'lost', batchId: 7, blameless: true });
  expect(tickets.isOpen(ticket.id)).toBe(false);
});

test('parts come once and in order, however often Redis repeats them, and carry the number of the batch', async () => {
  const { tickets, ticket, parts, end } = openOne();
  const say = (report: Report) => tickets.hear({ kind: 'report', ticket: ticket.id, report }, 1);
  for (const part of [0, 0, 1, 0, 1]) say(partOf(part));
  say(partOf(2, true));
  say(partOf(2, true));
  expect(parts).toEqual([0, 1]);
  expect(await end()).toMatchObject({ kind: 'report', report: { part: 2, final: true, batchId: 7 } });
  expect(tickets.all()).toEqual([]);
});

test('a part that is missing makes the rest of the batch lost, without blame', async () => {
  const { tickets, ticket, parts, end } = openOne();
  tickets.hear({ kind: 'report', ticket: ticket.id, report: partOf(0) }, 1);
  tickets.hear({ kind: 'report', ticket: ticket.id, report: partOf(2, true) }, 1);
  expect(parts).toEqual([0]);
  expect(await end()).toMatchObject({ kind: 'lost', batchId: 7, blameless: true });
});

test('a batch that was not there is lost only while nobody has it', async () => {
  const one = openOne();
  one.tickets.hear({ kind: 'taken', ticket: one.ticket.id, worker: 'w' }, 1);
  one.tickets.hear({ kind: 'gone', ticket: one.ticket.id }, 2);
  expect(await one.end()).toBeUndefined();
  const other = openOne();
  other.tickets.hear({ kind: 'gone', ticket: other.ticket.id }, 2);
  expect(await other.end()).toMatchObject({ kind: 'lost', blameless: true });
});

test('a worker is dead when its signs stay away, not when Redis did', async () => {
  const { tickets, ticket, end } = openOne();
  const presence = new LiveWorkers();
  tickets.hear({ kind: 'taken', ticket: ticket.id, worker: 'w' }, 0);
  presence.note([signOf('w', 1, [ticket.id])], 0);
  // The same sign again is no sign.
  presence.note([signOf('w', 1, [ticket.id])], DEAD_MS);
  tickets.judge(presence, DEAD_MS);
  expect(await end()).toBeUndefined();
  presence.forgive(DEAD_MS + 1);
  tickets.judge(presence, DEAD_MS + 2);
  expect(await end()).toBeUndefined();
  tickets.judge(presence, 2 * DEAD_MS + 2);
  expect(await end()).toEqual({
    kind: 'lost',
    batchId: 7,
    reason: 'the worker w stopped sending heartbeats',
  });
});

test('a report that got lost shows by signs that do not name its batch any more', async () => {
  const { tickets, ticket, end } = openOne();
  const presence = new LiveWorkers();
  tickets.hear({ kind: 'taken', ticket: ticket.id, worker: 'w' }, 0);
  for (const [beat, named] of [
    [1, true],
    [2, false],
    [3, true],
    [4, false],
    [5, false],
  ] as const) {
    presence.note([signOf('w', beat, named ? [ticket.id] : [])], beat);
    tickets.judge(presence, beat);
    tickets.judge(presence, beat);
    expect(await end()).toBeUndefined();
  }
  presence.note([signOf('w', 6)], 6);
  tickets.judge(presence, 6);
  expect(await end()).toMatchObject({
    kind: 'lost',
    blameless: true,
    reason: 'its report was lost in Redis',
  });
});

test('a batch that is not in Redis belongs to the worker that names it, else to nobody', async () => {
  const presence = new LiveWorkers();
  const taken = openOne();
  presence.note([signOf('w', 1, [taken.ticket.id])], 1);
  taken.tickets.miss(taken.ticket, presence, 1);
  expect(taken.ticket.worker).toBe('w');
  const lost = openOne();
  presence.note([signOf('w', 2)], 2);
  lost.tickets.miss(lost.ticket, presence, 2);
  lost.tickets.miss(lost.ticket, presence, 4_000);
  expect(await lost.end()).toBeUndefined();
  lost.tickets.miss(lost.ticket, presence, 6_000);
  expect(await lost.end()).toMatchObject({ kind: 'lost', blameless: true, reason: 'Redis lost it' });
});

test('a batch that was taken back is deferred; one that never comes back ends with its lease', async () => {
  const back = openOne();
  back.tickets.withdraw(back.ticket, 1);
  expect(await back.end()).toMatchObject({
    kind: 'report',
    report: { final: true, permits: [{ sent: 0, finished: true }], outcomes: [{ kind: 'deferred' }, {}] },
  });
  const late = openOne();
  const lastMs = TAKE_MS + BATCH.budgetMs + 15_000;
  late.tickets.judge(new LiveWorkers(), lastMs);
  expect(await late.end()).toBeUndefined();
  late.tickets.judge(new LiveWorkers(), lastMs + 1);
  expect(await late.end()).toMatchObject({ kind: 'lost', blameless: true });
});

test('only workers of our version are given work', () => {
  const presence = new LiveWorkers();
  presence.note([signOf('w', 1), { ...signOf('old', 1), version: 0 }], 1);
  expect(presence.live(1).map(({ worker }) => worker)).toEqual(['w']);
  expect(presence.strangers(1).map(({ worker }) => worker)).toEqual(['old']);
  presence.note([], 2);
  expect(presence.live(2)).toEqual([]);
});

test('a ticket names its coordinator, and nothing else does', () => {
  const { ticket } = openOne();
  expect(coordinatorOf(ticket.id)).toBe(COORDINATOR);
  for (const id of ['1', 'repeat:x:1', `${COORDINATOR}-x`, `x${COORDINATOR}-1`])
    expect(coordinatorOf(id)).toBeNull();
});

test('room is counted by kind: one with a browser takes all batches, one without leaves those for a browser', () => {
  const presence = new LiveWorkers();
  const http = { ...signOf('http', 1), slots: 5 };
  presence.note([http], 0);
  expect([presence.slotsFor('http', 0), presence.slotsFor('browser', 0)]).toEqual([5, 0]);
  presence.note([http, { ...signOf('shows', 1), kind: 'browser', slots: 2 }], 0);
  expect([presence.slotsFor('http', 0), presence.slotsFor('browser', 0)]).toEqual([7, 2]);
  expect(presence.slotsFor('browser', DEAD_MS + 1)).toBe(0);
});
