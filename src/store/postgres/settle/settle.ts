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
import { costsOf, sumOfCosts } from '../../shared/cost-rows.ts';
import { LEASED, READY } from '../../shared/states.ts';
import { nextHistories } from '../../shared/visit-histories.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import { TAKE_ATTEMPT_NUMBERS } from '../connection/attempt-numbers.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { ConflictError } from '../connection/failures.ts';
import { CounterUpdates, cleanText, indexHint, toRows } from '../connection/rows.ts';
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

/** A report, and what the store remembers of its job and hosts. */
export interface SettleWork {
  settlement: Settlement;
  memory: JobMemory;
  hosts: HostNumbers;
}

/**
 * Reports of one job in one transaction: everything in them becomes true together, or nothing does. Each is fenced by its
 * own batch: one that comes too late changes nothing. They are of different batches, and have no task and no host in common.
 */
export async function settleInTransaction(
  tx: Transaction,
  works: readonly SettleWork[],
): Promise<SettleResult[]> {
  const { settlement: first, memory } = works[0]!;
  const { jobId, perTemplateMax } = first;
  const parts = works.map((work) => ({ ...work, changes: firstOfEach(work.settlement.tasks) }));
  const counterUpdates = new CounterUpdates();
  const hosts = numbersOf(works);
  const context = { tx, jobId, memory, hosts, counterUpdates, perTemplateMax };
  const all = parts.flatMap(({ changes }) => changes);
  const ahead = (settlement: Settlement) => settlement.links ?? [];
  const lookingUp = lookUp(context, [
    ...works.flatMap(({ settlement }) => ahead(settlement)),
    ...all.flatMap(({ links }) => links),
  ]);
  tx.finally(lookingUp);
  const before = await lookBack(tx, works, all, memory.pass);
  if (!before) return works.map(() => NOT_APPLIED);
  if (all.some(({ trace }) => trace !== null)) tx.finally(tx.run(TAKE_ATTEMPT_NUMBERS));
  const [found, lookedUp] = await pipelined<[Awaited<ReturnType<typeof applyChanges>>, LookedUp]>(
    applyChanges(tx, jobId, parts, before.earlier),
    lookingUp,
  );
  if (!found) return works.map(() => NOT_APPLIED);
  const { pass, collectionId } = found;
  memory.pass = pass;
  if (pass !== before.pass) throw new ConflictError('the next pass has begun meanwhile');
  const settled = parts.flatMap((part, index): SettledPart[] => {
    const own = found.settled[index];
    return own ? [{ ...part, ...own, index }] : [];
  });
  const applied = settled.flatMap((part) => part.applied);
  const changed = applied.map(({ change }) => change);
  const links = settled.map((part) => [
    ...ahead(part.settlement),
    ...part.applied.flatMap(({ change }) => change.links),
  ]);
  const recordChanges = new RecordChangeSum();
  for (const { id } of changed) recordChanges.gone(before.present.get(id) ?? 0);
  const now = Math.max(...works.map(({ settlement }) => settlement.now));
  const writer = recordWriter(
    tx,
    { ...first, now },
    { collectionId, counterUpdates, changes: recordChanges },
  );
  const [added] = await pipelined<[readonly NewTask[], unknown]>(
    links.every((own) => own.length === 0)
      ? Promise.resolve([])
      : insertTasks(context, links.flat(), lookedUp).then((result) => result.added),
    writeFindings(writer, settled),
  );
  await writeShown(context, pass, changed);
  await writeHistories(writer, first, changed);
  // A part that comes twice has nothing left to settle, and is not to be counted again.
  const counted = settled.filter((part) => part.applied.length > 0);
  await addQuality(
    tx,
    jobId,
    pass,
    counted.flatMap(({ settlement }) => settlement.quality),
  );
  const { sink } = first.records;
  if (sink && writer.written)
    await writeSink(tx, sink.spec, { id: jobId, name: sink.job }, [...writer.written.values()]);
  tx.finally(addRecordChanges(tx, jobId, pass, recordChanges));
  await writeTotals(tx, jobId, settled, counterUpdates);
  if (found.wantsWork) {
    const taskIds = changed.map(({ id }) => id);
    await writeOutbox(tx, tellWork(POSTGRES_OUTBOX, { jobId, pass, taskIds, records: writer.news, now }));
  }
  // A new URL that several reports bring counts for the first of them.
  const fresh = new Set(added);
  const results = works.map(() => NOT_APPLIED);
  for (const [at, { index }] of settled.entries())
    results[index] = { applied: true, accepted: links[at]!.filter((link) => fresh.delete(link)).length };
  return results;
}

const NOT_APPLIED: SettleResult = { applied: false, accepted: 0 };

