import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorkerTools } from '../../../../src/app/worker-app.ts';
import { type Batch, type BatchTask, type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { SITEMAP_ROUTE } from '../../../../src/core/job-schema/job.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { SITEMAP_URLS_MAX } from '../../../../src/core/sitemap/sitemap.ts';
import { sitemapMeta } from '../../../../src/core/sitemap/task.ts';
import { processBatch } from '../../../../src/worker/batch/process-batch.ts';
import { LINKS_PER_REPORT } from '../../../../src/worker/batch/report-parts.ts';
import { specOf } from '../../../support/fixtures.ts';
import { temporaryFolder } from '../../../support/seine-process.ts';
import { type ListingSite, startListingSite } from '../../../support/sites/listing-site.ts';

/** Sitemaps as a worker fetches them: over real connections, with the real archive. */

const folder = temporaryFolder();
let site: ListingSite;
let tools: Awaited<ReturnType<typeof openWorkerTools>>;

const urls = (count: number, text = '') =>
  `<urlset>${Array.from({ length: count }, (_, i) => `<url><loc>/p/${i}${text}</loc></url>`).join('')}</urlset>`;

beforeAll(async () => {
  tools = await openWorkerTools({ name: 'test', blobs: folder.path, sync: false });
  site = await startListingSite({
    '/urls.txt': { body: [0, 1, 2].map((n) => `{origin}/p/${n}\n`).join(''), type: 'text/plain' },
    '/plain.xml': { body: urls(3) },
    '/coded.xml.gz': { body: gzipSync(gzipSync(urls(3))), headers: { 'content-encoding': 'gzip' } },
    '/no-type.gz': { body: gzipSync(urls(3)), type: 'text/plain' },
    '/large.xml': { body: `${urls(3)}<!--${' '.repeat(20 * 1024 * 1024)}-->` },
    '/too-large.xml': { body: `${urls(3)}<!--${' '.repeat(LIMITS.sitemapBytesMax)}-->` },
    '/million.xml': {
      body: gzipSync(
        `<urlset>${Array.from({ length: 1_000_000 }, (_, i) => `<url><loc>/${i}</loc></url>`).join('')}</urlset>`,
        { level: 1 },
      ),
    },
    '/bomb.xml.gz': { body: gzipSync(Buffer.alloc(LIMITS.sitemapBytesMax)) },
    '/dtd.xml': { body: `<!DOCTYPE urlset [<!ENTITY a "b">]>${urls(3)}` },
    '/html': { body: '<!doctype html><h1>Not found</h1>', type: 'text/html' },
    '/robots.txt': { status: 404, body: 'Sitemap: /wrong.xml', type: 'text/plain' },
    '/missing.xml': { status: 404 },
    '/long.xml': { body: urls(2 * LINKS_PER_REPORT + 1) },
    '/bad.xml': {
      body: '<urlset><url><loc>/ok</loc></url><url></url><url><loc>ftp://x/</loc></url><url><loc>/b</loc></url></urlset>',
    },
    '/feed': {
      body: `<?xml version="1.0"?><!-- x --><rss><channel>${[0, 1, 2].map((n) => `<item><link>/p/${n}</link></item>`).join('')}</channel></rss>`,
    },
    '/prose.txt': { body: 'https://a.example/ is a page.\nThis is none.', type: 'text/plain' },
    '/data.xml': { body: '<data><url><loc>/p/0</loc></url></data>' },
    '/cut.xml': { body: urls(3).slice(0, -20) },
  });
});

afterAll(async () => {
  await site.close();
  await tools.close();
  folder.remove();
});

let lastBatch = 0;

async function fetchSitemap(
  path: string,
  job: object = {},
  onPart?: (report: Report) => void,
  given: Partial<BatchTask> = {},
): Promise<Outcome> {
  const spec = specOf({ allowPrivate: true, politeness: { rate: 'max', robots: false }, ...job });
  const id = ++lastBatch;
  const url = site.origin + path;
  const now = tools.clock.now();
  const task: BatchTask = {
    id: 1,
    url,
    permit: 0,
    depth: 0,
    route: SITEMAP_ROUTE,
    attempt: 1,
    hops: 0,
    meta: sitemapMeta({ within: 'site', route: null, priority: 0 }),
    lastVisit: null,
    ...given,
  };
  const batch: Batch = {
    version: WIRE_VERSION,
    id,
    job: { id, name: 'test', specHash: String(id), spec, bundle: null, epoch: '1' },
    needs: 'http',
    budgetMs: 60_000,
    permits: [{ host: new URL(url).host, startAt: now, endAt: now + 10_000, gapMs: 0, parallel: 1 }],
    robots: [],
    tasks: [task],
    archiveKey: `archive/${id}`,
    packKey: `media/${id}`,
  };
  const { outcomes } = await processBatch(batch, tools, onPart ? { onPart } : {});
  expect(outcomes).toHaveLength(1);
  return outcomes[0]!;
}

const pathsOf = (outcome: Outcome) =>
  outcome.kind === 'fetched' ? outcome.links.map(({ url }) => new URL(url).pathname) : outcome;

describe('a worker takes the links of', () => {
  test.each(['/plain.xml', '/coded.xml.gz', '/no-type.gz', '/large.xml'])('%s', async (path) => {
    const outcome = await fetchSitemap(path);
    expect(pathsOf(outcome)).toEqual(['/p/0', '/p/1', '/p/2']);
    expect(outcome).toMatchObject({ page: { httpStatus: 200, archive: { length: expect.any(Number) } } });
  });

  test.each(['/plain.xml', '/coded.xml.gz', '/no-type.gz', '/feed', '/urls.txt'])(
    '%s, when it was given like a page, and says so',
    async (path) => {
      const outcome = await fetchSitemap(path, {}, undefined, { route: null, meta: null });
      expect(pathsOf(outcome)).toEqual(['/p/0', '/p/1', '/p/2']);
      expect(outcome).toMatchObject({ note: 'read as a list of 3 URLs' });
    },
  );

  test.each(['/html', '/prose.txt', '/data.xml'])('nothing of %s, given like a page', async (path) => {
    const outcome = await fetchSitemap(path, {}, undefined, { route: null, meta: null });
    expect(pathsOf(outcome)).toEqual([]);
    expect(outcome).not.toHaveProperty('note');
  });

  test.each([false, true])('a list, where a route takes fields of pages (required: %s)', async (required) => {
    const routes = [{ name: 'page', select: { title: { css: 'h1', required } } }];
    const given = { route: null, meta: null };
    const outcome = await fetchSitemap('/plain.xml', { routes }, undefined, given);
    expect(pathsOf(outcome)).toEqual(['/p/0', '/p/1', '/p/2']);
    expect(outcome).toMatchObject({ note: 'read as a list of 3 URLs', records: [] });
  });

  test('no list that a link led to', async () => {
    const given = { route: null, meta: null, depth: 1 };
    expect(pathsOf(await fetchSitemap('/plain.xml', {}, undefined, given))).toEqual([]);
  });

  test('a sitemap that breaks off, and notes it', async () => {
    const outcome = await fetchSitemap('/cut.xml');
    expect(pathsOf(outcome)).toEqual(['/p/0', '/p/1']);
    expect(outcome).toMatchObject({ note: 'it is cut off after entry 2' });
  });

  test('entries that are of no use are counted, with their places', async () => {
    const outcome = await fetchSitemap('/bad.xml');
    expect(pathsOf(outcome)).toEqual(['/ok', '/b']);
    expect(outcome).toMatchObject({
      note: 'unusable URLs: 2',
      rejected: {
        count: 2,
        first: [
          { place: 'entry 2', reason: 'no URL' },
          { place: 'entry 3', reason: 'not an http(s) URL: "ftp://x/"' },
        ],
      },
    });
    expect(await fetchSitemap('/cut.xml')).toMatchObject({
      rejected: { count: 1, first: [{ place: 'entry 3', reason: 'it is cut off after entry 2' }] },
    });
  });

  test('a long list in parts of bounded size, and says what became of it in the last', async () => {
    const parts: Report[] = [];
    const outcome = await fetchSitemap('/long.xml', {}, (part) => parts.push(part));
    expect(parts.map(({ part, final, outcomes }) => [part, final, outcomes.length])).toEqual([
      [0, false, 0],
      [1, false, 0],
    ]);
    const ahead = parts.flatMap(({ found }) => found!);
    expect(ahead.map(({ taskId, links }) => [taskId, links.length])).toEqual(
      Array(2).fill([1, LINKS_PER_REPORT]),
    );
    expect(pathsOf(outcome)).toEqual([`/p/${2 * LINKS_PER_REPORT}`]);
    const all = [
      ...ahead.flatMap(({ links }) => links),
      ...(outcome.kind === 'fetched' ? outcome.links : []),
    ];
    expect(new Set(all.map(({ url }) => url)).size).toBe(2 * LINKS_PER_REPORT + 1);
    // Without anyone who takes parts, all of it comes at the end.
    expect(pathsOf(await fetchSitemap('/long.xml'))).toHaveLength(2 * LINKS_PER_REPORT + 1);
  });

  test('a million URLs up to the limit', async () => {
    const outcome = await fetchSitemap('/million.xml');
    expect(outcome).toMatchObject({ note: `only the first ${SITEMAP_URLS_MAX} URLs were read` });
    expect(pathsOf(outcome)).toHaveLength(SITEMAP_URLS_MAX);
  });

  test('a sitemap larger than pages of the job may be', async () => {
    expect(pathsOf(await fetchSitemap('/plain.xml', { limits: { bodyBytes: 10 } }))).toHaveLength(3);
  });

  test('a site without robots.txt: the usual place', async () => {
    const outcome = await fetchSitemap('/robots.txt');
    expect(pathsOf(outcome)).toEqual(['/sitemap.xml']);
    expect(outcome).toMatchObject({ kind: 'fetched', page: { httpStatus: 404 } });
  });
});

describe('a worker fails', () => {
  test.each([
    ['/bomb.xml.gz', 'parse-error', 'it decompresses to more than'],
    ['/dtd.xml', 'parse-error', 'it has a document type declaration'],
    ['/html', 'parse-error', 'it is an HTML page'],
    ['/too-large.xml', 'too-large', 'over the size limit'],
    ['/missing.xml', 'not-found', 'status 404'],
  ])('%s', async (path, code, detail) => {
    const outcome = await fetchSitemap(path);
    expect(outcome).toMatchObject({ kind: 'failed', code, detail: expect.stringContaining(detail) });
    // What could not be understood is kept, to be looked at.
    if (code === 'parse-error')
      expect(outcome).toMatchObject({ page: { archive: { offset: expect.any(Number) } } });
  });
});
