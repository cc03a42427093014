import type {
  AttemptRow,
  MediaRow,
  QualityRow,
  RecordRow,
  RecordVersionRow,
  ShotRow,
  TaskRow,
} from '../../../core/model.ts';
import {
  type RecordChangeRow,
  type RecordChanges,
  toRecordChanges,
} from '../../../core/record-changes/record-changes.ts';
import type {
  ArchivedPage,
  AttemptFilter,
  DeadFilter,
  DeadGroup,
  NumberedAttempt,
  NumberedTask,
  RowStep,
  Since,
  TaskFilter,
  Views,
  VisitedPage,
} from '../../../ports/store.ts';
import { STATE_NUMBERS } from '../states.ts';
import { readMedia } from './media.ts';
import type { Dialect, Reader } from './reader.ts';
import {
  readHistory,
  readRecord,
  readRecordStep,
  readRecords,
  readRecordsOf,
  readVersionsOf,
} from './records.ts';
import { readShots } from './shots.ts';
import {
  readAttemptStep,
  readAttempts,
  readAttemptsOf,
  readNumberedTask,
  readPages,
  readTask,
  readTaskStep,
  readTasks,
  readVisitedPages,
} from './tasks.ts';

type WrittenByStore = 'retryDead' | 'rewrite' | 'query';