/** Each of them was learned for its own report. */
function numbersOf(works: readonly SettleWork[]): HostNumbers {
  if (works.length === 1) return works[0]!.hosts;
  const find = (host: string) => {
    for (const { hosts } of works) {
      const id = hosts.find(host);
      if (id !== undefined) return id;
    }
    return undefined;
  };
  return { find, of: (host) => find(host) ?? works[0]!.hosts.of(host) };
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

/** What tasks had before: to be asked before they get their next attempts. Null where none of the batches is open. */
async function lookBack(
  tx: Transaction,
  works: readonly SettleWork[],
  changes: readonly TaskChange[],
  lastPass: number | null,
): Promise<LookedBack | null> {
  const keeping = (pass: number) => changes.filter((change) => change.trace && keepsPage(change, pass));
  const gone = (pass: number) => (pass === 1 ? [] : changes.filter(isGone));
  if (lastPass !== null && keeping(lastPass).length === 0 && gone(lastPass).length === 0)
    return { pass: lastPass, earlier: new Map(), present: new Map() };
  const [batch] = await tx.run<{ pass: number }>(
    LOCK_BATCHES,
    works.map(({ settlement }) => settlement.batchId),
    works[0]!.settlement.jobId,
  );
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
async function writeFindings(writer: RecordWriter, settled: readonly SettledPart[]): Promise<void> {
  const all = settled.flatMap(({ settlement: { now }, applied }) =>
    applied.map(({ change }) => ({
      change,
      task: { id: change.id, fetchedAt: Math.round(change.trace?.startedAt ?? now) },
    })),
  );
  await writeRecords(
    writer,
    all.flatMap(({ change, task }) =>
      change.records.map((draft) => ({ task, draft, route: change.page?.route ?? null })),
    ),
  );
  const same = all.filter(({ change }) => change.outcome === 'unchanged' && change.records.length === 0);
  await confirmRecords(
    writer,
    same.map(({ task }) => task),
  );
}

/** How often pages change, where intervals adapt. */
async function writeHistories(
  { tx, news }: RecordWriter,
  { revisits }: Pick<Settlement, 'revisits'>,
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
interface SettledPart extends SettleWork {
  batch: OpenBatch;
  applied: readonly Applied[];
  /** Its place among the reports of the transaction. */
  index: number;
}

/** The batches, their hosts and all that is counted. */
async function writeTotals(
  tx: Transaction,
  jobId: number,
  parts: readonly SettledPart[],
  counterUpdates: CounterUpdates,
): Promise<void> {
  // Waited for, because all jobs of a key share a row: whoever locks it before its hosts never waits in a ring.
  await addCosts(tx, jobId, sumOfCosts(parts.map(({ settlement }) => costsOf(settlement))));
  for (const { settlement, batch, applied } of parts)
    if (settlement.final && batch.unsettled > applied.length)
      await giveBack(tx, settlement.batchId, counterUpdates);
  const rollups: RollupRow[] = [];
  const batches = parts.map(({ settlement, batch, applied }) => {
    const { batchId, final, now, worker, requests, durationMs } = settlement;
    const { rollup, totals } = countApplied(settlement, applied, counterUpdates);
    rollups.push({ host: ALL_HOSTS, at: now, rollup });
    return {
      id: batchId,
      e: final ? now : undefined,
      u: final ? 0 : batch.unsettled - applied.length,
      w: cleanText(worker),
      d: totals.done,
      f: totals.failed,
      r: requests,
      b: Math.round(totals.bytes),
      m: durationMs,
    };
  });
  const written = pipelined(
    tx.run(UPDATE_BATCHES, toRows(batches)),
    writeRobots(
      tx,
      parts.flatMap(({ settlement }) => settlement.robots),
    ),
    writeHosts(tx, jobId, parts, counterUpdates),
    counterUpdates.write(tx, jobId),
    addRollups(tx, jobId, rollups),
  );
  tx.finally(written);
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

const LOCK_BATCHES = `
  SELECT passes.pass FROM batches JOIN passes ON passes.job_id = batches.job_id
  WHERE batches.id = ANY($1::bigint[]) AND (batches.job_id = $2 AND batches.state = 'open') IS TRUE
  ORDER BY batches.id FOR UPDATE OF batches`;

const SELECT_HISTORIES = 'SELECT id, visits FROM tasks WHERE id = ANY($1::bigint[]) AND visits IS NOT NULL';

const UPDATE_HISTORIES = `
  UPDATE tasks SET visits = history.json FROM unnest($1::bigint[], $2::text[]) AS history (id, json)
  WHERE ${indexHint('history.id')} AND tasks.id = history.id`;

const GIVE_BACK = `
  UPDATE tasks SET state = ${READY}, batch_id = NULL
  WHERE id = ANY((SELECT task_ids FROM batches WHERE batches.id = $1)::bigint[]) AND state = ${LEASED} AND batch_id = $1
  RETURNING host_id`;

const UPDATE_BATCHES = `
  UPDATE batches SET state = CASE WHEN report.e IS NULL THEN 'open' ELSE 'closed' END, unsettled = report.u,
    closed_at = report.e, worker = report.w, done = batches.done + report.d, failed = batches.failed + report.f,
    requests = batches.requests + report.r, bytes = batches.bytes + report.b, duration_ms = report.m,
    task_ids = CASE WHEN report.e IS NULL THEN task_ids END
  FROM json_to_recordset($1::json) AS report (id bigint, e bigint, u integer, w text, d integer, f integer, r integer,
    b bigint, m bigint)
  WHERE ${indexHint('report.id')} AND batches.id = report.id`;
