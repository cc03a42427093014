import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseRobots } from '../../../../src/core/robots/robots.ts';
import { sitemapPieces, unpackSitemap } from '../../../../src/core/sitemap/bytes.ts';
import { parseRobotsSitemaps, parseSitemap } from '../../../../src/core/sitemap/sitemap.ts';

const BASE = 'https://site.example/maps/sitemap.xml';
const parse = (text: string) => parseSitemap(text, BASE);
const urlsOf = (text: string) => parse(text).entries.map(({ url }) => url);
const urlset = (inner: string) =>
  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${inner}</urlset>`;

const FIXTURES = new URL('../../../fixtures/sitemaps/', import.meta.url);

describe('files of every kind', () => {
  const site = 'https://sea.example';
  const areas = ['7&area=north_sea', '41&area=skagerrak', '42&area=kattegat', '90&area=baltic'];
  const charts = [`${site}/`, ...areas.map((area) => `${site}/charts?sheet=${area}`)];
  const expected: Record<string, string[]> = {
    'atom.xml': [`${site}/tides/high`],
    'bad-namespace.xml': [`${site}/one`, `${site}/two`],
    'bom.txt': [`${site}/one.html`, `${site}/two.html`],
    'images.xml': [`${site}/gallery/gulls.html`],
    'index.xml': [3, 14, 15].map((port) => `${site}/map.cgi?port=${port}&lang=en`),
    'links.xml': ['tides', 'getijden', 'getijden-be'].map((path) => `${site}/${path}/`),
    'news.xml': [`${site}/harbour/storm.html`, `${site}/harbour/unnamed.html`],
    'packed.txt.gz': charts,
    'packed.xml.gz': charts,
    'plain.txt': [`${site}/one.html`, `${site}/two.html`],
    'prefixed.xml': [`${site}/one`, `${site}/two`],
    'rss.xml': ['/1', '/2', '?n=3&sail=red', '?n=4&sail=blue'].map((path) => `${site}/boats${path}`),
  };

  test.each(Object.entries(expected))('%s', async (name, urls) => {
    const bytes = await unpackSitemap(readFileSync(new URL(name, FIXTURES)));
    const { entries, trouble } = parseSitemap(sitemapPieces(bytes, null), BASE);
    expect(entries.map(({ url }) => url)).toEqual(urls);
    expect(trouble).toBeNull();
    expect(new Set(entries.map(({ kind }) => kind))).toEqual(
      new Set([name === 'index.xml' ? 'sitemap' : 'page']),
    );
  });

  test('none is forgotten', () => {
    expect(readdirSync(FIXTURES).sort()).toEqual(Object.keys(expected).sort());
  });
});

describe('a sitemap', () => {
  test('with several URLs in one entry has an entry for each', () => {
    expect(
      parse(
        '<sitemapindex><sitemap><loc>/a.xml</loc><lastmod>2024-05-01</lastmod><loc>/b.xml</loc><loc/></sitemap></sitemapindex>',
      ).entries,
    ).toMatchObject([
      { kind: 'sitemap', url: 'https://site.example/a.xml', modified: { from: Date.UTC(2024, 4, 1) } },
      { kind: 'sitemap', url: 'https://site.example/b.xml', modified: { from: Date.UTC(2024, 4, 1) } },
    ]);
    expect(urlsOf(urlset('<url><loc>/1</loc><loc>/2</loc></url>'))).toEqual([
      'https://site.example/1',
      'https://site.example/2',
    ]);
  });

  test('tells dates, frequency and priority of its pages', () => {
    const text = urlset(
      '<url><loc> https://site.example/a?x=1&amp;y=2 </loc><lastmod>2024-05-01</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url>',
    );
    expect(parse(text)).toEqual({
      entries: [
        {
          kind: 'page',
          url: 'https://site.example/a?x=1&y=2',
          modified: { from: Date.UTC(2024, 4, 1), until: Date.UTC(2024, 4, 2) - 1 },
          meta: { lastmod: '2024-05-01', changefreq: 'daily', priority: 0.8 },
        },
      ],
      trouble: null,
    });
  });

  test('has images, videos and news, under any prefix', () => {
    const text = `<s:urlset xmlns:s="x" xmlns:i="y"><s:url>
      <i:image><i:loc>/a.jpg</i:loc><i:title>A  cat</i:title></i:image>
      <i:image><i:loc>/b.jpg</i:loc></i:image>
      <v:video><v:title>Film</v:title><v:content_loc>https://cdn.example/f.mp4</v:content_loc><v:tag>x</v:tag></v:video>
      <n:news><n:publication><n:name>Times</n:name><n:language>en</n:language></n:publication><n:title>News</n:title></n:news>
      <s:loc>https://site.example/p</s:loc></s:url></s:urlset>`;
    expect(parse(text).entries).toEqual([
      {
        kind: 'page',
        url: 'https://site.example/p',
        modified: null,
        meta: {
          images: [
            { url: 'https://site.example/a.jpg', title: 'A cat' },
            { url: 'https://site.example/b.jpg' },
          ],
          videos: [{ title: 'Film', url: 'https://cdn.example/f.mp4' }],
          news: { publication: 'Times', language: 'en', title: 'News' },
        },
      },
    ]);
  });

  test('names other languages of a page: each once, after the pages with entries of their own', () => {
    const link = (path: string) =>
      `<xhtml:link rel="alternate" hreflang="x" href="https://site.example/${path}"/>`;
    const text = urlset(
      `<url><loc>https://site.example/en</loc>${link('fr')}${link('de')}<xhtml:link rel="amphtml" href="/amp"/></url>
       <url><loc>https://site.example/de</loc><lastmod>2020</lastmod>${link('fr')}${link('en')}</url>`,
    );
    expect(urlsOf(text)).toEqual(['en', 'de', 'fr'].map((path) => `https://site.example/${path}`));
    expect(parse(text).entries[1]!.meta).toEqual({ lastmod: '2020' });
  });

  test.each([
    ['stray ampersands', '<url><loc>https://site.example/?a=1&b=2&copy=3</loc></url>', '?a=1&b=2&copy=3'],
    ['CDATA', '<url><loc><![CDATA[https://site.example/?a=1&b=<2>]]></loc></url>', '?a=1&b=<2>'],
    ['numbers for characters', '<url><loc>https://site.example/&#x61;&#98;</loc></url>', 'ab'],
    ['unknown entities, which stay', '<url><loc>https://site.example/&xxe;</loc></url>', '&xxe;'],
    ['relative URLs', '<url><loc>../a</loc></url>', 'a'],
    ['no loc element', '<url> https://site.example/a </url>', 'a'],
    ['an unclosed loc', '<url><loc>https://site.example/a</url>', 'a'],
    ['an unclosed loc before a date', '<url><loc>/a<lastmod>2020</lastmod></url>', 'a'],
    [
      'URLs in extensions that nobody knows',
      '<url><x:y><x:url>/b</x:url><loc>/c</loc></x:y><loc>/a</loc></url>',
      'a',
    ],
    ['capitals', '<URL><LOC>https://site.example/a</LOC></URL>', 'a'],
    [
      'the place of an image outside of its image',
      '<url><image:loc>/i.jpg</image:loc><loc>/a</loc></url>',
      'a',
    ],
  ])('may have %s', (_, inner, path) => {
    expect(urlsOf(urlset(inner))).toEqual([`https://site.example/${path}`]);
  });

  test('with entries that are not closed has them all', () => {
    expect(urlsOf(urlset('<url><loc>/a</loc><url><loc>/b</loc>'))).toEqual([
      'https://site.example/a',
      'https://site.example/b',
    ]);
  });

  test('reads the same in pieces of any size', () => {
    const text = urlset(
      '<url><loc>https://site.example/a?b=1&amp;c=2</loc><lastmod>2024-01-01</lastmod></url>'.repeat(3),
    );
    for (const size of [1, 2, 3, 7, 50]) {
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.slice(i * size, (i + 1) * size),
      );
      expect(parseSitemap(pieces, BASE)).toEqual(parse(text));
    }
  });

  test('without URLs is no mistake', () => {
    expect(parse(urlset(''))).toEqual({ entries: [], trouble: null });
  });
});

