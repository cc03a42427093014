import type { Settlement, SettleResult, TaskChange } from '../../ports/store.ts';
import type { Database } from './database.ts';
import type { TaskInserter } from './insert-tasks.ts';
import { addTally, CounterDelta, LEASED, QueueDelta, READY, STATE_NUMBERS, WAITING } from './rows.ts';

interface OpenBatch {
  unsettled: number;
  task_ids: string;
}

interface Books {
  counters: CounterDelta;
  queues: QueueDelta;
  tallies: Map<string, number>;
}

/** One report, one transaction: everything in it becomes true together, or nothing does. */
export function settleInTransaction(
  db: Database,
  inserter: TaskInserter,
  settlement: Settlement,
): SettleResult {
  const batch = db.get<OpenBatch>(
    "SELECT unsettled, task_ids FROM batches WHERE id = ? AND state = 'open'",
    settlement.batchId,
  );
  if (!batch) return { applied: false, accepted: 0 };

  const books: Books = { counters: new CounterDelta(), queues: new QueueDelta(), tallies: new Map() };
  const archiveId = writeArchive(db, settlement);
  let settled = 0;
  let accepted = 0;
  let bytes = 0;
  let done = 0;
  let failed = 0;
  for (const change of settlement.tasks) {
    if (!applyChange(db, inserter, settlement, change, archiveId, books)) continue;
    settled++;
    bytes += change.trace?.bytes ?? 0;
    if (change.outcome === 'failed') failed++;
    else if (change.outcome !== 'deferred') done++;
    accepted += writeFindings(db, inserter, settlement, change, books);
  }
  const unsettled = batch.unsettled - settled;
  if (settlement.final && unsettled > 0) giveBack(db, settlement, batch.task_ids, books);
  db.run(
    UPDATE_BATCH,
    settlement.final ? 'closed' : 'open',
    settlement.final ? 0 : unsettled,
    settlement.final ? settlement.now : null,
    settlement.worker,
    done,
    failed,
    settlement.requests,
    bytes,
    settlement.durationMs,
    settlement.final ? 1 : 0,
    settlement.batchId,
  );
  writeHosts(db, inserter, settlement);
  books.counters.add('leased', -settled);
  books.counters.add('bytes', bytes);
  books.counters.add('requests', settlement.requests);
  if (settlement.final) books.counters.add('batches', 1);
  books.counters.write(db, settlement.jobId);
  books.queues.write(db, settlement.jobId);
  for (const [name, count] of books.tallies) {
    const [state, code] = name.split(' ') as ['dead' | 'skipped', string];
    addTally(db, settlement.jobId, state, code, count);
  }
  return { applied: true, accepted };
}

/** False when the batch no longer holds the task: then nothing of its outcome counts. */
function applyChange(
  db: Database,
  inserter: TaskInserter,
  settlement: Settlement,
  change: TaskChange,
  archiveId: number | null,
  books: Books,
): boolean {
  const { page, trace } = change;
  const held = db.get<{ host_id: number }>(
    'SELECT host_id FROM tasks WHERE id = ? AND state = ? AND batch_id = ?',
    change.id,
    LEASED,
    settlement.batchId,
  );
  if (!held) return false;
  const hostId = change.moveTo ? inserter.hostId(change.moveTo.host) : held.host_id;
  const state = stateOf(change, settlement.now);
  if (page) {
    db.run(
      UPDATE_WITH_PAGE,
      state,
      hostId,
      change.countsAsAttempt ? 1 : 0,
      change.dueAt,
      change.code,
      change.detail,
      change.redirectTo,
      change.moveTo?.url ?? null,
      change.moveTo ? 1 : 0,
      page.httpStatus,
      page.bytes,
      settlement.now,
      page.archive ? archiveId : null,
      page.archive?.offset ?? null,
      page.archive?.length ?? null,
      Buffer.from(page.sha256, 'hex'),
      page.contentType,
      page.etag,
      page.lastModified,
      change.id,
    );
  } else {
    db.run(
      UPDATE_WITHOUT_PAGE,
      state,
      change.countsAsAttempt ? 1 : 0,
      change.dueAt,
      change.code,
      change.detail,
      trace?.httpStatus ?? null,
      change.id,
    );
  }
  books.counters.add(change.to, 1);
  if (state === READY) books.queues.add(hostId, 1);
  if (change.to === 'pending' && change.outcome === 'failed') books.counters.add('retries', 1);
  if ((change.to === 'dead' || change.to === 'skipped') && change.code) {
    const name = `${change.to} ${change.code}`;
    books.tallies.set(name, (books.tallies.get(name) ?? 0) + 1);
  }
  if (trace) {
    db.run(
      INSERT_ATTEMPT,
      settlement.jobId,
      change.id,
      settlement.batchId,
      Math.round(trace.startedAt),
      Math.round(trace.durationMs),
      trace.httpStatus,
      change.outcome,
      change.code,
      trace.bytes,
    );
  }
  return true;
}

