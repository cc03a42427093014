import { hash as digest } from 'node:crypto';
import type { RecordDraft } from '../../../core/batch/outcome.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import type { WrittenRecord } from '../../../core/record-changes/sink-rows.ts';
import { canonicalJson } from '../../../core/values/canonical-json.ts';
import { storableJson } from '../../../core/values/storable-json.ts';
import type { RecordRules, TaskChange } from '../../../ports/store.ts';
import type { RecordNews } from '../../shared/webhooks/outbox.ts';
import type { Transaction } from '../connection/database.ts';
import { ConflictError } from '../connection/failures.ts';
import { type CounterUpdates, cleanText, indexHint, toRows } from '../connection/rows.ts';

/** Who writes: records belong to the name of the job, and say which of its tasks wrote them last. */
export interface RecordWriter {
  tx: Transaction;
  collectionId: number;
  jobId: number;
  now: number;
  rules: RecordRules;
  counterUpdates: CounterUpdates;
  /** What was written, for whoever wants to be told. */
  news: RecordNews[];
  /** What the pass changes; absent where only the code of the job changed. */
  changes?: RecordChangeSum;
  /** Records that were created or changed, where the job has a sink. */
  written?: Map<string, WrittenRecord>;
  sinkRoute?: string | undefined;
}

/** What one page says. */
interface Draft {
  task: { id: number; fetchedAt: number };
  draft: RecordDraft;
  /** Of the page. */
  route?: string | null;
}

/** A record as it is, and as drafts make it. */
interface KnownRecord {
  id: number;
  job_id: number;
  task_id: number;
  updated_at: number;
  checked_at: number;
  fetched_at: number;
  hash: string;
  key: string;
  data: string;
}

interface Version {
  t: number;
  f: number;
  h: string;
  k: string;
  d: string;
}

type Data = Record<string, unknown>;

/** Writes what pages say, in their order. Lives inside somebody's transaction. */
export async function writeRecords(writer: RecordWriter, drafts: readonly Draft[]): Promise<void> {
  if (drafts.length === 0) return;
  const { tx, collectionId, counterUpdates } = writer;
  const cleaned = drafts.map(({ draft, ...rest }) => ({
    ...rest,
    draft: { ...draft, key: cleanText(draft.key), json: storableJson(draft.json) },
  }));
  const isSunk = ({ route }: Draft) => writer.sinkRoute === undefined || route === writer.sinkRoute;
  // Most are new: tried first, they cost one statement.
  const first = new Map<string, Draft>();
  for (const each of cleaned) if (!first.has(each.draft.key)) first.set(each.draft.key, each);
  const inserted = await insertRecords(writer, [...first.values()]);
  counterUpdates.count('records', inserted.size);
  writer.changes?.created(inserted.size);
  for (const each of first.values())
    if (inserted.has(each.draft.key) && isSunk(each)) writer.written?.set(each.draft.key, each.draft);
  for (const key of inserted) writer.news.push({ key, change: 'created' });
  const others = cleaned.filter(
    (each) => !(inserted.has(each.draft.key) && first.get(each.draft.key) === each),
  );
  if (others.length === 0) return;
  const keys = [...new Set(others.map(({ draft }) => draft.key))];
  const rows = await tx.run<KnownRecord>(LOCK_RECORDS, collectionId, keys);
  const known = new Map(rows.map((row) => [row.key, row]));
  const changes = new RecordChanges();
  for (const each of others) {
    const { task, draft } = each;
    const record = known.get(draft.key);
    if (!record) throw new ConflictError('a record was deleted meanwhile');
    const isChanged = changes.apply(writer, task, record, draft);
    if (isChanged && isSunk(each)) writer.written?.set(record.key, { key: record.key, json: record.data });
  }
  await changes.write(writer);
}

async function insertRecords(writer: RecordWriter, drafts: readonly Draft[]): Promise<Set<string>> {
  const { tx, collectionId, jobId, now } = writer;
  const rows = drafts.map(({ task, draft }) => ({
    t: task.id,
    f: task.fetchedAt,
    h: draft.hash,
    k: draft.key,
    d: draft.json,
  }));
  const inserted = await tx.run<{ key: string }>(INSERT_RECORDS, collectionId, jobId, now, toRows(rows));
  return new Set(inserted.map(({ key }) => key));
}

