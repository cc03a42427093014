/** The service scenario: what the API adds to a fetch, takes in batches, and answers while a crawl runs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Pool, request } from 'undici';
import type { Store } from '../src/ports/store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import { createJob, tasksOf } from '../test/support/fixtures.ts';
import { ROOT_FOLDER } from './contenders/contender.ts';
import { nodeFlags } from './node-flags.ts';
import { describeMachine } from './report/machine.ts';
import type { BenchOptions, Scenario, ScenarioResult, Verdict } from './scenario.ts';
import type { Scratch } from './scratch.ts';

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const CHUNK = 2_000;
const AT_ONCE = 32;

/** Any address has a page of 24 KB with 33 links. */
const ORIGIN = `
  const links = Array.from({ length: 33 }, (_, at) => '<a href="/' + at + '">' + at + '</a>').join('');
  const page = '<title>x</title>' + links + '<p>' + 'Some words of a page. '.repeat(1060) + '</p>';
  const server = require('node:http').createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end(page));
  server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));`;

interface Served {
  url: string;
  pid: number;
}

async function startProgram(scratch: Scratch, args: string[], pattern: RegExp): Promise<Served> {
  const child: ChildProcess = spawn(process.execPath, [...nodeFlags(), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  scratch.onEnd(async () => {
    if (child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
    for (const stream of [child.stdout!, child.stderr!])
      createInterface({ input: stream }).on('line', (line) => {
        const [found] = pattern.exec(line) ?? [];
        if (found) resolve(found);
      });
  });
  return { url, pid: child.pid! };
}

class Api {
  readonly #base: string;
  readonly #pool: Pool;

  constructor({ url }: Served) {
    this.#base = `${url}/api/v1`;
    this.#pool = new Pool(url, { connections: AT_ONCE * 2, bodyTimeout: 0, headersTimeout: 0 });
  }

  async call<T>(
    method: 'GET' | 'POST',
    path: string,
    body?: string | AsyncIterable<string>,
    type = 'application/json',
  ): Promise<T> {
    const { statusCode, body: answer } = await request(this.#base + path, {
      method,
      dispatcher: this.#pool,
      ...(body === undefined ? {} : { headers: { 'content-type': type }, body: body as string }),
    });
    const text = await answer.text();
    if (statusCode >= 400) throw new Error(`${method} ${path}: ${statusCode} ${text.slice(0, 300)}`);
    return JSON.parse(text) as T;
  }

  async scrape(url: string): Promise<void> {
    const asked = JSON.stringify({ url, rate: 'max', robots: false, formats: ['html'] });
    const { status } = await this.call<{ status: string }>('POST', '/scrape', asked);
    if (status !== 'completed') throw new Error(`a scrape is ${status}`);
  }

  batch(
    lines: AsyncIterable<string>,
  ): Promise<{ batch_id: string; accepted: number; rejected: object[]; rejected_count: number }> {
    return this.call('POST', '/batch', lines, 'application/x-ndjson');
  }

  close = () => this.#pool.close();
}

const ms = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

const rssOf = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;

/** CPU that the thread which plans, settles and writes has used. */
const mainThreadMs = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

/** In turns, so that what else the machine does meets both. */
async function latencies(api: Api, origin: Served, count: number) {
  const pool = new Pool(origin.url);
  const bare = async (path: string) => {
    const { body } = await request(origin.url + path, { dispatcher: pool });
    await body.text();
  };
  const [scraped, fetched]: [number[], number[]] = [[], []];
  for (let at = 0; at < count + 20; at++) {
    const pair = [await ms(() => api.scrape(`${origin.url}/l/${at}`)), await ms(() => bare(`/b/${at}`))];
    if (at < 20) continue;
    scraped.push(pair[0]!);
    fetched.push(pair[1]!);
  }
  await pool.close();
  return {
    scrapeP50: quantile(scraped, 0.5),
    bareP50: quantile(fetched, 0.5),
    scrapeP99: quantile(scraped, 0.99),
  };
}

async function scrapeRate(api: Api, origin: Served, count: number, round: number): Promise<number> {
  let next = 0;
  const took = await ms(() =>
    Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < count) await api.scrape(`${origin.url}/r${round}/${next++}`);
      }),
    ),
  );
  return (count / took) * 1_000;
}

