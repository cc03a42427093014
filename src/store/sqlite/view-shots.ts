import type { ShotRef, ShotRow } from '../../core/model.ts';
import type { Since } from '../../ports/store.ts';
import type { Database } from './database.ts';
import { STEP } from './view-tasks.ts';

/** The newest first. */
export async function* readShots(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<ShotRow> {
  let before = Number.MAX_SAFE_INTEGER;
  while (true) {
    const rows = db.all<ShotColumns>(SELECT_SHOTS, jobId, before, STEP);
    for (const row of rows) if (row.started_at >= since) yield* toShotRows(row);
    const last = rows.at(-1);
    if (!last) return;
    before = last.id;
  }
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

const SELECT_SHOTS = `
  SELECT attempts.id, tasks.url, attempts.shots, attempts.outcome, attempts.http_status, attempts.code,
    coalesce(attempts.route, tasks.route) AS route, attempts.started_at, tasks.attempt_id AS last_attempt
  FROM attempts JOIN tasks ON tasks.id = attempts.task_id
  WHERE attempts.job_id = ? AND attempts.shots IS NOT NULL AND attempts.id < ? ORDER BY attempts.id DESC LIMIT ?`;

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
