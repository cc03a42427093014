import type { AttemptRow, TaskRow } from '../../../core/model.ts';
import type { ArchivedPage, Since } from '../../../ports/store.ts';
import { isFinished } from '../../shared/states.ts';
import {
  type AttemptColumns,
  archiveOf,
  SELECT_ATTEMPTS,
  SELECT_TASKS,
  type TaskColumns,
  toArchivedPage,
  toAttemptRow,
  toTaskRow,
} from '../../shared/task-rows.ts';
import type { Database } from '../connection/database.ts';

/** Rows per step: no read transaction stays open, so exports never hold back the log of a running job. */
export const STEP = 1_000;

/** Tasks of several jobs lie in one table: read only from the first to the last of this one. */
async function* stepThroughTasks(db: Database, jobId: number): AsyncIterable<TaskColumns> {
  const first = db.get<{ id: number | null }>('SELECT first_task_id AS id FROM jobs WHERE id = ?', jobId)?.id;
  if (first === null || first === undefined) return;
  let left =
    db.get<{ accepted: number }>('SELECT accepted FROM counters WHERE job_id = ?', jobId)?.accepted ?? 0;
  let after = first - 1;
  while (left > 0) {
    const rows = db.all<TaskColumns>(
      `${SELECT_TASKS} WHERE tasks.id > ? ORDER BY tasks.id LIMIT ?`,
      after,
      STEP,
    );
    if (rows.length === 0) return;
    for (const row of rows) {
      after = row.id;
      if (row.job_id !== jobId) continue;
      left--;
      yield row;
    }
  }
}

export async function* readTasks(db: Database, jobId: number, { since }: Since): AsyncIterable<TaskRow> {
  for await (const row of stepThroughTasks(db, jobId)) {
    if (since === undefined || (row.visited_at !== null && row.visited_at >= since)) yield toTaskRow(row);
  }
}

export async function* readPages(db: Database, jobId: number): AsyncIterable<ArchivedPage> {
  for await (const row of stepThroughTasks(db, jobId)) {
    const archive = archiveOf(row);
    if (archive && isFinished(row.state)) yield toArchivedPage(row, archive);
  }
}

export function readTask(db: Database, id: number): TaskRow | null {
  const row = db.get<TaskColumns>(`${SELECT_TASKS} WHERE tasks.id = ?`, id);
  return row ? toTaskRow(row) : null;
}

export async function* readAttempts(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<AttemptRow> {
  let after = 0;
  while (true) {
    const rows = db.all<AttemptColumns>(SELECT_ATTEMPTS_STEP, after, STEP);
    for (const row of rows) if (row.job_id === jobId && row.started_at >= since) yield toAttemptRow(row);
    const last = rows.at(-1);
    if (!last) return;
    after = last.id;
  }
}

const SELECT_ATTEMPTS_STEP = `${SELECT_ATTEMPTS} WHERE attempts.id > ? ORDER BY attempts.id LIMIT ?`;
