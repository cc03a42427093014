import { addToTiles, renderSheet, type SheetTile } from '../../core/media/contact-sheet.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Job, Views } from '../../ports/store.ts';

/** Pictures on one page of a contact sheet: a browser shows so many at ease. */
export const SHEET_SHOTS_MAX = 2_000;
/** Pages of a contact sheet: half a million pictures are more than a person looks at. */
const SHEET_PAGES_MAX = 250;

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
  { store, blobs }: { store: { views: Pick<Views, 'shots'> }; blobs: Pick<Blobs, 'put' | 'locate'> },
  job: Pick<Job, 'id' | 'name' | 'run'>,
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
    if (tiles.length <= SHEET_SHOTS_MAX) continue;
    const next = tiles.pop()!;
    await write(page < SHEET_PAGES_MAX);
    tiles = [next];
    if (page++ === SHEET_PAGES_MAX) break;
  }
  if (tiles.length > 0 && page <= SHEET_PAGES_MAX) await write(false);
  return count === 0
    ? null
    : { place: blobs.locate(keyOf(1)), pages: Math.min(page, SHEET_PAGES_MAX), tiles: count };
}

function nameOf(page: number): string {
  return page === 1 ? 'index.html' : `page-${page}.html`;
}
