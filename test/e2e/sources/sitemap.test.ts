import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { type ListingSite, startListingSite } from '../../support/sites/listing-site.ts';

const folder = temporaryFolder();
let site: ListingSite;
let hostile: ListingSite;

const paths = (from: number) => Array.from({ length: 100 }, (_, i) => `/page/${from + i}`);
const gzipped = (origin: string, from: number) =>
  gzipSync(
    `<urlset>${paths(from)
      .map((path) => `<url><loc>${origin}${path}</loc><lastmod>2024-05-01</lastmod></url>`)
      .join('')}</urlset>`,
  );
const index = (...names: string[]) =>
  `<sitemapindex>${names.map((name) => `<sitemap><loc>{origin}${name}</loc></sitemap>`).join('')}</sitemapindex>`;

beforeAll(async () => {
  const lists: Parameters<typeof startListingSite>[0] = {
    '/robots.txt': {
      type: 'text/plain',
      body: 'User-agent: *\nDisallow: /private\nSitemap: {origin}/index.xml\n',
    },
    '/index.xml': { body: index('/one.xml.gz', '/two', '/three.txt', '/index.xml') },
    '/three.txt': {
      type: 'text/plain',
      body: ['{origin}/page/0', '{origin}/private', ...paths(200).map((path) => `{origin}${path}`)].join(
        '\n',
      ),
    },
  };
  site = await startListingSite(lists);
  lists['/one.xml.gz'] = { body: gzipped(site.origin, 0) };
  lists['/two'] = { type: 'text/plain', body: gzipped(site.origin, 100) };

  hostile = await startListingSite({
    '/robots.txt': { status: 404 },
    '/sitemap.xml': {
      body: `<sitemapindex>${['/sitemap.xml', '/a/1', '/bomb', '/dtd.xml', '/million.xml', '/away.xml']
        .map((path) => `<sitemap><loc>{origin}${path}</loc></sitemap>`)
        .join('')}</sitemapindex>`,
    },
    ...Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`/a/${i}`, { body: index(`/a/${i + 1}`, '/sitemap.xml') }]),
    ),
    '/bomb': { body: gzipSync(Buffer.alloc(50_000_000)) },
    '/dtd.xml': {
      body: '<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>{origin}/&x;</loc></url></urlset>',
    },
    '/million.xml': { body: `<urlset>${'<url><loc>/same</loc></url>'.repeat(1_000_000)}</urlset>` },
    '/away.xml': {
      body: '<urlset><url><loc>http://elsewhere.example/</loc></url><url><loc>file:///etc/passwd</loc></url></urlset>',
    },
  });
});

afterAll(async () => {
  await site.close();
  await hostile.close();
  folder.remove();
});

const run = (source: string, name: string) =>
  seine([
    ...['run', source, '--allow-private', '--rate', 'max'],
    ...['--dir', folder.path, '--name', name, '--json'],
  ]);

const tasksOf = async (name: string) => {
  const { stdout } = await seine(['export', name, '--what', 'tasks', '--dir', folder.path]);
  return jsonLines<{ url: string; state: string; failureCode: string; failureDetail: string; meta: object }>(
    stdout,
  );
};

function countOf(log: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const path of log) counts.set(path, (counts.get(path) ?? 0) + 1);
  return counts;
}

test('a site is fetched from its robots.txt through an index and three sitemaps, each page once', async () => {
  const result = await run(`sitemap:${site.origin}`, 'listed');
  expect(result.stderr).toBe('');
  expect(result.code).toBe(0);
  // robots.txt, the index, three sitemaps and a page that robots.txt forbids.
  expect(lastJson(result)).toMatchObject({ state: 'done', accepted: 306, done: 305, skipped: 1, dead: 0 });
  const counts = countOf(site.log);
  for (const path of [...paths(0), ...paths(100), ...paths(200)])
    expect([path, counts.get(path)]).toEqual([path, 1]);
  expect(counts.get('/private')).toBeUndefined();
  // Once for its rules, and once for its sitemaps.
  expect(counts.get('/robots.txt')).toBe(2);
  for (const path of ['/index.xml', '/one.xml.gz', '/two', '/three.txt']) expect(counts.get(path)).toBe(1);
  expect(counts.size).toBe(305);

  const tasks = await tasksOf('listed');
  const page = tasks.find(({ url }) => url === `${site.origin}/page/7`);
  expect(page).toMatchObject({ state: 'done', depth: 0, route: null, meta: { lastmod: '2024-05-01' } });
});

test('a sitemap on disk is a list like any other, and its sitemaps are fetched', async () => {
  const file = join(folder.path, 'sitemap.xml.gz');
  writeFileSync(file, gzipSync(index('/two').replaceAll('{origin}', site.origin)));
  const result = await run(file, 'local');
  expect(result.stderr).toBe('');
  expect(lastJson(result)).toMatchObject({ state: 'done', accepted: 101, done: 101 });
});

test('lists that mean harm end, and take nothing else with them', async () => {
  const result = await run(`sitemap:${hostile.origin}`, 'hostile');
  expect(result.code).toBe(3);
  const tasks = await tasksOf('hostile');
  const stateOf = (path: string) => {
    const task = tasks.find(({ url }) => url === hostile.origin + path);
    return [task?.state, task?.failureCode, task?.failureDetail];
  };
  expect(stateOf('/robots.txt')).toEqual(['done', null, null]);
  expect(stateOf('/sitemap.xml')).toEqual(['done', null, null]);
  expect(stateOf('/a/2')).toEqual(['done', null, 'sitemaps nested deeper than 3: 2']);
  expect(stateOf('/a/3')).toEqual([undefined, undefined, undefined]);
  expect(stateOf('/bomb')).toEqual([
    'dead',
    'parse-error',
    expect.stringContaining('it decompresses to more than'),
  ]);
  expect(stateOf('/dtd.xml')).toEqual(['dead', 'parse-error', expect.stringContaining('document type')]);
  expect(stateOf('/million.xml')).toEqual(['done', null, 'only the first 50000 URLs were read']);
  expect(stateOf('/same')).toEqual(['done', null, null]);
  expect(stateOf('/away.xml')).toEqual([
    'done',
    null,
    expect.stringMatching(/out of scope.*: 1; unusable URLs: 1/),
  ]);
  expect(tasks).toHaveLength(9);
  expect(Math.max(...countOf(hostile.log).values())).toBe(2);
});
