import type { MediaRow } from '../../../core/model.ts';
import type { Since } from '../../../ports/store.ts';
import {
  type MediaColumns,
  type ReferrerColumns,
  referrersOf,
  SELECT_MEDIA,
  SELECT_REFERRERS,
  toMediaRow,
} from '../../shared/media-rows.ts';
import type { Database } from '../connection/database.ts';
import { STEP } from './view-tasks.ts';

export async function* readMedia(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<MediaRow> {
  const referrers = (id: number, most: number) => db.all<ReferrerColumns>(SELECT_REFERRERS_OF, id, most);
  let after = 0;
  while (true) {
    const rows = db.all<MediaColumns>(SELECT_MEDIA_STEP, after, STEP);
    for (const row of rows)
      if (row.job_id === jobId && row.started_at >= since)
        yield toMediaRow(row, await referrersOf(row.task_id, referrers));
    const last = rows.at(-1);
    if (!last) return;
    after = last.attempt_id;
  }
}

const SELECT_MEDIA_STEP = `${SELECT_MEDIA} WHERE media.attempt_id > ? ORDER BY media.attempt_id LIMIT ?`;

const SELECT_REFERRERS_OF = `${SELECT_REFERRERS} WHERE shown.media_task_id = ? ORDER BY shown.page_task_id LIMIT ?`;
