import { readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Folder, openFolder } from '../../../src/app/folder.ts';
import { defineJob, type JobDefinition, openSeine } from '../../../src/index.ts';
import { parseJob } from '../../../src/job-file/parse-job.ts';
import { type ReparseInput, type ReparseResult, reparse } from '../../../src/reparse/reparse.ts';
import { compileJob } from '../../../src/worker/compile-job.ts';
import type { Page } from '../../../src/worker/page/page.ts';
import { collect, temporaryFolder } from '../../support/fixtures.ts';

/** Pages are fetched by a real run; then the site is not asked any more. */

let server: Server;
let origin: string;
let requests = 0;
let version = 1;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let opened: Folder | null = null;

beforeAll(async () => {
  server = createServer((request, response) => {
    requests++;
    const [, side, n] = /^\/(left|right)\/(\d+)$/.exec(request.url ?? '') ?? [];
    if (request.url?.startsWith('/picture/'))
      return void response.writeHead(200, { 'content-type': 'image/gif' }).end(`GIF89a${request.url}`);
    if (n === undefined) return void response.writeHead(404).end();
    const pictures = `<img class=small src=/picture/0 alt="All"><img src=/picture/${n}>`;
    const own = side === 'left' ? `<b>${n}.50</b>` : `<em>Brand ${n}</em><a href=/more/${n}>more</a>`;
    const tags = side === 'right' && n === '1' ? { 'x-robots-tag': 'nofollow' } : {};
    response
      .writeHead(200, { 'content-type': 'text/html', ...tags })
      .end(`<!doctype html><h1>Item ${n}</h1><i>${version}</i>${own}${pictures}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

beforeEach(async () => {
  version = 1;
  folder = await temporaryFolder();
});

afterEach(async () => {
  await opened?.close();
  opened = null;
  await folder.remove();
});

function jobOf(routes: JobDefinition['routes'], sides = ['left', 'right']): JobDefinition {
  const urls = sides.flatMap((side) => [1, 2, 3].map((n) => `${origin}/${side}/${n}`));
  return defineJob({
    name: 'items',
    sources: urls,
    routes,
    allowPrivate: true,
    politeness: { rate: 'max', parallel: 1, robots: false },
  });
}

async function fetchAll(job: JobDefinition): Promise<void> {
  const seine = await openSeine({ dir: folder.dir, workers: 1 });
  await (await seine.run(job, { fresh: true })).done;
  await seine.close();
}

/** Without a single request, whatever else it does. */
async function again(
  job: JobDefinition,
  more: Partial<ReparseInput> & { run?: number } = {},
): Promise<ReparseResult> {
  opened ??= await openFolder({ dir: folder.dir, sync: 'normal' }, { create: false });
  const { store, blobs } = opened;
  const newest = (await store.jobs.find('items'))!;
  const { spec, handlers } = await parseJob(job, 'the job', 'items');
  const before = requests;
  const result = await reparse({
    store,
    blobs,
    job: more.run ? (await store.jobs.find(`items-${more.run}`))! : newest,
    isNewest: !more.run || more.run === newest.run,
    code: await compileJob(spec, handlers),
    dryRun: false,
    limit: null,
    now: Date.now(),
    ...more,
  });
  expect(requests).toBe(before);
  return result;
}

const data = async () => {
  const { store } = opened!;
  const job = (await store.jobs.find('items'))!;
  return Object.fromEntries((await collect(store.views.records(job.id))).map((row) => [row.key, row.data]));
};

test('records of two pages stay merged, and each page changes only what it says', async () => {
  const routes = (price: string): JobDefinition['routes'] => [
    { name: 'left', match: '/left/*', key: 'name', select: { name: 'h1', price } },
    { name: 'right', match: '/right/*', key: 'name', select: { name: 'h1', brand: 'em' } },
  ];
  await fetchAll(jobOf(routes('nothing')));
  const result = await again(jobOf(routes('b')));
  expect(result).toMatchObject({ pages: 6, records: { changed: 3, same: 3, new: 0, gone: 0 } });
  expect(result.fields).toMatchObject([{ field: 'price', added: 3, removed: 0, changed: 0 }]);
  expect(Object.values(await data())).toEqual(
    [1, 2, 3].map((n) =>
      expect.objectContaining({ name: `Item ${n}`, price: `${n}.50`, brand: `Brand ${n}` }),
    ),
  );
  expect(await again(jobOf(routes('b')))).toMatchObject({ records: { same: 6 }, fields: [] });
});

test('a record goes with its page, but not what other pages say of it', async () => {
  const left = { name: 'left', match: '/left/*', key: 'name', select: { name: 'h1', price: 'b' } };
  const right = { name: 'right', match: '/right/*', key: 'name', select: { name: 'h1', brand: 'em' } };
  await fetchAll(jobOf([left, right]));
  expect((await again(jobOf([left]))).records).toMatchObject({ changed: 3, new: 0, gone: 0 });
  expect(Object.values(await data())).toEqual(
    [1, 2, 3].map((n) => ({ name: `Item ${n}`, price: `${n}.50` })),
  );
  await again(jobOf([right]));
  expect(Object.values(await data())).toEqual(
    [1, 2, 3].map((n) => ({ name: `Item ${n}`, brand: `Brand ${n}` })),
  );
});

test('pages that the archive has lost are told, and what was taken from them stays', async () => {
  const job = jobOf([{ name: 'any', select: { name: 'h1' } }], ['left']);
  await fetchAll(job);
  for (const file of readdirSync(join(folder.dir, 'warc'), { recursive: true, encoding: 'utf8' }))
    if (file.endsWith('.gz')) rmSync(join(folder.dir, 'warc', file));
  const result = await again(job);
  expect(result).toMatchObject({ pages: 3, unreadable: 3, failed: 0, records: { same: 0, gone: 0 } });
  expect(result.troubles[0]).toMatchObject({ url: `${origin}/left/1`, code: 'unreadable' });
  expect(Object.keys(await data())).toHaveLength(3);
  const { store } = opened!;
  expect(await store.jobs.counters(1)).toMatchObject({ done: 3, dead: 0, records: 3 });
});

test('pages that are not what was fetched are told, and nothing is taken from them', async () => {
  const job = jobOf([{ name: 'any', select: { name: 'h1' } }], ['left']);
  await fetchAll(job);
  // The same as another archive: what is read is not what the database knows.
  const db = new DatabaseSync(join(folder.dir, 'seine.db'));
  db.exec('UPDATE attempts SET sha256 = zeroblob(32)');
  db.close();
  const result = await again(jobOf([{ name: 'any', select: { title: 'h1' } }], ['left']));
  expect(result).toMatchObject({ pages: 3, unreadable: 3, failed: 0, records: { changed: 0, gone: 0 } });
  expect(result.troubles[0]!.detail).toContain('SHA-256 is not the one that was stored');
  expect(Object.values(await data())).toEqual([1, 2, 3].map((n) => ({ name: `Item ${n}` })));
});

test('an older run does not put its pages in the place of newer ones', async () => {
  const job = (field: string) => jobOf([{ name: 'any', select: { version: 'i', [field]: 'h1' } }], ['left']);
  await fetchAll(job('name'));
  version = 2;
  await fetchAll(job('name'));
  const result = await again(job('title'), { run: 1 });
  expect(result).toMatchObject({ pages: 3, records: { changed: 0, new: 0, gone: 0 } });
  expect(Object.values(await data())).toEqual([1, 2, 3].map((n) => ({ version: '2', name: `Item ${n}` })));
});

test('a handler that never ends costs its page and no more', async () => {
  const handler = (page: Page) =>
    page.url.endsWith('/2') ? new Promise(() => {}) : Promise.resolve({ name: page.textOf('h1') });
  await fetchAll(jobOf([{ name: 'any', select: { name: 'h1' } }], ['left']));
  const job = jobOf([{ name: 'any', handler }], ['left']);
  const result = await again({ ...job, timeouts: { taskMs: 50 } });
  expect(result).toMatchObject({ pages: 3, failed: 1, records: { same: 2 } });
  expect(result.troubles).toEqual([
    { url: `${origin}/left/2`, code: 'parse-error', detail: 'the handler did not finish within 50 ms' },
  ]);
  expect(Object.keys(await data())).toHaveLength(3);
});

test('a required field that is missing is a validation failure, which counts for the quality', async () => {
  await fetchAll(jobOf([{ name: 'any', select: { name: 'h1' } }]));
  const result = await again(jobOf([{ name: 'any', select: { price: { css: 'b', required: true } } }]));
  expect(result).toMatchObject({ pages: 6, failed: 3 });
  expect(result.troubles[0]!.code).toBe('validation');
  const { store } = opened!;
  expect(await store.views.quality(1, 1)).toMatchObject([{ route: 'any', records: 3, invalid: 3 }]);
  expect(await store.views.tallies(1)).toEqual([{ state: 'dead', code: 'validation', count: 3 }]);
});

test('links of pages that were refused are taken now, where their tags allow it', async () => {
  const job = (css: string): JobDefinition => ({
    ...jobOf([{ name: 'any', match: '/right/*', select: { brand: { css, required: true } } }], ['right']),
    follow: 'host',
    politeness: { rate: 'max', parallel: 1, robots: false, robotsTags: 'obey' },
  });
  await fetchAll(job('b'));
  expect(await again(job('em'))).toMatchObject({ pages: 3, failed: 0, links: 2 });
  const tasks = await collect(opened!.store.views.tasks(1));
  expect(tasks.map(({ url }) => url.slice(origin.length)).filter((path) => path.startsWith('/more'))).toEqual(
    ['/more/2', '/more/3'],
  );
  // By now they are known.
  expect(await again(job('em'))).toMatchObject({ pages: 3, links: 0 });
});

test("media that today's rules find become tasks, and the pages show them", async () => {
  const job = (...media: string[]) => jobOf([{ name: 'any', select: { name: 'h1' }, media }]);
  await fetchAll(job('.none'));
  expect(await again(job('img'), { dryRun: true })).toMatchObject({ pages: 6, media: 0 });
  expect(await again(job('img'))).toMatchObject({ pages: 6, media: 4, links: 0, records: { same: 6 } });
  const { store } = opened!;
  expect(await store.jobs.get(1)).toMatchObject({
    state: 'stopped',
    reason: expect.stringMatching('new URLs'),
  });
  expect(await store.jobs.counters(1)).toMatchObject({ done: 6, pending: 4 });
  expect(await store.views.task(1, `${origin}/picture/0`)).toMatchObject({
    state: 'pending',
    route: '@media',
    depth: 0,
    meta: { referrer: `${origin}/left/1`, alt: 'All' },
  });
  expect(await again(job('img'))).toMatchObject({ media: 0 });
  await opened!.close();
  opened = null;
  const seine = await openSeine({ dir: folder.dir, workers: 1 });
  await (await seine.run(job('.none'))).done;
  const shownBy = Object.fromEntries(
    (await collect(seine.media())).map(({ url, referrers }) => [url.at(-1), referrers.length]),
  );
  await seine.close();
  expect(shownBy).toEqual({ 0: 6, 1: 2, 2: 2, 3: 2 });
  expect(await again(job('img:not(.small)'))).toMatchObject({ media: 0 });
  const left = await collect(opened!.store.views.media(1));
  expect(left.find(({ url }) => url.endsWith('/0'))?.referrers).toEqual([]);
});

test('a route that was renamed is found by the URL', async () => {
  const handler = (page: Page) => ({ name: page.textOf('h1') });
  const listing = (page: Page) => {
    for (const n of [1, 2]) page.follow(`/right/${n}`, { route: 'old' });
  };
  const routes = (name: string): JobDefinition['routes'] => [
    { name: 'listing', match: '/left/*', handler: listing },
    { name, match: '/right/*', handler },
  ];
  await fetchAll(jobOf(routes('old'), ['left']));
  const result = await again(jobOf(routes('new'), ['left']));
  expect(result).toMatchObject({ pages: 5, records: { same: 2, changed: 0, new: 0, gone: 0 } });
});

test('a page that was taken for a block page is kept, and read again where the rules are others', async () => {
  const job = (add: string[]): JobDefinition => ({
    ...jobOf([{ name: 'any', match: '/right/*', select: { brand: 'em' } }], ['right']),
    blocking: { add },
    retry: { attempts: 1 },
  });
  await fetchAll(job(['Brand 2']));
  expect(await again(job(['Brand 2']))).toMatchObject({ records: { same: 2, new: 0 } });
  expect(await opened!.store.views.tallies(1)).toContainEqual({
    state: 'dead',
    code: 'soft-block',
    count: 1,
  });
  expect(await again(job([]))).toMatchObject({ records: { same: 2, new: 1 } });
  const records = await collect(opened!.store.views.records(1));
  expect(records.map(({ route, data }) => [route, data])).toEqual(
    [1, 2, 3].map((n) => ['any', { brand: `Brand ${n}` }]),
  );
  expect(await opened!.store.jobs.counters(1)).toMatchObject({ done: 3, dead: 0 });
});
