import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { type FileServer, startFileServer } from '../../support/servers/file-server.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';
import { parquetOf, textColumn } from '../../support/sources/parquet-files.ts';

/** Sources through the whole command: from a name on the command line to meta in the export. */

const PAGES = 1_300;
const folder = temporaryFolder();
let site: LinkedSite;
let files: FileServer;
beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES });
  files = await startFileServer();
});
afterAll(async () => {
  await Promise.all([site.close(), files.close()]);
  folder.remove();
});

const at = (name: string) => join(folder.path, name);
const page = (n: number) => `${site.url}page/${n}.html`;
const pages = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => page(from + n));
const FLAGS = ['--allow-private', '--rate', 'max', '--no-robots', '--json'];

async function run(dir: string, args: string[], input?: string | Buffer) {
  const env = { SEINE_DIR: at(dir), SEINE_WORKERS: '1' };
  const finished = await seine(['run', ...args, ...FLAGS], { env, cwd: folder.path, input: input as string });
  return { ...finished, env };
}

async function tasksOf(env: Record<string, string>) {
  const { stdout } = await seine(['export', '--what', 'tasks'], { env });
  const tasks = jsonLines<{ url: string; state: string; route: string | null; meta: unknown }>(stdout);
  return tasks.map(({ url, state, route, meta }) => ({ url, state, route, meta }));
}

const tableOf = (from: number, to: number) =>
  parquetOf({
    page_url: textColumn(pages(from, to)),
    title: textColumn(pages(from, to).map((_, n) => `t${from + n}`)),
    note: textColumn(pages(from, to).map(() => 'x')),
  });

