import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { replaceBetween } from '../scripts/replace-between.ts';

/**
 * What it costs to be watched: `node bench/watched.ts [--pages 6000] [--pairs 6] [--write]`. The same crawl by `seine serve`,
 * in turns with nobody looking, and with an open dashboard and metrics scraped every 5 s. CPU seconds of the server count, with
 * its worker threads: unlike its rate they hardly depend on what else the machine does. Exits with 1 above 3 %.
 */

const { values } = parseArgs({
  options: {
    pages: { type: 'string', default: '6000' },
    pairs: { type: 'string', default: '6' },
    write: { type: 'boolean', default: false },
  },
});
const PAGES = Number(values.pages);
const PAIRS = Number(values.pairs);
const COST_MAX = 0.03;
const TICKS_PER_SECOND = 100;

/** Any address has a page of 24 KB with 33 links. */
const ORIGIN = `
  const links = Array.from({ length: 33 }, (_, at) => '<a href="/' + at + '">' + at + '</a>').join('');
  const page = '<title>x</title>' + links + '<p>' + 'Some words of a page. '.repeat(1060) + '</p>';
  const server = require('node:http').createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end(page));
  server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));`;

/** What the page of a job asks for besides its stream, and how often. */
const CALLS: [path: (id: string) => string, everyMs: number][] = [
  [(id) => `/api/v1/jobs/${id}/explain`, 5_000],
  [() => '/api/v1/alerts?limit=100', 5_000],
  [() => '/metrics', 5_000],
  [(id) => `/api/v1/jobs/${id}/series?step=10`, 10_000],
  [(id) => `/api/v1/jobs/${id}/failures`, 10_000],
  [(id) => `/api/v1/jobs/${id}/quality`, 10_000],
];

const children = new Set<ChildProcess>();
const folder = mkdtempSync(join(tmpdir(), 'seine-watched-'));
try {
  const origin = await start(['-e', ORIGIN], (line) => line);
  const pairs: { alone: number; watched: number }[] = [];
  for (let at = 0; at <= PAIRS; at++) {
    // In turns, so that what else the machine does meets both.
    const first = at % 2 === 0;
    const one = await crawl(origin.url, `${at}-a`, first);
    const other = await crawl(origin.url, `${at}-b`, !first);
    const pair = first ? { watched: one, alone: other } : { watched: other, alone: one };
    process.stderr.write(`${JSON.stringify(pair)}\n`);
    // The first pair is to get warm.
    if (at > 0) pairs.push(pair);
  }
  const text = report(pairs);
  process.stdout.write(`${text}\n`);
  if (values.write) replaceBetween('docs/monitoring.md', 'watched', text);
  process.exitCode = costOf(pairs) <= COST_MAX ? 0 : 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

interface Program {
  url: string;
  pid: number;
  end(): Promise<void>;
}

async function start(args: string[], urlOf: (line: string) => string): Promise<Program> {
  const env = { ...process.env, SEINE_WORKERS: '1' };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(urlOf(line)));
    void exited.then(() => reject(new Error(`${args[0]} ended`)));
  });
  const end = async () => {
    child.kill('SIGTERM');
    await exited;
    children.delete(child);
  };
  return { url, pid: child.pid!, end };
}

/** CPU seconds of the server for the crawl. */
async function crawl(origin: string, name: string, isWatched: boolean): Promise<number> {
  const dir = join(folder, name);
  const server = await start(
    ['bin/seine.js', 'serve', '--listen', '127.0.0.1:0', '--dir', dir, '--allow-private', '--json'],
    (line) => (JSON.parse(line) as { listening: string }).listening,
  );
  const urls = Array.from({ length: PAGES }, (_, at) => `${origin}/page/${at}`);
  const before = cpuSeconds(server.pid);
  const answer = await fetch(`${server.url}/api/v1/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ urls, rate: 'max', robots: false }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  const { batch_id: id } = (await answer.json()) as { batch_id: string };
  const stop = new AbortController();
  if (isWatched) watch(server.url, id, stop.signal);
  const status = await untilDone(server.url, id);
  const used = cpuSeconds(server.pid) - before;
  stop.abort();
  await server.end();
  rmSync(dir, { recursive: true, force: true });
  if (status !== 'completed') throw new Error(`the crawl is ${status}`);
  return used;
}

async function untilDone(url: string, id: string): Promise<string> {
  for (;;) {
    const { status } = (await (await fetch(`${url}/api/v1/jobs/${id}?wait=30`)).json()) as { status: string };
    if (status !== 'running' && status !== 'queued') return status;
  }
}

/** As an open page of the job does, and Prometheus. */
function watch(url: string, id: string, signal: AbortSignal): void {
  const read = async (path: string) => {
    const { body } = await fetch(url + path, { signal });
    for await (const _ of body!);
  };
  const quietly = (path: string) => void read(path).catch(() => {});
  quietly(`/api/v1/snapshots?job=${id}`);
  for (const [pathOf, everyMs] of CALLS) {
    quietly(pathOf(id));
    const timer = setInterval(() => quietly(pathOf(id)), everyMs);
    signal.addEventListener('abort', () => clearInterval(timer));
  }
}

/** Of the process with its threads, and of those that it started. */
function cpuSeconds(pid: number): number {
  const stat = (of: string) =>
    readFileSync(`/proc/${of}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  let ticks = 0;
  for (const one of readdirSync('/proc')) {
    if (!/^\d+$/.test(one)) continue;
    try {
      const fields = stat(one);
      // Fields 4, 14 and 15 of proc(5): the parent, and the time in both modes.
      if (Number(one) === pid || Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // It has ended meanwhile.
    }
  }
  return ticks / TICKS_PER_SECOND;
}

function costOf(pairs: readonly { alone: number; watched: number }[]): number {
  const ratios = pairs.map(({ alone, watched }) => watched / alone).sort((one, other) => one - other);
  const middle = ratios.length / 2;
  return (ratios[Math.floor(middle - 0.5)]! + ratios[Math.floor(middle)]!) / 2 - 1;
}

function report(pairs: { alone: number; watched: number }[]): string {
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  return [
    `${PAGES.toLocaleString('en')} pages of 24 KB, ${pairs.length} pairs, on a machine with other work. Median of the pairs: **${percent(costOf(pairs))}**.`,
    '',
    '| CPU seconds, nobody looks | dashboard open, metrics each 5 s | more |',
    '|--:|--:|--:|',
    ...pairs.map(
      ({ alone, watched }) =>
        `| ${alone.toFixed(2)} | ${watched.toFixed(2)} | ${percent(watched / alone - 1)} |`,
    ),
  ].join('\n');
}
