import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';

/** A shop changes its pages, and its prices are not found any more: somebody must hear of it. */

const PRODUCTS = 30;
const folder = temporaryFolder();
const file = join(folder.path, 'shop.yaml');
const dir = join(folder.path, 'data');
let server: Server;
let priceClass = 'price';

beforeAll(async () => {
  server = createServer((request, response) => {
    const n = /^\/product\/(\d+)$/.exec(request.url ?? '')?.[1];
    if (n === undefined) return void response.writeHead(404).end();
    const price = Number(n) % 10 === 0 ? '' : `<b class="${priceClass}">${n}.90</b>`;
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<!doctype html><title>P</title><h1>Product ${n}</h1>${price}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const urls = Array.from({ length: PRODUCTS }, (_, n) => `http://127.0.0.1:${port}/product/${n}`);
  writeFileSync(
    file,
    JSON.stringify({
      name: 'shop',
      sources: urls,
      routes: [{ name: 'product', match: '/product/*', select: { title: 'h1', price: '.price' } }],
      politeness: { rate: 'max' },
      allowPrivate: true,
    }),
  );
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

const run = (...args: string[]) => seine([...args, '--dir', dir]);

const FULL = {
  route: 'product',
  score: 95,
  records: PRODUCTS,
  invalid: 0,
  fields: { title: 1, price: 0.9 },
  drops: [],
};
const LOST = {
  route: 'product',
  score: 50,
  records: PRODUCTS,
  invalid: 0,
  fields: { title: 1, price: 0 },
  drops: [{ field: 'price', before: 0.9, now: 0 }],
};

test('a first run has a score and nothing to compare with', async () => {
  const result = await run('run', file, '--json');
  expect(result.code, result.stderr).toBe(0);
  expect(lastJson(result).quality).toEqual([FULL]);
  expect(lastJson(result).pass).toBe(1);
});

test('a field that got lost since the last run is flagged when the run ends', async () => {
  priceClass = 'cost';
  const result = await run('run', file);
  expect(result.code, result.stderr).toBe(0);
  expect(result.stderr).toContain('product 50 of 100   30 records · price 0 %');
  expect(result.stderr).toContain('price dropped from 90 % to 0 %');
});

test('and in the status, for people and programs', async () => {
  const text = (await run('status')).stdout;
  expect(text).toContain('product 50 of 100');
  expect(text).toContain('price dropped from 90 % to 0 %');
  expect(lastJson(await run('status', '--json')).quality).toEqual([LOST]);
  expect(lastJson(await run('status', 'shop-1', '--json')).quality).toEqual([FULL]);
});

test('and in the export, by run', async () => {
  expect(jsonLines((await run('export', 'shop', '--what', 'quality')).stdout)).toEqual([
    { job: 'shop', run: 1, pass: 1, ...FULL },
    { job: 'shop', run: 2, pass: 1, ...LOST },
  ]);
});

test('what stays lost is not new', async () => {
  expect(lastJson(await run('run', file, '--json')).quality).toEqual([{ ...LOST, drops: [], score: 50 }]);
});

test('a job that is refreshed by its name, without a change, keeps its figures and says of which pass', async () => {
  const again = lastJson(await run('refresh', 'shop', '--json'));
  expect(again).toMatchObject({
    run: 3,
    pass: 2,
    state: 'done',
    unchanged: PRODUCTS,
    done: 0,
    qualityPass: 1,
  });
  expect(again.quality).toMatchObject([{ score: 50, records: PRODUCTS }]);
  const { code, stderr } = await run('run', 'shop', '--refresh');
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('product 50 of 100');
  expect(stderr).toContain('from pass 1; no new records since');
  const { stdout } = await run('status');
  expect(stdout).toContain('shop-3: done, pass 3');
  expect(stdout).toContain('from pass 1; no new records since');
});

test.each([
  [
    'an option that a stored job cannot take',
    ['shop', '--refresh', '--depth', '3'],
    '--depth cannot be used when a job is refreshed by name',
  ],
  ['a name that is nothing', ['nothing', '--refresh'], "no file and no job named 'nothing'"],
])('%s is refused', async (_, args, sentence) => {
  const { code, stderr } = await run('run', ...args);
  expect(stderr).toContain(sentence);
  expect(code).toBe(2);
});

test('a page that never passes counts once, however often it was tried, and one that passes later not at all', async () => {
  const strict = join(folder.path, 'strict.json');
  const { port } = server.address() as AddressInfo;
  const sources = [1, 10].map((n) => `http://127.0.0.1:${port}/product/${n}`);
  const route = { name: 'product', require: ['b'], select: { title: 'h1' } };
  const politeness = { rate: 'max' };
  const retry = { attempts: 3, baseMs: 10 };
  writeFileSync(strict, JSON.stringify({ sources, routes: [route], politeness, retry, allowPrivate: true }));
  const result = lastJson(await run('run', strict, '--json'));
  expect(result).toMatchObject({ done: 1, dead: 1, retries: 2 });
  expect(result.quality).toMatchObject([{ records: 1, invalid: 1, score: 50 }]);
});
