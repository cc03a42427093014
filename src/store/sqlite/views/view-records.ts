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

export async function* readRecords(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER, ownOnly = false }: Since & { ownOnly?: boolean },
): AsyncIterable<RecordRow> {
  const { collectionId } = readPass(db, jobId);
  const owner = ownOnly ? jobId : null;
  let after: string | null = null;
  while (true) {
    const asked = [since, owner, owner, collectionId];
    const rows: RecordColumns[] =
      after === null
        ? db.all(SELECT_FIRST_RECORDS, ...asked, STEP)
        : db.all(SELECT_NEXT_RECORDS, ...asked, after, STEP);
    for (const row of rows) if (row.data !== null) yield toRecordRow(row, row.data);
    const last = rows.at(-1);
    if (!last) return;
    after = last.key;
  }
}

export function readRecord(db: Database, jobId: number, key: string): RecordRow | null {
  const { collectionId } = readPass(db, jobId);
  const row = db.get<RecordColumns>(SELECT_RECORD, Number.MIN_SAFE_INTEGER, null, null, collectionId, key);
  return row?.data ? toRecordRow(row, row.data) : null;
}

export function readRecordsOf(db: Database, taskId: number): RecordRow[] {
  const rows = db.all<RecordColumns>(SELECT_OF_TASK, Number.MIN_SAFE_INTEGER, null, null, taskId);
  return rows.flatMap((row) => (row.data === null ? [] : [toRecordRow(row, row.data)]));
}

export async function* readHistory(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<RecordVersionRow> {
  const { collectionId } = readPass(db, jobId);
  let after = { key: '', id: 0 };
  while (true) {
    const rows = db.all<VersionColumns>(SELECT_VERSIONS, since, collectionId, after.key, after.id, STEP);
    for (const row of rows) if (row.data !== null) yield toVersionRow(row, row.data);
    const last = rows.at(-1);
    if (!last) return;
    after = last;
  }
}

const SELECT_ALL_RECORDS = `
  SELECT records.key, tasks.url, coalesce(attempts.route, pages.route, tasks.route) AS route,
    iif(records.updated_at >= ? AND (? IS NULL OR records.job_id = ?), records.data, NULL) AS data, records.hash,
    records.created_at, records.updated_at, records.checked_at
  FROM records JOIN tasks ON tasks.id = records.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id`;
const SELECT_RECORDS = `${SELECT_ALL_RECORDS} WHERE records.collection_id = ?`;
const SELECT_OF_TASK = `${SELECT_ALL_RECORDS} WHERE records.task_id = ? ORDER BY records.key`;
const SELECT_FIRST_RECORDS = `${SELECT_RECORDS} ORDER BY records.key LIMIT ?`;
const SELECT_NEXT_RECORDS = `${SELECT_RECORDS} AND records.key > ? ORDER BY records.key LIMIT ?`;
const SELECT_RECORD = `${SELECT_RECORDS} AND records.key = ?`;

const SELECT_VERSIONS = `
  SELECT record_versions.id, record_versions.key, tasks.url, iif(until_at >= ?, data, NULL) AS data, hash, from_at, until_at
  FROM record_versions JOIN tasks ON tasks.id = record_versions.task_id
  WHERE collection_id = ? AND (record_versions.key, record_versions.id) > (?, ?)
  ORDER BY record_versions.key, record_versions.id LIMIT ?`;