describe('seine run', () => {
  test('a folder of Parquet files with a column that travels along', async () => {
    writeFileSync(at('1.parquet'), tableOf(1, 4));
    writeFileSync(at('2.parquet'), 'broken');
    writeFileSync(at('3.parquet'), tableOf(4, 6));
    const finished = await run('glob', ['*.parquet', '--meta', 'title', '--name', 'tables']);
    expect(finished.code, finished.stderr).toBe(0);
    expect(lastJson(finished)).toMatchObject({ job: 'tables', done: 5, rejected: 1 });
    expect(lastJson(finished).rejects).toMatchObject([{ place: '2.parquet' }]);
    const tasks = await tasksOf(finished.env);
    expect(tasks.map(({ meta }) => meta)).toEqual([1, 2, 3, 4, 5].map((n) => ({ title: `t${n}` })));
    expect(tasks.map(({ url }) => url)).toEqual(pages(1, 6));
  });

  test('Parquet over http, and a list over http when a format is given', async () => {
    files.files.set('pages.parquet', tableOf(6, 8));
    files.files.set('pages.csv', Buffer.from(`link\n${page(8)}\n`));
    const table = await run('web-table', [files.url('pages.parquet')]);
    expect(table.code, table.stderr).toBe(0);
    expect((await tasksOf(table.env)).map(({ url }) => url)).toEqual(pages(6, 8));
    const list = await run('web-list', [files.url('pages.csv'), '--format', 'csv']);
    expect((await tasksOf(list.env)).map(({ url }) => url)).toEqual([page(8)]);
    const asPage = await run('web-page', [files.url('pages.csv')]);
    expect((await tasksOf(asPage.env)).map(({ url }) => url)).toEqual([files.url('pages.csv')]);
  });

  test.each([
    ['csv', (n: number) => `n,url\n1,${page(n)}\n`, { n: '1' }],
    ['jsonl', (n: number) => `{"url":"${page(n)}","n":1}\n`, { n: 1 }],
    ['txt', (n: number) => `${page(n)}\n`, null],
  ])('standard input as %s, compressed or not', async (format, content, meta) => {
    const args = ['-', ...(format === 'txt' ? [] : ['--format', format])];
    for (const [index, input] of [content(9), gzipSync(content(9))].entries()) {
      const { code, stderr, env } = await run(`stdin-${format}-${index}`, args, input);
      expect(code, stderr).toBe(0);
      expect(await tasksOf(env)).toMatchObject([{ url: page(9), state: 'done', meta }]);
    }
  });

  test('a job file with several URL columns, a query over what is known, and a route for each', async () => {
    const rows = [10, 11].map((n) => JSON.stringify({ page_url: page(n), image_url: page(n + 10), n }));
    writeFileSync(at('rows.jsonl'), rows.join('\n'));
    const job = {
      sources: [{ file: 'rows.jsonl', columns: { page_url: 'page', image_url: 'image' }, meta: ['n'] }],
      routes: [{ name: 'page' }, { name: 'image' }],
    };
    writeFileSync(at('columns.json'), JSON.stringify(job));
    const dir = `columns-${performance.now()}`;
    const { code, stderr, env } = await run(dir, ['columns.json']);
    expect(code, stderr).toBe(0);
    expect(await tasksOf(env)).toEqual([
      { url: page(10), state: 'done', route: 'page', meta: { n: 10 } },
      { url: page(20), state: 'done', route: 'image', meta: { n: 10 } },
      { url: page(11), state: 'done', route: 'page', meta: { n: 11 } },
      { url: page(21), state: 'done', route: 'image', meta: { n: 11 } },
    ]);

    const query =
      "SELECT url, route AS was FROM seine_tasks WHERE job = 'columns' AND route = 'image' ORDER BY url";
    writeFileSync(
      at('again.json'),
      JSON.stringify({ sources: [{ query, route: 'again' }], routes: [{ name: 'again' }] }),
    );
    const again = await run(dir, ['again.json']);
    expect(again.code, again.stderr).toBe(0);
    expect(await tasksOf(env)).toEqual([
      { url: page(20), state: 'done', route: 'again', meta: { was: 'image' } },
      { url: page(21), state: 'done', route: 'again', meta: { was: 'image' } },
    ]);
  });

  test.each([
    ['a missing file', ['absent.parquet'], /no such file: .*absent\.parquet/],
    ['no file that fits', ['none/*.csv'], /no file matches/],
    ['something that is not Parquet', ['wrong.parquet'], /wrong\.parquet: cannot read it as Parquet/],
    ['an unknown column', ['list.csv', '--url-column', 'adress'], /no column 'adress' among: address, n/],
    [
      'an unknown column to travel along',
      ['list.csv', '--url-column', 'address', '--meta', 'm'],
      /no column 'm'/,
    ],
    ['an unknown format', ['list.csv', '--format', 'xls'], /--format must be one of/],
    ['Parquet on standard input', ['-', '--format', 'parquet'], /cannot be read from standard input/],
    ['an unknown route', ['list.csv', '--url-column', 'address', '--route', 'x'], /unknown route 'x'/],
    ['a route for a URL', ['https://a.example/', '--route', '@media'], /--route applies only to/],
  ])('%s stops it before a job is made', async (_, args, message) => {
    writeFileSync(at('list.csv'), `address,n\n${page(1)},1\n`);
    writeFileSync(at('wrong.parquet'), 'wrong '.repeat(20));
    const { code, stderr, env } = await run('refused', args);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
    expect(existsSync(join(env.SEINE_DIR, 'seine.db'))).toBe(false);
  });

  test('a query with a mistake leaves no job behind', async () => {
    writeFileSync(
      at('mistake.json'),
      JSON.stringify({ sources: [{ query: 'SELECT key FROM seine_nothing' }] }),
    );
    const { code, stderr, env } = await run('mistake', ['mistake.json']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/query/);
    expect((await seine(['jobs', '--json'], { env })).stdout.trim()).toBe('[]');
  });

  test('names: from the site, the file, or the folder of a star', async () => {
    const nameOf = async (arg: string) => {
      const { stdout, stderr } = await run('names', [arg, '--dry-run', '--json']);
      expect(stderr).toBe('');
      return (JSON.parse(stdout) as { spec: { name: string } }).spec.name;
    };
    expect(await nameOf('https://shop.example/x.js')).toBe('shop.example');
    expect(await nameOf('sitemap:https://shop.example/map.xml')).toBe('shop.example');
    expect(await nameOf('sitemap:shop.example')).toBe('shop.example');
    expect(await nameOf('3.parquet')).toBe('3');
    const { stdout } = await run('names', [
      'sitemap:shop.example',
      '--route',
      '@media',
      '--dry-run',
      '--json',
    ]);
    expect((JSON.parse(stdout) as { spec: { sources: unknown } }).spec.sources).toEqual([
      { sitemap: 'shop.example', within: 'site', priority: 0, route: '@media' },
    ]);
  });
});

