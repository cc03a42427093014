import type { RecordRow, RecordVersionRow } from '../../../core/model.ts';
import type { Since } from '../../../ports/store.ts';
import {
  type RecordColumns,
  toRecordRow,
  toVersionRow,
  type VersionColumns,
} from '../../shared/record-rows.ts';
import type { Database } from '../connection/database.ts';
import { readPass } from '../connection/rows.ts';
import { STEP } from './view-tasks.ts';

const collectionOf = async (db: Database, jobId: number) =>
  (await readPass({ run: db.read.bind(db) }, jobId)).collectionId;

export async function* readRecords(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER, ownOnly = false }: Since & { ownOnly?: boolean },
): AsyncIterable<RecordRow> {
  const collectionId = await collectionOf(db, jobId);
  let after = { key: '', digest: '' };
  while (true) {
    const asked = [since, ownOnly ? jobId : null, collectionId];
    const rows = await db.read<KeyedColumns>(SELECT_RECORDS, ...asked, after.key, after.digest, STEP);
    for (const row of rows) if (row.data !== null) yield toRecordRow(row, row.data);
    const last = rows.at(-1);
    if (!last) return;
    after = last;
  }
}

export async function readRecord(db: Database, jobId: number, key: string): Promise<RecordRow | null> {
  const asked = [Number.MIN_SAFE_INTEGER, null, await collectionOf(db, jobId)];
  const [row] = await db.read<RecordColumns>(SELECT_RECORD, ...asked, key);
  return row?.data ? toRecordRow(row, row.data) : null;
}

export async function readRecordsOf(db: Database, taskId: number): Promise<RecordRow[]> {
  const rows = await db.read<RecordColumns>(SELECT_OF_TASK, Number.MIN_SAFE_INTEGER, null, taskId);
  return rows.flatMap((row) => (row.data === null ? [] : [toRecordRow(row, row.data)]));
}

export async function* readHistory(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<RecordVersionRow> {
  const collectionId = await collectionOf(db, jobId);
  let after = { key: '', id: 0 };
  while (true) {
    const rows = await db.read<VersionColumns>(
      SELECT_VERSIONS,
      since,
      collectionId,
      after.key,
      after.id,
      STEP,
    );
    for (const row of rows) if (row.data !== null) yield toVersionRow(row, row.data);
    const last = rows.at(-1);
    if (!last) return;
    after = last;
  }
}

/** A long key is found by its beginning and its hash. */
interface KeyedColumns extends RecordColumns {
  digest: string;
}

const SELECT_ALL = `
  SELECT records.key, md5(records.key) AS digest, tasks.url,
    coalesce(attempts.route, pages.route, tasks.route) AS route,
    CASE WHEN records.updated_at >= $1 AND ($2::bigint IS NULL OR records.job_id = $2) THEN records.data END AS data,
    records.hash, records.created_at, records.updated_at, records.checked_at
  FROM records JOIN tasks ON tasks.id = records.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id`;

/** The index has the beginning of a key and its hash. */
const SELECT_RECORDS = `
  ${SELECT_ALL} WHERE records.collection_id = $3
    AND (left(records.key, 500), md5(records.key)) > (left($4::text, 500) COLLATE "C", $5::text)
  ORDER BY left(records.key, 500), md5(records.key) LIMIT $6`;

const SELECT_RECORD = `
  ${SELECT_ALL} WHERE records.collection_id = $3 AND left(records.key, 500) = left($4::text, 500) COLLATE "C"
    AND md5(records.key) = md5($4::text)`;

const SELECT_OF_TASK = `${SELECT_ALL} WHERE records.task_id = $3 ORDER BY records.key`;

const SELECT_VERSIONS = `
  SELECT record_versions.id, record_versions.key, tasks.url,
    CASE WHEN until_at >= $1 THEN record_versions.data END AS data, hash, from_at, until_at
  FROM record_versions JOIN tasks ON tasks.id = record_versions.task_id
  WHERE collection_id = $2
    AND (left(record_versions.key, 500), record_versions.id) > (left($3::text, 500) COLLATE "C", $4::bigint)
  ORDER BY left(record_versions.key, 500), record_versions.id LIMIT $5`;