test('an index names sitemaps, with their dates', () => {
  const text =
    '<sitemapindex><sitemap><loc>/one.xml.gz</loc><lastmod>2024-05-01T10:00:00Z</lastmod></sitemap></sitemapindex>';
  expect(parse(text).entries).toEqual([
    {
      kind: 'sitemap',
      url: 'https://site.example/one.xml.gz',
      modified: { from: Date.UTC(2024, 4, 1, 10), until: Date.UTC(2024, 4, 1, 10, 0, 1) - 1 },
      meta: null,
    },
  ]);
});

describe('a feed', () => {
  test('in RSS 2.0 has links, or links for ids, and titles of its own only', () => {
    const text = `<rss version="2.0" xmlns:atom="a" xmlns:media="m"><channel><title>Site</title><link>https://site.example/</link>
      <image><url>https://site.example/logo.png</url></image>
      <item><media:title>no</media:title><title>One</title><link>/1</link><pubDate>Sun, 06 Sep 2009 16:20:00 +0000</pubDate></item>
      <item><atom:link rel="alternate" href="/2"/></item>
      <item><guid isPermaLink="true">https://site.example/3</guid></item>
      <item><guid>urn:4</guid></item></channel></rss>`;
    expect(parse(text).entries).toEqual([
      {
        kind: 'page',
        url: 'https://site.example/1',
        modified: { from: Date.UTC(2009, 8, 6, 16, 20), until: Date.UTC(2009, 8, 6, 16, 20, 1) - 1 },
        meta: { title: 'One', published: 'Sun, 06 Sep 2009 16:20:00 +0000' },
      },
      { kind: 'page', url: 'https://site.example/2', modified: null, meta: null },
      { kind: 'page', url: 'https://site.example/3', modified: null, meta: null },
      { kind: 'page', url: '', modified: null, meta: null },
    ]);
  });

  test('in RSS 1.0 has its items beside the channel', () => {
    const text = `<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel rdf:about="x"><items><rdf:Seq><rdf:li resource="y"/></rdf:Seq></items></channel>
      <item rdf:about="/1"><title>One</title><link>https://site.example/1</link><dc:date>2001-02-03</dc:date></item></rdf:RDF>`;
    expect(parse(text).entries).toMatchObject([
      { url: 'https://site.example/1', modified: { from: Date.UTC(2001, 1, 3) }, meta: { title: 'One' } },
    ]);
  });

  test('in Atom has the first link that leads to the page, from the base it names', () => {
    const text = `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://blog.example/x/"><link href="/"/>
      <entry xml:base="2024/"><content type="xhtml"><div><link href="zero"/><title>no</title></div></content><link rel="edit" href="e"/><link rel="alternate" href="one"/><link href="two"/>
        <title>One</title><published>2024-01-01T00:00:00Z</published><updated>2024-02-01T00:00:00Z</updated>
        </entry>
      <entry><id>https://blog.example/by-id</id></entry></feed>`;
    expect(parse(text).entries).toMatchObject([
      {
        url: 'https://blog.example/x/2024/one',
        modified: { from: Date.UTC(2024, 1, 1) },
        meta: { title: 'One', published: '2024-01-01T00:00:00Z', updated: '2024-02-01T00:00:00Z' },
      },
      { url: 'https://blog.example/by-id', modified: null },
    ]);
  });
});