/** The half of the views that only reads, for every store that speaks SQL. */
export abstract class ReadViews implements Omit<Views, WrittenByStore> {
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  tasks(jobId: number, options: Since = {}): AsyncIterable<TaskRow> {
    return readTasks(this.#reader, jobId, options);
  }

  records(jobId: number, options: Since & { ownOnly?: boolean } = {}): AsyncIterable<RecordRow> {
    return readRecords(this.#reader, jobId, options);
  }

  history(jobId: number, options: Since = {}): AsyncIterable<RecordVersionRow> {
    return readHistory(this.#reader, jobId, options);
  }

  attempts(jobId: number, options: Since = {}): AsyncIterable<AttemptRow> {
    return readAttempts(this.#reader, jobId, options);
  }

  media(jobId: number, options: Since = {}): AsyncIterable<MediaRow> {
    return readMedia(this.#reader, jobId, options);
  }

  shots(jobId: number, options: Since = {}): AsyncIterable<ShotRow> {
    return readShots(this.#reader, jobId, options);
  }

  pages(jobId: number): AsyncIterable<ArchivedPage> {
    return readPages(this.#reader, jobId);
  }

  visitedPages(jobId: number): AsyncIterable<VisitedPage> {
    return readVisitedPages(this.#reader, jobId);
  }

  async record(jobId: number, key: string): Promise<RecordRow | null> {
    return readRecord(this.#reader, jobId, key);
  }

  async recordsOf(taskId: number): Promise<RecordRow[]> {
    return readRecordsOf(this.#reader, taskId);
  }

  async task(jobId: number, url: string): Promise<TaskRow | null> {
    const id = await this.findTask(jobId, url);
    return id === null ? null : readTask(this.#reader, id);
  }

  async taskId(jobId: number, url: string): Promise<number | null> {
    return this.findTask(jobId, url);
  }

  async numberedTask(taskId: number): Promise<NumberedTask | null> {
    return readNumberedTask(this.#reader, taskId);
  }

  async taskStep(
    jobId: number,
    options: TaskFilter & { after: number; limit: number },
  ): Promise<RowStep<NumberedTask>> {
    return readTaskStep(this.#reader, jobId, options);
  }

  async attemptStep(
    jobId: number,
    options: AttemptFilter & { after: number; limit: number },
  ): Promise<RowStep<NumberedAttempt>> {
    return readAttemptStep(this.#reader, jobId, options);
  }

  async attemptsOf(taskId: number, limit: number): Promise<NumberedAttempt[]> {
    return readAttemptsOf(this.#reader, taskId, limit);
  }

  async versionsOf(jobId: number, key: string, limit: number): Promise<RecordVersionRow[]> {
    return readVersionsOf(this.#reader, jobId, key, limit);
  }

  async recordStep(
    jobId: number,
    options: { after: string | null; limit: number },
  ): Promise<{ rows: RecordRow[]; after: string | null }> {
    return readRecordStep(this.#reader, jobId, options);
  }

  async dead(jobId: number, filter: DeadFilter = {}): Promise<DeadGroup[]> {
    const text = selectDead(this.#reader.dialect);
    const rows = await this.#reader.allSlowly<DeadGroup>(text, jobId, ...deadFilterValues(filter));
    return rows.map((row) => ({ ...row }));
  }

  async tallies(jobId: number): Promise<{ state: string; code: string; count: number }[]> {
    const rows = await this.#reader.all<{ state: string; code: string; count: number }>(
      SELECT_TALLIES,
      jobId,
    );
    return rows.map((row) => ({ ...row }));
  }

  async quality(jobId: number, pass: number): Promise<QualityRow[]> {
    const fields = await this.#reader.all<QualityField>(SELECT_QUALITY_FIELDS, jobId, pass);
    const routes = await this.#reader.all<Omit<QualityRow, 'filled'>>(SELECT_QUALITY, jobId, pass);
    return routes.map(({ blank, ...row }) => {
      const own = fields.filter(({ route }) => route === row.route);
      return {
        ...row,
        ...(blank ? { blank } : {}),
        filled: Object.fromEntries(own.map(({ field, filled }) => [field, filled])),
      };
    });
  }

  async lastQualityPass(jobId: number): Promise<number | null> {
    const [row] = await this.#reader.all<{ pass: number | null }>(SELECT_LAST_QUALITY_PASS, jobId);
    return row?.pass ?? null;
  }

  async recordChanges(jobId: number, pass: number): Promise<RecordChanges> {
    return toRecordChanges(await this.#reader.all<RecordChangeRow>(SELECT_RECORD_CHANGES, jobId, pass));
  }

  async hasArchive(jobId: number, key: string): Promise<boolean> {
    const rows = await this.#reader.all(
      'SELECT 1 FROM archives WHERE job_id = $1 AND key = $2 LIMIT 1',
      jobId,
      key,
    );
    return rows.length > 0;
  }

  /** The task of a URL in the store's dedupe index. */
  protected abstract findTask(jobId: number, url: string): Promise<number | null>;
}

interface QualityField {
  route: string;
  field: string;
  filled: number;
}

/** Follows the job's id in a statement over tasks and hosts; takes `deadFilterValues` as $2 to $4. */
export const deadFilter = ({ indexOf }: Dialect): string => `
  (CAST($2 AS text) IS NULL OR ${indexOf}($2, ',' || tasks.code || ',') > 0) AND (CAST($3 AS text) IS NULL OR hosts.host = $3)
  AND (CAST($4 AS text) IS NULL OR ${indexOf}(tasks.url, $4) > 0)`;

export function deadFilterValues({ code, host, urlContains }: DeadFilter): (string | null)[] {
  const codes = code === undefined ? null : `,${[code].flat().join(',')},`;
  return [codes, host ?? null, urlContains ?? null];
}

const selectDead = (dialect: Dialect) => `
  SELECT groups.code, hosts.host, groups.count, tasks.url AS "sampleUrl", tasks.detail AS "sampleDetail"
  FROM (SELECT tasks.code, tasks.host_id, count(*) AS count, min(tasks.id) AS id
        FROM tasks JOIN hosts ON hosts.id = tasks.host_id
        WHERE tasks.job_id = $1 AND tasks.state = ${STATE_NUMBERS.dead} AND ${deadFilter(dialect)}
        GROUP BY tasks.code, tasks.host_id) AS groups
    JOIN tasks ON tasks.id = groups.id JOIN hosts ON hosts.id = groups.host_id
  ORDER BY groups.count DESC, groups.code COLLATE "C", hosts.host COLLATE "C"`;

const SELECT_TALLIES = `
  SELECT state, code, count FROM tallies WHERE job_id = $1 AND count > 0 ORDER BY count DESC, code COLLATE "C"`;

const SELECT_QUALITY = `
  SELECT pass, route, records, invalid, blank FROM quality WHERE job_id = $1 AND pass = $2 ORDER BY route COLLATE "C"`;

const SELECT_QUALITY_FIELDS = `
  SELECT route, field, filled FROM quality_fields WHERE job_id = $1 AND pass = $2
  ORDER BY route COLLATE "C", field COLLATE "C"`;

const SELECT_RECORD_CHANGES = 'SELECT kind, field, count FROM record_changes WHERE job_id = $1 AND pass = $2';

const SELECT_LAST_QUALITY_PASS = 'SELECT max(pass) AS pass FROM quality WHERE job_id = $1';
