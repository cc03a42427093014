import type { NewTask } from '../../../core/model.ts';
import { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import {
  ALL_HOSTS,
  addSettled,
  addCosts as countCosts,
  emptyRollup,
  type Rollup,
} from '../../../core/rollups/rollup.ts';
import type { Settlement, SettleResult, TaskChange } from '../../../ports/store.ts';
import { costsOf } from '../../shared/cost-rows.ts';
import type { PassFacts } from '../../shared/passes.ts';
import { LOWERED_MAX, nextPriority, priorityStepOf } from '../../shared/retry-order.ts';
import { LEASED, READY, STATE_NUMBERS, WAITING } from '../../shared/states.ts';
import { nextHistories } from '../../shared/visit-histories.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import type { Database } from '../connection/database.ts';
import { addTally, CounterDelta, NO_ID, QueueDelta, readPass } from '../connection/rows.ts';
import type { TaskInserter } from '../frontier/insert-tasks.ts';
import { addRollups } from '../rollup-store.ts';
import { SQLITE_OUTBOX, writeOutbox } from '../webhooks.ts';
import { findEarlierPage, keepsPage, writeAttempt } from './write-attempt.ts';
import { addCosts } from './write-costs.ts';
import { writeHosts } from './write-hosts.ts';
import { writeMedia, writeMoved, writeShown } from './write-media.ts';
import { addQuality } from './write-quality.ts';
import {
  addRecordChanges,
  confirmRecords,
  countPresent,
  type RecordWriter,
  writeRecords,
} from './write-records.ts';

interface OpenBatch {
  unsettled: number;
  task_ids: string;
}

interface Context {
  settlement: Settlement;
  inserter: TaskInserter;
  counterUpdates: CounterUpdates;
  pass: PassFacts;
  records: RecordWriter & { changes: RecordChangeSum };
  archiveId: number | null;
  nextAttemptId: number;
}

interface CounterUpdates {
  counters: CounterDelta;
  queues: QueueDelta;
  tallies: Map<string, number>;
}

/** What the changes of a report came to. */
interface Applied {
  changes: TaskChange[];
  settled: number;
  done: number;
  failed: number;
  bytes: number;
  rollup: Rollup;
  links: NewTask[];
  /** Changes whose media are linked once the links are tasks. */
  shown: TaskChange[];
}

/** One report, one transaction: everything in it becomes true together, or nothing does. */
export function settleInTransaction(
  db: Database,
  inserter: TaskInserter,
  settlement: Settlement,
): SettleResult {
  const { jobId, batchId, perTemplateMax } = settlement;
  const batch = db.get<OpenBatch>(SELECT_BATCH, batchId, jobId);
  if (!batch) return { applied: false, accepted: 0 };
  const context = contextOf(db, inserter, settlement);
  const { counterUpdates, pass } = context;
  const applied = applyChanges(db, context);
  const { accepted } = inserter.insert(jobId, applied.links, { perTemplateMax, ...counterUpdates });
  for (const change of applied.shown) linkMedia(db, context, change);
  writeHistories(db, context, applied.changes);
  // A part that comes twice has nothing left to settle, and is not to be counted again.
  if (applied.settled > 0) addQuality(db, jobId, pass.pass, settlement.quality);
  addRecordChanges(db, jobId, pass.pass, context.records.changes);
  const unsettled = batch.unsettled - applied.settled;
  if (settlement.final && unsettled > 0) giveBack(db, settlement, batch.task_ids, counterUpdates);
  updateBatch(db, settlement, applied, unsettled);
  writeHosts(db, inserter, settlement);
  writeCounterUpdates(db, settlement, applied, counterUpdates);
  addCosts(db, jobId, costsOf(settlement));
  const taskIds = settlement.tasks.map(({ id }) => id);
  const news = { jobId, pass: pass.pass, taskIds, records: context.records.news, now: settlement.now };
  writeOutbox(db, tellWork(SQLITE_OUTBOX, news));
  const { rollup } = applied;
  rollup.requests = settlement.requests;
  countCosts(rollup, settlement.costs ?? []);
  addRollups(db, jobId, [{ host: ALL_HOSTS, at: settlement.now, rollup }]);
  return { applied: true, accepted };
}

function contextOf(db: Database, inserter: TaskInserter, settlement: Settlement): Context {
  const { jobId, now, records: rules } = settlement;
  const counterUpdates: CounterUpdates = {
    counters: new CounterDelta(),
    queues: new QueueDelta(),
    tallies: new Map(),
  };
  const pass = readPass(db, jobId);
  return {
    settlement,
    inserter,
    counterUpdates,
    pass,
    records: {
      collectionId: pass.collectionId,
      jobId,
      now,
      rules,
      counters: counterUpdates.counters,
      news: [],
      changes: new RecordChangeSum(),
    },
    archiveId: writeArchive(db, settlement),
    nextAttemptId: db.get<{ id: number }>('SELECT coalesce(max(id), 0) + 1 AS id FROM attempts')!.id,
  };
}

/** Tasks, attempts and records. Links wait until all are through, so that they are inserted at once. */
function applyChanges(db: Database, context: Context): Applied {
  const { settlement, pass } = context;
  const links = [...(settlement.links ?? [])];
  const applied: Applied = {
    changes: [],
    settled: 0,
    done: 0,
    failed: 0,
    bytes: 0,
    rollup: emptyRollup(),
    links,
    shown: [],
  };
  for (const change of settlement.tasks) {
    if (!applyChange(db, context, change)) continue;
    applied.settled++;
    applied.changes.push(change);
    if (db.keepsRollups) addSettled(applied.rollup, change);
    applied.bytes += change.trace?.bytes ?? 0;
    if (change.outcome === 'failed') applied.failed++;
    else if (change.outcome !== 'deferred') applied.done++;
    writeFindings(db, context, change);
    // One by one: a sitemap has too many for the arguments of a call.
    for (const link of change.links) links.push(link);
    if (change.shows.length > 0 || pass.pass > 1 || change.outcome === 'redirected')
      applied.shown.push(change);
  }
  return applied;
}

function updateBatch(db: Database, settlement: Settlement, applied: Applied, unsettled: number): void {
  const { final, now, worker, requests, durationMs, batchId } = settlement;
  const { done, failed, bytes } = applied;
  const [state, left, closedAt] = final ? ['closed', 0, now] : ['open', unsettled, null];
  const counts = [done, failed, requests, bytes, durationMs];
  db.run(UPDATE_BATCH, state, left, closedAt, worker, ...counts, final ? 1 : 0, batchId);
}

function writeCounterUpdates(
  db: Database,
  { jobId, requests, final }: Settlement,
  { settled, bytes }: Applied,
  { counters, queues, tallies }: CounterUpdates,
): void {
  counters.add('leased', -settled);
  counters.add('bytes', bytes);
  counters.add('requests', requests);
  if (final) counters.add('batches', 1);
  counters.write(db, jobId);
  queues.write(db, jobId);
  for (const [name, count] of tallies) {
    const [state, code] = name.split(' ') as ['dead' | 'skipped', string];
    addTally(db, jobId, state, code, count);
  }
}

/** False when the batch no longer holds the task: then nothing of its outcome counts. */
function applyChange(db: Database, context: Context, change: TaskChange): boolean {
  const { settlement, counterUpdates } = context;
  const state = stateOf(change, settlement.now);
  const attemptId = change.trace ? context.nextAttemptId : null;
  const earlier =
    change.trace && keepsPage(change, context.pass.pass) ? findEarlierPage(db, change.id) : null;
  const isGone = change.to === 'dead' && change.code === 'not-found' && context.pass.pass > 1;
  const gone = isGone ? countPresent(db, change.id) : 0;
  const attempts = updateTask(db, settlement.batchId, change, { state, attemptId });
  if (attempts === null) return false;
  context.records.changes.gone(gone);
  if (change.countsAsAttempt && attempts === 1) counterUpdates.counters.add('attempted', 1);
  if (change.trace) {
    const { archiveId } = context;
    const id = context.nextAttemptId++;
    writeAttempt(db, settlement, { id, archiveId, trace: change.trace, earlier }, change);
    if (change.page?.media && !earlier) {
      const row = { attemptId: id, jobId: settlement.jobId, taskId: change.id, pass: context.pass.pass };
      writeMedia(db, row, change.page.media);
    }
  }
  if (change.moveTo) moveTask(db, context, change.id, change.moveTo);
  if (state === READY) {
    counterUpdates.queues.add(
      db.get<{ host_id: number }>('SELECT host_id FROM tasks WHERE id = ?', change.id)!.host_id,
      1,
    );
  }
  counterUpdates.counters.add(change.to, 1);
  counterUpdates.counters.add('rejected', change.rejected ?? 0);
  if (change.to === 'pending' && change.outcome === 'failed') counterUpdates.counters.add('retries', 1);
  if ((change.to === 'dead' || change.to === 'skipped') && change.code) {
    const name = `${change.to} ${change.code}`;
    counterUpdates.tallies.set(name, (counterUpdates.tallies.get(name) ?? 0) + 1);
  }
  return true;
}

/** How often the task was attempted, with this time; null when the batch no longer holds it. */
function updateTask(
  db: Database,
  batchId: number,
  change: TaskChange,
  { state, attemptId }: { state: number; attemptId: number | null },
): number | null {
  const { id, countsAsAttempt, dueAt, code, detail } = change;
  // Nearly all tasks end at their first attempt: a statement of their own, which is cheaper.
  if (countsAsAttempt && change.to !== 'pending') {
    const ended = db.run(END_AT_FIRST_ATTEMPT, state, attemptId, code, detail, id, batchId);
    if (ended === 1) return 1;
  }
  const counted = countsAsAttempt ? 1 : 0;
  const step = priorityStepOf(change);
  const throttled = change.throttled ? 1 : 0;
  const values = [state, attemptId, counted, dueAt, step, code, detail, id, batchId, throttled];
  return db.get<{ attempts: number }>(UPDATE_TASK, ...values)?.attempts ?? null;
}

function moveTask(db: Database, context: Context, id: number, to: { url: string; host: string }): void {
  const hostId = context.inserter.hostId(to.host);
  db.run(MOVE_TASK, to.url, hostId, id);
}

function stateOf(change: TaskChange, now: number): number {
  if (change.to !== 'pending') return STATE_NUMBERS[change.to];
  return change.dueAt !== null && change.dueAt > now ? WAITING : READY;
}

function writeFindings(db: Database, { records, settlement }: Context, change: TaskChange): void {
  const task = { id: change.id, fetchedAt: Math.round(change.trace?.startedAt ?? settlement.now) };
  if (change.records.length > 0) writeRecords(db, records, task, change.records);
  else if (change.outcome === 'unchanged') confirmRecords(db, records, task);
}

/** After the links were inserted: media are tasks, too. */
function linkMedia(db: Database, { settlement, inserter, pass }: Context, change: TaskChange): void {
  const task = { jobId: settlement.jobId, taskId: change.id, replaces: pass.pass > 1 };
  if (change.outcome === 'fetched') writeShown(db, inserter, task, change.shows);
  else if (change.outcome === 'redirected' && change.to === 'done' && change.redirectTo !== null)
    writeMoved(db, inserter, task, change.redirectTo);
}

/** How often pages change, where intervals adapt. */
function writeHistories(
  db: Database,
  { settlement, records }: Context,
  changes: readonly TaskChange[],
): void {
  if (!settlement.revisits) return;
  const known = new Map<number, string>();
  for (const { id } of changes) {
    const row = db.get<{ visits: string | null }>('SELECT visits FROM tasks WHERE id = ?', id);
    if (row?.visits) known.set(id, row.visits);
  }
  const written = new Set(records.news.map(({ key }) => key));
  const histories = nextHistories(changes, known, (key) => written.has(key), settlement.revisits);
  for (const [id, json] of histories) db.run('UPDATE tasks SET visits = ? WHERE id = ?', json, id);
}

function writeArchive(db: Database, settlement: Settlement): number | null {
  const { jobId, batchId, archive, pack } = settlement;
  const insert = 'INSERT INTO archives (job_id, batch_id, key, bytes) VALUES (?, ?, ?, ?)';
  if (pack) db.run(insert, jobId, batchId, pack.key, pack.bytes);
  if (!archive) return null;
  db.run(insert, jobId, batchId, archive.key, archive.bytes);
  return db.get<{ id: number }>('SELECT last_insert_rowid() AS id')!.id;
}

/** A worker that forgot tasks must not keep them for ever. */
function giveBack(
  db: Database,
  settlement: Settlement,
  taskIds: string,
  counterUpdates: CounterUpdates,
): void {
  for (const id of JSON.parse(taskIds) as number[]) {
    const row = db.get<{ host_id: number }>(
      `UPDATE tasks SET state = ${READY}, batch_id = ${NO_ID} WHERE id = ? AND state = ${LEASED} AND batch_id = ?
       RETURNING host_id`,
      id,
      settlement.batchId,
    );
    if (!row) continue;
    counterUpdates.queues.add(row.host_id, 1);
    counterUpdates.counters.add('leased', -1);
    counterUpdates.counters.add('pending', 1);
  }
}

const SELECT_BATCH = "SELECT unsettled, task_ids FROM batches WHERE id = ? AND job_id = ? AND state = 'open'";

const END_AT_FIRST_ATTEMPT = `
  UPDATE tasks SET state = ?1, batch_id = ${NO_ID}, attempt_id = coalesce(?2, attempt_id), attempts = 1, losses = 0,
    crashes = 0, due_at = NULL, code = ?3, detail = ?4
  WHERE id = ?5 AND state = ${LEASED} AND batch_id = ?6 AND attempts = 0 AND priority > ${LOWERED_MAX}`;

const UPDATE_TASK = `
  UPDATE tasks SET state = ?1, batch_id = ${NO_ID}, attempt_id = coalesce(?2, attempt_id), attempts = attempts + ?3,
    losses = iif(?3, 0, losses), crashes = iif(?3, 0, crashes), throttles = throttles + ?10, due_at = ?4, priority = ${nextPriority('?5', 'priority')}, code = ?6, detail = ?7
  WHERE id = ?8 AND state = ${LEASED} AND batch_id = ?9 RETURNING attempts`;

const MOVE_TASK = `
  UPDATE tasks SET at_url = ?, home_host_id = coalesce(home_host_id, host_id), host_id = ?, hops = hops + 1 WHERE id = ?`;

const UPDATE_BATCH = `
  UPDATE batches SET state = ?, unsettled = ?, closed_at = ?, worker = ?, done = done + ?, failed = failed + ?,
    requests = requests + ?, bytes = bytes + ?, duration_ms = ?,
    task_ids = iif(?, NULL, task_ids)
  WHERE id = ?`;