test('a text has one URL a line, with any line end; other lines are entries without one', () => {
  expect(
    urlsOf('\uFEFFhttps://a.example/1\r\nhttps://a.example/2\r\r# no\nrelative\n  HTTP://a.example/3'),
  ).toEqual(['https://a.example/1', 'https://a.example/2', '', 'HTTP://a.example/3']);
});

describe('robots.txt', () => {
  const ROBOTS = 'https://site.example/robots.txt';
  const named = (text: string) => parseRobotsSitemaps(text, ROBOTS).entries.map(({ url }) => url);

  test('names sitemaps, anywhere', () => {
    expect(
      named('User-agent: x\nDisallow: /\nsitemap: /a.xml # first\nSitemap: https://cdn.example/b.xml\n'),
    ).toEqual(['https://site.example/a.xml', 'https://cdn.example/b.xml']);
  });

  test('may always be fetched itself', () => {
    const { allows } = parseRobots('User-agent: *\nDisallow: /', 'Seine');
    expect([allows(ROBOTS), allows('https://site.example/sitemap.xml')]).toEqual([true, false]);
  });

  test('that names none, or is an error page, leaves the usual place', () => {
    expect(named('User-agent: *\nDisallow:')).toEqual(['https://site.example/sitemap.xml']);
    expect(named('<!doctype html><h1>Not found</h1>')).toEqual(['https://site.example/sitemap.xml']);
  });
});

describe('bytes', () => {
  const read = (bytes: Buffer, contentType: string | null = null) =>
    parseSitemap(sitemapPieces(bytes, contentType), BASE).entries.map(({ url }) => url);
  const declaring = (encoding: string) =>
    `<?xml version="1.0" encoding="${encoding}"?><urlset><url><loc>https://a.example/é</loc></url></urlset>`;
  // 0xe9 is another letter in that encoding.
  const inCyrillic = Buffer.from(declaring('windows-1251'), 'latin1');

  test('are in the encoding that the XML declares, whatever type the server names', () => {
    expect(read(inCyrillic)).toEqual(['https://a.example/й']);
    expect(read(inCyrillic, 'application/octet-stream')).toEqual(['https://a.example/й']);
  });

  test('are in the encoding that the server names, before that', () => {
    expect(read(inCyrillic, 'text/xml; charset=iso-8859-1')).toEqual(['https://a.example/é']);
    expect(read(Buffer.from(declaring('windows-1251')), 'text/xml; charset=utf-8')).toEqual([
      'https://a.example/é',
    ]);
  });

  test('are UTF-8 or UTF-16 without a declaration, also where a piece ends within a character', () => {
    const text = `<urlset>${' '.repeat(256 * 1024 - 37)}<url><loc>https://a.example/ééééé</loc></url></urlset>`;
    expect(Buffer.from(text).indexOf('é')).toBe(256 * 1024 - 1);
    expect(read(Buffer.from(text))).toEqual(['https://a.example/ééééé']);
    expect(read(Buffer.from(`\uFEFF${text}`, 'utf16le'))).toEqual(['https://a.example/ééééé']);
  });
});
