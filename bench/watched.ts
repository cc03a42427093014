import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { replaceBetween } from '../scripts/replace-between.ts';

/**
 * What it costs to be watched: `node bench/watched.ts [--pairs 10] [--write]`. One long crawl by `seine serve`, in turns for
 * 8 s with nobody looking, and for 8 s with an open dashboard and metrics scraped every 5 s. CPU seconds of the server for a
 * page count, with its worker threads. Turns are short and many, because other programs change what a page costs. Exits with 1
 * above 3 %.
 */

const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '10' },
    write: { type: 'boolean', default: false },
  },
});
const PAIRS = Number(values.pairs);
const TURN_MS = 8_000;
const COST_MAX = 0.03;
const TICKS_PER_SECOND = 100;
/** More than can be fetched meanwhile. */
const PAGES_PER_SECOND_MAX = 4_000;

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

interface Pair {
  /** CPU milliseconds for a page. */
  alone: number;
  watched: number;
}

const children = new Set<ChildProcess>();
const folder = mkdtempSync(join(tmpdir(), 'seine-watched-'));
try {
  const pairs = await measure();
  const text = report(pairs);
  process.stdout.write(`${text}\n`);
  if (values.write) replaceBetween('docs/monitoring.md', 'watched', text);
  process.exitCode = costOf(pairs) <= COST_MAX ? 0 : 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

async function measure(): Promise<Pair[]> {
  const origin = await start(['-e', ORIGIN], (line) => line);
  const server = await start(
    [
      ...['bin/seine.js', 'serve', '--listen', '127.0.0.1:0', '--dir', join(folder, 'data')],
      ...['--allow-private', '--json'],
    ],
    (line) => (JSON.parse(line) as { listening: string }).listening,
  );
  const id = await startCrawl(server.url, origin.url);
  // The first turn is to get warm.
  await turn(server, id, true);
  const pairs: Pair[] = [];
  for (let at = 0; at < PAIRS; at++) {
    const isFirst = at % 2 === 0;
    const one = await turn(server, id, isFirst);
    const other = await turn(server, id, !isFirst);
    pairs.push(isFirst ? { watched: one, alone: other } : { watched: other, alone: one });
    process.stderr.write(`${JSON.stringify(pairs.at(-1))}\n`);
  }
  return pairs;
}

async function startCrawl(server: string, origin: string): Promise<string> {
  const count = ((2 * PAIRS + 1) * TURN_MS * PAGES_PER_SECOND_MAX) / 1_000;
  const urls = Array.from({ length: count }, (_, at) => `${origin}/page/${at}`);
  const body = ['{"rate":"max","robots":false}', ...urls].join('\n');
  const answer = await fetch(`${server}/api/v1/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body,
  });
  if (!answer.ok) throw new Error(await answer.text());
  return ((await answer.json()) as { batch_id: string }).batch_id;
}

/** CPU milliseconds of the server for a page. */
async function turn(server: Program, id: string, isWatched: boolean): Promise<number> {
  const stop = new AbortController();
  const before = { pages: await pagesOf(server.url, id), cpu: cpuSeconds(server.pid) };
  if (isWatched) watch(server.url, id, stop.signal);
  await new Promise((resolve) => setTimeout(resolve, TURN_MS));
  const cpu = cpuSeconds(server.pid) - before.cpu;
  const pages = (await pagesOf(server.url, id)) - before.pages;
  stop.abort();
  if (pages === 0) throw new Error('no page was fetched');
  return (cpu * 1_000) / pages;
}

async function pagesOf(url: string, id: string): Promise<number> {
  const answer = await fetch(`${url}/api/v1/jobs/${id}`);
  const { status, counts } = (await answer.json()) as { status: string; counts: { succeeded: number } };
  if (status !== 'running') throw new Error(`the crawl is ${status}`);
  return counts.succeeded;
}

interface Program {
  url: string;
  pid: number;
}

async function start(args: string[], urlOf: (line: string) => string): Promise<Program> {
  const env = { ...process.env, SEINE_WORKERS: '1' };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(urlOf(line)));
    child.once('exit', () => reject(new Error(`${args[0]} ended`)));
  });
  return { url, pid: child.pid! };
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

function costOf(pairs: readonly Pair[]): number {
  const ratios = pairs.map(({ alone, watched }) => watched / alone).sort((one, other) => one - other);
  const middle = ratios.length / 2;
  return (ratios[Math.floor(middle - 0.5)]! + ratios[Math.floor(middle)]!) / 2 - 1;
}

function report(pairs: readonly Pair[]): string {
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  return [
    `Pages of 24 KB, ${pairs.length} pairs of 8 s each, on a machine with other work. Median of the pairs: **${percent(costOf(pairs))}**.`,
    '',
    '| CPU ms for a page, nobody looks | dashboard open, metrics each 5 s | more |',
    '|--:|--:|--:|',
    ...pairs.map(
      ({ alone, watched }) =>
        `| ${alone.toFixed(3)} | ${watched.toFixed(3)} | ${percent(watched / alone - 1)} |`,
    ),
  ].join('\n');
}
