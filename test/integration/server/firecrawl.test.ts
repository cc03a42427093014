import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { Firecrawl, SdkError } from '@mendable/firecrawl-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { patternOfRegex } from '../../../src/server/api/firecrawl/crawl-job.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { type FileServer, startFileServer } from '../../support/servers/file-server.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

/** Firecrawl's own client, with nothing changed but the address and the key. */

let site: LinkedSite;
let server: ApiServer;
let client: Firecrawl;
let sitemaps: FileServer;

beforeAll(async () => {
  sitemaps = await startFileServer();
  const robots = `User-agent: *\nDisallow: /page/9.html\nSitemap: ${sitemaps.url('pages.xml')}\n`;
  [site, server] = await Promise.all([startLinkedSite({ pages: 10, robots }), openApiServer()]);
  const entries = [5, 6].map((index) => `<url><loc>${page(index)}</loc></url>`).join('');
  sitemaps.files.set('pages.xml', Buffer.from(`<?xml version="1.0"?><urlset>${entries}</urlset>`));
  client = await newClient('moved');
});

async function newClient(name: string, limits: Record<string, number> = {}): Promise<Firecrawl> {
  const made = await fetch(`${server.url}/api/v1/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': server.token },
    body: JSON.stringify({ name, scope: 'write', limits }),
  });
  const { key } = (await made.json()) as { key: string };
  return new Firecrawl({ apiUrl: server.url, apiKey: key });
}

afterAll(async () => {
  await server.close();
  await site.close();
  await sitemaps.close();
});

const page = (index: number) => site.url.replace(/\/$/, '') + pathOf(index);

describe('scrape', () => {
  test('has the formats that were asked for, and metadata', async () => {
    const formats = ['markdown', 'html', 'rawHtml', 'links', 'images'] as const;
    const document = await client.scrape(page(1), { formats: [...formats], onlyMainContent: false });
    expect(document.markdown).toContain('Page number 1');
    expect(document.rawHtml).toBe(site.bodyOf(1));
    expect(document.html).toBe(site.bodyOf(1));
    expect(document.links).toContain(page(3));
    expect(document.images).toEqual([]);
    expect(document.metadata).toMatchObject({ title: 'Page 1', sourceURL: page(1), statusCode: 200 });
  });

  test('has Markdown alone by default', async () => {
    const document = await client.scrape(page(2));
    expect(Object.keys(document).sort()).toEqual(['markdown', 'metadata']);
  });

  test('a page that fails is an error with its code', async () => {
    const failed = client.scrape(`${page(0)}missing`);
    await expect(failed).rejects.toMatchObject({ code: 'not-found' });
  });

  test('what has no meaning here is refused, with what there is', async () => {
    const refused = client.scrape(page(1), { formats: ['summary'] });
    await expect(refused).rejects.toThrow(SdkError);
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'bad-option' });
    await expect(refused).rejects.toThrow('there is no summary here, but markdown');
    await expect(client.scrape(page(1), { mobile: true })).rejects.toThrow('mobile');
  });

  test('needs the key', async () => {
    const stranger = new Firecrawl({ apiUrl: server.url, apiKey: 'fc-wrong' });
    await expect(stranger.scrape(page(1))).rejects.toMatchObject({ status: 401, code: 'unauthorized' });
  });
});

test('a page that takes too long goes on, and the client is told to ask again', async () => {
  sitemaps.intercept = ({ url }) => url === '/slow';
  const late = client.scrape(sitemaps.url('slow'), { timeout: 1_000, autoResume: false });
  const details = { state: 'processing_continues' };
  await expect(late).rejects.toMatchObject({ status: 408, code: 'SCRAPE_TIMEOUT', details });
});

describe('batch', () => {
  test('calls back when it is finished', async () => {
    const received = Promise.withResolvers<Record<string, unknown>>();
    const receiver = createServer(async (request, response) => {
      received.resolve((await readJson(request)) as Record<string, unknown>);
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      const webhook = { url, events: ['completed' as const], metadata: { mine: 'yes' } };
      const { id } = await client.startBatchScrape([page(1)], { webhook });
      const { type, data } = await received.promise;
      expect(type).toBe('job.completed');
      expect(data).toMatchObject({ metadata: { mine: 'yes' } });
      // Its id leads to the same batch.
      const { job_id: jobId } = data as { job_id: string };
      expect(id.startsWith(jobId.replace('job_', 'batch_'))).toBe(true);
      expect((await client.getBatchScrapeStatus(jobId)).data).toHaveLength(1);
    } finally {
      receiver.closeAllConnections();
      receiver.close();
    }
  });

  test('keeps to the limits of its key, and is seen by no other', async () => {
    const other = await newClient('other', { pages_per_day: 2 });
    const tooMany = other.startBatchScrape([page(1), page(2), page(3)]);
    await expect(tooMany).rejects.toMatchObject({ status: 429, code: 'rate-limited' });
    const { id } = await client.startBatchScrape([page(1)]);
    await expect(other.getBatchScrapeStatus(id)).rejects.toMatchObject({ status: 404 });
    await expect(other.cancelBatchScrape(id)).rejects.toMatchObject({ status: 404 });
  });

  test('waits for all pages, and names what failed', async () => {
    const urls = [page(1), page(2), page(9), `${page(0)}missing`, 'nonsense'];
    const started = await client.startBatchScrape(urls, { options: { formats: ['rawHtml'] } });
    expect(started.invalidURLs).toEqual(['nonsense']);
    const job = await ended(() => client.getBatchScrapeStatus(started.id));
    expect(job).toMatchObject({ status: 'completed', total: 4, completed: 2 });
    expect(job.data.map(({ rawHtml }) => rawHtml)).toEqual([site.bodyOf(1), site.bodyOf(2)]);
    const { errors, robotsBlocked } = await client.getBatchScrapeErrors(started.id);
    expect(errors).toMatchObject([{ url: `${page(0)}missing`, code: 'not-found' }]);
    expect(robotsBlocked).toEqual([page(9)]);
  });

  test('has more pages than one answer holds', async () => {
    const hosts = [1, 2, 3, 4, 5, 6].map((last) => page(1).replace('127.0.0.1', `127.0.0.${last}`));
    const urls = hosts.flatMap((url) =>
      [1, 2, 3, 4].map((n) => `${url.slice(0, -'1.html'.length)}${n}.html`),
    );
    const { id } = await client.startBatchScrape(urls);
    const job = await ended(() => client.getBatchScrapeStatus(id));
    expect(new Set(job.data.map(({ metadata }) => metadata?.sourceURL))).toEqual(new Set(urls));
    const first = await client.getBatchScrapeStatus(id, { autoPaginate: false });
    expect(first.data).toHaveLength(20);
  });

  test('the same key twice is the same batch', async () => {
    const start = () => client.startBatchScrape([page(3)], { idempotencyKey: 'once' });
    expect((await start()).id).toBe((await start()).id);
  });

  test('is cancelled', async () => {
    // At four a second, it cannot be finished before.
    const urls = Array.from({ length: 400 }, (_, index) => `${page(4)}?${index}`);
    const { id } = await client.startBatchScrape(urls);
    expect(await client.cancelBatchScrape(id)).toBe(true);
    const job = await ended(() => client.getBatchScrapeStatus(id));
    expect(job.status).toBe('cancelled');
  });
});

describe('crawl', () => {
  test('follows links', async () => {
    const { id } = await client.startCrawl(page(0), { scrapeOptions: { formats: ['links'] } });
    const job = await ended(() => client.getCrawlStatus(id));
    expect(job.status).toBe('completed');
    const found = job.data.map(({ metadata }) => metadata?.sourceURL).sort();
    expect(found).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8].map(page).sort());
    expect((await client.getCrawlErrors(id)).robotsBlocked).toEqual([page(9)]);
    await expect(client.getBatchScrapeStatus(id)).rejects.toMatchObject({ status: 404 });
  });

  test('stops at its limit and keeps to its paths', async () => {
    const { id } = await client.startCrawl(page(0), { limit: 2, includePaths: ['page/[^/]+\\.html$'] });
    const job = await ended(() => client.getCrawlStatus(id));
    expect(job).toMatchObject({ status: 'completed', total: 2 });
    expect(job.data).toHaveLength(2);
    const wrong = client.startCrawl(page(0), { includePaths: ['(a|b)'] });
    await expect(wrong).rejects.toThrow('the path (a|b) has more than text');
  });

  test('of a sitemap alone', async () => {
    const { id } = await client.startCrawl(page(0), { sitemap: 'only', excludePaths: ['/6'] });
    const job = await ended(() => client.getCrawlStatus(id));
    expect(job.data.map(({ metadata }) => metadata?.sourceURL)).toEqual([page(5)]);
    const none = client.startCrawl(page(0), { sitemap: 'only', includePaths: ['^/blog/'] });
    await expect(none).rejects.toThrow('the site has none');
  });

  test('is cancelled', async () => {
    // At a host of its own: the next request there, of any job, waits for as long as the crawl wants to wait.
    const { id } = await client.startCrawl(page(0).replace('127.0.0.1', '127.0.0.7'), { delay: 60 });
    expect(await client.cancelCrawl(id)).toBe(true);
    expect((await ended(() => client.getCrawlStatus(id))).status).toBe('cancelled');
  });
});

test('map lists the links of a site', async () => {
  const { links } = await client.map(page(0), { limit: 3 });
  expect(links[0]).toMatchObject({ url: page(0), title: 'Page 0' });
  expect(links).toHaveLength(3);
  const found = await client.map(page(0), { search: 'PAGE/2' });
  expect(found.links.map(({ url }) => url)).toEqual([page(2)]);
  const listed = await client.map(page(0), { sitemap: 'only' });
  expect(listed.links.map(({ url }) => url)).toEqual([page(5), page(6)]);
});

test.each([
  ['blog/.*', '/**blog/**'],
  ['^/blog/.*$', '/blog/**'],
  ['^/blog/[^/]+$', '/blog/*'],
  ['\\.pdf$', '/**.pdf'],
  ['/a', '/**/a**'],
  ['^blog', null],
  ['(a|b)', null],
  ['a{2}', null],
  ['\\d+', null],
])('the path %s is the pattern %s', (regex, pattern) => {
  expect(patternOfRegex(regex)).toBe(pattern);
});

/** Its own waiting looks once in two seconds. */
async function ended<T extends { status: string }>(look: () => Promise<T>): Promise<T> {
  for (;;) {
    const job = await look();
    if (job.status !== 'scraping') return job;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