async function* urlLines(prefix: string, count: number, wrong = 0): AsyncGenerator<string, void, void> {
  yield '{"rate":0.01}\n';
  for (let at = 0; at < count; at += 500) {
    let text = '';
    for (let one = at; one < Math.min(count, at + 500); one++) text += `${prefix}${one}\n`;
    yield text;
  }
  for (let at = 0; at < wrong; at++) yield 'nonsense\n';
}

/** Into one store for all rounds: like that of the server it has the tasks of the rounds before, which cost a quarter more. */
async function enqueueRate(store: Store, count: number, round: number) {
  const job = await createJob(store, `bench-${round}`);
  let took = 0;
  let cpuMs = 0;
  for (let at = 0; at < count; at += CHUNK) {
    const urls = Array.from(
      { length: Math.min(CHUNK, count - at) },
      (_, one) => `http://e.example/${round}/${at + one}`,
    );
    const tasks = tasksOf(...urls);
    const options = { now: Date.now(), perTemplateMax: null, source: null, added: { rejected: 0 } };
    const before = mainThreadMs(process.pid);
    took += await ms(() => store.frontier.enqueue(job.id, tasks, options));
    cpuMs += mainThreadMs(process.pid) - before;
  }
  return { rate: (count / took) * 1_000, cpuUs: (cpuMs / count) * 1_000 };
}

/** In turns with a program that does nothing but answer: what the machine lets wait is waited for by both. */
async function statusWhileCrawling(api: Api, origin: Served, idle: Served, pages: number) {
  async function* lines() {
    yield '{"rate":"max","robots":false}\n';
    for (let at = 0; at < pages; at++) yield `${origin.url}/c/${at}\n`;
  }
  const { batch_id: id } = await api.batch(lines());
  const times: number[] = [];
  const idleTimes: number[] = [];
  const pool = new Pool(idle.url);
  const start = performance.now();
  for (let isOver = false; !isOver; ) {
    const from = performance.now();
    const { status } = await api.call<{ status: string }>('GET', `/jobs/${id}`);
    times.push(performance.now() - from);
    isOver = status !== 'running' && status !== 'queued';
    idleTimes.push(await ms(async () => (await request(idle.url, { dispatcher: pool })).body.text()));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await pool.close();
  return {
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    idleP99: quantile(idleTimes, 0.99),
    asked: times.length,
    rate: (pages / (performance.now() - start)) * 1_000,
  };
}

/** Memory of the server while something is done to it. */
async function peakWhile<T>(server: Served, work: () => Promise<T>) {
  const beforeMb = rssOf(server.pid);
  let peakMb = beforeMb;
  const timer = setInterval(() => {
    peakMb = Math.max(peakMb, rssOf(server.pid));
  }, 100);
  try {
    return { beforeMb, result: await work(), peakMb: Math.max(peakMb, rssOf(server.pid)) };
  } finally {
    clearInterval(timer);
  }
}

/** Calls of somebody else, one after the other, each on a connection of its own, which has to be let in. */
function probe(url: string) {
  const times: number[] = [];
  let failed = 0;
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      const from = performance.now();
      const status = await request(url, { reset: true, headersTimeout: 10_000 })
        .then(({ statusCode, body }) => body.dump().then(() => statusCode))
        .catch(() => 0);
      if (status === 200) times.push(performance.now() - from);
      else failed++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    isOver = true;
    await running;
    return { asked: times.length + failed, failed, p99: quantile(times, 0.99) };
  };
}

