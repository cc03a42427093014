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
let edition = 0;
let requests = 0;
const site = createServer((request, response) => {
  requests++;
  const n = Number(/^\/product\/(\d+)$/.exec(request.url ?? '')?.[1]);
  const before = `<h1>Mug ${n}</h1><p class="price">${n},50 €</p><dl><dt>Weight</dt><dd>${n * 10} g</dd></dl>`;
  const after = `<nav>Mug 0</nav><h2 class="product__name">Mug ${n}</h2><p class="old">99,00 €</p>
    <p class="css-1a2b3c"><span class="product__price">${n},50 €</span></p>
    <table><tr><th>Weight</th><td>${n * 10} g</td></tr></table><p>Edition ${edition}</p>`;
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

test('selectors of a language model are tried like all others, and only the operator says which model', async () => {
  const asked: { path: string; key: string | undefined; body: string }[] = [];
  let answer: { status: number; text: string } = { status: 200, text: '' };
  const model = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces).toString();
    asked.push({ path: request.url ?? '', key: request.headers.authorization, body });
    const content = { choices: [{ message: { role: 'assistant', content: answer.text } }] };
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(content));
  });
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
  const env = {
    SEINE_MODEL_URL: `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1/`,
    SEINE_MODEL_NAME: 'small',
    SEINE_MODEL_KEY: 'sk-s3cr3t',
  };
  const schema = join(folder.path, 'cost.json');
  writeFileSync(schema, JSON.stringify({ properties: { cost: { type: 'number' } } }));
  const args = [
    'learn',
    'mugs',
    `${origin}/product/3`,
    '--field',
    'title=Mug 3',
    '--schema',
    schema,
    '--json',
  ];
  const learn = (more: string[], changed: object = {}) =>
    seine([...args, ...more, '--dir', dir], { env: { ...env, ...changed } });
  try {
    // Nothing on the pages is called cost.
    expect((await learn([])).code).toBe(6);
    expect(asked).toEqual([]);

    const fields = {
      cost: ['p((', 'i.none', 'body@data-none', '.price', 7],
      title: ['dt', 'h1'],
      other: 'h1',
    };
    answer = { status: 200, text: `Here it is:\n\`\`\`json\n${JSON.stringify({ fields })}\n\`\`\`` };
    const found = await learn(['--model']);
    expect(found.code, found.stderr).toBe(0);
    const learned = (JSON.parse(found.stdout) as { fields: Learned[] }).fields;
    expect(learned.map(({ field, proposals }) => [field, proposals[0]?.field])).toEqual([
      ['title', 'h1'],
      ['cost', { type: 'number', css: '.price' }],
    ]);
    expect(learned[1]!.proposals).toMatchObject([{ filled: PAGES, isFromModel: true }]);
    expect(learned[0]!.proposals.map(({ field }) => field)).not.toContain('dt');
    expect(asked).toMatchObject([{ path: '/v1/chat/completions', key: 'Bearer sk-s3cr3t' }]);
    const { model: name, messages } = JSON.parse(asked[0]!.body);
    expect(name).toBe('small');
    expect(messages[1].content).toContain('<p class="price"> 3,50 €');
    expect(messages[1].content).toContain('"value on this page": "Mug 3"');

    answer = { status: 401, text: 'sk-s3cr3t is wrong' };
    const refused = await learn(['--model']);
    expect([refused.code === 0, refused.stderr.includes('s3cr3t')]).toEqual([false, false]);
    expect(refused.stderr).toContain('the model cannot be asked: status 401');
    answer = { status: 200, text: 'I would rather not.' };
    expect((await learn(['--model'])).code).toBe(6);

    const count = asked.length;
    expect((await learn(['--model'], { SEINE_ALLOW_PRIVATE: 'never' })).stderr).toContain(
      '127.0.0.1 has no address that may be called',
    );
    expect((await learn(['--model'], { SEINE_MODEL_URL: '' })).stderr).toContain(
      '--model needs SEINE_MODEL_URL',
    );
    expect(asked.length).toBe(count);
  } finally {
    model.closeAllConnections();
    model.close();
  }
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

test('what was lost several visits ago is found', async () => {
  for (edition = 1; edition <= 4; edition++) await run('run', job, '--refresh', '--json');
  const { stdout } = await run('repair', 'mugs', '--json');
  const { routes } = JSON.parse(stdout) as { routes: { fields: Learned[] }[] };
  const { field, proposals } = routes[0]!.fields[0]!;
  expect([field, proposals[0]?.field]).toEqual(['title', '.product__name']);
});
