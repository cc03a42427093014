import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Browser, chromium } from 'playwright-core';
import { enqueue, url as urlOf } from '../../bench/flat-work.ts';
import { openFolder } from '../../src/app/folder.ts';
import { findChromium } from '../../src/fetch/browser/process/find-chromium.ts';
import type { Job, Store } from '../../src/ports/store.ts';
import { change, leaseOne, recordOf, settlementOf, specOf } from '../../test/support/fixtures.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run dashboard-speed --',
  about: `How fast the dashboard is over a folder of many tasks. Exits with 1 when a bar is not met. Tasks go straight into the
store, which takes some minutes.`,
  options: {
    tasks: { count: 5_000_000, does: 'tasks of the folder' },
    settled: { count: 60_000, does: 'how many of them are settled' },
    write: { flag: true, does: 'put the result into docs/dashboard.md' },
  },
});
const TASKS = values.tasks;
const SETTLED = values.settled;
const PAINT_MAX_MS = 1_000;
const CALL_MAX_MS = 300;
/** Of several looks and calls, the median counts: other programs run here, too. */
const LOOKS = 3;
const CALLS = 5;

interface Look {
  paintMs: number;
  shownMs: number;
  /** What the view asked the API for. */
  calls: Set<string>;
}

interface Row {
  name: string;
  paintMs: number;
  shownMs: number;
  calls: number;
  /** The slowest of them, asked again without a browser, with its whole answer. */
  callMs: number;
  call: string;
}

const VIEWS: [name: string, path: string, shows: string][] = [
  ['Jobs', '/', 'many'],
  ['Job', '/jobs/job_1', 'Failed attempts by host'],
  ['Tasks', '/jobs/job_1/tasks', '50 shown'],
  ['Tasks that failed', '/jobs/job_1/tasks?status=failed', '50 shown'],
  ['Tasks of a host', '/jobs/job_1/tasks?host=host-7.example', 'shown'],
  ['Tasks, part of a URL', '/jobs/job_1/tasks?q=product-40', 'shown'],
  ['One task', `/jobs/job_1/task?url=${encodeURIComponent(urlOf(TASKS - 1))}`, 'Attempts'],
  ['Dead letters', '/jobs/job_1/dead', 'Retry all'],
  ['Records', '/jobs/job_1/records', 'Changed'],
  ['Hosts of the job', '/jobs/job_1/hosts', 'host-7.example'],
  ['Cost of the job', '/jobs/job_1/cost', 'adds up'],
  ['Hosts', '/hosts', 'host-7.example'],
  ['Workers', '/workers', 'Workers'],
  ['Cost', '/cost', 'many'],
  ['Alerts', '/alerts', 'Alerts'],
];

