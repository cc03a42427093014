import type { RecordRow, RecordVersionRow } from '../../../core/model.ts';
import { publicMeta } from '../../../core/row-meta/row-meta.ts';
import type { Since } from '../../../ports/store.ts';
import { type Dialect, PAGE_ROWS, type Reader, rowPages } from './reader.ts';

export async function* readRecords(
  reader: Reader,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER, ownOnly = false }: Since & { ownOnly?: boolean },
): AsyncIterable<RecordRow> {
  const asked = [since, ownOnly ? jobId : null, await collectionOf(reader, jobId)];
  const { first, next } = recordPages(reader.dialect);
  for await (const rows of rowPages<RecordColumns>((last) =>
    last ? reader.all(next, ...asked, PAGE_ROWS, last.key) : reader.all(first, ...asked, PAGE_ROWS),
  ))
    for (const row of rows) if (row.data !== null) yield toRecordRow(row, row.data);
}

export async function readRecordStep(
  reader: Reader,
  jobId: number,
  { after, limit }: { after: string | null; limit: number },
): Promise<{ rows: RecordRow[]; after: string | null }> {
  const asked = [Number.MIN_SAFE_INTEGER, jobId, await collectionOf(reader, jobId)];
  const { first, next } = recordPages(reader.dialect);
  const rows =
    after === null
      ? await reader.all<RecordColumns>(first, ...asked, limit)
      : await reader.all<RecordColumns>(next, ...asked, limit, after);
  return {
    rows: rows.flatMap((row) => (row.data === null ? [] : [toRecordRow(row, row.data)])),
    after: rows.length < limit ? null : rows.at(-1)!.key,
  };
}

export async function readRecord(reader: Reader, jobId: number, key: string): Promise<RecordRow | null> {
  const asked = [Number.MIN_SAFE_INTEGER, null, await collectionOf(reader, jobId)];
  const [row] = await reader.all<RecordColumns>(selectRecord(reader.dialect), ...asked, key);
  return row?.data ? toRecordRow(row, row.data) : null;
}

export async function readRecordsOf(reader: Reader, taskId: number): Promise<RecordRow[]> {
  const rows = await reader.all<RecordColumns>(SELECT_OF_TASK, Number.MIN_SAFE_INTEGER, null, taskId);
  return rows.flatMap((row) => (row.data === null ? [] : [toRecordRow(row, row.data)]));
}

export async function* readHistory(
  reader: Reader,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<RecordVersionRow> {
  const asked = [since, await collectionOf(reader, jobId)];
  const text = selectVersions(reader.dialect);
  for await (const rows of rowPages<VersionColumns>((last) =>
    reader.all(text, ...asked, last?.key ?? '', last?.id ?? 0, PAGE_ROWS),
  ))
    for (const row of rows) if (row.data !== null) yield toVersionRow(row, row.data);
}

export async function readVersionsOf(
  reader: Reader,
  jobId: number,
  key: string,
  limit: number,
): Promise<RecordVersionRow[]> {
  const text = selectVersionsOf(reader.dialect);
  const rows = await reader.all<VersionColumns>(text, await collectionOf(reader, jobId), key, limit);
  return rows.flatMap((row) => (row.data === null ? [] : [toVersionRow(row, row.data)]));
}

async function collectionOf(reader: Reader, jobId: number): Promise<number> {
  const text = 'SELECT collection_id AS id FROM passes WHERE job_id = $1';
  const [row] = await reader.all<{ id: number }>(text, jobId);
  if (!row) throw new Error(`no job ${jobId}`);
  return row.id;
}

interface RecordColumns {
  key: string;
  url: string;
  route: string | null;
  /** Null where the row was not asked for: the step goes on behind it. */
  data: string | null;
  hash: string;
  created_at: number;
  updated_at: number;
  checked_at: number;
  gone_at: number | null;
  meta: string | null;
}

function toRecordRow(row: RecordColumns, data: string): RecordRow {
  return {
    key: row.key,
    url: row.url,
    route: row.route,
    data: JSON.parse(data),
    hash: row.hash,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
    checkedAt: new Date(row.checked_at).toISOString(),
    goneAt: timeOf(row.gone_at),
    meta: row.meta === null ? null : publicMeta(JSON.parse(row.meta)),
  };
}

interface VersionColumns {
  id: number;
  key: string;
  url: string;
  data: string | null;
  hash: string;
  from_at: number;
  until_at: number;
  gone_at: number | null;
}

function timeOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

function toVersionRow(row: VersionColumns, data: string): RecordVersionRow {
  return {
    key: row.key,
    url: row.url,
    data: JSON.parse(data),
    hash: row.hash,
    from: new Date(row.from_at).toISOString(),
    until: new Date(row.until_at).toISOString(),
    goneAt: timeOf(row.gone_at),
  };
}

/** A page that answered that it is gone, when it was last asked for. What became of the request then is in its attempt. */
const GONE_AT = `CASE WHEN tasks.code = 'not-found' AND attempts.http_status IN (404, 410) THEN attempts.started_at END`;

const SELECT_RECORDS = `
  SELECT records.key, tasks.url, coalesce(attempts.route, pages.route, tasks.route) AS route,
    CASE WHEN records.updated_at >= $1 AND (CAST($2 AS bigint) IS NULL OR records.job_id = $2)
      THEN records.data END AS data,
    records.hash, records.created_at, records.updated_at, records.checked_at, ${GONE_AT} AS gone_at, tasks.meta
  FROM records JOIN tasks ON tasks.id = records.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id`;

const SELECT_OF_TASK = `${SELECT_RECORDS} WHERE records.task_id = $3 ORDER BY records.key`;

const selectRecord = ({ recordKey }: Dialect) =>
  `${SELECT_RECORDS} WHERE records.collection_id = $3 AND (${recordKey('records.key')}) = (${recordKey('CAST($4 AS text)')})`;

const recordPages = ({ recordKey }: Dialect) => {
  const order = `ORDER BY ${recordKey('records.key')} LIMIT $4`;
  const first = `${SELECT_RECORDS} WHERE records.collection_id = $3`;
  const next = `${first} AND (${recordKey('records.key')}) > (${recordKey('CAST($5 AS text)')})`;
  return { first: `${first} ${order}`, next: `${next} ${order}` };
};

const selectVersions = ({ versionKey }: Dialect) => `
  SELECT record_versions.id, record_versions.key, tasks.url,
    CASE WHEN until_at >= $1 THEN record_versions.data END AS data, record_versions.hash, from_at, until_at,
    ${GONE_AT} AS gone_at
  FROM record_versions JOIN tasks ON tasks.id = record_versions.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE collection_id = $2 AND (${versionKey('record_versions.key')}, record_versions.id)
    > (${versionKey('CAST($3 AS text)')}, CAST($4 AS bigint))
  ORDER BY ${versionKey('record_versions.key')}, record_versions.id LIMIT $5`;

const selectVersionsOf = ({ versionKey }: Dialect) => `
  SELECT record_versions.id, record_versions.key, tasks.url, record_versions.data, record_versions.hash, from_at,
    until_at, ${GONE_AT} AS gone_at
  FROM record_versions JOIN tasks ON tasks.id = record_versions.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE collection_id = $1 AND (${versionKey('record_versions.key')}) = (${versionKey('CAST($2 AS text)')})
    AND record_versions.key = CAST($2 AS text)
  ORDER BY record_versions.id DESC LIMIT $3`;
