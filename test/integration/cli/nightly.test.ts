import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { problemsOf } from '../../../src/core/record-changes/run-problems.ts';
import { openLocalFiles } from '../../../src/sources/files/local-files.ts';
import { fileSource } from '../../../src/sources/formats/file-source.ts';
import { changesText } from '../../../src/tui/changes.ts';
import { seineHere } from '../../support/seine-in-process.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

/** A job that runs every night: what changed, what is wrong, who is told, and whether its code still fits. */

const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
const prices = new Map<string, number | null>([
  ['/a', 1],
  ['/b', 2],
  ['/c', 3],
]);
const posted: { text: string; problems: string[] }[] = [];
let server: Server;
let origin: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const { url = '/', method } = request;
    if (method === 'POST') {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        posted.push(JSON.parse(Buffer.concat(parts).toString()));
        response.writeHead(204).end();
      });
      return;
    }
    const price = prices.get(url);
    if (price === undefined || price === null) response.writeHead(404).end();
    else
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<h1>Chair ${url}</h1><b>${price}</b><i>kept</i>`);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

const listUrls = () =>
  writeFileSync(at('urls.txt'), [...prices.keys()].map((path) => `${origin}${path}\n`).join(''));

function writeJob(priceSelector: string): void {
  writeFileSync(
    at('chairs.yaml'),
    `sources: { file: urls.txt }
routes: [{ name: chair, select: { title: h1, price: ${priceSelector} } }]
politeness: { rate: max, robots: false }
allowPrivate: true
notify:
  - { url: '${origin}/hook' }
  - { command: [./told.sh, now], when: failure }
`,
  );
}

test('a refresh says what changed, sets the exit code that was asked for, and tells whom the job names', async () => {
  listUrls();
  writeJob('b');
  writeFileSync(at('told.sh'), '#!/bin/sh\necho "$1" > told.txt\ncat >> told.txt\n');
  chmodSync(at('told.sh'), 0o755);
  const common = ['--dir', at('state')];
  const first = await seineHere('run', at('chairs.yaml'), ...common, '--json', '--fail-on', 'drop,dead,gone');
  expect(first.code).toBe(0);
  expect(JSON.parse(first.stdout).changes).toBeUndefined();
  expect(posted).toMatchObject([{ text: 'chairs-1 is done: 3 records', problems: [] }]);

  prices.set('/a', 10).set('/b', null).set('/d', 4);
  listUrls();
  const second = await seineHere('run', at('chairs.yaml'), ...common, '--refresh', '--fail-on', 'gone');
  expect(second.stderr).toMatch(/\n {2}changes {4}1 record changed \(price 1\), 1 new, 1 gone\n/);
  expect(second.code).toBe(6);
  expect(posted[1]).toMatchObject({
    text: 'chairs-1 is done: 1 record changed (price 1), 1 new, 1 gone; 1 dead letter',
    problems: ['dead', 'gone'],
  });
  const [argument, message] = readFileSync(at('told.txt'), 'utf8').split('\n');
  expect(argument).toBe('now');
  expect(JSON.parse(message!)).toMatchObject({
    problems: ['dead', 'gone'],
    summary: { changes: { changed: 1, created: 1, gone: 1, fields: [{ field: 'price', count: 1 }] } },
  });

  // What was gone before is not gone anew, and a problem that nobody asked about is none.
  const third = await seineHere(
    'run',
    at('chairs.yaml'),
    ...common,
    '--refresh',
    '--json',
    '--fail-on',
    'gone',
  );
  expect(JSON.parse(third.stdout)).toMatchObject({ dead: 1, changes: { changed: 0, created: 0, gone: 0 } });
  expect(third.code).toBe(0);
  const status = await seineHere('status', 'chairs', ...common);
  expect(status.stdout).toContain('\n  no record changed\n');
});

test('seine test compares the code with the stored pages, and fails when a value changes', async () => {
  const common = ['--dir', at('state')];
  const asked = posted.length;
  expect(await seineHere('test', at('chairs.yaml'), ...common)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^chairs-1: .* pages parsed with .*: nothing differs\n/),
  });
  writeJob('b.none');
  const broken = await seineHere('test', at('chairs.yaml'), ...common, '--against', 'chairs-1');
  expect(broken.code).toBe(6);
  expect(broken.stdout).toMatch(/\n {2}price: filled in 100 % of records before, 0 % now\n/);
  expect(broken.stdout).toMatch(/\n {2}price: \d removed\n {4}"10" → null\n/);
  const ignored = await seineHere('test', at('chairs.yaml'), ...common, '--ignore', 'price', '--json');
  expect(ignored.code).toBe(0);
  expect(JSON.parse(ignored.stdout)).toMatchObject({ passed: true, fields: [] });
  expect(posted).toHaveLength(asked);
});

test('a dry run says rows, hosts, the shortest time and what is kept where, and asks for nothing', async () => {
  writeFileSync(
    at('list.csv'),
    `url\n${Array.from({ length: 40 }, (_, n) => `https://a.example/${n}\n`).join('')}`,
  );
  writeFileSync(at('dry.yaml'), 'sources: [{ file: list.csv }, https://b.example/]\nfollow: true\n');
  const { code, stdout } = await seineHere('run', at('dry.yaml'), '--dry-run', '--dir', at('dry'));
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /list\.csv: 40 rows\n {2}https:\/\/b\.example\/: 1 row\nfrom 2 hosts, and the links/,
  );
  expect(stdout).toMatch(/a\.example: 40, 4 requests per second\n/);
  expect(stdout).toMatch(/it takes at least 10 s under these rates/);
  expect(stdout).toMatch(/pages: .*dry\/warc\nrecords and state: .*dry\/seine\.db\n/);
  const json = await seineHere('run', at('dry.yaml'), '--dry-run', '--json', '--dir', at('dry'));
  expect(JSON.parse(json.stdout)).toMatchObject({
    rows: 41,
    shortestMs: 10_000,
    spec: { name: 'dry', archive: true },
  });
});

test('a list that is read in part says how much, by bytes', async () => {
  const spec = { file: at('list.csv'), priority: 0 };
  const source = fileSource(spec, async () => openLocalFiles());
  const shares: (number | null)[] = [];
  for await (const { position } of source.rows(null)) shares.push(await source.shareRead!(position));
  expect(shares[19]).toBeGreaterThan(0.4);
  expect(shares[19]).toBeLessThan(0.6);
  expect(shares.at(-1)).toBe(1);
});

test('a wrong --fail-on is refused before anything runs', async () => {
  const wrong = await seineHere('run', at('chairs.yaml'), '--dir', at('none'), '--fail-on', 'drp');
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/there is no 'drp'; did you mean drop\?/),
  });
});

test('problems and changes, in words', () => {
  expect(problemsOf({ dead: 0, quality: [{ drops: [] }, { drops: [1] }] })).toEqual(['drop']);
  const fields = ['a', 'b', 'c', 'd', 'e', 'f'].map((field) => ({ field, count: 2 }));
  expect(changesText({ created: 0, changed: 2_000, gone: 0, fields })).toBe(
    '2,000 records changed (a 2, b 2, c 2, d 2, 2 more fields)',
  );
});