/** What drafts do to records that were there before. */
class RecordChanges {
  readonly #changed = new Map<number, KnownRecord>();
  readonly #confirmed = new Map<number, KnownRecord>();
  readonly #versions: Version[] = [];

  apply(writer: RecordWriter, task: Draft['task'], known: KnownRecord, draft: RecordDraft): boolean {
    const { now, rules, jobId, counterUpdates } = writer;
    // Reports come in any order. A task's own are in order, even when its clock is not.
    const isLate = task.fetchedAt < known.fetched_at && task.id !== known.task_id;
    let { json, hash } = draft;
    if (hash !== known.hash && draft.merge) {
      const merged = mergeData(JSON.parse(known.data), JSON.parse(json), isLate);
      json = JSON.stringify(merged);
      // Many tasks with fields of their own must not grow one record without end.
      if (json.length > LIMITS.recordBytesMax) return false;
      hash = digest('sha256', canonicalJson(merged));
    } else if (isLate) return false;
    const fetchedAt = Math.max(known.fetched_at, task.fetchedAt);
    if (hash === known.hash) {
      if (isLate || now - known.checked_at <= rules.guardMs) return false;
      Object.assign(known, { checked_at: now, fetched_at: fetchedAt });
      this.#confirmed.set(known.id, known);
      return false;
    }
    writer.changes?.changed(known.data, json);
    if (rules.history)
      this.#versions.push({
        t: known.task_id,
        f: known.updated_at,
        h: known.hash,
        k: known.key,
        d: known.data,
      });
    if (known.job_id !== jobId) counterUpdates.count('records', 1);
    const written = { job_id: jobId, task_id: task.id, updated_at: now, checked_at: now };
    Object.assign(known, written, { fetched_at: fetchedAt, hash, data: json });
    this.#changed.set(known.id, known);
    writer.news.push({ key: known.key, change: 'updated' });
    return true;
  }

  async write({ tx, collectionId, jobId, now }: RecordWriter): Promise<void> {
    if (this.#versions.length > 0) await tx.run(INSERT_VERSIONS, collectionId, now, toRows(this.#versions));
    const changed = [...this.#changed.values()].map((row) => ({
      id: row.id,
      t: row.task_id,
      f: row.fetched_at,
      h: row.hash,
      d: row.data,
    }));
    if (changed.length > 0) await tx.run(UPDATE_RECORDS, jobId, now, toRows(changed));
    const confirmed = [...this.#confirmed.values()].filter(({ id }) => !this.#changed.has(id));
    if (confirmed.length === 0) return;
    await tx.run(
      CONFIRM_RECORDS,
      now,
      confirmed.map(({ id }) => id),
      confirmed.map((row) => row.fetched_at),
    );
  }
}

/** The pages of tasks are as they were, and so is what they said. */
export async function confirmRecords(
  { tx, now, rules }: RecordWriter,
  tasks: readonly { id: number; fetchedAt: number }[],
): Promise<void> {
  if (tasks.length === 0) return;
  await tx.run(
    CONFIRM_OF_TASKS,
    now,
    tasks.map(({ id }) => id),
    tasks.map(({ fetchedAt }) => fetchedAt),
    now - rules.guardMs,
  );
}

/** Deletes what tasks wrote and do not write any more. */
export async function deleteOtherRecords(
  { tx, now, rules, jobId, counterUpdates }: RecordWriter,
  kept: ReadonlyMap<number, ReadonlySet<string>>,
): Promise<void> {
  if (kept.size === 0) return;
  const rows = await tx.run<{ id: number; job_id: number; task_id: number; key: string }>(LOCK_OF_TASKS, [
    ...kept.keys(),
  ]);
  const gone = rows.filter(({ task_id: taskId, key }) => !kept.get(taskId)!.has(key));
  if (gone.length === 0) return;
  const ids = gone.map(({ id }) => id);
  if (rules.history) await tx.run(KEEP_VERSIONS, now, ids);
  await tx.run('DELETE FROM records WHERE id = ANY($1::bigint[])', ids);
  counterUpdates.count('records', -gone.filter((row) => row.job_id === jobId).length);
}

/** Fields with a value win over those without; of two values the one that was fetched later. */
function mergeData(former: Data, found: Data, isLate: boolean): Data {
  const hasValue = (field: string) => Object.hasOwn(former, field) && former[field] !== null;
  const taken = Object.entries(found).filter(
    ([field, value]) => value !== null && !(isLate && hasValue(field)),
  );
  return { ...former, ...Object.fromEntries(taken) };
}

