import { LIMITS } from '../../core/limits.ts';
import { addToTiles, renderSheet, type SheetTile } from '../../core/media/contact-sheet.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Job, Store } from '../../ports/store.ts';

export interface ContactSheet {
  /** Where its first page is, for people. */
  place: string;
  pages: number;
  /** Web pages that are shown on it. */
  tiles: number;
}

/**
 * Writes the pictures of a job down as HTML beside them, the newest first: its first page is `index.html`. Null when
 * there are none.
 */
export async function writeContactSheet(
  { store, blobs }: { store: Store; blobs: Blobs },
  job: Job,
): Promise<ContactSheet | null> {
  const title = `${job.name}-${job.run}`;
  const keyOf = (page: number) => `sheets/${title}/${nameOf(page)}`;
  let page = 1;
  let count = 0;
  let tiles: SheetTile[] = [];
  const write = async (hasOlder: boolean) => {
    const newer = page === 1 ? null : nameOf(page - 1);
    const older = hasOlder ? nameOf(page + 1) : null;
    const html = renderSheet({ title, tiles, newer, older, root: '../../' });
    await blobs.put(keyOf(page), Buffer.from(html));
    count += tiles.length;
  };
  for await (const row of store.views.shots(job.id)) {
    if (!row.latest) continue;
    addToTiles(tiles, row);
    if (tiles.length <= LIMITS.sheetShotsMax) continue;
    const next = tiles.pop()!;
    await write(page < LIMITS.sheetPagesMax);
    tiles = [next];
    if (page++ === LIMITS.sheetPagesMax) break;
  }
  if (tiles.length > 0 && page <= LIMITS.sheetPagesMax) await write(false);
  return count === 0
    ? null
    : { place: blobs.locate(keyOf(1)), pages: Math.min(page, LIMITS.sheetPagesMax), tiles: count };
}

function nameOf(page: number): string {
  return page === 1 ? 'index.html' : `page-${page}.html`;
}
