import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { emulatorEnv, type LambdaSetup, openLambdaSetup } from '../../support/fleet/lambda-setup.ts';
import { seine } from '../../support/seine-in-process.ts';
import {
  jsonLines,
  lastJson,
  type Started,
  startSeine,
  temporaryFolder,
} from '../../support/seine-process.ts';
import {
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
} from '../../support/servers/services.ts';
import { startTreeSite, type TreeSite } from '../../support/sites/tree-site.ts';

/** The same job, unchanged, over every store and every way to carry batches: the result is the same to the byte. */

const PAGES = 100;
const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
let site: TreeSite;
let redis: RedisServer;
let postgres: PostgresServer;
let setup: LambdaSetup;
const workers: Started[] = [];

beforeAll(async () => {
  mkdirSync(at('blobs'));
  [site, redis, postgres, setup] = await Promise.all([
    startTreeSite(PAGES),
    startRedis(),
    startPostgres(),
    openLambdaSetup(at('blobs'), { concurrency: 2 }),
  ]);
  writeFileSync(at('job.ts'), JOB);
  const args = ['worker', '--allow-private', '--workers', '1', '--dispatch', queue(), '--blobs', at('blobs')];
  workers.push(startSeine(args), startSeine(args));
  await Promise.all(workers.map(untilReady));
});
afterAll(async () => {
  for (const { child } of workers) child.kill('SIGTERM');
  await Promise.all(workers.map(({ finished }) => finished));
  await Promise.all([site.close(), redis.stop(), postgres.stop(), setup.close()]);
  folder.remove();
});

/** It says so when it takes batches. */
function untilReady({ child, finished }: Started): Promise<unknown> {
  const ready = new Promise((resolve) =>
    child.stderr!.on('data', (chunk) => /takes/.test(chunk) && resolve(null)),
  );
  return Promise.race([ready, finished.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
}

const queue = () => `${redis.url.replace('redis:', 'bullmq:')}?prefix=matrix`;

/** Its code travels as a bundle; a third of its records come from a selector, the others from a handler. */
const JOB = `
import { defineJob } from 'seine';

const label = (number: number): string => 'thing-' + number;

export default defineJob({
  name: process.env.JOB_NAME!,
  sources: process.env.JOB_SITE_URL!,
  follow: 'host',
  allowPrivate: true,
  batchSize: 10,
  politeness: { rate: 'max' },
  routes: [
    {
      name: 'item',
      match: '/item/*',
      key: 'label',
      select: { title: 'h1', price: { css: '.price', type: 'money' }, about: '.about' },
      handler: (page, selected) => ({ ...selected, label: label(Number(page.url.split('/').at(-1))) }),
    },
    { name: 'landing', match: '/landing/*', select: { title: 'title' } },
  ],
});
`;

interface Cell {
  name: string;
  dispatch: string;
  store: string[];
}

const envOf = (name: string) => ({
  JOB_NAME: name,
  JOB_SITE_URL: site.url,
  ...emulatorEnv(setup.emulator),
  SEINE_LAMBDA_CONCURRENCY: '2',
});

/** Where something lies, and when and by whom it was done, differs from run to run; nothing else may. */
const PASSING = ['archive', 'fetchedAt', 'createdAt', 'updatedAt', 'checkedAt'];

async function crawl({ name, dispatch, store }: Cell): Promise<string> {
  const places = placesOf({ name, store });
  const args = ['run', at('job.ts'), '--workers', '1', '--dispatch', dispatch, ...places, '--json'];
  const run = await startSeine(args, { env: envOf(name) }).finished;
  expect(run.stderr, name).toBe('');
  expect(lastJson(run), name).toMatchObject({ state: 'done', accepted: site.urls });
  const tasks = await exported('tasks', { name, store });
  expect(tasks, name).toHaveLength(site.urls);
  const lines = [...tasks, ...(await exported('records', { name, store }))].map((row) =>
    JSON.stringify(Object.fromEntries(Object.entries(row).filter(([key]) => !PASSING.includes(key)))),
  );
  return lines.sort().join('\n');
}

const placesOf = ({ name, store }: Omit<Cell, 'dispatch'>) => [
  ...['--dir', at(name), '--blobs', at('blobs')],
  ...store,
];

async function exported(what: string, cell: Omit<Cell, 'dispatch'>): Promise<Record<string, unknown>[]> {
  const { stdout, stderr } = await seine(['export', cell.name, '--what', what, ...placesOf(cell)]);
  expect(stderr).toBe('');
  return jsonLines(stdout);
}

/** Each page was asked for once by each crawl, and nothing that is forbidden. */
function expectPolite(crawls: number): void {
  const counts = new Map<string, number>();
  for (const path of site.log.splice(0)) counts.set(path, (counts.get(path) ?? 0) + 1);
  counts.delete('/robots.txt');
  expect(new Set(counts.values())).toEqual(new Set([crawls]));
  expect([...counts.keys()].filter((path) => path.startsWith('/private/'))).toEqual([]);
}

test('{SQLite, PostgreSQL} × {threads, BullMQ, Lambda}, and all three at once, come to one result', async () => {
  const dispatchers = { threads: 'threads', bullmq: queue(), lambda: 'lambda://seine' };
  const results = new Map<string, string>();
  for (const [name, dispatch] of Object.entries(dispatchers)) {
    const stores = { sqlite: [], postgres: ['--store', postgres.url] };
    await Promise.all(
      Object.entries(stores).map(async ([kind, store]) => {
        const cell = { name: `${kind}-${name}`, dispatch, store };
        results.set(cell.name, await crawl(cell));
      }),
    );
    expectPolite(2);
  }
  const all = { name: 'all', dispatch: Object.values(dispatchers).join(','), store: [] };
  results.set(all.name, await crawl(all));
  expectPolite(1);

  expect(results.size).toBe(7);
  const first = results.get('sqlite-threads')!;
  expect(first.split('\n').length).toBeGreaterThan(2 * PAGES);
  for (const [name, result] of results) expect(result, name).toBe(first);
  const names = (await exported('attempts', all)).map(({ worker }) => String(worker));
  for (const kind of [/^thread-/, /\/thread-/, /^lambda-/])
    expect(names.filter((name) => kind.test(name)).length, String(kind)).toBeGreaterThan(0);
});

test('seine doctor finds the workers and the function of the fleet, and a function that keeps pages elsewhere', async () => {
  const ask = async (blobs: string) => {
    const args = ['doctor', '--json', '--dir', at('doctor'), '--dispatch', `${queue()},lambda://seine`];
    const finished = await seine([...args, '--blobs', blobs], { env: envOf('doctor') });
    const checks = lastJson(finished).checks as { name: string; ok: boolean; detail: string }[];
    return { code: finished.code, of: (name: string) => checks.find((check) => check.name === name) };
  };
  const well = await ask(at('blobs'));
  expect(well.of('redis')?.detail).toMatch(
    /works; live workers: 2, 0 with a browser; messages are signed and encrypted$/,
  );
  expect(well.of('lambda')?.detail).toMatch(/^the function seine answers as Seine \S+, 1024 MB, 120 s$/);
  expect(well.code).toBe(0);
  const ill = await ask(at('other'));
  expect(ill.of('lambda')).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/stores pages in .*blobs, but/),
  });
  expect(ill.code).toBe(2);
});
