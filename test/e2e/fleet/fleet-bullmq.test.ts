import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { openRedis, parseFleet } from '../../../src/transport/bullmq/redis.ts';
import { checkFolder } from '../../support/crash/check-folder.ts';
import { memoryLogger } from '../../support/fleet/bullmq-fleet.ts';
import { seine } from '../../support/seine-in-process.ts';
import {
  jsonLines,
  lastJson,
  type Started,
  startSeine,
  temporaryFolder,
} from '../../support/seine-process.ts';
import { type RedisServer, startRedis } from '../../support/servers/services.ts';
import { countByPath, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

const folder = temporaryFolder();
const started: Started[] = [];
let redis: RedisServer;
let url: string;
beforeAll(async () => {
  redis = await startRedis({ own: true });
  url = redis.url.replace('redis://', 'bullmq://');
});
afterEach(async () => {
  for (const { killTree } of started.splice(0)) await killTree();
});
afterAll(async () => {
  await redis.stop();
  folder.remove();
});

/** Resolves when it takes batches. */
async function startWorker(blobs: string, ...more: string[]): Promise<Started> {
  const worker = startSeine([
    'worker',
    '--allow-private',
    '--dispatch',
    url,
    '--blobs',
    blobs,
    '--workers',
    '1',
    ...more,
  ]);
  started.push(worker);
  let said = '';
  worker.child.stderr!.on('data', (chunk) => {
    said += chunk;
  });
  await vi.waitFor(() => expect(said).toContain(' takes '), { timeout: 60_000, interval: 20 });
  return worker;
}

function startRun(site: string, dir: string, ...more: string[]): Started {
  const args = ['run', site, '--follow', '--rate', 'max', '--parallel', '8', '--allow-private'];
  const place = ['--dir', dir, '--blobs', dir, '--dispatch', url];
  const run = startSeine([...args, ...place, '--name', 'site', '--json', ...more]);
  started.push(run);
  return run;
}

const once = (pages: number) => new Map(Array.from({ length: pages }, (_, index) => [pathOf(index), 1]));

test('a linked site is crawled whole by two workers, each page exactly once; then both are drained', async () => {
  const PAGES = 500;
  const site = await startLinkedSite({ pages: PAGES });
  const dir = join(folder.path, 'whole');
  const workers = [await startWorker(dir), await startWorker(dir)];
  const result = await startRun(site.url, dir).finished;
  expect(result.stderr).toBe('');
  expect(result.code).toBe(0);
  expect(lastJson(result)).toMatchObject({ state: 'done', accepted: PAGES, done: PAGES, dead: 0 });
  const counts = countByPath(site.log);
  expect(counts.get('/robots.txt')).toBe(1);
  counts.delete('/robots.txt');
  expect(counts).toEqual(once(PAGES));
  expect((await checkFolder(dir, 'site', 1)).pagesRead).toBe(PAGES);

  const shown = await seine(['workers', '--dispatch', url, '--json']);
  expect(jsonLines(shown.stdout)).toHaveLength(2);
  expect(jsonLines(shown.stdout)[0]).toMatchObject({ kind: 'http', threads: 1, cpu: expect.any(Number) });
  expect((await seine(['workers', '--dispatch', url])).stdout).toMatch(
    /^worker +kind +state +version +threads +cpu +memory/,
  );
  workers[0]!.child.kill('SIGTERM');
  workers[1]!.child.kill('SIGINT');
  expect((await workers[0]!.finished).code).toBe(0);
  expect((await workers[1]!.finished).code).toBe(130);
  expect((await seine(['workers', '--dispatch', url])).stdout).toMatch(/^no live workers at Redis/);
  await site.close();
});

test('kill -9 of a worker, FLUSHALL and kill -9 of Redis in the middle of a crawl: nothing is lost', async () => {
  const PAGES = 800;
  const site = await startLinkedSite({ pages: PAGES, delayMs: 5 });
  const dir = join(folder.path, 'faults');
  const doomed = await startWorker(dir);
  await startWorker(dir);
  const run = startRun(site.url, dir);
  await site.requests(PAGES * 0.2);
  await doomed.killTree();
  await site.requests(PAGES * 0.4);
  const { client, close } = await openRedis(parseFleet(redis.url), { logger: memoryLogger() });
  await client.flushall();
  close();
  await startWorker(dir);
  await site.requests(PAGES * 0.6);
  await redis.kill9();
  await redis.restart();
  const result = await run.finished;
  expect(result.code, result.stderr).toBe(0);
  expect(lastJson(result)).toMatchObject({ state: 'done', accepted: PAGES, done: PAGES, dead: 0 });
  const counts = countByPath(site.log);
  expect([...once(PAGES).keys()].filter((path) => !counts.has(path))).toEqual([]);
  // Only what was out at one of the three moments is fetched again.
  const again = [...counts.values()].reduce((sum, count) => sum + count - 1, 0);
  console.log(JSON.stringify({ fetchedAgain: again }));
  expect(again).toBeLessThanOrEqual(3 * 4 * 120);
  expect((await checkFolder(dir, 'site', 1)).pagesRead).toBe(PAGES);
  await site.close();
});

test('SIGTERM under load: a worker returns what it has, and the others finish without a second request', async () => {
  const PAGES = 300;
  const site = await startLinkedSite({ pages: PAGES, delayMs: 20 });
  const dir = join(folder.path, 'drain');
  const leaving = await startWorker(dir);
  const run = startRun(site.url, dir);
  await site.requests(100);
  leaving.child.kill('SIGTERM');
  const left = await leaving.finished;
  expect(left.code, left.stderr).toBe(0);
  await startWorker(dir);
  const result = await run.finished;
  expect(result.code, result.stderr).toBe(0);
  expect(lastJson(result)).toMatchObject({ state: 'done', done: PAGES, dead: 0 });
  const again = [...countByPath(site.log).values()].reduce((sum, count) => sum + count - 1, 0);
  // Requests that were under way when the signal came.
  expect(again).toBeLessThanOrEqual(8);
  await site.close();
});

test('a worker refuses to start in one sentence, with what to do', async () => {
  const locked = await startRedis({ own: true, settings: { requirepass: 'right' } });
  const file = join(folder.path, 'file');
  writeFileSync(file, '');
  const nobody = ['--dispatch', 'bullmq://127.0.0.1:1'];
  const pages = ['--blobs', join(folder.path, 'refused')];
  const cases: [args: string[], sentence: RegExp][] = [
    [pages, /no queue given/],
    [nobody, /needs a location for pages/],
    [[...nobody, ...pages], /cannot reach Redis at .*: ECONNREFUSED/],
    [
      ['--dispatch', `bullmq://:wrong@127.0.0.1:${locked.port}`, ...pages],
      /rejected the user name or password/,
    ],
    [[...nobody, '--blobs', join(file, 'below')], /not a folder/],
    [[...nobody, ...pages, '--kind', 'odd'], /invalid value for --kind: 'odd'/],
  ];
  const results = await Promise.all(cases.map(([args]) => seine(['worker', ...args])));
  await locked.stop();
  for (const [index, { code, stderr }] of results.entries()) {
    expect(stderr).toMatch(cases[index]![1]);
    expect(stderr).toMatch(/^seine: .+\n {2}.+\n$/);
    expect(stderr).not.toContain('wrong@');
    expect(code).toBe(2);
  }
});
