import type { ShotRef, ShotRow } from '../../core/model.ts';

export interface ShotColumns {
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

export const SELECT_SHOTS = `
  SELECT attempts.id, tasks.url, attempts.shots, attempts.outcome, attempts.http_status, attempts.code,
    coalesce(attempts.route, tasks.route) AS route, attempts.started_at, tasks.attempt_id AS last_attempt
  FROM attempts JOIN tasks ON tasks.id = attempts.task_id`;

export function toShotRows(row: ShotColumns): ShotRow[] {
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
