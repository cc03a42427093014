import { LIMITS } from '../../core/limits.ts';
import type { MediaRow } from '../../core/model.ts';
import type { Since } from '../../ports/store.ts';
import type { Database } from './database.ts';
import { STEP } from './view-tasks.ts';

export async function* readMedia(
  db: Database,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<MediaRow> {
  let after = 0;
  while (true) {
    const rows = await db.read<MediaColumns>(SELECT_MEDIA, after, STEP);
    for (const row of rows)
      if (row.job_id === jobId && row.started_at >= since)
        yield toMediaRow(row, await referrersOf(db, row.task_id));
    const last = rows.at(-1);
    if (!last) return;
    after = last.attempt_id;
  }
}

/** Pages that show the object at its own URL, or at one that led to it; so many rows are looked at, and no more. */
async function referrersOf(db: Database, taskId: number): Promise<string[]> {
  const urls = new Set<string>();
  const media = new Set([taskId]);
  let left: number = LIMITS.referrersMax;
  for (const id of media) {
    const rows = await db.read<ReferrerColumns>(SELECT_REFERRERS, id, left);
    left -= rows.length;
    for (const row of rows) {
      if (row.outcome === 'redirected') media.add(row.id);
      else urls.add(row.url);
    }
  }
  return [...urls];
}

interface ReferrerColumns {
  id: number;
  url: string;
  outcome: string | null;
}

interface MediaColumns {
  attempt_id: number;
  job_id: number;
  task_id: number;
  url: string;
  key: string;
  member: string | null;
  md5: string;
  bytes: number;
  sha256: string;
  content_type: string | null;
  started_at: number;
  meta: string | null;
}

const SELECT_MEDIA = `
  SELECT media.attempt_id, media.job_id, media.task_id, tasks.url, media.key, media.member, media.md5, attempts.bytes,
    attempts.sha256, attempts.content_type, attempts.started_at, tasks.meta
  FROM media JOIN attempts ON attempts.id = media.attempt_id JOIN tasks ON tasks.id = media.task_id
  WHERE media.attempt_id > $1 ORDER BY media.attempt_id LIMIT $2`;

const SELECT_REFERRERS = `
  SELECT tasks.id, tasks.url, attempts.outcome
  FROM shown JOIN tasks ON tasks.id = shown.page_task_id LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE shown.media_task_id = $1 ORDER BY shown.page_task_id LIMIT $2`;

function toMediaRow(row: MediaColumns, referrers: string[]): MediaRow {
  return {
    url: row.url,
    key: row.key,
    member: row.member,
    bytes: row.bytes,
    md5: row.md5,
    sha256: row.sha256,
    contentType: row.content_type,
    fetchedAt: new Date(row.started_at).toISOString(),
    referrers,
    meta: row.meta === null ? null : JSON.parse(row.meta),
  };
}
