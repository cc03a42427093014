import type { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import type { Database } from '../connection/database.ts';

/** Adds to what the pass changed among the records. */
export function addRecordChanges(db: Database, jobId: number, pass: number, sum: RecordChangeSum): void {
  for (const { kind, field, count } of sum.rows) db.run(ADD, jobId, pass, kind, field, count);
}

/** Records of a task whose page was there at its last visit. To be asked before the task gets its next attempt. */
export function countPresent(db: Database, taskId: number): number {
  return db.get<{ count: number }>(COUNT_PRESENT, taskId)!.count;
}

const ADD = `
  INSERT INTO record_changes (job_id, pass, kind, field, count) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (job_id, pass, kind, field) DO UPDATE SET count = count + excluded.count`;

const COUNT_PRESENT = `
  SELECT count(*) AS count FROM records JOIN tasks ON tasks.id = records.task_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE records.task_id = ? AND coalesce(attempts.http_status, 0) NOT IN (404, 410)`;