const INSERT_RECORDS = `
  INSERT INTO records (collection_id, job_id, task_id, created_at, updated_at, checked_at, fetched_at, hash, key, data)
  SELECT $1, $2, t, $3, $3, $3, f, h, k, d::json
  FROM json_to_recordset($4::json) AS draft (t bigint, f bigint, h text, k text, d text) ORDER BY md5(k)
  ON CONFLICT (collection_id, left(key, 500), md5(key)) DO NOTHING RETURNING key`;

const LOCK_RECORDS = `
  SELECT record.* FROM (SELECT name FROM unnest($2::text[]) AS asked (name) ORDER BY md5(name)) AS asked
    CROSS JOIN LATERAL (
      SELECT id, job_id, task_id, updated_at, checked_at, fetched_at, hash, key, data FROM records
      WHERE collection_id = $1 AND left(key, 500) = left(asked.name, 500) COLLATE "C" AND md5(key) = md5(asked.name)
      FOR UPDATE
    ) AS record`;

const LOCK_OF_TASKS = `
  SELECT id, job_id, task_id, key FROM records WHERE task_id = ANY($1::bigint[]) ORDER BY md5(key) FOR UPDATE`;

const UPDATE_RECORDS = `
  UPDATE records SET job_id = $1, task_id = t, updated_at = $2, checked_at = $2, fetched_at = f, hash = h, data = d::json
  FROM json_to_recordset($3::json) AS changed (id bigint, t bigint, f bigint, h text, d text)
  WHERE ${indexHint('changed.id')} AND records.id = changed.id`;

const CONFIRM_RECORDS = `
  UPDATE records SET checked_at = $1, fetched_at = confirmed.at
  FROM unnest($2::bigint[], $3::bigint[]) AS confirmed (id, at)
  WHERE ${indexHint('confirmed.id')} AND records.id = confirmed.id`;

const CONFIRM_OF_TASKS = `
  UPDATE records SET checked_at = $1, fetched_at = greatest(fetched_at, confirmed.at)
  FROM unnest($2::bigint[], $3::bigint[]) AS confirmed (task_id, at)
  WHERE ${indexHint('confirmed.task_id')} AND records.task_id = confirmed.task_id AND checked_at < $4`;

const INSERT_VERSIONS = `
  INSERT INTO record_versions (collection_id, task_id, from_at, until_at, hash, key, data)
  SELECT $1, t, f, $2, h, k, d::json
  FROM json_to_recordset($3::json) AS former (t bigint, f bigint, h text, k text, d text)`;

const KEEP_VERSIONS = `
  INSERT INTO record_versions (collection_id, task_id, from_at, until_at, hash, key, data)
  SELECT collection_id, task_id, updated_at, $1, hash, key, data FROM records WHERE id = ANY($2::bigint[])`;

/** Adds to what the pass changed among the records. */
export async function addRecordChanges(
  tx: Transaction,
  jobId: number,
  pass: number,
  sum: RecordChangeSum,
): Promise<void> {
  const { rows } = sum;
  if (rows.length > 0) await tx.run(ADD_CHANGES, jobId, pass, toRows(rows));
}

export function isGone({ to, code }: TaskChange): boolean {
  return to === 'dead' && code === 'not-found';
}

/** Records of tasks whose page is gone now and was there before. To be asked before the tasks get their next attempt. */
export async function countPresent(
  tx: Transaction,
  gone: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (gone.length === 0) return new Map();
  const rows = await tx.run<{ id: number; count: number }>(COUNT_PRESENT, gone);
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

const ADD_CHANGES = `
  INSERT INTO record_changes (job_id, pass, kind, field, count)
  SELECT $1, $2, kind, field, count FROM json_to_recordset($3::json) AS delta (kind text, field text, count bigint)
  ORDER BY kind, field
  ON CONFLICT (job_id, pass, kind, field) DO UPDATE SET count = record_changes.count + excluded.count`;

const COUNT_PRESENT = `
  SELECT records.task_id AS id, count(*)::integer AS count
  FROM records JOIN tasks ON tasks.id = records.task_id LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE records.task_id = ANY($1::bigint[]) AND coalesce(attempts.http_status, 0) NOT IN (404, 410)
  GROUP BY records.task_id`;
