import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { readOptions } from '../scripts/read-options.ts';
import { replaceBetween } from '../scripts/replace-between.ts';
import { measureRollups, type RollupPair } from './rollup-cost.ts';

const { values } = readOptions({
  start: 'npm run watched --',
  about: `What it costs to be watched, after \`npm run build\`. CPU seconds of \`seine serve\` with its worker threads, while it crawls
slowly, in turns with nobody looking, and with an open dashboard and metrics scraped every 5 s: the difference is what
watching takes in a second. Then the same server crawls as fast as it can, which is what that is compared with. In a fast
crawl alone, other programs change what a page costs by more than watching does. What is watched is kept all the time,
watched or not: roll-ups are measured apart (rollup-cost.ts), with as many pages in a report as that crawl had, and
added. Exits with 1 when both are above 3 %.`,
  options: {
    pairs: { count: 6, does: 'turns of each kind' },
    write: { flag: true, does: 'put the result into docs/monitoring.md' },
  },
});
const PAIRS = values.pairs;
const TURN_MS = 8_000;
const COST_MAX = 0.03;
const TICKS_PER_SECOND = 100;
const SLOW_PER_SECOND = 20;
/** More than can be fetched meanwhile. */
const PAGES_PER_SECOND_MAX = 10_000;

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

/** CPU milliseconds in a second. */
interface Pair {
  alone: number;
  watched: number;
}

interface Figures {
  pairs: Pair[];
  /** Of a crawl without a limit. */
  fast: number;
  /** CPU microseconds of that crawl for a page. */
  fastPage: number;
  pagesInASettle: number;
  rollups: RollupPair[];
}

/** A worker reports what is finished so often. */
const REPORT_MS = 1_500;

