import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { sitemapPieces, unpackSitemap } from '../../../../src/core/sitemap/bytes.ts';
import { SITEMAP_META_CHARS_MAX } from '../../../../src/core/sitemap/item.ts';
import { parseSitemap, SITEMAP_URLS_MAX } from '../../../../src/core/sitemap/sitemap.ts';
import { SITEMAP_NESTING_MAX, SITEMAP_TEXT_MAX } from '../../../../src/core/sitemap/xml.ts';
import { SITEMAP_DEPTH_MAX } from '../../../../src/worker/links/sitemap-links.ts';

const BASE = 'https://site.example/sitemap.xml';
const parse = (text: string, urlsMax?: number) => parseSitemap(text, BASE, urlsMax);
const entry = (path: string | number) => `<url><loc>https://site.example/${path}</loc></url>`;

describe('refused', () => {
  const billionLaughs = `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">${Array.from(
    { length: 9 },
    (_, i) => `<!ENTITY lol${i + 1} "${`&lol${i || ''};`.repeat(10)}">`,
  ).join('')}]><urlset><url><loc>https://site.example/&lol9;</loc></url></urlset>`;

  test.each([
    ['entities that multiply', billionLaughs],
    [
      'entities from files',
      '<!DOCTYPE urlset [<!ENTITY xxe SYSTEM "file:///etc/passwd">]><urlset><url><loc>&xxe;</loc></url></urlset>',
    ],
    ['a document type elsewhere', '<!DOCTYPE urlset SYSTEM "http://evil.example/x.dtd"><urlset></urlset>'],
    ['a document type in small letters', `<!doctype urlset><urlset>${entry(1)}</urlset>`],
    ['declarations after the start', `<urlset>${entry(1)}<!ENTITY a "b">${entry(2)}</urlset>`],
  ])('%s', (_, text) => {
    expect(() => parse(text)).toThrow('document type');
  });

  test.each([
    ['an HTML page', '<!DOCTYPE html><html><body>Not found</body></html>', 'HTML page'],
    ['an HTML page without its type', '<html><body>Not found</body></html>', 'HTML page'],
    ['other XML', '<svg><path/></svg>', 'its first element is <svg>'],
    ['a name made for terminals', '<\u001b[31mred><a/>', 'its first element is <31mred>'],
    ['JSON', '{"urls": ["https://site.example/"]}', 'neither XML nor a list'],
    ['nothing', ' \n\t', 'empty'],
    ['a file that breaks off at once', '<urlset><url><loc>https://site.exa', 'before the first entry'],
    ['a tag without end', '<', 'neither a sitemap nor a feed'],
  ])('%s', (_, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  test('elements in elements without end', () => {
    expect(() => parse(`<urlset>${'<a>'.repeat(1_000_000)}`)).toThrow('nested deeper');
    expect(() => parse(`<urlset>${'<a>'.repeat(SITEMAP_NESTING_MAX - 1)}${entry(1)}`)).toThrow();
    const deep = '<a>'.repeat(20) + '</a>'.repeat(20);
    expect(parse(`<urlset>${deep}${entry(1)}</urlset>`).entries).toHaveLength(1);
  });
});

describe('cut short', () => {
  test('a file that breaks off gives the entries before, and says so', () => {
    const text = `<urlset>${entry(1)}${entry(2)}<url><loc>https://site.example/hal`;
    const { entries, trouble } = parse(text);
    expect(entries.map(({ url }) => url)).toEqual(['https://site.example/1', 'https://site.example/2']);
    expect(trouble).toBe('it is cut off after entry 2');
  });

  test('an entry that breaks off after its URL is there', () => {
    for (const rest of ['', '<lastmod>2024-0', '<image:image><image:loc>https://site.example/i'])
      expect(parse(`<urlset>${entry(1)}<url><loc>https://site.example/2</loc>${rest}`), rest).toMatchObject({
        entries: [{ url: 'https://site.example/1' }, { url: 'https://site.example/2' }],
        trouble: 'it is cut off after entry 2',
      });
    expect(parse('<sitemapindex><sitemap><loc>https://site.example/s.xml</loc>').entries).toMatchObject([
      { kind: 'sitemap', url: 'https://site.example/s.xml' },
    ]);
  });

  test('more URLs than the limit are left out, and it says so', () => {
    const text = `<urlset>${Array.from({ length: 30 }, (_, i) => entry(i)).join('')}</urlset>`;
    expect(parse(text, 10)).toMatchObject({ trouble: 'only the first 10 URLs were read' });
    expect(parse(text, 10).entries).toHaveLength(10);
    expect(parse(text, 30).trouble).toBeNull();
    expect(parse('https://a.example/\n'.repeat(11), 10).trouble).toBe('only the first 10 URLs were read');
  });

  test('a million URLs are given up on after the limit', () => {
    const pieces = function* () {
      yield '<urlset>';
      for (let i = 0; i < 1_000; i++) {
        asked++;
        yield Array.from({ length: 1_000 }, (_, at) => entry(i * 1_000 + at)).join('');
      }
    };
    let asked = 0;
    const { entries } = parseSitemap(pieces(), BASE);
    expect(entries).toHaveLength(SITEMAP_URLS_MAX);
    expect(asked).toBe(SITEMAP_URLS_MAX / 1_000 + 1);
  });

  test('a URL without end is none, a title without end is cut', () => {
    const item = (link: string, title: string) => `<item><link>${link}</link><title>${title}</title></item>`;
    const long = 'x'.repeat(100_000);
    const { entries } = parse(`<rss>${item(`https://a.example/${long}`, 'a')}${item('/b', long)}</rss>`);
    expect(entries.map(({ url }) => url)).toEqual(['', 'https://site.example/b']);
    expect(entries[1]!.meta).toEqual({ title: 'x'.repeat(SITEMAP_TEXT_MAX) });
  });

  test('what an entry says of its page stays small', () => {
    const image = `<image:image><image:loc>https://a.example/${'i'.repeat(900)}</image:loc></image:image>`;
    const { entries } = parse(`<urlset><url><loc>/a</loc>${image.repeat(1_000)}</url></urlset>`);
    expect(JSON.stringify(entries[0]!.meta).length).toBeLessThan(SITEMAP_META_CHARS_MAX + 1_000);
    expect(entries[0]!.meta!.images).toHaveLength(8);
  });
});

describe('compressed', () => {
  const text = (bytes: Buffer) => [...sitemapPieces(bytes, null)].join('');

  test('once or twice, it is read', async () => {
    const once = gzipSync(`<urlset>${entry(1)}</urlset>`);
    expect(text(await unpackSitemap(once))).toContain('site.example/1');
    expect(text(await unpackSitemap(gzipSync(once)))).toContain('site.example/1');
  });

  test('and cut off, it gives what came before', async () => {
    const whole = gzipSync(
      Array.from({ length: 5_000 }, (_, i) => `https://a.example/${i * 7919}\n`).join(''),
    );
    const half = text(await unpackSitemap(whole.subarray(0, whole.length / 2)));
    const { entries } = parse(half);
    expect(entries.length).toBeGreaterThan(1_000);
    expect(entries.length).toBeLessThan(5_000);
  });

  test('and damaged, it is refused', async () => {
    const damaged = gzipSync(entry(1).repeat(100));
    damaged.fill(0xff, 12, 40);
    await expect(unpackSitemap(damaged)).rejects.toThrow('gzip data is damaged');
  });

  test('a bomb is left long before it is unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(LIMITS.sitemapBytesMax));
    expect(bomb.length).toBeLessThan(60_000);
    await expect(unpackSitemap(bomb)).rejects.toThrow(
      `more than ${bomb.length * LIMITS.decodedRatioMax} bytes`,
    );
    await expect(unpackSitemap(gzipSync(bomb))).rejects.toThrow('it decompresses to more than');
  });

  test('and larger than the limit, it is refused', async () => {
    const large = Buffer.alloc(LIMITS.sitemapBytesMax + 1, 'https://a.example/12345678901234567890\n');
    await expect(unpackSitemap(large)).rejects.toThrow(`larger than ${LIMITS.sitemapBytesMax} bytes`);
    // Random enough not to look like a bomb.
    for (let at = 0; at + 4 <= large.length; at += 64) large.writeUInt32LE((at * 2_654_435_761) >>> 0, at);
    await expect(unpackSitemap(gzipSync(large, { level: 1 }))).rejects.toThrow(
      `more than ${LIMITS.sitemapBytesMax} bytes`,
    );
  });
});

test('the limits are those of the docs', () => {
  const text = readFileSync('docs/sitemaps.md', 'utf8').split('## Limits')[1]!;
  const figures = [...text.matchAll(/\| [^|]*? \| ([\d,]+)/g)].map(([, figure]) =>
    Number(figure!.replaceAll(',', '')),
  );
  expect(figures).toEqual([
    LIMITS.sitemapBytesMax,
    SITEMAP_URLS_MAX,
    SITEMAP_DEPTH_MAX,
    SITEMAP_NESTING_MAX,
    LIMITS.urlLengthMax,
    SITEMAP_TEXT_MAX,
    SITEMAP_META_CHARS_MAX,
  ]);
  expect(LIMITS.decodedRatioMax).toBe(250);
});
