import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { lastJson, temporaryFolder } from '../../support/seine-process.ts';

/** Selectors for a shop are learned from one page; then the shop gets a new design, and they are found again. */

const PAGES = 24;
const folder = temporaryFolder();
const dir = join(folder.path, 'data');
const job = join(folder.path, 'mugs.json');
let isRedesigned = false;
let requests = 0;
const site = createServer((request, response) => {
  requests++;
  const n = Number(/^\/product\/(\d+)$/.exec(request.url ?? '')?.[1]);
  const before = `<h1>Mug ${n}</h1><p class="price">${n},50 €</p><dl><dt>Weight</dt><dd>${n * 10} g</dd></dl>`;
  const after = `<nav>Mug 0</nav><h2 class="product__name">Mug ${n}</h2><p class="old">99,00 €</p>
    <p class="css-1a2b3c"><span class="product__price">${n},50 €</span></p>
    <table><tr><th>Weight</th><td>${n * 10} g</td></tr></table>`;
  response
    .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    .end(`<html><body>${isRedesigned ? after : before}</body></html>`);
});
let origin = '';
const run = (...args: string[]) => seine([...args, '--dir', dir]);

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  const select = {
    title: 'h1',
    price: { css: '.price', type: 'money', currency: 'EUR' },
    tags: { css: 'dt', all: true },
  };
  writeFileSync(
    job,
    JSON.stringify({
      name: 'mugs',
      sources: Array.from({ length: PAGES }, (_, n) => `${origin}/product/${n + 1}`),
      ...{ allowPrivate: true, politeness: { rate: 'max', robots: false } },
      routes: [{ name: 'product', match: '/product/*', select }],
    }),
  );
  expect(lastJson(await run('run', job, '--json'))).toMatchObject({ done: PAGES });
});
afterAll(() => {
  site.close();
  folder.remove();
});

interface Learned {
  field: string;
  proposals: { field: unknown; right: number; known: number; filled: number; pages: number }[];
}

test('selectors are learned from values of one page, and tried on the others', async () => {
  const before = requests;
  const { code, stdout } = await run(
    ...['learn', 'mugs', `${origin}/product/3`, '--field', 'title=Mug 3', '--field', 'price=3.5'],
    ...['--field', 'weight=30', '--field', 'nothing=not there', '--json'],
  );
  const { fields, pages } = JSON.parse(stdout) as { fields: Learned[]; pages: number };
  expect([code, pages]).toEqual([6, PAGES]);
  const best = fields.map(({ field, proposals }) => [field, proposals[0]?.field ?? null]);
  expect(best).toEqual([
    ['title', 'h1'],
    ['price', { type: 'number', css: '.price' }],
    ['weight', { type: 'number', css: 'dt:contains("Weight") + dd' }],
    ['nothing', null],
  ]);
  expect(fields[1]!.proposals[0]).toMatchObject({ right: 1, known: 1, filled: PAGES, pages: PAGES });
  expect(requests).toBe(before);
});

test('examples of several pages, and names of a schema, do as well', async () => {
  const examples = join(folder.path, 'examples.json');
  const schema = join(folder.path, 'schema.json');
  writeFileSync(
    examples,
    JSON.stringify({ [`${origin}/product/1`]: { weight: 10 }, [`${origin}/product/2`]: { weight: 20 } }),
  );
  writeFileSync(
    schema,
    JSON.stringify({ properties: { title: { type: 'string' }, price: { type: 'number' } } }),
  );
  const { code, stdout } = await run('learn', 'mugs', '--examples', examples, '--schema', schema);
  expect(code).toBe(0);
  expect(stdout).toContain('2 of 2 known values, filled on 100 % of 24 pages, 24 different');
  expect(stdout).toContain('"price": {"type":"number","css":".price"}');
  const { stderr } = await run('learn', 'mugs', `${origin}/other`, '--field', 'a=b');
  expect(stderr).toContain(`mugs-1 has no stored HTML page of ${origin}/other`);
});

test('a new design: what was read before is found again, and nothing is changed', async () => {
  expect((await run('repair', 'mugs')).stdout).toContain('nothing to compare with');
  isRedesigned = true;
  expect(lastJson(await run('run', job, '--refresh', '--json'))).toMatchObject({ pass: 2, done: PAGES });
  const before = requests;
  const { code, stdout } = await run('repair', 'mugs', '--json');
  const { routes } = JSON.parse(stdout) as {
    routes: { compared: number; fields: (Learned & { reason: string | null })[] }[];
  };
  expect(routes[0]!.compared).toBe(PAGES);
  expect(
    routes[0]!.fields.map(({ field, proposals, reason }) => [field, proposals[0]?.field ?? reason]),
  ).toEqual([
    ['title', '.product__name'],
    ['price', { type: 'money', currency: 'EUR', css: '.product__price' }],
    ['tags', 'lists and nested fields are not searched'],
  ]);
  expect(routes[0]!.fields[1]!.proposals[0]).toMatchObject({ right: PAGES, known: PAGES, filled: PAGES });
  expect([code, requests]).toEqual([6, before]);
  const shown = (await run('repair', 'mugs')).stdout;
  expect(shown).toContain('title was read from 100 % of them, now from 0 %, by "h1"');
  expect(shown).toContain('nothing was changed; to repair it, write in the job:');
});
