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
import { STATE_NUMBERS } from '../../shared/states.ts';
import type { ConnectionOptions } from '../connection/connections.ts';
import type { Database } from '../connection/database.ts';
import { findTask } from '../frontier/find-tasks.ts';
import type { JobMemories } from '../frontier/job-memory.ts';
import { DEAD_FILTER, deadFilterValues, retryInTransaction } from '../frontier/reopen.ts';
import { readLastQualityPass, readQuality } from '../settle/write-quality.ts';
import { runQuery } from './query.ts';
import { rewriteInTransaction } from './rewrite.ts';
import { readMedia } from './view-media.ts';
import { readHistory, readRecord, readRecords, readRecordsOf } from './view-records.ts';
import { readShots } from './view-shots.ts';
import { readAttempts, readPages, readTask, readTasks } from './view-tasks.ts';

export class PostgresViews implements Views {
  readonly #db: Database;
  readonly #memories: JobMemories;
  readonly #connection: ConnectionOptions;

  constructor(db: Database, memories: JobMemories, connection: ConnectionOptions) {
    this.#db = db;
    this.#memories = memories;
    this.#connection = connection;
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

  query(sql: string): AsyncIterable<Record<string, unknown>> {
    return runQuery(this.#connection, sql);
  }

  async record(jobId: number, key: string): Promise<RecordRow | null> {
    return readRecord(this.#db, jobId, key);
  }

  async recordsOf(taskId: number): Promise<RecordRow[]> {
    return readRecordsOf(this.#db, taskId);
  }

  async task(jobId: number, url: string): Promise<TaskRow | null> {
    const { seed } = await this.#memories.of(jobId);
    const id = await findTask(this.#db.read.bind(this.#db), jobId, seed, url);
    return id === null ? null : readTask(this.#db, id);
  }

  async dead(jobId: number, filter: DeadFilter = {}): Promise<DeadGroup[]> {
    return this.#db.readSlowly<DeadGroup>(SELECT_DEAD, jobId, ...deadFilterValues(filter));
  }

  async retryDead(jobId: number, filter: DeadFilter, now: number): Promise<number> {
    return this.#db.write((tx) => retryInTransaction(tx, jobId, filter, now), { slow: true });
  }

  async tallies(jobId: number): Promise<{ state: string; code: string; count: number }[]> {
    return this.#db.read(SELECT_TALLIES, jobId);
  }

  async quality(jobId: number, pass: number): Promise<QualityRow[]> {
    return readQuality(this.#db, jobId, pass);
  }

  async lastQualityPass(jobId: number): Promise<number | null> {
    return readLastQualityPass(this.#db, jobId);
  }

  async hasArchive(jobId: number, key: string): Promise<boolean> {
    const rows = await this.#db.read('SELECT 1 FROM archives WHERE job_id = $1 AND key = $2', jobId, key);
    return rows.length > 0;
  }

  async rewrite(jobId: number, rewrite: Rewrite): Promise<void> {
    const memory = await this.#memories.of(jobId);
    await this.#db.write((tx) => rewriteInTransaction(tx, jobId, memory, rewrite));
  }
}

const SELECT_TALLIES = `
  SELECT state, code, count FROM tallies WHERE job_id = $1 AND count > 0 ORDER BY count DESC, code COLLATE "C"`;

const SELECT_DEAD = `
  SELECT groups.code, hosts.host, groups.count, tasks.url AS "sampleUrl", tasks.detail AS "sampleDetail"
  FROM (SELECT tasks.code, tasks.host_id, count(*) AS count, min(tasks.id) AS id
        FROM tasks JOIN hosts ON hosts.id = tasks.host_id
        WHERE tasks.job_id = $1 AND tasks.state = ${STATE_NUMBERS.dead} AND ${DEAD_FILTER}
        GROUP BY tasks.code, tasks.host_id) AS groups
    JOIN tasks ON tasks.id = groups.id JOIN hosts ON hosts.id = groups.host_id
  ORDER BY groups.count DESC, groups.code COLLATE "C", hosts.host COLLATE "C"`;
