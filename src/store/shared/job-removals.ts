import { setImmediate } from 'node:timers/promises';
import type { ShotRef } from '../../core/model.ts';
import type { JobRemovals, RemovedJob } from '../../ports/store/job-removals.ts';
import { STATE_NUMBERS } from './states.ts';
import type { WebhookDatabase } from './webhooks/webhook-store.ts';

/** Tables whose rows are numbered, with what hangs on tasks first. */
export const NUMBERED = ['attempts', 'batches', 'archives', 'tasks'] as const;
/** Their numbers are told to others, and must not be given again: the newest row stays, and belongs to no job. */
const KEPT_NUMBERS: Record<string, string> = {
  attempts: 'UPDATE attempts SET job_id = 0, shots = NULL',
  batches: "UPDATE batches SET job_id = 0, state = 'closed'",
  tasks: `UPDATE tasks SET job_id = 0, state = ${STATE_NUMBERS.done}, meta = NULL`,
};
/** The rest is small: by job alone. */
export const OF_JOB = [
  'counters',
  'tallies',
  'sources',
  'queues',
  'templates',
  'quality',
  'quality_fields',
  'record_changes',
  'escalations',
  'api_costs',
  'host_groups',
  'rollups',
  'rollup_counts',
  'slot_times',
  'costs',
  'passes',
] as const;

export class SharedJobRemovals implements JobRemovals {
  readonly #db: Pick<WebhookDatabase, 'run'>;
  readonly #tablesOfJob: readonly string[];

  constructor(db: Pick<WebhookDatabase, 'run'>, more: readonly string[] = []) {
    this.#db = db;
    this.#tablesOfJob = [...more, ...OF_JOB];
  }

  async mark(jobId: number, now: number): Promise<boolean> {
    return (await this.#db.run(MARK, jobId, now)).length > 0;
  }

  async list(limit: number): Promise<RemovedJob[]> {
    const rows = await this.#db.run<RemovedJob>(LIST, limit);
    return rows.map((row) => ({ ...row }));
  }

  async sharedBlobs(
    jobId: number,
    { after, limit }: { after: number; limit: number },
  ): ReturnType<JobRemovals['sharedBlobs']> {
    return this.#blobs('=', jobId, { after, limit });
  }

  async blobsOfOthers(
    jobId: number,
    keys: ReadonlySet<string>,
    { after, limit }: { after: number; limit: number },
  ): ReturnType<JobRemovals['blobsOfOthers']> {
    const found = await this.#blobs('<>', jobId, { after, limit });
    return { ...found, keys: found.keys.filter((key) => keys.has(key)) };
  }

  async removeRows(
    jobId: number,
    { after, limit }: { after: number; limit: number },
  ): Promise<{ after: number; isEnd: boolean }> {
    const to = after + limit;
    const ends = await this.#db.run<{ last: number | null }>(LAST_NUMBERS);
    const last = Math.max(0, ...ends.map((row) => row.last ?? 0));
    for (const text of OF_TASKS) await this.#db.run(text, after, to, jobId);
    for (const table of NUMBERED) await this.#db.run(deleteFrom(table), after, to, jobId);
    if (to < last) return { after: to, isEnd: false };
    for (const [table, text] of Object.entries(KEPT_NUMBERS))
      await this.#db.run(`${text} WHERE job_id = $1 AND id = (SELECT max(id) FROM ${table})`, jobId);
    for (let from = 0; from < last; from += limit) {
      await this.#db.run(VERSIONS, from, from + limit, jobId);
      await setImmediate();
    }
    for (const table of this.#tablesOfJob)
      await this.#db.run(`DELETE FROM ${table} WHERE job_id = $1`, jobId);
    await this.#db.run(BURY, jobId);
    await this.#db.run('DELETE FROM jobs WHERE removed_at = -1 AND id < (SELECT max(id) FROM jobs)');
    return { after: to, isEnd: true };
  }

  async #blobs(
    relation: '=' | '<>',
    jobId: number,
    { after, limit }: { after: number; limit: number },
  ): Promise<{ keys: string[]; after: number; isEnd: boolean }> {
    const to = after + limit;
    const [end] = await this.#db.run<{ last: number | null }>('SELECT max(id) AS last FROM attempts');
    const media = await this.#db.run<{ key: string }>(
      `SELECT key FROM media WHERE attempt_id > $1 AND attempt_id <= $2 AND job_id ${relation} $3 AND member IS NULL`,
      after,
      to,
      jobId,
    );
    const shots = await this.#db.run<{ shots: string }>(
      `SELECT shots FROM attempts WHERE id > $1 AND id <= $2 AND job_id ${relation} $3 AND shots IS NOT NULL`,
      after,
      to,
      jobId,
    );
    const pictures = shots.flatMap((row) => (JSON.parse(row.shots) as ShotRef[]).map(({ key }) => key));
    return { keys: [...media.map(({ key }) => key), ...pictures], after: to, isEnd: to >= (end?.last ?? 0) };
  }
}

const MARK = `
  UPDATE jobs SET removed_at = $2, request_id = NULL WHERE id = $1 AND state <> 'running' AND removed_at IS NULL
  RETURNING id`;

const LIST = 'SELECT id, name, run FROM jobs WHERE removed_at > 0 ORDER BY id LIMIT $1';

const LAST_NUMBERS = `
  SELECT max(id) AS last FROM tasks UNION ALL SELECT max(id) FROM attempts UNION ALL SELECT max(id) FROM batches
  UNION ALL SELECT max(id) FROM archives UNION ALL SELECT max(id) FROM record_versions`;

const TASKS = 'SELECT id FROM tasks WHERE id > $1 AND id <= $2 AND job_id = $3';
const OF_TASKS = [
  `DELETE FROM shown WHERE page_task_id IN (${TASKS})`,
  `DELETE FROM shown WHERE media_task_id IN (${TASKS})`,
  `DELETE FROM media WHERE task_id IN (${TASKS})`,
  `DELETE FROM records WHERE task_id IN (${TASKS})`,
];

/** Those of tasks that are gone. */
const VERSIONS = `
  DELETE FROM record_versions WHERE id > $1 AND id <= $2
    AND collection_id = (SELECT collection_id FROM passes WHERE job_id = $3)
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = record_versions.task_id AND tasks.job_id <> 0)`;

const deleteFrom = (table: string) => `
  DELETE FROM ${table} WHERE id > $1 AND id <= $2 AND job_id = $3 AND id < (SELECT max(id) FROM ${table})`;

/** A job with the highest number leaves its row, so that its number is not given to another one. */
const BURY =
  "UPDATE jobs SET removed_at = -1, spec = '{}', bundle = NULL, file = NULL, reason = NULL WHERE id = $1";
