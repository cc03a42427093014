import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { BatchTask } from '../../../../src/core/batch/batch.ts';
import { SITEMAP_ROUTE } from '../../../../src/core/job-schema/job.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import type { Meta } from '../../../../src/core/model.ts';
import { sitemapMeta, sitemapUrl } from '../../../../src/core/sitemap/task.ts';
import { parseJob } from '../../../../src/job-file/parse-job.ts';
import { compileJob } from '../../../../src/worker/compile-job.ts';
import { SITEMAP_DEPTH_MAX, sitemapLinks, sitemapVisit } from '../../../../src/worker/links/sitemap-links.ts';
import { Page } from '../../../../src/worker/page/page.ts';

const NOW = Date.UTC(2024, 5, 1);
const OPTIONS = { within: 'site', route: null, priority: 0 } as const;

async function read(
  body: string | Buffer,
  options: { url?: string; meta?: Meta | null; job?: object; status?: number } = {},
) {
  const { url = 'https://www.site.example/sitemap.xml', meta = sitemapMeta(OPTIONS), status = 200 } = options;
  const { spec } = await parseJob({ sources: 'https://site.example/', ...options.job }, 'job.yaml', 'job');
  const page = new Page({
    url,
    status,
    contentType: 'application/xml',
    contentTypeHeader: 'application/xml',
    headers: ['Content-Type', 'application/xml'],
    body: Buffer.from(body),
    route: SITEMAP_ROUTE,
    meta,
  });
  const task: BatchTask = {
    id: 1,
    url,
    permit: 0,
    depth: 0,
    route: SITEMAP_ROUTE,
    attempt: 1,
    hops: 0,
    meta,
    lastVisit: null,
  };
  return sitemapLinks(page, task, await compileJob(spec, new Map()), NOW);
}

const urlset = (...urls: string[]) =>
  `<urlset>${urls.map((url) => `<url><loc>${url}</loc></url>`).join('')}</urlset>`;
const index = (...urls: string[]) =>
  `<sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join('')}</sitemapindex>`;
const urlsOf = async (...args: Parameters<typeof read>) => (await read(...args)).links.map(({ url }) => url);

describe('pages of a sitemap', () => {
  test('are listed tasks with the route and priority that the source asked for, and what the sitemap says', async () => {
    const body =
      '<urlset><url><loc>/a#top</loc><lastmod>2024-05-01</lastmod></url><url><loc>/b</loc></url></urlset>';
    const meta = sitemapMeta({ within: 'host', route: 'product', priority: 5 });
    expect(await read(body, { meta, job: { routes: [{ name: 'product' }] } })).toEqual({
      links: [
        {
          url: 'https://www.site.example/a',
          host: 'www.site.example',
          priority: 5,
          route: 'product',
          listed: true,
          modifiedAt: Date.UTC(2024, 4, 2) - 1,
          meta: { lastmod: '2024-05-01' },
        },
        {
          url: 'https://www.site.example/b',
          host: 'www.site.example',
          priority: 5,
          route: 'product',
          listed: true,
        },
      ],
      note: null,
      rejected: null,
    });
  });

  test('are normalised as the job says, and come once', async () => {
    const body = urlset('/a?utm_source=x', '/a', '/b?z=1&amp;a=2', 'https://WWW.site.example/b?a=2&amp;z=1');
    expect(await urlsOf(body, { job: { url: { sortQuery: true } } })).toEqual([
      'https://www.site.example/a',
      'https://www.site.example/b?a=2&z=1',
    ]);
  });

  test('are known by what is said of them first', async () => {
    const body = '<urlset><url><loc>/a</loc><lastmod>2020</lastmod></url><url><loc>/a#b</loc></url></urlset>';
    expect((await read(body)).links).toMatchObject([{ meta: { lastmod: '2020' } }]);
  });

  test.each([
    ['host', ['https://www.site.example/1']],
    ['site', ['https://www.site.example/1', 'https://shop.site.example/2']],
    ['any', ['https://www.site.example/1', 'https://shop.site.example/2', 'https://other.example/3']],
  ] as const)('within %s', async (within, expected) => {
    const body = urlset(
      'https://www.site.example/1',
      'https://shop.site.example/2',
      'https://other.example/3',
      'file:///etc/passwd',
      'javascript:alert(1)',
    );
    const meta = sitemapMeta({ ...OPTIONS, within });
    const { links, note } = await read(body, { meta });
    expect(links.map(({ url }) => url)).toEqual(expected);
    expect(note).toContain('unusable URLs: 2');
    if (within !== 'any')
      expect(note).toContain(
        `URLs out of scope (within: ${within} of www.site.example): ${3 - expected.length}`,
      );
  });

  test('are read from gzip, by its bytes', async () => {
    expect(await urlsOf(gzipSync(urlset('/a')))).toEqual(['https://www.site.example/a']);
  });

  test('are read in pieces, between which other tasks get their turn', async () => {
    let turns = 0;
    let beating = true;
    const beat = () => {
      turns++;
      if (beating) setImmediate(beat);
    };
    setImmediate(beat);
    await read(`${urlset('/a')}<!--${' '.repeat(2 * 1024 * 1024)}-->`);
    beating = false;
    expect(turns).toBeGreaterThanOrEqual(8);
  });

  test('of a page that is no sitemap are an error', async () => {
    await expect(read('<!doctype html><h1>Oops</h1>')).rejects.toThrow('HTML page');
  });

  test('of a sitemap that breaks off are kept, with a note', async () => {
    const { links, note } = await read('<urlset><url><loc>/a</loc></url><url><lo');
    expect(links).toHaveLength(1);
    expect(note).toBe('it is cut off after entry 1');
  });

  test('of a task that a route made a sitemap get the defaults', async () => {
    const [link] = (await read(urlset('/a'), { meta: { mine: 1 } })).links;
    expect(link).toMatchObject({ route: null, priority: 0 });
    expect(link).not.toHaveProperty('meta');
  });
});