describe('examples', () => {
  let shop: ShopSite;
  beforeAll(async () => {
    shop = await startShopSite({ products: 24, delayScale: 0 });
  });
  afterAll(() => shop.close());

  /** The example with the address of this shop instead of the one written inside. */
  function copyExample(name: string): void {
    const text = readFileSync(new URL(`../../../examples/${name}`, import.meta.url), 'utf8');
    writeFileSync(at(name), text.replaceAll('http://127.0.0.1:8080/', shop.url));
  }

  test('table.yaml reads the pages and stores the pictures of a table', async () => {
    for (const name of ['table.csv', 'table.yaml']) copyExample(name);
    const env = { SEINE_DIR: at('example-table'), SEINE_WORKERS: '1' };
    const { code, stderr } = await seine(['run', 'table.yaml', '--json'], { env, cwd: folder.path });
    expect(code, stderr).toBe(0);
    const tasks = (await tasksOf(env)).map(({ url, ...rest }) => ({ path: new URL(url).pathname, ...rest }));
    expect(tasks).toEqual([
      { path: '/about', state: 'done', route: 'page', meta: { shelf: 'top' } },
      { path: '/images/logo.png', state: 'done', route: '@media', meta: { shelf: 'top' } },
      { path: '/help/shipping', state: 'done', route: 'page', meta: { shelf: 'bottom' } },
    ]);
    const media = jsonLines<{ contentType: string }>(
      (await seine(['export', '--what', 'media'], { env })).stdout,
    );
    expect(media.map(({ contentType }) => contentType)).toEqual(['image/png']);
  });

  test('stale.yaml fetches ten products of shop.yaml again, and knows their former price', async () => {
    for (const name of ['shop.yaml', 'stale.yaml']) copyExample(name);
    const env = { SEINE_DIR: at('example-stale'), SEINE_WORKERS: '1' };
    await seine(['run', 'shop.yaml', '--json'], { env, cwd: folder.path });
    const { code, stderr } = await seine(['run', 'stale.yaml', '--json'], { env, cwd: folder.path });
    expect(code, stderr).toBe(0);
    const { stdout } = await seine(['export', 'stale'], { env });
    const prices = new Map(
      jsonLines<{ url: string; data: { price: string } }>(stdout).map(({ url, data }) => [url, data.price]),
    );
    const tasks = await tasksOf(env);
    expect(tasks).toHaveLength(10);
    for (const { url, meta } of tasks) expect(meta).toEqual({ price_before: prices.get(url) });
  });
});

test('a run that is killed while it reads a table goes on where it was, with every row once', async () => {
  const urls = pages(50, PAGES);
  writeFileSync(at('many.parquet'), parquetOf({ url: textColumn(urls) }, { rowGroupSize: 500 }));
  const politeness = { rate: 'max', robots: false };
  const job = { sources: ['many.parquet'], limits: { window: 200 }, allowPrivate: true, politeness };
  writeFileSync(at('many.json'), JSON.stringify(job));
  const env = { SEINE_DIR: at('killed'), SEINE_WORKERS: '1' };
  const before = site.log.length;
  const first = startSeine(['run', 'many.json', '--json'], { env, cwd: folder.path });
  await site.requests(before + 500);
  await first.killTree();
  const last = await seine(['resume', '--json'], { env, cwd: folder.path });
  expect(last.code, last.stderr).toBe(0);
  expect(lastJson(last)).toMatchObject({ state: 'done', accepted: urls.length, done: urls.length });
  expect((await tasksOf(env)).map(({ url }) => url)).toEqual(urls);
});
