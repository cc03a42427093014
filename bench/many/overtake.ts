/** A small urgent job, alone and beside a crawl of a million URLs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { codeOf, taskOf } from '../../test/support/fixtures.ts';
import type { Scratch } from '../scratch.ts';
import type { ManyHosts } from './origin.ts';
import { median, startServer } from './server.ts';

interface UrgentTimes {
  aloneMs: number;
  besideMs: number;
  /** The median of the pairs. */
  ratio: number;
  /** Pages of the crawl that were answered meanwhile: how much came between, on a machine with other things to do as well. */
  between: number;
}

/** On hosts that the crawl does not visit, on those that it does, and at a pace that hosts set. */
type Case = 'otherHosts' | 'sameHosts' | 'paced';

export interface OvertakeFacts extends Record<Case, UrgentTimes> {
  crawl: number;
  urls: number;
  rounds: number;
  /** Pages of all jobs per second meanwhile. */
  crawlPerSecond: number;
}

const PACED_HOSTS = 10;
const PACE = { rate: 10, adaptive: false };
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const BETWEEN_MS = 3_000;
const CHUNK = 2_000;
const PRIORITY_MAX = 10;
const POLITENESS = { rate: 'max', robots: false, parallel: 32 } as const;

/** The crawl has `crawlHosts`; the small job has others, or the same. */
export async function overtake(
  scratch: Scratch,
  { hosts, takeLog }: ManyHosts,
  options: { crawl: number; urls: number; rounds: number },
): Promise<OvertakeFacts> {
  const { crawl, urls, rounds } = options;
  const dir = scratch.diskFolder('overtake');
  const half = Math.floor(hosts.length / 2);
  const [crawled, others] = [hosts.slice(0, half), hosts.slice(half)];
  await fillCrawl(join(dir, 'seine.db'), crawled, crawl);
  const server = await startServer(scratch, dir);
  const { token } = JSON.parse(readFileSync(join(dir, 'server.json'), 'utf8')) as { token: string };
  // As a command beside a server does.
  const store = openSqliteStore(join(dir, 'seine.db'), { isGuest: true });
  const api = `${server.url}/api/v1`;
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(api + path, {
      method,
      ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
    });
    const said = (await answer.json()) as Record<string, unknown> & { jobs: { job_id: string }[] };
    if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(said)}`);
    return said;
  };
  const { jobs } = await call('GET', '/jobs');
  const crawlId = jobs[0]!.job_id;
  let made = 0;
  /** As `seine run` submits a job; from then until all of it is written down as done. */
  const timed = async (on: string[], politeness: object): Promise<number> => {
    const number = made++;
    const list = join(dir, `urgent-${number}.txt`);
    const lines = Array.from(
      { length: urls },
      (_, at) => `http://${on[at % on.length]}/urgent/${number}/${at}`,
    );
    writeFileSync(list, lines.join('\n'));
    const name = `urgent-${number}`;
    const code = codeOf(name, {
      ...{ sources: [list], politeness, allowPrivate: true, priority: PRIORITY_MAX },
    });
    const { id, createdAt } = await store.jobs.create({ ...code, name, now: Date.now() });
    await fetch(`${server.url}/internal/jobs/${id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    });
    for (;;) {
      const { state, endedAt } = await store.jobs.get(id);
      if (state === 'done') return endedAt! - createdAt;
      if (state !== 'running') throw new Error(`the urgent job is ${state}`);
      await pause(20);
    }
  };
  const stopped = async () => {
    await call('POST', `/jobs/${crawlId}/stop`);
    while (((await call('GET', `/jobs/${crawlId}`)).counts as { running: number }).running > 0)
      await pause(50);
    await pause(500);
  };
  const resumed = async () => {
    takeLog();
    await call('POST', `/jobs/${crawlId}/resume`);
    let seen = 0;
    // Well under way again.
    while (seen < 2_000) {
      await pause(50);
      seen += takeLog().length;
    }
  };
  const cases: Record<Case, () => Promise<number>> = {
    otherHosts: () => timed(others, POLITENESS),
    sameHosts: () => timed(crawled, POLITENESS),
    paced: () => timed(others.slice(0, PACED_HOSTS), { ...POLITENESS, ...PACE }),
  };
  const names = Object.keys(cases) as Case[];
  const times = new Map<Case, { alone: number[]; beside: number[]; between: number[] }>(
    names.map((name) => [name, { alone: [], beside: [], between: [] }]),
  );
  const rates: number[] = [];
  for (let round = -1; round < rounds; round++) {
    await stopped();
    const alone = new Map<Case, number>();
    for (const name of names) alone.set(name, await cases[name]());
    await resumed();
    const from = performance.now();
    let pages = 0;
    for (const name of names) {
      // One urgent job at a time: others stand still for a tenth of the time at most.
      await pause(BETWEEN_MS);
      pages += takeLog().length;
      const beside = await cases[name]();
      const log = takeLog();
      pages += log.length;
      const between = log.filter(({ path }) => path.startsWith('/crawl/')).length;
      // The first of everything is slow.
      if (round < 0) continue;
      times.get(name)!.alone.push(alone.get(name)!);
      times.get(name)!.beside.push(beside);
      times.get(name)!.between.push(between);
      process.stderr.write(
        `round ${round + 1}: ${name} ${alone.get(name)!.toFixed(0)} ms alone, ${beside.toFixed(0)} ms beside, ${between} pages between\n`,
      );
    }
    rates.push(((pages + takeLog().length) / (performance.now() - from)) * 1_000);
  }
  await store.close();
  await server.end();
  scratch.remove(dir);
  const timesOf = (name: Case): UrgentTimes => {
    const { alone, beside, between } = times.get(name)!;
    return {
      aloneMs: median(alone),
      besideMs: median(beside),
      ratio: median(beside.map((ms, at) => ms / alone[at]!)),
      between: median(between),
    };
  };
  return {
    ...{ crawl, urls, rounds, crawlPerSecond: median(rates) },
    otherHosts: timesOf('otherHosts'),
    sameHosts: timesOf('sameHosts'),
    paced: timesOf('paced'),
  };
}

/** All URLs are in the store before the server begins. */
async function fillCrawl(path: string, hosts: string[], count: number): Promise<void> {
  const store = openSqliteStore(path, { checkpointThread: true });
  try {
    const code = codeOf('crawl', {
      allowPrivate: true,
      politeness: POLITENESS,
      sources: [`http://${hosts[0]}/`],
    });
    const job = await store.jobs.create({ ...code, name: 'crawl', now: Date.now() });
    for (let at = 0; at < count; at += CHUNK) {
      const tasks = Array.from({ length: Math.min(CHUNK, count - at) }, (_, one) =>
        taskOf(`http://${hosts[(at + one) % hosts.length]}/crawl/${at + one}`),
      );
      const source = { source: 0, position: null, done: at + CHUNK >= count, rows: at, rejected: 0 };
      await store.frontier.enqueue(job.id, tasks, { now: Date.now(), perTemplateMax: null, source });
    }
  } finally {
    await store.close();
  }
}