/**
 * Ten thousand connections of one client while another one calls: each has to be answered or closed. What they send is a call
 * for events of a job whose pages come in a quarter of an hour, or nothing.
 */
async function idleClients(api: Api, server: Served, count: number, kind: 'streams' | 'silent') {
  async function* lines() {
    yield `${JSON.stringify({ rate: 0.001, robots: false })}\n`;
    yield* urlLines('http://127.0.0.9:9/', 3);
  }
  const { batch_id: id } = await api.batch(lines());
  const { hostname, port } = new URL(server.url);
  const text =
    kind === 'silent' ? '' : `GET /api/v1/jobs/${id}/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`;
  const sockets: Socket[] = [];
  const counts = { streaming: 0, refused: 0, broken: 0 };
  const open = new Set<Socket>();
  const connectOne = () =>
    new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        open.add(socket);
        if (kind === 'silent') resolve();
        else socket.write(text);
      });
      sockets.push(socket);
      let isAnswered = false;
      socket.on('data', (chunk) => {
        if (!isAnswered) counts[String(chunk).startsWith('HTTP/1.1 200') ? 'streaming' : 'refused']++;
        isAnswered = true;
        resolve();
      });
      socket.on('error', () => counts.broken++);
      socket.on('close', () => {
        open.delete(socket);
        resolve();
      });
    });
  const { beforeMb, peakMb, result } = await peakWhile(server, async () => {
    const end = probe(`${server.url}/api/v1/jobs/${id}`);
    for (let at = 0; at < count; at += 100) await Promise.all(Array.from({ length: 100 }, connectOne));
    const stillOpen = open.size;
    return { stillOpen, probed: await end() };
  });
  for (const socket of sockets) socket.destroy();
  return { count, ...counts, open: result.stillOpen, probed: result.probed, beforeMb, peakMb };
}

/** Ten megabytes of brackets, some at once, and clients that send nothing of their bodies. */
async function badBodies(server: Served, count: number) {
  const { hostname, port } = new URL(server.url);
  const body = '['.repeat(10_000_000);
  const headers = { 'content-type': 'application/json' };
  const slow = Array.from({ length: count * 10 }, () => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        `POST /api/v1/batch HTTP/1.1\r\nHost: ${hostname}:${port}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`,
      ),
    );
    return socket.on('error', () => {});
  });
  const { beforeMb, result, peakMb } = await peakWhile(server, () =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const answer = await request(`${server.url}/api/v1/batch`, { method: 'POST', headers, body });
        await answer.body.dump();
        return answer.statusCode;
      }),
    ),
  );
  for (const socket of slow) socket.destroy();
  return { refused: result.filter((status) => status === 400).length, count, beforeMb, peakMb };
}

