import type { TaskChange } from '../../../ports/store.ts';
import type { Transaction } from '../connection/database.ts';
import { findTasks, slotOf } from '../frontier/find-tasks.ts';
import type { InsertContext } from '../frontier/insert-tasks.ts';

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

const SELECT_SHOWN = `
  SELECT id FROM unnest($1::bigint[]) AS asked (id)
  WHERE EXISTS (SELECT 1 FROM shown WHERE shown.media_task_id = asked.id)`;

const DELETE_SHOWN = 'DELETE FROM shown WHERE page_task_id = ANY($1::bigint[])';

const INSERT_SHOWN = `
  INSERT INTO shown (page_task_id, media_task_id)
  SELECT page, media FROM unnest($1::bigint[], $2::bigint[]) AS pair (page, media) ORDER BY page, media
  ON CONFLICT DO NOTHING`;