const children = new Set<ChildProcess>();
const folder = mkdtempSync(join(tmpdir(), 'seine-watched-'));
try {
  const figures = await measure();
  const text = report(figures);
  process.stdout.write(`${text}\n`);
  if (values.write) replaceBetween('docs/monitoring.md', 'watched', text);
  process.exitCode = costOf(figures).both <= COST_MAX ? 0 : 1;
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

async function measure(): Promise<Figures> {
  const origin = await start(['-e', ORIGIN], (line) => line);
  const server = await start(
    [
      ...['bin/seine.js', 'serve', '--listen', '127.0.0.1:0', '--dir', join(folder, 'data')],
      ...['--allow-private', '--json'],
    ],
    (line) => (JSON.parse(line) as { listening: string }).listening,
  );
  const slow = await startCrawl(server.url, origin.url, SLOW_PER_SECOND);
  // The first turn is to get warm.
  await turn(server, slow, true);
  const pairs: Pair[] = [];
  for (let at = 0; at < PAIRS; at++) {
    const isFirst = at % 2 === 0;
    const one = await turn(server, slow, isFirst);
    const other = await turn(server, slow, !isFirst);
    pairs.push(isFirst ? { watched: one, alone: other } : { watched: other, alone: one });
    process.stderr.write(`${JSON.stringify(pairs.at(-1))}\n`);
  }
  await fetch(`${server.url}/api/v1/jobs/${slow}/cancel`, { method: 'POST' });
  const id = await startCrawl(server.url, origin.url, 'max');
  await turn(server, id, false);
  const before = await pagesOf(server, id);
  const fast = await turn(server, id, false);
  const pages = (await pagesOf(server, id)) - before;
  await server.stop();
  await origin.stop();
  const pagesInASettle = pagesInASettleOf(join(folder, 'data', 'seine.db'));
  const rollups = await measureRollups(PAIRS, pagesInASettle);
  for (const pair of rollups) process.stderr.write(`${JSON.stringify(pair)}\n`);
  return { pairs, fast, fastPage: (fast * TURN_MS) / pages, pagesInASettle, rollups };
}

async function pagesOf({ url }: Program, id: string): Promise<number> {
  const { counts } = (await (await fetch(`${url}/api/v1/jobs/${id}`)).json()) as {
    counts: { succeeded: number };
  };
  return counts.succeeded;
}

/** How many pages of the last job came with a report, on average. */
function pagesInASettleOf(path: string): number {
  const db = new DatabaseSync(path, { readOnly: true });
  const row = db
    .prepare(`
      SELECT sum(done) AS pages, sum(1 + duration_ms / ${REPORT_MS}) AS settles FROM batches
      WHERE state = 'closed' AND job_id = (SELECT max(job_id) FROM batches)`)
    .get() as { pages: number; settles: number };
  db.close();
  return Math.max(1, Math.round(row.pages / row.settles));
}

async function startCrawl(server: string, origin: string, rate: number | 'max'): Promise<string> {
  const perSecond = rate === 'max' ? PAGES_PER_SECOND_MAX : rate;
  const turns = rate === 'max' ? 2 : 2 * PAIRS + 2;
  const count = (turns * TURN_MS * perSecond) / 1_000;
  const urls = Array.from({ length: count }, (_, at) => `${origin}/${rate}/${at}`);
  const body = [JSON.stringify({ rate, robots: false }), ...urls].join('\n');
  const answer = await fetch(`${server}/api/v1/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body,
  });
  if (!answer.ok) throw new Error(await answer.text());
  return ((await answer.json()) as { batch_id: string }).batch_id;
}

/** CPU milliseconds of the server in a second. */
async function turn(server: Program, id: string, isWatched: boolean): Promise<number> {
  const stop = new AbortController();
  const before = { at: performance.now(), cpu: cpuSeconds(server.pid) };
  if (isWatched) watch(server.url, id, stop.signal);
  await new Promise((resolve) => setTimeout(resolve, TURN_MS));
  const cpu = cpuSeconds(server.pid) - before.cpu;
  const seconds = (performance.now() - before.at) / 1_000;
  stop.abort();
  const { status } = (await (await fetch(`${server.url}/api/v1/jobs/${id}`)).json()) as { status: string };
  if (status !== 'running') throw new Error(`the crawl is ${status}`);
  return (cpu * 1_000) / seconds;
}

interface Program {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

async function start(args: string[], urlOf: (line: string) => string): Promise<Program> {
  const env = { ...process.env, SEINE_WORKERS: '1' };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', (line) => resolve(urlOf(line)));
    child.once('exit', () => reject(new Error(`${args[0]} ended`)));
  });
  return {
    url,
    pid: child.pid!,
    stop: async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      children.delete(child);
    },
  };
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

function medianOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.floor(middle - 0.5)]! + sorted[Math.floor(middle)]!) / 2;
}

function watchingOf(pairs: readonly Pair[]): number {
  return medianOf(pairs.map(({ alone, watched }) => watched - alone));
}

function rollupsOf(pairs: readonly RollupPair[]): number {
  return medianOf(pairs.map(({ without, kept }) => kept - without));
}

function costOf(figures: Figures): { watching: number; rollups: number; both: number } {
  const watching = watchingOf(figures.pairs) / figures.fast;
  const rollups = rollupsOf(figures.rollups) / figures.fastPage;
  return { watching, rollups, both: watching + rollups };
}

function report(figures: Figures): string {
  const { pairs, fast, fastPage, pagesInASettle, rollups } = figures;
  const cost = costOf(figures);
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  return [
    `${pairs.length} pairs of each, on a machine with other work. Together **${percent(cost.both)}** of the CPU seconds of a crawl.`,
    '',
    `Watching takes ${watchingOf(pairs).toFixed(1)} ms of CPU in a second, a crawl without a limit ${fast.toFixed(0)} ms: ${percent(cost.watching)}.`,
    '',
    '| CPU ms in a second at 20 pages/s, unobserved | dashboard open, metrics each 5 s | more |',
    '|--:|--:|--:|',
    ...pairs.map(
      ({ alone, watched }) =>
        `| ${alone.toFixed(1)} | ${watched.toFixed(1)} | ${(watched - alone).toFixed(1)} |`,
    ),
    '',
    `Roll-ups take ${rollupsOf(rollups).toFixed(1)} µs of CPU for a page, that crawl ${fastPage.toFixed(0)} µs: ${percent(cost.rollups)}. Its reports had ${pagesInASettle} pages each.`,
    '',
    '| CPU µs for a page to settle, no roll-ups | with roll-ups | more |',
    '|--:|--:|--:|',
    ...rollups.map(
      ({ without, kept }) =>
        `| ${without.toFixed(1)} | ${kept.toFixed(1)} | ${(kept - without).toFixed(1)} |`,
    ),
  ].join('\n');
}