async function run({ pages, rounds }: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const dir = scratch.diskFolder('service');
  const origin = await startProgram(scratch, ['-e', ORIGIN], /http:\/\/127\.0\.0\.1:\d+/);
  const seine = join(ROOT_FOLDER, 'bin', 'seine.js');
  const args = [seine, 'serve', '--listen', '127.0.0.1:0', '--dir', dir, '--allow-private'];
  const server = await startProgram(scratch, args, /http:\/\/127\.0\.0\.1:\d+/);
  const api = new Api(server);
  scratch.onEnd(() => api.close());
  // A host that answers: to give up the tasks of one that does not would take the time of the next round.
  const slow = await startProgram(scratch, ['-e', ORIGIN], /http:\/\/127\.0\.0\.1:\d+/);
  const store = openSqliteStore(join(scratch.diskFolder('enqueue'), 'seine.db'), { checkpointThread: true });
  scratch.onEnd(() => store.close());
  const cpuShares: number[] = [];
  const [latency, rates, batches, enqueues]: [
    Awaited<ReturnType<typeof latencies>>[],
    number[],
    number[],
    number[],
  ] = [[], [], [], []];
  for (let round = 0; round < rounds; round++) {
    latency.push(await latencies(api, origin, Math.ceil(pages / 100)));
    rates.push(await scrapeRate(api, origin, Math.ceil(pages / 10), round));
    const count = pages * 5;
    const before = mainThreadMs(server.pid);
    const took = await ms(() => api.batch(urlLines(`${slow.url}/b${round}/`, count)));
    const batchCpuUs = ((mainThreadMs(server.pid) - before) / count) * 1_000;
    batches.push((count / took) * 1_000);
    const { rate, cpuUs } = await enqueueRate(store, count, round);
    enqueues.push(rate);
    cpuShares.push(cpuUs / batchCpuUs);
    say(
      `round ${round + 1}: scrape ${latency.at(-1)!.scrapeP50.toFixed(1)} ms, ${rates.at(-1)!.toFixed(0)}/s; batch ${batches.at(-1)!.toFixed(0)}/s, enqueue ${enqueues.at(-1)!.toFixed(0)}/s`,
    );
  }
  const idle = await startProgram(scratch, ['-e', ORIGIN], /http:\/\/127\.0\.0\.1:\d+/);
  const status = await statusWhileCrawling(api, origin, idle, pages);
  say(`GET /jobs/{id} p99 ${status.p99.toFixed(1)} ms at ${status.rate.toFixed(0)} pages/s`);
  const bodies = await badBodies(server, 10);
  const clients = Math.max(100, Math.floor(pages / 2));
  const streams = await idleClients(api, server, clients, 'streams');
  say(`idle streams: ${idleText(streams)}`);
  const silent = await idleClients(api, server, clients, 'silent');
  say(`idle connections: ${idleText(silent)}`);
  const streamed = pages * 250;
  const {
    beforeMb: before,
    result: stream,
    peakMb: peak,
  } = await peakWhile(server, () => api.batch(urlLines('http://stream.example/', streamed, 5_000)));
  const data = {
    ...{ machine: describeMachine(), pages, rounds },
    scrapeP50: quantile(
      latency.map(({ scrapeP50 }) => scrapeP50),
      0.5,
    ),
    bareP50: quantile(
      latency.map(({ bareP50 }) => bareP50),
      0.5,
    ),
    scrapeP99: quantile(
      latency.map(({ scrapeP99 }) => scrapeP99),
      0.5,
    ),
    scrapesPerSecond: quantile(rates, 0.5),
    batchPerSecond: quantile(batches, 0.5),
    enqueuePerSecond: quantile(enqueues, 0.5),
    batchShare: quantile(
      batches.map((rate, at) => rate / enqueues[at]!),
      0.5,
    ),
    batchCpuShare: quantile(cpuShares, 0.5),
    status,
    bodies,
    streams,
    silent,
    stream: {
      urls: streamed,
      accepted: stream.accepted,
      rejected: stream.rejected_count,
      named: stream.rejected.length,
      beforeMb: before,
      peakMb: peak,
    },
  };
  return { verdicts: judge(data), data, section: sectionOf(data) };
}

type IdleClients = Awaited<ReturnType<typeof idleClients>>;

function idleText({ count, streaming, refused, open, probed }: IdleClients): string {
  const answers = streaming + refused > 0 ? `${streaming} streams, ${refused} refused, ` : '';
  return `${count}: ${answers}${open} still open; another caller: ${probed.failed} of ${probed.asked} calls failed, p99 ${probed.p99.toFixed(0)} ms`;
}

function isHarmless({ broken, probed, beforeMb, peakMb }: IdleClients): boolean {
  return broken === 0 && probed.failed === 0 && probed.asked > 0 && peakMb - beforeMb < 300;
}

type Data = Parameters<typeof judge>[0];

