import type { ShotRef, ShotRow } from '../../../core/model.ts';
import type { Since } from '../../../ports/store.ts';
import { PAGE_ROWS, type Reader, rowPages } from './reader.ts';

/** The newest first. */
export async function* readShots(
  reader: Reader,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<ShotRow> {
  for await (const rows of rowPages<ShotColumns>((last) =>
    reader.all(SELECT_SHOT_PAGE, jobId, last?.id ?? Number.MAX_SAFE_INTEGER, PAGE_ROWS),
  ))
    for (const row of rows) if (row.started_at >= since) yield* toShotRows(row);
}

interface ShotColumns {
  id: number;
  url: string;
  shots: string;
  outcome: string;
  http_status: number | null;
  code: string | null;
  route: string | null;
  started_at: number;
  last_attempt: number;
}

const SELECT_SHOT_PAGE = `
  SELECT attempts.id, tasks.url, attempts.shots, attempts.outcome, attempts.http_status, attempts.code,
    coalesce(attempts.route, tasks.route) AS route, attempts.started_at, tasks.attempt_id AS last_attempt
  FROM attempts JOIN tasks ON tasks.id = attempts.task_id
  WHERE attempts.job_id = $1 AND attempts.shots IS NOT NULL AND attempts.id < $2 ORDER BY attempts.id DESC LIMIT $3`;

function toShotRows(row: ShotColumns): ShotRow[] {
  return (JSON.parse(row.shots) as ShotRef[]).map(({ kind, key, type, bytes }) => ({
    url: row.url,
    kind,
    key,
    type,
    bytes,
    outcome: row.outcome,
    httpStatus: row.http_status,
    failureCode: row.code,
    route: row.route,
    takenAt: new Date(row.started_at).toISOString(),
    latest: row.id === row.last_attempt,
  }));
}
