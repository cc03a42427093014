import type {
  AttemptRow,
  MediaRow,
  QualityRow,
  RecordRow,
  RecordVersionRow,
  ShotRow,
  TaskRow,
} from '../../../core/model.ts';
import type { ArchivedPage, DeadFilter, DeadGroup, Rewrite, Since, Views } from '../../../ports/store.ts';
import type { QueryOptions } from '../../../ports/views.ts';
import { STATE_NUMBERS } from '../../shared/states.ts';
import type { Database } from '../connection/database.ts';
import type { TaskInserter } from '../frontier/insert-tasks.ts';
import { DEAD_FILTER, deadFilterValues, retryInTransaction } from '../frontier/reopen.ts';
import { readLastQualityPass, readQuality } from '../settle/write-quality.ts';
import { runQuery } from './query.ts';
import { rewriteInTransaction } from './rewrite.ts';
import { readMedia } from './view-media.ts';
import { readHistory, readRecord, readRecords, readRecordsOf } from './view-records.ts';
import { readShots } from './view-shots.ts';
import { readAttempts, readPages, readTask, readTasks } from './view-tasks.ts';

export class SqliteViews implements Views {
  readonly #db: Database;
  readonly #inserter: TaskInserter;

  constructor(db: Database, inserter: TaskInserter) {
    this.#db = db;
    this.#inserter = inserter;
  }

  tasks(jobId: number, options: Since = {}): AsyncIterable<TaskRow> {
    return readTasks(this.#db, jobId, options);
  }

  records(jobId: number, options: Since & { ownOnly?: boolean } = {}): AsyncIterable<RecordRow> {
    return readRecords(this.#db, jobId, options);
  }

  history(jobId: number, options: Since = {}): AsyncIterable<RecordVersionRow> {
    return readHistory(this.#db, jobId, options);
  }

  attempts(jobId: number, options: Since = {}): AsyncIterable<AttemptRow> {
    return readAttempts(this.#db, jobId, options);
  }

  media(jobId: number, options: Since = {}): AsyncIterable<MediaRow> {
    return readMedia(this.#db, jobId, options);
  }

  shots(jobId: number, options: Since = {}): AsyncIterable<ShotRow> {
    return readShots(this.#db, jobId, options);
  }

  pages(jobId: number): AsyncIterable<ArchivedPage> {
    return readPages(this.#db, jobId);
  }

  query(sql: string, options: QueryOptions = {}): AsyncIterable<Record<string, unknown>> {
    return runQuery(this.#db.path, sql, options);
  }

  async record(jobId: number, key: string): Promise<RecordRow | null> {
    return readRecord(this.#db, jobId, key);
  }

  async recordsOf(taskId: number): Promise<RecordRow[]> {
    return readRecordsOf(this.#db, taskId);
  }

  async task(jobId: number, url: string): Promise<TaskRow | null> {
    const id = this.#inserter.find(jobId, url);
    return id === null ? null : readTask(this.#db, id);
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

  async quality(jobId: number, pass: number): Promise<QualityRow[]> {
    return readQuality(this.#db, jobId, pass);
  }

  async lastQualityPass(jobId: number): Promise<number | null> {
    return readLastQualityPass(this.#db, jobId);
  }

  async hasArchive(jobId: number, key: string): Promise<boolean> {
    return this.#db.get('SELECT 1 FROM archives WHERE job_id = ? AND key = ?', jobId, key) !== undefined;
  }

  async rewrite(jobId: number, rewrite: Rewrite): Promise<void> {
    this.#db.transaction(() => rewriteInTransaction(this.#db, this.#inserter, jobId, rewrite));
  }
}

const SELECT_DEAD = `
  SELECT groups.code, hosts.host, groups.count, tasks.url AS sampleUrl, tasks.detail AS sampleDetail
  FROM (SELECT code, host_id, count(*) AS count, min(tasks.id) AS id FROM tasks JOIN hosts ON hosts.id = tasks.host_id
        WHERE tasks.job_id = ? AND state = ${STATE_NUMBERS.dead} AND ${DEAD_FILTER} GROUP BY code, host_id) AS groups
    JOIN tasks ON tasks.id = groups.id JOIN hosts ON hosts.id = groups.host_id
  ORDER BY groups.count DESC, groups.code, hosts.host`;
