import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { startSeine, temporaryFolder } from '../../support/seine-process.ts';

const folder = temporaryFolder();
const asked: string[] = [];
const held: (() => void)[] = [];
let isHolding = false;
const server = createServer((request, response) => {
  response.setHeader('content-type', 'text/html');
  if (request.url?.startsWith('/list/')) {
    asked.push(request.url);
    const answer = () => response.end('<h1>listed</h1>');
    if (isHolding) held.push(answer);
    else answer();
    return;
  }
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
  expect(other.stderr).toContain('starting the new run shop-2, because the job has changed: routes\n');
  expect(other.stderr).toContain('`seine resume shop-1` continues it');
  const wrong = await seine(['resume', 'shop-1', '--parallel', '1.5', ...place]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('politeness.parallel')]);
});

test('links that the limit per template drops are told by the run and by status', async () => {
  const place = ['--dir', join(folder.path, 'dropped')];
  const job = join(folder.path, 'dropped.json');
  writeFileSync(
    job,
    JSON.stringify({
      ...{ sources: url, follow: true, allowPrivate: true, limits: { perTemplate: 3 } },
      politeness: { robots: false, rate: 'max' },
    }),
  );
  const told = '1 link dropped by limits.perTemplate: raise it, or set it to null';
  expect((await seine(['run', job, '--workers', '1', ...place])).stderr).toContain(told);
  expect((await seine(['status', ...place])).stdout).toContain(`  ${told}\n`);
});

test('priorities of a running job are changed by another process', async () => {
  const PAGES = 30;
  const paths = ['a', 'b'].flatMap((kind) =>
    Array.from({ length: PAGES }, (_, page) => `list/${kind}/${page}`),
  );
  writeFileSync(join(folder.path, 'list.txt'), paths.map((path) => `${url}${path}`).join('\n'));
  const place = ['--dir', join(folder.path, 'priority')];
  isHolding = true;
  const run = startSeine([
    ...['run', join(folder.path, 'list.txt'), '--allow-private', '--no-robots', '--batch-size', '2'],
    ...['--rate', 'max', '--parallel', '2', '--workers', '1', '--json', ...place],
  ]);
  // One at first: more are sent at once when the host has answered.
  await expect.poll(() => held.length, { timeout: 60_000 }).toBeGreaterThan(0);
  const changed = await seine(['priority', 'list', '/list/b/*', '5', '--json', ...place]);
  expect([changed.code, changed.stderr]).toEqual([0, '']);
  expect(JSON.parse(changed.stdout)).toMatchObject({
    id: 'list-1',
    priority: 5,
    changed: PAGES,
    alive: true,
  });
  const before = await seine(['priority', 'list', '/list/b/1', '-7', ...place]);
  expect(before.stdout).toContain('1 waiting tasks of list-1 have priority -7 now');
  const wrong = await seine(['priority', 'list', 'route:none', '5', ...place]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("no route 'none'")]);
  isHolding = false;
  for (const answer of held) answer();
  expect((await run.finished).code).toBe(0);
  expect(asked).toHaveLength(2 * PAGES);
  // What was out, or about to be, when the priority was changed: two permits of two tasks.
  const later = asked.slice(4);
  // Two are sent at once, and may arrive in either order.
  const early = later.slice(0, PAGES - 5);
  expect(early.filter((path) => !path.startsWith('/list/b/'))).toEqual([]);
  expect(later.slice(-2)).toContain('/list/b/1');
});
