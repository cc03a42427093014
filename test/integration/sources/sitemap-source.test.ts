import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { SourceRow } from '../../../src/ports/source.ts';
import { sitemapFileRows } from '../../../src/sources/formats/sitemap-source.ts';

const OPTIONS = { within: 'site', route: null, priority: 3 } as const;

async function rowsOf(
  body: string | Buffer,
  from: string | null = null,
  options: Parameters<typeof sitemapFileRows>[2] = OPTIONS,
) {
  const rows: SourceRow[] = [];
  for await (const row of sitemapFileRows(() => Buffer.from(body), from, options)) rows.push(row);
  return rows;
}

const URLSET =
  '<urlset><url><loc>https://a.example/1</loc><lastmod>2020-01-01</lastmod></url><url><loc>https://b.example/2</loc></url></urlset>';

test('a file of pages gives a row each, from any host, with what it says', async () => {
  const expected = [
    {
      place: 'entry 1',
      position: '1',
      row: {
        url: 'https://a.example/1',
        meta: { lastmod: '2020-01-01' },
        modifiedAt: Date.UTC(2020, 0, 2) - 1,
      },
    },
    { place: 'entry 2', position: '2', row: { url: 'https://b.example/2', meta: null } },
  ];
  expect(await rowsOf(URLSET)).toEqual(expected);
  expect(await rowsOf(gzipSync(URLSET))).toEqual(expected);
});

test('its pages get the route of the source', async () => {
  const rows = await rowsOf(URLSET, null, { ...OPTIONS, route: 'product' });
  expect(rows.map(({ row }) => 'route' in row && row.route)).toEqual(['product', 'product']);
});

test('reading goes on after any position it gave', async () => {
  const all = await rowsOf(URLSET);
  expect(await rowsOf(URLSET, all[0]!.position)).toEqual(all.slice(1));
  expect(await rowsOf(URLSET, all[1]!.position)).toEqual([]);
});

test('sitemaps that it names become tasks of the built-in route', async () => {
  const rows = await rowsOf(
    '<sitemapindex><sitemap><loc>https://a.example/s.xml</loc></sitemap></sitemapindex>',
  );
  expect(rows.map(({ row }) => row)).toEqual([
    {
      url: 'https://a.example/s.xml',
      route: '@sitemap',
      meta: { '@within': 'site', '@route': null, '@priority': 3, '@level': 1 },
    },
  ]);
});

test('a file that breaks off says so after its last row, once', async () => {
  const rows = await rowsOf(URLSET.slice(0, -5));
  expect(rows.map(({ place, row }) => [place, 'reason' in row ? row.reason : row.url])).toEqual([
    ['entry 1', 'https://a.example/1'],
    ['entry 2', 'https://b.example/2'],
    ['entry 3', 'it is cut off after entry 2'],
  ]);
  expect(await rowsOf(URLSET.slice(0, -5), rows[1]!.position)).toEqual([rows[2]]);
  expect(await rowsOf(URLSET.slice(0, -5), rows[2]!.position)).toEqual([]);
});

test('a file that is no sitemap is one clear error', async () => {
  await expect(rowsOf('<!doctype html><p>Hello')).rejects.toThrow(
    'cannot read the sitemap: it is an HTML page, neither a sitemap nor a feed',
  );
});
