import type { MediaRow } from '../../../core/model.ts';
import { publicMeta } from '../../../core/row-meta/row-meta.ts';
import type { Since } from '../../../ports/store.ts';
import { type Hash, hexOf } from '../hash.ts';
import { PAGE_ROWS, type Reader, rowPages } from './reader.ts';

/** Pages named as showing one object in the media index: a logo is on every page of a site. */
const REFERRERS_MAX = 10_000;

export async function* readMedia(
  reader: Reader,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<MediaRow> {
  for await (const rows of rowPages<MediaColumns>((last) =>
    reader.all(SELECT_MEDIA_PAGE, last?.attempt_id ?? 0, PAGE_ROWS),
  ))
    for (const row of rows)
      if (row.job_id === jobId && row.started_at >= since)
        yield toMediaRow(row, await readReferrers(reader, row.task_id));
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
  md5: Hash;
  bytes: number;
  sha256: Hash;
  content_type: string | null;
  started_at: number;
  meta: string | null;
}

const SELECT_MEDIA_PAGE = `
  SELECT media.attempt_id, media.job_id, media.task_id, tasks.url, media.key, media.member, media.md5, attempts.bytes,
    attempts.sha256, attempts.content_type, attempts.started_at, tasks.meta
  FROM media JOIN attempts ON attempts.id = media.attempt_id JOIN tasks ON tasks.id = media.task_id
  WHERE media.attempt_id > $1 ORDER BY media.attempt_id LIMIT $2`;

const SELECT_REFERRERS = `
  SELECT tasks.id, tasks.url, attempts.outcome
  FROM shown JOIN tasks ON tasks.id = shown.page_task_id LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE shown.media_task_id = $1 ORDER BY shown.page_task_id LIMIT $2`;

/** Pages that show the object at its own URL, or at one that led to it; so many rows are looked at, and no more. */
async function readReferrers(reader: Reader, taskId: number): Promise<string[]> {
  const urls = new Set<string>();
  const media = new Set([taskId]);
  let left: number = REFERRERS_MAX;
  for (const id of media) {
    const rows = await reader.all<ReferrerColumns>(SELECT_REFERRERS, id, left);
    left -= rows.length;
    for (const row of rows) {
      if (row.outcome === 'redirected') media.add(row.id);
      else urls.add(row.url);
    }
  }
  return [...urls];
}

function toMediaRow(row: MediaColumns, referrers: string[]): MediaRow {
  return {
    url: row.url,
    key: row.key,
    member: row.member,
    bytes: row.bytes,
    md5: hexOf(row.md5),
    sha256: hexOf(row.sha256),
    contentType: row.content_type,
    fetchedAt: new Date(row.started_at).toISOString(),
    referrers,
    meta: row.meta === null ? null : publicMeta(JSON.parse(row.meta)),
  };
}
