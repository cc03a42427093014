import type { NewTask } from '../../../core/model.ts';
import { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import { ALL_HOSTS, addSettled, addCosts as countCosts, emptyRollup } from '../../../core/rollups/rollup.ts';
import type { Settlement, SettleResult, TaskChange } from '../../../ports/store.ts';
import { nextPriority, priorityStepOf } from '../../shared/retry-order.ts';
import { LEASED, READY, STATE_NUMBERS, WAITING } from '../../shared/states.ts';
import { nextHistories } from '../../shared/visit-histories.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import { TAKE_ATTEMPT_NUMBERS } from '../connection/attempt-numbers.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { CounterUpdates, cleanText, indexHint, toRows } from '../connection/rows.ts';
import type { HostNumbers } from '../frontier/host-ids.ts';
import { insertTasks, type LookedUp, lookUp } from '../frontier/insert-tasks.ts';
import type { JobMemory } from '../frontier/job-memory.ts';
import { appendHostLogs } from '../host-log.ts';
import { addRollups } from '../rollup-store.ts';
import { POSTGRES_OUTBOX, writeOutbox } from '../webhooks.ts';
import { type EarlierPage, findEarlierPages, keepsPage, writeAttempts } from './write-attempts.ts';
import { addCosts } from './write-costs.ts';
import { writeHosts, writeRobots } from './write-hosts.ts';
import { writeMedia, writeShown } from './write-media.ts';
import { addQuality } from './write-quality.ts';
import { addRecordChanges, countPresent } from './write-record-changes.ts';
import { confirmRecords, type RecordWriter, writeRecords } from './write-records.ts';
import { writeSink } from './write-sink.ts';

interface OpenBatch {
  unsettled: number;
  coordinator: number;
  pass: number;
  collection_id: number;
  archive_id: number | null;
  /** As JSON: its hosts, and numbers for new attempts. */
  host_ids: string | null;
  attempt_ids: string | null;
  /** Whether an endpoint wants to be told of pages or records. */
  wants_work: boolean;
}

/** A change that the batch had the right to make. */
export interface Applied {
  change: TaskChange;
  hostId: number;
  attemptId: number | null;
  /** Its task was never requested before. */
  isFirst: boolean;
}

/** One report, one transaction: everything in it becomes true together, or nothing does. */
export async function settleInTransaction(
  tx: Transaction,
  settlement: Settlement,
  { memory, hosts }: { memory: JobMemory; hosts: HostNumbers },
): Promise<SettleResult> {
  const { jobId, batchId, now } = settlement;
  const changes = firstOfEach(settlement.tasks);
  const traced = changes.filter(({ trace }) => trace !== null);
  const places = [settlement.archive, settlement.pack].flatMap((stored) => [
    stored?.key ?? null,
    stored?.bytes ?? null,
  ]);
  const counterUpdates = new CounterUpdates();
  const ahead = settlement.links ?? [];
  const context = { tx, jobId, memory, hosts, counterUpdates, perTemplateMax: settlement.perTemplateMax };
  if (traced.length > 0) tx.finally(tx.run(TAKE_ATTEMPT_NUMBERS));
  const [[batch], lookedUp] = await pipelined<[OpenBatch[], LookedUp]>(
    tx.run<OpenBatch>(OPEN_BATCH, batchId, jobId, traced.length, ...places),
    lookUp(context, [...ahead, ...changes.flatMap(({ links }) => links)]),
  );
  if (!batch) return { applied: false, accepted: 0 };

  const keeping = traced.filter((change) => keepsPage(change, batch.pass)).map(({ id }) => id);
  const earlier = await findEarlierPages(tx, keeping);
  const present = await countPresent(tx, batch.pass, changes);
  const applied = await applyChanges(tx, settlement, changes, batch, hosts);
  const links: NewTask[] = [...ahead, ...applied.flatMap(({ change }) => change.links)];
  const { collection_id: collectionId } = batch;
  const recordChanges = new RecordChangeSum();
  for (const { change } of applied) recordChanges.gone(present.get(change.id) ?? 0);
  const writer = recordWriter(tx, settlement, { collectionId, counterUpdates, changes: recordChanges });
  const [{ accepted }] = await pipelined<[SettleResult | { accepted: number }, unknown]>(
    links.length === 0 ? Promise.resolve({ accepted: 0 }) : insertTasks(context, links, lookedUp),
    writeFindings(writer, settlement, batch, applied, earlier),
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
  await addCosts(tx, jobId, settlement.costs ?? [], now);
  await writeTotals(tx, settlement, batch, applied, { counterUpdates, hosts });
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

/** Those whose task the batch still holds: of the others nothing counts. */
async function applyChanges(
  tx: Transaction,
  settlement: Settlement,
  changes: readonly TaskChange[],
  batch: OpenBatch,
  hosts: HostNumbers,
): Promise<Applied[]> {
  if (changes.length === 0) return [];
  const attemptIds: number[] = batch.attempt_ids === null ? [] : JSON.parse(batch.attempt_ids);
  let attempt = 0;
  const wanted = new Map(
    changes.map((change) => [change.id, { change, attemptId: change.trace ? attemptIds[attempt++]! : null }]),
  );
  const rows = [...wanted.values()].map(({ change, attemptId }) => ({
    id: change.id,
    s: stateOf(change, settlement.now),
    a: attemptId,
    n: change.countsAsAttempt ? 1 : 0,
    r: change.throttled ? 1 : 0,
    d: change.dueAt,
    p: priorityStepOf(change),
    c: change.code,
    t: cleanText(change.detail),
    u: cleanText(change.moveTo?.url),
    h: change.moveTo ? hosts.of(change.moveTo.host) : null,
  }));
  const held = await tx.run<{ id: number; host_id: number; attempts: number }>(
    UPDATE_TASKS,
    settlement.batchId,
    toRows(rows),
  );
  const rowOf = new Map(held.map((row) => [row.id, row]));
  return [...wanted.values()].flatMap(({ change, attemptId }) => {
    const row = rowOf.get(change.id);
    if (!row) return [];
    return [
      { change, attemptId, hostId: row.host_id, isFirst: change.countsAsAttempt && row.attempts === 1 },
    ];
  });
}

function stateOf(change: TaskChange, now: number): number {
  if (change.to !== 'pending') return STATE_NUMBERS[change.to];
  return change.dueAt !== null && change.dueAt > now ? WAITING : READY;
}

/** Attempts, records, media: what the tasks brought besides links. */
async function writeFindings(
  writer: RecordWriter,
  settlement: Settlement,
  batch: OpenBatch,
  applied: readonly Applied[],
  earlier: ReadonlyMap<number, EarlierPage>,
): Promise<void> {
  const { tx } = writer;
  const task = ({ id, trace }: TaskChange) => ({
    id,
    fetchedAt: Math.round(trace?.startedAt ?? settlement.now),
  });
  writeAttempts(tx, settlement, batch.archive_id, applied, earlier);
  const objects = applied.filter(({ change }) => change.page?.media && !earlier.has(change.id));
  await writeMedia(tx, settlement.jobId, batch.pass, objects);
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

/** The batch, its hosts and all that is counted. */
async function writeTotals(
  tx: Transaction,
  settlement: Settlement,
  batch: OpenBatch,
  applied: readonly Applied[],
  { counterUpdates, hosts }: { counterUpdates: CounterUpdates; hosts: HostNumbers },
): Promise<void> {
  const { jobId, batchId, final } = settlement;
  let bytes = 0;
  let done = 0;
  let failed = 0;
  const rollup = emptyRollup();
  rollup.requests = settlement.requests;
  countCosts(rollup, settlement.costs ?? []);
  for (const { change, hostId, isFirst } of applied) {
    addSettled(rollup, change);
    if (isFirst) counterUpdates.count('attempted', 1);
    bytes += change.trace?.bytes ?? 0;
    if (change.outcome === 'failed') failed++;
    else if (change.outcome !== 'deferred') done++;
    if (stateOf(change, settlement.now) === READY) counterUpdates.queue(hostId, 1);
    counterUpdates.count(change.to, 1);
    counterUpdates.count('rejected', change.rejected ?? 0);
    if (change.to === 'pending' && change.outcome === 'failed') counterUpdates.count('retries', 1);
    if ((change.to === 'dead' || change.to === 'skipped') && change.code)
      counterUpdates.tally(change.to, change.code, 1);
  }
  const unsettled = batch.unsettled - applied.length;
  if (final && unsettled > 0) await giveBack(tx, batchId, counterUpdates);
  counterUpdates.count('leased', -applied.length);
  counterUpdates.count('bytes', bytes);
  counterUpdates.count('requests', settlement.requests);
  if (final) counterUpdates.count('batches', 1);
  const { now, worker, requests, durationMs } = settlement;
  const logs = settlement.hosts.flatMap(({ host, log }) => (log === undefined ? [] : [{ host, text: log }]));
  const totals = [done, failed, requests, Math.round(bytes), durationMs];
  const written = pipelined(
    tx.run(UPDATE_BATCH, batchId, final, unsettled, now, cleanText(worker), ...totals),
    writeRobots(tx, settlement.robots),
    writeHosts(tx, settlement, batch, hosts, counterUpdates),
    appendHostLogs(tx, logs),
    counterUpdates.write(tx, jobId),
    addRollups(tx, jobId, [{ host: ALL_HOSTS, at: now, rollup }]),
  );
  tx.finally(written);
}

/** A worker that forgot tasks must not keep them for ever. */
async function giveBack(tx: Transaction, batchId: number, counterUpdates: CounterUpdates): Promise<void> {
  for (const { host_id: hostId } of await tx.run<{ host_id: number }>(GIVE_BACK, batchId)) {
    counterUpdates.queue(hostId, 1);
    counterUpdates.count('leased', -1);
    counterUpdates.count('pending', 1);
  }
}

const OPEN_BATCH = `
  WITH batch AS MATERIALIZED (
    SELECT id, unsettled, coordinator, host_ids FROM batches WHERE id = $1 AND job_id = $2 AND state = 'open' FOR UPDATE
  ), archive AS (
    INSERT INTO archives (job_id, batch_id, key, bytes) SELECT $2, id, $4::text, $5::bigint FROM batch WHERE $4 IS NOT NULL
    RETURNING id
  ), pack AS (
    INSERT INTO archives (job_id, batch_id, key, bytes) SELECT $2, id, $6::text, $7::bigint FROM batch WHERE $6 IS NOT NULL
  )
  SELECT batch.unsettled, batch.coordinator, passes.pass, passes.collection_id, (SELECT id FROM archive) AS archive_id,
    array_to_json(batch.host_ids) AS host_ids,
    (SELECT json_agg(nextval('attempt_ids')) FROM generate_series(1, $3::integer)) AS attempt_ids,
    EXISTS (SELECT 1 FROM webhook_endpoints WHERE wants_work = 1 AND (job_id IS NULL OR job_id = $2)) AS wants_work
  FROM batch JOIN passes ON passes.job_id = $2`;

const UPDATE_TASKS = `
  UPDATE tasks SET state = change.s, batch_id = NULL, attempt_id = coalesce(change.a, tasks.attempt_id),
    attempts = tasks.attempts + change.n, losses = CASE WHEN change.n > 0 THEN 0 ELSE tasks.losses END,
    crashes = CASE WHEN change.n > 0 THEN 0 ELSE tasks.crashes END, throttles = tasks.throttles + change.r, due_at = change.d, priority = ${nextPriority('change.p', 'tasks.priority')}, code = change.c, detail = change.t,
    at_url = coalesce(change.u, tasks.at_url), host_id = coalesce(change.h, tasks.host_id),
    home_host_id = CASE WHEN change.h IS NULL THEN tasks.home_host_id ELSE coalesce(tasks.home_host_id, tasks.host_id) END,
    hops = tasks.hops + CASE WHEN change.h IS NULL THEN 0 ELSE 1 END
  FROM json_to_recordset($2::json)
    AS change (id bigint, s smallint, a bigint, n integer, r integer, d bigint, p integer, c text, t text, u text, h bigint)
  WHERE ${indexHint('change.id')} AND tasks.id = change.id AND tasks.state = ${LEASED} AND tasks.batch_id = $1
  RETURNING tasks.id, tasks.host_id, tasks.attempts`;

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
