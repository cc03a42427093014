import type { AttemptRow, RecordRow, TaskRow } from '../../core/model.ts';
import type { DeadFilter, DeadGroup, Views } from '../../ports/store.ts';
import type { Database } from './database.ts';
import type { TaskInserter } from './insert-tasks.ts';
import { DEAD_FILTER, deadFilterValues, retryInTransaction } from './retry-dead.ts';
import { STATE_NUMBERS, stateName } from './rows.ts';

/** Rows per step: no read transaction stays open, so exports never hold back the log of a running job. */
const STEP = 1_000;

export class SqliteViews implements Views {
  readonly #db: Database;
  readonly #inserter: TaskInserter;

  constructor(db: Database, inserter: TaskInserter) {
    this.#db = db;
    this.#inserter = inserter;
  }

  async *tasks(jobId: number): AsyncIterable<TaskRow> {
    // Tasks of several jobs lie in one table: read only from the first to the last of this one.
    const first = this.#db.get<{ id: number | null }>(
      'SELECT first_task_id AS id FROM jobs WHERE id = ?',
      jobId,
    )?.id;
    if (first === null || first === undefined) return;
    let left =
      this.#db.get<{ accepted: number }>('SELECT accepted FROM counters WHERE job_id = ?', jobId)?.accepted ??
      0;
    let after = first - 1;
    while (left > 0) {
      const rows = this.#db.all<TaskColumns>(
        `${SELECT_TASKS} WHERE tasks.id > ? ORDER BY tasks.id LIMIT ?`,
        after,
        STEP,
      );
      if (rows.length === 0) return;
      for (const row of rows) {
        after = row.id;
        if (row.job_id !== jobId) continue;
        left--;
        yield toTaskRow(row);
      }
    }
  }

  async *records(jobId: number): AsyncIterable<RecordRow> {
    let after = '';
    while (true) {
      const rows = this.#db.all<RecordColumns>(SELECT_RECORDS, jobId, after, STEP);
      for (const row of rows) yield toRecordRow(row);
      const last = rows.at(-1);
      if (!last) return;
      after = last.key;
    }
  }

  async *attempts(jobId: number): AsyncIterable<AttemptRow> {
    let after = 0;
    while (true) {
      const rows = this.#db.all<AttemptColumns>(SELECT_ATTEMPTS, after, STEP);
      for (const row of rows) if (row.job_id === jobId) yield toAttemptRow(row);
      const last = rows.at(-1);
      if (!last) return;
      after = last.id;
    }
  }

  async task(jobId: number, url: string): Promise<TaskRow | null> {
    const id = this.#inserter.find(jobId, url);
    if (id === null) return null;
    const row = this.#db.get<TaskColumns>(`${SELECT_TASKS} WHERE tasks.id = ?`, id);
    return row ? toTaskRow(row) : null;
  }

  async dead(jobId: number, filter: DeadFilter = {}): Promise<DeadGroup[]> {
    return this.#db
      .all<DeadGroup & Record<string, unknown>>(SELECT_DEAD, jobId, ...deadFilterValues(filter))
      .map((row) => ({ ...row }));
  }

  async retryDead(jobId: number, filter: DeadFilter, now: number): Promise<number> {
    return this.#db.transaction(() => retryInTransaction(this.#db, jobId, filter, now));
  }

  async tallies(jobId: number): Promise<{ state: string; code: string; count: number }[]> {
    return this.#db
      .all<{ state: string; code: string; count: number }>(
        'SELECT state, code, count FROM tallies WHERE job_id = ? AND count > 0 ORDER BY count DESC, code',
        jobId,
      )
      .map((row) => ({ ...row }));
  }

  async hasArchive(jobId: number, key: string): Promise<boolean> {
    return this.#db.get('SELECT 1 FROM archives WHERE job_id = ? AND key = ?', jobId, key) !== undefined;
  }
}

interface TaskColumns {
  id: number;
  job_id: number;
  url: string;
  state: number;
  http_status: number | null;
  code: string | null;
  detail: string | null;
  attempts: number;
  bytes: number | null;
  sha256: Uint8Array | null;
  content_type: string | null;
  archive_key: string | null;
  archive_offset: number | null;
  archive_length: number | null;
  redirect_to: string | null;
  depth: number;
  priority: number;
  route: string | null;
  host: string;
  fetched_at: number | null;
  meta: string | null;
}