function stateOf(change: TaskChange, now: number): number {
  if (change.to !== 'pending') return STATE_NUMBERS[change.to];
  return change.dueAt !== null && change.dueAt > now ? WAITING : READY;
}

function writeFindings(
  db: Database,
  inserter: TaskInserter,
  settlement: Settlement,
  change: TaskChange,
  books: Books,
): number {
  for (const record of change.records) {
    const known = db.get<{ hash: string }>(
      'SELECT hash FROM records WHERE job_id = ? AND key = ?',
      settlement.jobId,
      record.key,
    );
    if (known?.hash === record.hash) continue;
    if (!known) books.counters.add('records', 1);
    db.run(UPSERT_RECORD, settlement.jobId, record.key, change.id, record.json, record.hash, settlement.now);
  }
  if (change.links.length === 0) return 0;
  return inserter.insert(settlement.jobId, change.links, {
    perTemplateMax: settlement.perTemplateMax,
    ...books,
  }).accepted;
}

function writeArchive(db: Database, settlement: Settlement): number | null {
  if (!settlement.archive) return null;
  const { key, bytes } = settlement.archive;
  db.run(
    'INSERT INTO archives (job_id, batch_id, key, bytes) VALUES (?, ?, ?, ?)',
    settlement.jobId,
    settlement.batchId,
    key,
    bytes,
  );
  return db.get<{ id: number }>('SELECT last_insert_rowid() AS id')!.id;
}

/** A worker that forgot tasks must not keep them for ever. */
function giveBack(db: Database, settlement: Settlement, taskIds: string, books: Books): void {
  for (const id of JSON.parse(taskIds) as number[]) {
    const row = db.get<{ host_id: number }>(
      'UPDATE tasks SET state = ?, batch_id = NULL WHERE id = ? AND state = ? AND batch_id = ? RETURNING host_id',
      READY,
      id,
      LEASED,
      settlement.batchId,
    );
    if (!row) continue;
    books.queues.add(row.host_id, 1);
    books.counters.add('leased', -1);
    books.counters.add('pending', 1);
  }
}

function writeHosts(db: Database, inserter: TaskInserter, settlement: Settlement): void {
  for (const change of settlement.hosts) {
    const hostId = inserter.hostId(change.host);
    db.run(
      `UPDATE hosts SET requests = requests + ?, failures_in_row = ?, rests = ?, next_at = coalesce(?, next_at) WHERE id = ?`,
      change.sent,
      change.failuresInRow,
      change.rests,
      change.nextAt,
      hostId,
    );
    if (change.nextAt !== null) {
      db.run(
        'UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?',
        change.nextAt,
        settlement.jobId,
        hostId,
      );
    }
  }
  for (const entry of settlement.robots) {
    db.run(
      UPSERT_ROBOTS,
      entry.origin,
      entry.host,
      entry.text,
      entry.fetchedAt,
      entry.failures,
      entry.detail,
      entry.crawlDelayMs,
    );
    db.run(
      'UPDATE hosts SET crawl_delay_ms = ? WHERE id = ?',
      entry.crawlDelayMs,
      inserter.hostId(entry.host),
    );
  }
}

const UPDATE_WITH_PAGE = `
  UPDATE tasks SET state = ?, host_id = ?, batch_id = NULL, attempts = attempts + ?, due_at = ?, code = ?, detail = ?,
    redirect_to = ?, at_url = coalesce(?, at_url), hops = hops + ?, http_status = ?, bytes = ?, fetched_at = ?, archive_id = ?,
    archive_offset = ?, archive_length = ?, sha256 = ?, content_type = ?, etag = ?, last_modified = ?
  WHERE id = ?`;

const UPDATE_WITHOUT_PAGE = `
  UPDATE tasks SET state = ?, batch_id = NULL, attempts = attempts + ?, due_at = ?, code = ?, detail = ?,
    http_status = coalesce(?, http_status)
  WHERE id = ?`;

const INSERT_ATTEMPT = `
  INSERT INTO attempts (job_id, task_id, batch_id, started_at, duration_ms, http_status, outcome, code, bytes)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const UPSERT_RECORD = `
  INSERT INTO records (job_id, key, task_id, data, hash, updated_at) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (job_id, key) DO UPDATE SET task_id = excluded.task_id, data = excluded.data, hash = excluded.hash,
    updated_at = excluded.updated_at`;

const UPSERT_ROBOTS = `
  INSERT INTO robots (origin, host, text, fetched_at, failures, detail, crawl_delay_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (origin) DO UPDATE SET host = excluded.host, text = excluded.text, fetched_at = excluded.fetched_at,
    failures = excluded.failures, detail = excluded.detail, crawl_delay_ms = excluded.crawl_delay_ms`;

const UPDATE_BATCH = `
  UPDATE batches SET state = ?, unsettled = ?, closed_at = ?, worker = ?, done = done + ?, failed = failed + ?,
    requests = requests + ?, bytes = bytes + ?, duration_ms = ?,
    task_ids = iif(?, NULL, task_ids)
  WHERE id = ?`;