const folder = mkdtempSync(join(tmpdir(), 'seine-speed-'));
const dir = join(folder, 'data');
try {
  await fill();
  const rows = await measure();
  const table = tableOf(rows);
  process.stdout.write(`${table}\n`);
  if (values.write) replaceBetween('docs/dashboard.md', 'speed', table);
  const isMet = rows.every(({ paintMs, callMs }) => paintMs <= PAINT_MAX_MS && callMs <= CALL_MAX_MS);
  process.exitCode = isMet ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function fill(): Promise<void> {
  const { store, close } = await openFolder({ dir, sync: 'normal' }, { create: true });
  const code = { spec: specOf({ name: 'many' }), specHash: 'many', bundle: null, file: null };
  const job = await store.jobs.create({ ...code, name: 'many', now: Date.now() });
  const started = Date.now();
  await enqueue(store, job.id, 0, TASKS);
  say(`${TASKS.toLocaleString('en')} tasks after ${Math.round((Date.now() - started) / 1_000)} s`);
  await settleSome(store, job);
  say(
    `${SETTLED.toLocaleString('en')} of them settled after ${Math.round((Date.now() - started) / 1_000)} s`,
  );
  await store.jobs.update(job.id, { state: 'stopped', reason: 'stopped by a person', endedAt: Date.now() });
  await close();
}

/** One of fifty fails, one of five brings a record. */
async function settleSome(store: Store, job: Job): Promise<void> {
  for (let done = 0; done < SETTLED; ) {
    const batch = await leaseOne(store, job);
    const tasks = batch.tasks.map(({ id }) =>
      id % 50 === 0
        ? change.dead(id)
        : change.fetched(
            id,
            id % 5 === 0 ? { records: [recordOf(`r${id}`, { title: `Product ${id}` })] } : {},
          ),
    );
    await store.frontier.settle(settlementOf(job, batch.id, tasks));
    done += batch.tasks.length;
  }
}

async function measure(): Promise<Row[]> {
  const server = spawn(
    process.execPath,
    ['bin/seine.js', 'serve', '--dir', dir, '--listen', '127.0.0.1:0', '--json'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const found = await findChromium(null);
  const browser = await chromium.launch({
    executablePath: found.path,
    env: { ...process.env, ...found.environment } as Record<string, string>,
    args: ['--no-sandbox', '--disable-gpu'],
  });
  try {
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: server.stdout }).once('line', resolve);
      server.once('exit', (exit) => reject(new Error(`seine serve ended with ${exit}`)));
    });
    const base = (JSON.parse(line) as { listening: string }).listening;
    const rows: Row[] = [];
    for (const [name, path, shows] of VIEWS) {
      rows.push({ name, ...(await rowOf(browser, base, path, shows)) });
      say(JSON.stringify(rows.at(-1)));
    }
    return rows;
  } finally {
    await browser.close();
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    await ended;
  }
}

async function rowOf(
  browser: Browser,
  base: string,
  path: string,
  shows: string,
): Promise<Omit<Row, 'name'>> {
  const looks: Look[] = [];
  for (let at = 0; at < LOOKS; at++) looks.push(await lookAt(browser, base, path, shows));
  const calls = new Set(looks.flatMap((look) => [...look.calls]));
  let slowest = { call: '', callMs: 0 };
  for (const call of calls) {
    const times: number[] = [];
    for (let at = 0; at < CALLS; at++) {
      const started = performance.now();
      await (await fetch(base + call)).arrayBuffer();
      times.push(performance.now() - started);
    }
    const callMs = median(times);
    if (callMs > slowest.callMs)
      slowest = {
        callMs,
        call: new URL(base + call).pathname.replace('/api/v1', '').replace('job_1', '{id}'),
      };
  }
  return {
    paintMs: median(looks.map(({ paintMs }) => paintMs)),
    shownMs: median(looks.map(({ shownMs }) => shownMs)),
    calls: calls.size,
    ...slowest,
  };
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

async function lookAt(browser: Browser, base: string, path: string, shows: string): Promise<Look> {
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  const look: Look = { paintMs: 0, shownMs: 0, calls: new Set() };
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    // A stream has no end.
    if (pathname.startsWith('/api/') && !pathname.endsWith('/snapshots')) look.calls.add(pathname + search);
  });
  const started = performance.now();
  await page.goto(base + path);
  await page.getByText(shows).first().waitFor({ timeout: 60_000 });
  look.shownMs = performance.now() - started;
  await page.waitForLoadState('load');
  // The last calls of the view end by themselves; the stream of snapshots does not.
  await page.waitForTimeout(300);
  look.paintMs = await page.evaluate<number>(
    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0",
  );
  await page.close();
  return look;
}

function tableOf(rows: Row[]): string {
  const ms = (value: number) => `${Math.max(1, Math.round(value))} ms`;
  return [
    `${TASKS.toLocaleString('en')} tasks of 100 hosts, ${SETTLED.toLocaleString('en')} of them settled, in SQLite, on a machine with other work.`,
    '',
    '| view | first paint | its content is shown | calls | the slowest takes | which |',
    '|---|--:|--:|--:|--:|---|',
    ...rows.map(
      ({ name, paintMs, shownMs, calls, callMs, call }) =>
        `| ${name} | ${ms(paintMs)} | ${ms(shownMs)} | ${calls} | ${ms(callMs)} | \`${call}\` |`,
    ),
  ].join('\n');
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