describe('sitemaps of an index', () => {
  test('are sitemap tasks, first in line, one level down, with the same options', async () => {
    const meta = sitemapMeta({ within: 'site', route: 'product', priority: 5 });
    const { links } = await read(index('/one.xml'), { meta });
    expect(links).toEqual([
      {
        url: 'https://www.site.example/one.xml',
        host: 'www.site.example',
        priority: 1_000,
        route: SITEMAP_ROUTE,
        listed: true,
        meta: {
          '@within': 'site',
          '@route': 'product',
          '@priority': 5,
          '@level': 1,
          '@host': 'www.site.example',
        },
      },
    ]);
  });

  test('end at the deepest level', async () => {
    const at = (level: number) => read(index('/one.xml'), { meta: sitemapMeta(OPTIONS, level) });
    expect((await at(SITEMAP_DEPTH_MAX - 1)).links).toHaveLength(1);
    expect(await at(SITEMAP_DEPTH_MAX)).toEqual({
      links: [],
      rejected: null,
      note: `sitemaps nested deeper than ${SITEMAP_DEPTH_MAX}: 1`,
    });
  });

  test('are neither the index itself nor elsewhere', async () => {
    expect(await urlsOf(index('/sitemap.xml', 'https://evil.example/s.xml'))).toEqual([]);
  });

  test('are held to the site where the source began', async () => {
    const meta = sitemapMeta(OPTIONS, 1, 'site.example');
    const body = urlset('https://cdn.example/x', 'https://www.site.example/1');
    expect(await urlsOf(body, { meta, url: 'https://cdn.example/s.xml' })).toEqual([
      'https://www.site.example/1',
    ]);
  });

  test('are also what a route makes sitemaps of, so that a chain of them ends', async () => {
    const job = { routes: [{ name: 'lists', match: '/list/*', kind: 'sitemap' }, { name: 'page' }] };
    const { links } = await read(urlset('/list/2', '/p'), { job });
    expect(links.map(({ route, meta }) => [route, meta?.['@level']])).toEqual([
      [SITEMAP_ROUTE, 1],
      [null, undefined],
    ]);
  });
});

describe('sitemaps of a robots.txt', () => {
  const url = 'https://site.example/robots.txt';

  test('may be anywhere, but not what they list', async () => {
    const { links } = await read('Sitemap: https://cdn.example/s.xml', { url });
    expect(links).toMatchObject([
      {
        url: 'https://cdn.example/s.xml',
        route: SITEMAP_ROUTE,
        meta: { '@level': 1, '@host': 'site.example' },
      },
    ]);
  });

  test('are at the usual place when it names none, or there is no robots.txt', async () => {
    expect(await urlsOf('User-agent: *', { url })).toEqual(['https://site.example/sitemap.xml']);
    expect(await urlsOf('Sitemap: /from-an-error-page.xml', { url, status: 404 })).toEqual([
      'https://site.example/sitemap.xml',
    ]);
  });

  test('without one are no failure; a site in trouble is', () => {
    const { accepts } = sitemapVisit(url);
    expect([403, 404, 410].map((status) => accepts?.(status))).toEqual([true, true, true]);
    expect([429, 500, 503].map((status) => accepts?.(status))).toEqual([false, false, false]);
    expect(sitemapVisit('https://site.example/sitemap.xml')).toEqual({
      bodyBytesMax: LIMITS.sitemapBytesMax,
    });
  });
});

test.each([
  ['https://site.example', 'https://site.example/robots.txt'],
  ['http://127.0.0.1:8080/', 'http://127.0.0.1:8080/robots.txt'],
  ['site.example', 'https://site.example/robots.txt'],
  ['https://site.example/feed.xml', 'https://site.example/feed.xml'],
  ['https://site.example/?feed=rss', 'https://site.example/?feed=rss'],
  ['https://', null],
])('the source sitemap:%s asks for %s', (text, expected) => {
  expect(sitemapUrl(text)).toBe(expected);
});
