import type { RecordDraft } from '../../../core/batch/outcome.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import type { RecordRules } from '../../../ports/store.ts';
import type { RecordNews } from '../../shared/webhooks/outbox.ts';
import { type Database, recordHash } from '../connection/database.ts';
import type { CounterDelta } from '../connection/rows.ts';

/** Who writes: records belong to the name of the job, and say which of its tasks wrote them last. */
export interface RecordWriter {
  collectionId: number;
  jobId: number;
  now: number;
  rules: RecordRules;
  counters: CounterDelta;
  /** What was written, for whoever wants to be told. */
  news: RecordNews[];
  /** What the pass changes; absent where only the code of the job changed. */
  changes?: RecordChangeSum;
}

interface KnownRecord {
  id: number;
  job_id: number;
  task_id: number;
  checked_at: number;
  fetched_at: number;
  hash: string;
}

type Data = Record<string, unknown>;

/** Writes what one page says. Lives inside somebody's transaction. */
export function writeRecords(
  db: Database,
  writer: RecordWriter,
  task: { id: number; fetchedAt: number },
  drafts: readonly RecordDraft[],
): void {
  for (const draft of drafts) {
    // Most are new: tried first, they cost one statement.
    if (insertRecord(db, writer, task, draft)) continue;
    const known = db.get<KnownRecord>(FIND_RECORD, writer.collectionId, draft.key)!;
    updateRecord(db, writer, task, known, draft);
  }
}

/** The page of the task is as it was, and so is what it said. */
export function confirmRecords(
  db: Database,
  writer: RecordWriter,
  task: { id: number; fetchedAt: number },
): void {
  const { now, rules } = writer;
  db.run(CONFIRM_OF_TASK, now, task.fetchedAt, task.id, now - rules.guardMs);
}

/** Deletes what the task wrote and does not write any more. */
export function deleteOtherRecords(
  db: Database,
  writer: RecordWriter,
  taskId: number,
  kept: ReadonlySet<string>,
): void {
  const rows = db.all<{ id: number; job_id: number; key: string }>(FIND_OF_TASK, taskId);
  for (const { id, job_id: jobId, key } of rows) {
    if (kept.has(key)) continue;
    if (writer.rules.history) db.run(KEEP_VERSION, writer.now, id);
    db.run('DELETE FROM records WHERE id = ?', id);
    if (jobId === writer.jobId) writer.counters.add('records', -1);
  }
}

function insertRecord(
  db: Database,
  { collectionId, jobId, now, counters, news, changes }: RecordWriter,
  task: { id: number; fetchedAt: number },
  { key, hash, json }: RecordDraft,
): boolean {
  const { id, fetchedAt } = task;
  const inserted = db.run(INSERT_RECORD, collectionId, jobId, id, now, now, now, fetchedAt, hash, key, json);
  counters.add('records', inserted);
  if (inserted > 0) {
    news.push({ key, change: 'created' });
    changes?.created();
  }
  return inserted > 0;
}

function updateRecord(
  db: Database,
  writer: RecordWriter,
  task: { id: number; fetchedAt: number },
  known: KnownRecord,
  draft: RecordDraft,
): void {
  const { now, rules, jobId, counters } = writer;
  // Reports come in any order. A task's own are in order, even when its clock is not.
  const isLate = task.fetchedAt < known.fetched_at && task.id !== known.task_id;
  let { json, hash } = draft;
  if (hash !== known.hash && draft.merge) {
    const merged = mergeData(JSON.parse(dataOf(db, known.id)), JSON.parse(json), isLate);
    json = JSON.stringify(merged);
    // Many tasks with fields of their own must not grow one record without end.
    if (json.length > LIMITS.recordBytesMax) return;
    hash = recordHash(merged);
  } else if (isLate) return;
  if (hash === known.hash) {
    if (!isLate && now - known.checked_at > rules.guardMs)
      db.run(CONFIRM_RECORD, now, task.fetchedAt, known.id);
    return;
  }
  writer.changes?.changed(dataOf(db, known.id), json);
  if (rules.history) db.run(KEEP_VERSION, now, known.id);
  if (known.job_id !== jobId) counters.add('records', 1);
  db.run(UPDATE_RECORD, jobId, task.id, now, now, task.fetchedAt, hash, json, known.id);
  writer.news.push({ key: draft.key, change: 'updated' });
}

function dataOf(db: Database, id: number): string {
  return db.get<{ data: string }>('SELECT data FROM records WHERE id = ?', id)!.data;
}

/** Fields with a value win over those without; of two values the one that was fetched later. */
function mergeData(former: Data, found: Data, isLate: boolean): Data {
  const hasValue = (field: string) => Object.hasOwn(former, field) && former[field] !== null;
  const taken = Object.entries(found).filter(
    ([field, value]) => value !== null && !(isLate && hasValue(field)),
  );
  return { ...former, ...Object.fromEntries(taken) };
}

const FIND_RECORD = `
  SELECT id, job_id, task_id, checked_at, fetched_at, hash FROM records WHERE collection_id = ? AND key = ?`;

const FIND_OF_TASK = 'SELECT id, job_id, key FROM records WHERE task_id = ?';

const INSERT_RECORD = `
  INSERT INTO records (collection_id, job_id, task_id, created_at, updated_at, checked_at, fetched_at, hash, key, data)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (collection_id, key) DO NOTHING`;

const UPDATE_RECORD = `
  UPDATE records SET job_id = ?, task_id = ?, updated_at = ?, checked_at = ?, fetched_at = max(fetched_at, ?), hash = ?,
    data = ? WHERE id = ?`;

const CONFIRM_RECORD = 'UPDATE records SET checked_at = ?, fetched_at = max(fetched_at, ?) WHERE id = ?';

const CONFIRM_OF_TASK = `
  UPDATE records SET checked_at = ?, fetched_at = max(fetched_at, ?) WHERE task_id = ? AND checked_at < ?`;

const KEEP_VERSION = `
  INSERT INTO record_versions (collection_id, task_id, from_at, until_at, hash, key, data)
  SELECT collection_id, task_id, updated_at, ?, hash, key, data FROM records WHERE id = ?`;

/** Adds to what the pass changed among the records. */
export function addRecordChanges(db: Database, jobId: number, pass: number, sum: RecordChangeSum): void {
  for (const { kind, field, count } of sum.rows) db.run(ADD_CHANGES, jobId, pass, kind, field, count);
}

/** Records of a task whose page was there at its last visit. To be asked before the task gets its next attempt. */
export function countPresent(db: Database, taskId: number): number {
  return db.get<{ count: number }>(COUNT_PRESENT, taskId)!.count;
}

const ADD_CHANGES = `
  INSERT INTO record_changes (job_id, pass, kind, field, count) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (job_id, pass, kind, field) DO UPDATE SET count = count + excluded.count`;

const COUNT_PRESENT = `
  SELECT count(*) AS count FROM records JOIN tasks ON tasks.id = records.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE records.task_id = ? AND coalesce(attempts.http_status, 0) NOT IN (404, 410)`;
