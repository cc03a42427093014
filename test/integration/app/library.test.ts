import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineJob, openSeine, type Seine } from '../../../src/index.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

/** What a program can do with jobs besides running them. */

const folder = temporaryFolder();
let server: Server;
let seine: Seine;
let origin: string;
let isBroken = true;

beforeAll(async () => {
  server = createServer(({ url }, response) => {
    if (url === '/b' && isBroken) response.writeHead(400).end();
    else response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>Page ${url}</h1><b>7</b>`);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  seine = await openSeine({ dir: join(folder.path, 'state'), workers: 1 });
});

afterAll(async () => {
  await seine.close();
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

test('a program adds URLs, retries dead letters, reads pages and parses them again', async () => {
  const job = defineJob({
    name: 'pages',
    sources: [`${origin}/a`, `${origin}/b`],
    routes: [{ name: 'page', select: { title: 'h1' }, handler: (_, found) => ({ title: found?.title }) }],
    politeness: { rate: 'max', robots: false },
    allowPrivate: true,
  });
  expect(await (await seine.run(job)).done).toMatchObject({ done: 1, dead: 1 });
  const page = await seine.page(`${origin}/a`);
  expect(page).toMatchObject({ url: `${origin}/a`, status: 200 });
  expect(page?.body.toString()).toContain('Page /a');
  expect(await seine.page(`${origin}/b`)).toBeNull();
  isBroken = false;
  expect(await seine.retry('pages', { code: 'server-error' })).toBe(0);
  expect(await seine.retry('pages')).toBe(1);
  expect(
    await seine.add('pages', [`${origin}/c`, { url: `${origin}/d`, meta: { row: 1 } }, 'nothing']),
  ).toMatchObject({
    accepted: 2,
    rejected: 1,
  });
  expect(await (await seine.run(job)).done).toMatchObject({ done: 4, dead: 0 });
  await expect(seine.resume('pages')).rejects.toThrow('nothing left to do');
  const file = join(folder.path, 'pages.yaml');
  writeFileSync(file, `sources: ${origin}/a\nroutes: [{ name: page, select: { title: h1, number: b } }]\n`);
  expect(await seine.reparse(file, { dryRun: true })).toMatchObject({ pages: 4, records: { changed: 4 } });
});

test('functions never run here where workers elsewhere are asked for', async () => {
  const other = await openSeine({
    dir: join(folder.path, 'other'),
    dispatch: 'bullmq://127.0.0.1:1',
    blobs: join(folder.path, 'blobs'),
  });
  const job = defineJob({
    sources: `${origin}/a`,
    routes: [{ name: 'page', handler: () => null }],
    allowPrivate: true,
  });
  await expect(other.run(job)).rejects.toThrow('run only in this process');
  await other.close();
});
