import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine, temporaryFolder } from '../../support/seine-process.ts';

const folder = temporaryFolder();
const server = createServer((request, response) => {
  response.setHeader('content-type', 'text/html');
  const page = Number(request.url?.slice(1) || 0);
  response.end(`<h1>${page}</h1><a href="/${page + 1}">next</a>`);
});
let url: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

test('a run goes on with another pace and other limits, and starts anew for other pages', async () => {
  const place = ['--dir', join(folder.path, 'changed'), '--workers', '1'];
  const run = (...more: string[]) =>
    seine(['run', url, '--name', 'shop', '--follow', '--allow-private', '--no-robots', ...more, ...place]);
  const first = await run('--rate', '50', '--max-pages', '2');
  expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('limit of 2 pages reached')]);
  const resumed = await seine(['resume', '--rate', 'max', '--no-adaptive', '--max-pages', '4', ...place]);
  expect(resumed.code).toBe(0);
  for (const change of ['limits.pages: 2 → 4', 'rate: 50 → max', 'adaptive: true → false'])
    expect(resumed.stderr).toContain(change);
  expect(resumed.stderr).toContain('limit of 4 pages reached');
  const again = await run('--rate', 'max', '--no-adaptive', '--max-pages', '6');
  expect(again.stderr).toContain('continuing shop-1, which was not finished');
  expect(again.stderr).toContain('limits.pages: 4 → 6\n');
  const other = await run('--rate', 'max', '--max-pages', '1', '--select', 'title=h1');
  expect(other.stderr).toContain('starting shop-2 anew, because the job has changed: routes\n');
  expect(other.stderr).toContain('`seine resume shop-1` continues it');
  const wrong = await seine(['resume', 'shop-1', '--parallel', '1.5', ...place]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('politeness.parallel')]);
});