const SELECT_TASKS = `
  SELECT tasks.id, tasks.job_id, url, tasks.state, http_status, tasks.code, detail, tasks.attempts, attempts.bytes, sha256,
    content_type, archives.key AS archive_key, archive_offset, archive_length, coalesce(redirect_to, at_url) AS redirect_to, depth, priority, coalesce(attempts.route, tasks.route) AS route,
    hosts.host, attempts.started_at AS fetched_at, meta
  FROM tasks JOIN hosts ON hosts.id = tasks.host_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN archives ON archives.id = attempts.archive_id`;

function toTaskRow(row: TaskColumns): TaskRow {
  return {
    url: row.url,
    state: stateName(row.state),
    httpStatus: row.http_status,
    failureCode: row.code,
    failureDetail: row.detail,
    attempts: row.attempts,
    bytes: row.bytes,
    sha256: row.sha256 === null ? null : Buffer.from(row.sha256).toString('hex'),
    contentType: row.content_type,
    archive:
      row.archive_key === null
        ? null
        : { key: row.archive_key, offset: row.archive_offset ?? 0, length: row.archive_length ?? 0 },
    redirectTo: row.redirect_to,
    depth: row.depth,
    priority: row.priority,
    route: row.route,
    host: row.host,
    fetchedAt: row.fetched_at === null ? null : new Date(row.fetched_at).toISOString(),
    meta: row.meta === null ? null : JSON.parse(row.meta),
  };
}

interface RecordColumns {
  key: string;
  url: string;
  route: string | null;
  data: string;
  hash: string;
  updated_at: number;
}

const SELECT_RECORDS = `
  SELECT records.key, tasks.url, coalesce(attempts.route, tasks.route) AS route, records.data, records.hash,
    records.updated_at
  FROM records JOIN tasks ON tasks.id = records.task_id LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE records.job_id = ? AND records.key > ? ORDER BY records.key LIMIT ?`;

function toRecordRow(row: RecordColumns): RecordRow {
  return {
    key: row.key,
    url: row.url,
    route: row.route,
    data: JSON.parse(row.data),
    hash: row.hash,
    updatedAt: new Date(row.updated_at).toISOString(),
  };
}

interface AttemptColumns {
  id: number;
  job_id: number;
  url: string;
  batch_id: number;
  worker: string | null;
  started_at: number;
  duration_ms: number;
  http_status: number | null;
  outcome: string;
  code: string | null;
  bytes: number;
}

const SELECT_ATTEMPTS = `
  SELECT attempts.id, attempts.job_id, tasks.url, attempts.batch_id, batches.worker, attempts.started_at,
    attempts.duration_ms, attempts.http_status, attempts.outcome, attempts.code, attempts.wire_bytes AS bytes
  FROM attempts JOIN tasks ON tasks.id = attempts.task_id LEFT JOIN batches ON batches.id = attempts.batch_id
  WHERE attempts.id > ? ORDER BY attempts.id LIMIT ?`;

function toAttemptRow(row: AttemptColumns): AttemptRow {
  return {
    url: row.url,
    batch: row.batch_id,
    worker: row.worker ?? '',
    startedAt: new Date(row.started_at).toISOString(),
    durationMs: row.duration_ms,
    httpStatus: row.http_status,
    outcome: row.outcome,
    failureCode: row.code,
    bytes: row.bytes,
    proxy: null,
  };
}

const SELECT_DEAD = `
  SELECT groups.code, hosts.host, groups.count, tasks.url AS sampleUrl, tasks.detail AS sampleDetail
  FROM (SELECT code, host_id, count(*) AS count, min(tasks.id) AS id FROM tasks JOIN hosts ON hosts.id = tasks.host_id
        WHERE tasks.job_id = ? AND state = ${STATE_NUMBERS.dead} AND ${DEAD_FILTER} GROUP BY code, host_id) AS groups
    JOIN tasks ON tasks.id = groups.id JOIN hosts ON hosts.id = groups.host_id
  ORDER BY groups.count DESC, groups.code, hosts.host`;
