import type { NewTask } from '../../../core/model.ts';
import { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import {
  ALL_HOSTS,
  addSettled,
  addCosts as countCosts,
  emptyRollup,
  type RollupRow,
} from '../../../core/rollups/rollup.ts';
import type { Settlement, SettleResult, TaskChange } from '../../../ports/store.ts';
import { costsOf } from '../../shared/cost-rows.ts';
import { LEASED, READY } from '../../shared/states.ts';
import { nextHistories } from '../../shared/visit-histories.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import { TAKE_ATTEMPT_NUMBERS } from '../connection/attempt-numbers.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { ConflictError } from '../connection/failures.ts';
import { CounterUpdates, cleanText, indexHint } from '../connection/rows.ts';
import type { HostNumbers } from '../frontier/host-ids.ts';
import { insertTasks, type LookedUp, lookUp } from '../frontier/insert-tasks.ts';
import type { JobMemory } from '../frontier/job-memory.ts';
import { addRollups } from '../rollup-store.ts';
import { POSTGRES_OUTBOX, writeOutbox } from '../webhooks.ts';
import { type Applied, applyChanges, type OpenBatch, stateOf } from './apply-changes.ts';
import { type EarlierPage, findEarlierPages, keepsPage } from './earlier-pages.ts';
import { addCosts } from './write-costs.ts';
import { writeHosts, writeRobots } from './write-hosts.ts';
import { writeShown } from './write-media.ts';
import { addQuality } from './write-quality.ts';
import {
  addRecordChanges,
  confirmRecords,
  countPresent,
  isGone,
  type RecordWriter,
  writeRecords,
} from './write-records.ts';
import { writeSink } from './write-sink.ts';

/** One report, one transaction: everything in it becomes true together, or nothing does. */
export async function settleInTransaction(
  tx: Transaction,
  settlement: Settlement,
  { memory, hosts }: { memory: JobMemory; hosts: HostNumbers },
): Promise<SettleResult> {
  const { jobId, now } = settlement;
  const changes = firstOfEach(settlement.tasks);
  const counterUpdates = new CounterUpdates();
  const ahead = settlement.links ?? [];
  const context = { tx, jobId, memory, hosts, counterUpdates, perTemplateMax: settlement.perTemplateMax };
  const lookingUp = lookUp(context, [...ahead, ...changes.flatMap(({ links }) => links)]);
  tx.finally(lookingUp);
  const before = await lookBack(tx, settlement, changes, memory.pass);
  if (!before) return { applied: false, accepted: 0 };
  if (changes.some(({ trace }) => trace !== null)) tx.finally(tx.run(TAKE_ATTEMPT_NUMBERS));
  const [settled, lookedUp] = await pipelined<[Awaited<ReturnType<typeof applyChanges>>, LookedUp]>(
    applyChanges(tx, settlement, changes, { hosts, earlier: before.earlier }),
    lookingUp,
  );
  if (!settled) return { applied: false, accepted: 0 };
  const { batch, applied } = settled;
  memory.pass = batch.pass;
  if (batch.pass !== before.pass) throw new ConflictError('the next pass has begun meanwhile');
  const links: NewTask[] = [...ahead, ...applied.flatMap(({ change }) => change.links)];
  const { collection_id: collectionId } = batch;
  const recordChanges = new RecordChangeSum();
  for (const { change } of applied) recordChanges.gone(before.present.get(change.id) ?? 0);
  const writer = recordWriter(tx, settlement, { collectionId, counterUpdates, changes: recordChanges });
  const [{ accepted }] = await pipelined<[SettleResult | { accepted: number }, unknown]>(
    links.length === 0 ? Promise.resolve({ accepted: 0 }) : insertTasks(context, links, lookedUp),
    writeFindings(writer, settlement, applied),
  );
  const changed = applied.map(({ change }) => change);
  await writeShown(context, batch.pass, changed);
  await writeHistories(writer, settlement, changed);
  // A part that comes twice has nothing left to settle, and is not to be counted again.
  if (applied.length > 0) await addQuality(tx, jobId, batch.pass, settlement.quality);
  const { sink } = settlement.records;
  if (sink && writer.written)
    await writeSink(tx, sink.spec, { id: jobId, name: sink.job }, [...writer.written.values()]);
  tx.finally(addRecordChanges(tx, jobId, batch.pass, recordChanges));
  await writeTotals(tx, jobId, [{ settlement, batch, applied, hosts }], counterUpdates);
  if (batch.wants_work) {
    const taskIds = applied.map(({ change }) => change.id);
    const news = { jobId, pass: batch.pass, taskIds, records: writer.news, now };
    await writeOutbox(tx, tellWork(POSTGRES_OUTBOX, news));
  }
  return { applied: true, accepted };
}

function recordWriter(
  tx: Transaction,
  { jobId, now, records }: Settlement,
  parts: Pick<RecordWriter, 'collectionId' | 'counterUpdates' | 'changes'>,
): RecordWriter {
  const { sink } = records;
  const written = sink ? { written: new Map(), sinkRoute: sink.spec.route } : {};
  return { tx, jobId, now, rules: records, news: [], ...parts, ...written };
}

/** A report cannot settle a task twice. */
function firstOfEach(tasks: readonly TaskChange[]): TaskChange[] {
  const seen = new Set<number>();
  return tasks.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** What tasks had before: to be asked before they get their next attempts. Null where the batch is not open. */
async function lookBack(
  tx: Transaction,
  { batchId, jobId }: Settlement,
  changes: readonly TaskChange[],
  lastPass: number | null,
): Promise<LookedBack | null> {
  const keeping = (pass: number) => changes.filter((change) => change.trace && keepsPage(change, pass));
  const gone = (pass: number) => (pass === 1 ? [] : changes.filter(isGone));
  if (lastPass !== null && keeping(lastPass).length === 0 && gone(lastPass).length === 0)
    return { pass: lastPass, earlier: new Map(), present: new Map() };
  const [batch] = await tx.run<{ pass: number }>(LOCK_BATCH, batchId, jobId);
  if (!batch) return null;
  const { pass } = batch;
  const [earlier, present] = await pipelined<[LookedBack['earlier'], LookedBack['present']]>(
    findEarlierPages(
      tx,
      keeping(pass).map(({ id }) => id),
    ),
    countPresent(
      tx,
      gone(pass).map(({ id }) => id),
    ),
  );
  return { pass, earlier, present };
}

interface LookedBack {
  pass: number;
  earlier: ReadonlyMap<number, EarlierPage>;
  present: ReadonlyMap<number, number>;
}

/** Records: what the tasks brought besides pages and links. */
async function writeFindings(
  writer: RecordWriter,
  settlement: Settlement,
  applied: readonly Applied[],
): Promise<void> {
  const task = ({ id, trace }: TaskChange) => ({
    id,
    fetchedAt: Math.round(trace?.startedAt ?? settlement.now),
  });
  await writeRecords(
    writer,
    applied.flatMap(({ change }) =>
      change.records.map((draft) => ({ task: task(change), draft, route: change.page?.route ?? null })),
    ),
  );
  const same = applied.filter(({ change }) => change.outcome === 'unchanged' && change.records.length === 0);
  await confirmRecords(
    writer,
    same.map(({ change }) => task(change)),
  );
}

/** How often pages change, where intervals adapt. */
async function writeHistories(
  { tx, news }: RecordWriter,
  { revisits }: Settlement,
  changes: readonly TaskChange[],
): Promise<void> {
  if (!revisits) return;
  const rows = await tx.run<{ id: number; visits: string }>(
    SELECT_HISTORIES,
    changes.map(({ id }) => id),
  );
  const known = new Map(rows.map(({ id, visits }) => [id, visits]));
  const written = new Set(news.map(({ key }) => key));
  const histories = nextHistories(changes, known, (key) => written.has(cleanText(key)), revisits);
  if (histories.size > 0) await tx.run(UPDATE_HISTORIES, [...histories.keys()], [...histories.values()]);
}

/** A report whose tasks are written. */
interface SettledPart {
  settlement: Settlement;
  batch: OpenBatch;
  applied: readonly Applied[];
  hosts: HostNumbers;
}

/** The batches, their hosts and all that is counted. */
async function writeTotals(
  tx: Transaction,
  jobId: number,
  parts: readonly SettledPart[],
  counterUpdates: CounterUpdates,
): Promise<void> {
  // Waited for, because all jobs of a key share a row: whoever locks it before its hosts never waits in a ring.
  await pipelined(...parts.map(({ settlement }) => addCosts(tx, jobId, costsOf(settlement))));
  for (const { settlement, batch, applied } of parts)
    if (settlement.final && batch.unsettled > applied.length)
      await giveBack(tx, settlement.batchId, counterUpdates);
  const written: Promise<unknown>[] = [];
  const rollups: RollupRow[] = [];
  for (const { settlement, batch, applied } of parts) {
    const { batchId, final, now, worker, requests, durationMs } = settlement;
    const { rollup, totals } = countApplied(settlement, applied, counterUpdates);
    const unsettled = batch.unsettled - applied.length;
    const { done, failed, bytes } = totals;
    const sums = [done, failed, requests, Math.round(bytes), durationMs];
    written.push(tx.run(UPDATE_BATCH, batchId, final, unsettled, now, cleanText(worker), ...sums));
    written.push(writeRobots(tx, settlement.robots));
    rollups.push({ host: ALL_HOSTS, at: now, rollup });
  }
  written.push(
    writeHosts(tx, jobId, parts, counterUpdates),
    counterUpdates.write(tx, jobId),
    addRollups(tx, jobId, rollups),
  );
  tx.finally(pipelined(...written));
}

function countApplied(
  settlement: Settlement,
  applied: readonly Applied[],
  counterUpdates: CounterUpdates,
): { rollup: RollupRow['rollup']; totals: { done: number; failed: number; bytes: number } } {
  const totals = { done: 0, failed: 0, bytes: 0 };
  const rollup = emptyRollup();
  rollup.requests = settlement.requests;
  countCosts(rollup, settlement.costs ?? []);
  for (const { change, hostId, isFirst } of applied) {
    addSettled(rollup, change);
    if (isFirst) counterUpdates.count('attempted', 1);
    totals.bytes += change.trace?.bytes ?? 0;
    if (change.outcome === 'failed') totals.failed++;
    else if (change.outcome !== 'deferred') totals.done++;
    if (stateOf(change, settlement.now) === READY) counterUpdates.queue(hostId, 1);
    counterUpdates.count(change.to, 1);
    counterUpdates.count('rejected', change.rejected ?? 0);
    if (change.to === 'pending' && change.outcome === 'failed') counterUpdates.count('retries', 1);
    if ((change.to === 'dead' || change.to === 'skipped') && change.code)
      counterUpdates.tally(change.to, change.code, 1);
  }
  counterUpdates.count('leased', -applied.length);
  counterUpdates.count('bytes', totals.bytes);
  counterUpdates.count('requests', settlement.requests);
  if (settlement.final) counterUpdates.count('batches', 1);
  return { rollup, totals };
}

/** A worker that forgot tasks must not keep them for ever. */
async function giveBack(tx: Transaction, batchId: number, counterUpdates: CounterUpdates): Promise<void> {
  for (const { host_id: hostId } of await tx.run<{ host_id: number }>(GIVE_BACK, batchId)) {
    counterUpdates.queue(hostId, 1);
    counterUpdates.count('leased', -1);
    counterUpdates.count('pending', 1);
  }
}

const LOCK_BATCH = `
  SELECT passes.pass FROM batches JOIN passes ON passes.job_id = batches.job_id
  WHERE batches.id = $1 AND batches.job_id = $2 AND batches.state = 'open' FOR UPDATE OF batches`;

const SELECT_HISTORIES = 'SELECT id, visits FROM tasks WHERE id = ANY($1::bigint[]) AND visits IS NOT NULL';

const UPDATE_HISTORIES = `
  UPDATE tasks SET visits = history.json FROM unnest($1::bigint[], $2::text[]) AS history (id, json)
  WHERE ${indexHint('history.id')} AND tasks.id = history.id`;

const GIVE_BACK = `
  UPDATE tasks SET state = ${READY}, batch_id = NULL
  WHERE id = ANY((SELECT task_ids FROM batches WHERE batches.id = $1)::bigint[]) AND state = ${LEASED} AND batch_id = $1
  RETURNING host_id`;

const UPDATE_BATCH = `
  UPDATE batches SET state = CASE WHEN $2 THEN 'closed' ELSE 'open' END, unsettled = CASE WHEN $2 THEN 0 ELSE $3 END,
    closed_at = CASE WHEN $2 THEN $4::bigint END, worker = $5, done = done + $6, failed = failed + $7,
    requests = requests + $8, bytes = bytes + $9, duration_ms = $10,
    task_ids = CASE WHEN $2 THEN NULL ELSE task_ids END
  WHERE id = $1`;
