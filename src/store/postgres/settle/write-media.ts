import type { TaskChange } from '../../../ports/store.ts';
import type { Transaction } from '../connection/database.ts';
import { indexHint, toRows } from '../connection/rows.ts';
import { findTasks, slotOf } from '../frontier/find-tasks.ts';
import type { InsertContext } from '../frontier/insert-tasks.ts';
import type { Applied } from './settle.ts';

/** One row for each object that a task brought: the same object again, in a later pass, only gets a new date. */
export async function writeMedia(
  tx: Transaction,
  jobId: number,
  pass: number,
  objects: readonly Applied[],
): Promise<void> {
  const rows = objects.flatMap(({ change, attemptId }) => {
    const media = change.page?.media;
    if (!media || attemptId === null) return [];
    return [{ a: attemptId, t: change.id, d: media.md5, k: media.key, m: media.member }];
  });
  if (rows.length === 0) return;
  if (pass > 1) await tx.run(DELETE_SAME_MEDIA, toRows(rows));
  await tx.run(INSERT_MEDIA, jobId, toRows(rows));
}

/**
 * Which media pages show: their tasks came with their links, so this is for after those were inserted.
 * Media that moved are shown by the pages that show their old URL: those are found over the redirect.
 */
export async function writeShown(
  context: Pick<InsertContext, 'tx' | 'jobId' | 'memory'>,
  pass: number,
  changes: readonly TaskChange[],
): Promise<void> {
  const { tx } = context;
  const moved = await findShownMoves(tx, changes);
  const pages = changes.filter(
    ({ outcome, shows }) => outcome === 'fetched' && (shows.length > 0 || pass > 1),
  );
  const showing = [
    ...pages.map(({ id, shows }) => ({ id, urls: shows })),
    ...moved.map(({ id, redirectTo }) => ({ id, urls: [redirectTo!] })),
  ];
  await writeShownBy(context, showing, pass > 1);
}

/** `replaces`: what the pages showed before does not count any more. */
export async function writeShownBy(
  { tx, jobId, memory }: Pick<InsertContext, 'tx' | 'jobId' | 'memory'>,
  showing: readonly { id: number; urls: readonly string[] }[],
  replaces: boolean,
): Promise<void> {
  if (showing.length === 0) return;
  if (replaces)
    await tx.run(
      DELETE_SHOWN,
      showing.map(({ id }) => id),
    );
  const urls = new Set(showing.flatMap((page) => page.urls));
  if (urls.size === 0) return;
  const found = await findTasks(
    tx.run,
    jobId,
    new Map([...urls].map((url) => [url, slotOf(url, memory.seed)])),
  );
  const pairs = showing.flatMap((page) =>
    page.urls.flatMap((url) => {
      const media = found.get(url)?.id ?? null;
      return media === null ? [] : [{ page: page.id, media }];
    }),
  );
  await tx.run(
    INSERT_SHOWN,
    pairs.map(({ page }) => page),
    pairs.map(({ media }) => media),
  );
}

/** Redirects of URLs that some page shows. */
async function findShownMoves(tx: Transaction, changes: readonly TaskChange[]): Promise<TaskChange[]> {
  const moved = changes.filter(
    ({ outcome, to, redirectTo }) => outcome === 'redirected' && to === 'done' && redirectTo !== null,
  );
  if (moved.length === 0) return [];
  const rows = await tx.run<{ id: number }>(
    SELECT_SHOWN,
    moved.map(({ id }) => id),
  );
  const shown = new Set(rows.map(({ id }) => id));
  return moved.filter(({ id }) => shown.has(id));
}

const MEDIA_ROW = 'object (a bigint, t bigint, d text, k text, m text)';

const DELETE_SAME_MEDIA = `
  DELETE FROM media USING json_to_recordset($1::json) AS ${MEDIA_ROW}
  WHERE ${indexHint('object.t')} AND media.task_id = object.t AND media.key = object.k AND media.member IS NOT DISTINCT FROM object.m`;

const INSERT_MEDIA = `
  INSERT INTO media (attempt_id, job_id, task_id, md5, key, member)
  SELECT a, $1, t, decode(d, 'hex'), k, m FROM json_to_recordset($2::json) AS ${MEDIA_ROW}`;

const SELECT_SHOWN = `
  SELECT id FROM unnest($1::bigint[]) AS asked (id)
  WHERE EXISTS (SELECT 1 FROM shown WHERE shown.media_task_id = asked.id)`;

const DELETE_SHOWN = 'DELETE FROM shown WHERE page_task_id = ANY($1::bigint[])';

const INSERT_SHOWN = `
  INSERT INTO shown (page_task_id, media_task_id)
  SELECT page, media FROM unnest($1::bigint[], $2::bigint[]) AS pair (page, media) ORDER BY page, media
  ON CONFLICT DO NOTHING`;
