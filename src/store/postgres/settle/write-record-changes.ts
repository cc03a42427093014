import type { RecordChangeSum } from '../../../core/record-changes/record-changes.ts';
import type { TaskChange } from '../../../ports/store.ts';
import type { Transaction } from '../connection/database.ts';
import { toRows } from '../connection/rows.ts';

/** Adds to what the pass changed among the records. */
export async function addRecordChanges(
  tx: Transaction,
  jobId: number,
  pass: number,
  sum: RecordChangeSum,
): Promise<void> {
  const { rows } = sum;
  if (rows.length > 0) await tx.run(ADD, jobId, pass, toRows(rows));
}

export function isGone({ to, code }: TaskChange): boolean {
  return to === 'dead' && code === 'not-found';
}

/** Records of tasks whose page is gone now and was there before. To be asked before the tasks get their next attempt. */
export async function countPresent(
  tx: Transaction,
  gone: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (gone.length === 0) return new Map();
  const rows = await tx.run<{ id: number; count: number }>(COUNT_PRESENT, gone);
  return new Map(rows.map(({ id, count }) => [id, Number(count)]));
}

const ADD = `
  INSERT INTO record_changes (job_id, pass, kind, field, count)
  SELECT $1, $2, kind, field, count FROM json_to_recordset($3::json) AS delta (kind text, field text, count bigint)
  ORDER BY kind, field
  ON CONFLICT (job_id, pass, kind, field) DO UPDATE SET count = record_changes.count + excluded.count`;

const COUNT_PRESENT = `
  SELECT records.task_id AS id, count(*)::integer AS count
  FROM records JOIN tasks ON tasks.id = records.task_id LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE records.task_id = ANY($1::bigint[]) AND coalesce(attempts.http_status, 0) NOT IN (404, 410)
  GROUP BY records.task_id`;
