import type { ShotRow } from '../../../core/model.ts';
import type { Since } from '../../../ports/store.ts';
import { SELECT_SHOTS, type ShotColumns, toShotRows } from '../../shared/shot-rows.ts';
import type { Database } from '../connection/database.ts';
import { STEP } from './view-tasks.ts';

/** The newest first. */
export async function* readShots(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<ShotRow> {
  let before = Number.MAX_SAFE_INTEGER;
  while (true) {
    const rows = db.all<ShotColumns>(SELECT_SHOTS_STEP, jobId, before, STEP);
    for (const row of rows) if (row.started_at >= since) yield* toShotRows(row);
    const last = rows.at(-1);
    if (!last) return;
    before = last.id;
  }
}

const SELECT_SHOTS_STEP = `
  ${SELECT_SHOTS}
  WHERE attempts.job_id = ? AND attempts.shots IS NOT NULL AND attempts.id < ? ORDER BY attempts.id DESC LIMIT ?`;