function judge(data: {
  scrapeP50: number;
  bareP50: number;
  scrapeP99: number;
  scrapesPerSecond: number;
  batchPerSecond: number;
  enqueuePerSecond: number;
  batchShare: number;
  /** The same in CPU of the thread that writes: what a machine would do whose cores are free. */
  batchCpuShare: number;
  pages: number;
  rounds: number;
  status: { p50: number; p99: number; idleP99: number; rate: number; asked: number };
  bodies: Awaited<ReturnType<typeof badBodies>>;
  streams: IdleClients;
  silent: IdleClients;
  stream: {
    urls: number;
    accepted: number;
    rejected: number;
    named: number;
    beforeMb: number;
    peakMb: number;
  };
}): Verdict[] {
  const { status, stream, streams, silent, bodies } = data;
  const grown = ({ beforeMb, peakMb }: { beforeMb: number; peakMb: number }) =>
    `${beforeMb.toFixed(0)} MB before, at most ${peakMb.toFixed(0)} MB`;
  return [
    {
      bar: 'POST /scrape, 1 at once: p50 at most 12 ms above a bare request',
      measured: `${(data.scrapeP50 - data.bareP50).toFixed(1)} ms (${data.scrapeP50.toFixed(1)} against ${data.bareP50.toFixed(1)})`,
      passed: data.scrapeP50 - data.bareP50 <= 12,
    },
    {
      bar: 'POST /scrape, 32 at once: at least 600/s',
      measured: `${data.scrapesPerSecond.toFixed(0)}/s`,
      passed: data.scrapesPerSecond >= 600,
    },
    {
      bar: 'POST /batch: at least 0.8 times store.enqueue alone',
      measured: `${data.batchShare.toFixed(2)} (${data.batchPerSecond.toFixed(0)}/s against ${data.enqueuePerSecond.toFixed(0)}/s); in CPU of the thread that writes ${data.batchCpuShare.toFixed(2)}`,
      passed: data.batchShare >= 0.8,
    },
    {
      bar: 'URLs as one stream: memory flat, rejects capped and counted',
      measured: `${stream.accepted} accepted, ${stream.rejected} rejected, ${stream.named} named; ${grown(stream)}`,
      passed: stream.accepted === stream.urls && stream.named <= 100 && stream.peakMb - stream.beforeMb < 200,
    },
    {
      bar: 'GET /jobs/{id} while a crawl runs: p99 at most 10 ms',
      measured: `${status.p99.toFixed(1)} ms at ${status.rate.toFixed(0)} pages/s (${status.idleP99.toFixed(1)} ms of a program that does nothing else)`,
      passed: status.p99 <= 10,
    },
    {
      bar: 'idle streams of events: each answered or closed, another caller always answered, memory bounded',
      measured: `${idleText(streams)}; ${grown(streams)}`,
      passed:
        streams.streaming > 0 && streams.streaming + streams.refused === streams.count && isHarmless(streams),
    },
    {
      bar: 'connections that send nothing: open or closed, another caller always answered, memory bounded',
      measured: `${idleText(silent)}; ${grown(silent)}`,
      passed: isHarmless(silent),
    },
    {
      bar: '10 MB of brackets, 10 at once beside 100 slow clients: each refused, memory bounded',
      measured: `${bodies.refused} of ${bodies.count} refused; ${grown(bodies)}`,
      passed: bodies.refused === bodies.count && bodies.peakMb - bodies.beforeMb < 500,
    },
  ];
}

function sectionOf(data: Data): string {
  const rows = judge(data).map(
    ({ bar, measured, passed }) => `| ${bar} | ${measured} | ${passed ? 'met' : 'not met'} |`,
  );
  return [
    `Server, client and an origin with pages of 24 KB on one machine, SQLite; medians of ${data.rounds} rounds in turns, ${data.stream.urls.toLocaleString('en')} URLs in the stream.`,
    '',
    '| bar | measured | |',
    '|---|---|---|',
    ...rows,
  ].join('\n');
}

export const scenario: Scenario = {
  name: 'service',
  summary: 'the API: scrapes, batches, streams, and answers while a crawl runs',
  run,
};
