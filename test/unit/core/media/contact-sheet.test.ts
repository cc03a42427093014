import { expect, test } from 'vitest';
import { SHEET_SHOTS_MAX, writeContactSheet } from '../../../../src/coordinator/reports/contact-sheet.ts';
import { addToTiles, renderSheet, type SheetTile } from '../../../../src/core/media/contact-sheet.ts';
import type { ShotRow } from '../../../../src/core/model.ts';

const row = (index: number, more: Partial<ShotRow> = {}): ShotRow => ({
  url: `https://a.example/${index}`,
  kind: 'screenshot',
  key: `media/ab/${index}.png`,
  type: 'image/png',
  bytes: 100,
  outcome: 'fetched',
  httpStatus: 200,
  failureCode: null,
  route: null,
  takenAt: '2026-01-02T03:04:05.678Z',
  latest: true,
  ...more,
});

async function sheetOf(rows: Iterable<ShotRow>) {
  const written = new Map<string, string>();
  const blobs = {
    put: async (key: string, bytes: Uint8Array) => void written.set(key, Buffer.from(bytes).toString()),
    locate: (key: string) => `/blobs/${key}`,
  };
  const store = {
    views: {
      async *shots() {
        yield* rows;
      },
    },
  };
  const sheet = await writeContactSheet({ store, blobs }, { id: 1, name: 'shop', run: 3 });
  return { sheet, written };
}

test('a tile has the picture of a page, its status, its address, and what else was made of it', () => {
  const tiles: SheetTile[] = [];
  addToTiles(tiles, row(1));
  addToTiles(tiles, row(1, { kind: 'pdf', key: 'media/ab/1.pdf', type: 'application/pdf' }));
  addToTiles(tiles, row(2, { failureCode: 'not-found', httpStatus: 404, kind: 'snapshot' }));
  expect(tiles).toHaveLength(2);
  const html = renderSheet({ title: 'shop-3', tiles, newer: null, older: null, root: '../../' });
  expect(html).toContain('<img src="../../media/ab/1.png" alt="" loading="lazy"');
  expect(html).toContain('<a href="../../media/ab/1.pdf">PDF</a>');
  expect(html).toContain('<b>200</b> <a href="https://a.example/1"');
  expect(html).toContain('<figure class="failed">');
  expect(html).toContain('<b>not-found</b>');
  expect(html).toContain('2 pages, 1 failed');
});

test('another visit of the same page is another tile', () => {
  const tiles: SheetTile[] = [];
  addToTiles(tiles, row(1));
  addToTiles(tiles, row(1, { takenAt: '2026-01-03T03:04:05.678Z', key: 'media/ab/later.png' }));
  expect(tiles.map(({ shots }) => shots.map(({ key }) => key))).toEqual([
    ['media/ab/1.png'],
    ['media/ab/later.png'],
  ]);
});

test('nothing of a site gets into the markup', () => {
  const tiles: SheetTile[] = [];
  addToTiles(tiles, row(1, { url: `https://a.example/"><script>alert('1')</script>&<` }));
  const html = renderSheet({ title: 'x<y', tiles, newer: null, older: null, root: '../../' });
  expect(html).not.toContain('<script');
  expect(html).toContain('x&#60;y');
  expect(html).toContain("default-src 'none'");
});

test('a sheet is bounded: further pictures are on further pages, which lead to each other', async () => {
  const count = SHEET_SHOTS_MAX + 5;
  const { sheet, written } = await sheetOf(Array.from({ length: count }, (_, index) => row(index)));
  expect(sheet).toEqual({ place: '/blobs/sheets/shop-3/index.html', pages: 2, tiles: count });
  expect([...written.keys()]).toEqual(['sheets/shop-3/index.html', 'sheets/shop-3/page-2.html']);
  const [first, second] = [...written.values()];
  expect(first!.split('<figure').length - 1).toBe(SHEET_SHOTS_MAX);
  expect(second!.split('<figure').length - 1).toBe(5);
  expect(first).toContain('<a href="page-2.html">older →</a>');
  expect(first).not.toContain('newer');
  expect(second).toContain('<a href="index.html">← newer</a>');
  expect(second).not.toContain('older');
});

test('only the last visit to a page is shown, and a job without pictures has no sheet', async () => {
  const { sheet, written } = await sheetOf([
    row(1),
    row(1, { latest: false, takenAt: '2026-01-01T00:00:00Z' }),
  ]);
  expect(sheet!.tiles).toBe(1);
  expect([...written.values()][0]!.split('<figure').length - 1).toBe(1);
  expect((await sheetOf([])).sheet).toBeNull();
});
