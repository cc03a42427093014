import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { jsonLines, type Started, startSeine, temporaryFolder } from '../seine-process.ts';
import { checkJob } from './check-folder.ts';
import { seededRandom } from './crash-harness.ts';

interface ServerCrashFacts {
  seed: number;
  /** Those that came while there was work left. */
  kills: number;
  jobs: number;
  /** Of all jobs. */
  urls: number;
  /** URLs that were never requested, or have no done task at the end. */
  lost: number;
  /** URLs with two tasks, or with two attempts that were settled as fetched. */
  doubled: number;
  unreadable: number;
  /** Requests beyond one a URL: those that were open at a kill. */
  refetched: number;
  /** From the start of a server until the next request. */
  slowestResumeMs: number;
  seconds: number;
}

const WORKERS = 2;
/** Two jobs on each host, so that they take turns on it. */
const JOBS_PER_HOST = 2;
/** So slow that there is work left after many kills. */
const RATE = 20;
const BATCH_SIZE = 20;
/** A server that has been ready for so long is killed, or for less. */
const KILLED_WITHIN_MS = 2_000;

/** Many jobs in one server, which is killed with kill -9 again and again, at moments chosen by the seed. */
export async function runServerCrashes(options: {
  kills: number;
  jobs: number;
  /** Of each job. */
  urls: number;
  seed: number;
  onKill?: (kill: number) => void;
}): Promise<ServerCrashFacts> {
  const { kills, jobs, urls, seed } = options;
  const random = seededRandom(seed);
  const startedAt = performance.now();
  const folder = temporaryFolder();
  const counts = new Map<string, number>();
  let requestedAt = 0;
  let heard = () => {};
  const origin = createServer((request, response) => {
    requestedAt = performance.now();
    const url = `http://${request.headers.host}${request.url}`;
    counts.set(url, (counts.get(url) ?? 0) + 1);
    response.setHeader('content-type', 'text/html').end(`<title>${request.url}</title>`);
    heard();
  });
  await new Promise<void>((resolve) => origin.listen(0, '0.0.0.0', resolve));
  const { port } = origin.address() as AddressInfo;
  const wanted = writeJobs(folder.path, port, options);
  const facts: ServerCrashFacts = {
    ...{ seed, kills: 0, jobs, urls: jobs * urls, lost: 0, doubled: 0, unreadable: 0 },
    ...{ refetched: 0, slowestResumeMs: 0, seconds: 0 },
  };
  let server: Started | null = null;
  try {
    const start = () =>
      startSeine(
        [
          'serve',
          '--jobs',
          join(folder.path, 'jobs'),
          '--dir',
          folder.path,
          '--listen',
          '127.0.0.1:0',
          '--json',
        ],
        { env: { SEINE_WORKERS: String(WORKERS) } },
      );
    while (facts.kills < kills) {
      const launchedAt = performance.now();
      server = start();
      const over = new AbortController();
      const request = new Promise<void>((resolve) => {
        heard = resolve;
      });
      await Promise.race([request, server.finished, delay(60_000, over.signal)]);
      over.abort();
      if (requestedAt < launchedAt) throw new Error(`no request after kill ${facts.kills}`);
      if (facts.kills > 0) facts.slowestResumeMs = Math.max(facts.slowestResumeMs, requestedAt - launchedAt);
      await delay(random() * KILLED_WITHIN_MS);
      await server.killTree();
      if (counts.size === wanted.size) break;
      facts.kills++;
      options.onKill?.(facts.kills);
    }
    server = start();
    await untilEnded(server, jobs, folder.path);
    server.child.kill('SIGTERM');
    await server.finished;
    await judge(folder.path, wanted, counts, facts);
  } finally {
    await server?.killTree();
    origin.closeAllConnections();
    await new Promise((resolve) => origin.close(resolve));
    folder.remove();
  }
  facts.seconds = Math.round((performance.now() - startedAt) / 1_000);
  return facts;
}

const nameOf = (job: number) => `job-${job}`;

/** Returns the URLs of all jobs, each with its job. */
function writeJobs(
  dir: string,
  port: number,
  { jobs, urls }: { jobs: number; urls: number },
): Map<string, string> {
  const wanted = new Map<string, string>();
  mkdirSync(join(dir, 'jobs'));
  for (let job = 0; job < jobs; job++) {
    const host = `127.0.1.${1 + Math.floor(job / JOBS_PER_HOST)}:${port}`;
    const own = Array.from({ length: urls }, (_, at) => `http://${host}/${job}/${at}`);
    for (const url of own) wanted.set(url, nameOf(job));
    const list = join(dir, `${nameOf(job)}.txt`);
    writeFileSync(list, own.join('\n'));
    const politeness = { rate: RATE, adaptive: false, robots: false };
    const spec = { sources: [list], allowPrivate: true, politeness, batchSize: BATCH_SIZE };
    writeFileSync(join(dir, 'jobs', `${nameOf(job)}.json`), JSON.stringify(spec));
  }
  return wanted;
}

async function untilEnded(server: Started, jobs: number, dir: string): Promise<void> {
  let said = '';
  server.child.stdout!.on('data', (chunk) => {
    said += chunk;
  });
  const isOver = () => {
    const store = openSqliteStore(join(dir, 'seine.db'));
    return store.jobs
      .list(jobs + 1)
      .then((all) => all.length === jobs && all.every(({ state }) => state !== 'running'))
      .finally(() => store.close());
  };
  while (!(await isOver())) {
    if (server.child.exitCode !== null)
      throw new Error(`the server ended: ${JSON.stringify(jsonLines(said).at(-1))}`);
    await delay(500);
  }
}

async function judge(
  dir: string,
  wanted: ReadonlyMap<string, string>,
  counts: ReadonlyMap<string, number>,
  facts: ServerCrashFacts,
): Promise<void> {
  const raw = new DatabaseSync(join(dir, 'seine.db'));
  const { quick_check: check } = raw.prepare('PRAGMA quick_check').get() as { quick_check: string };
  if (check !== 'ok') throw new Error(`the database is broken: ${check}`);
  for (const sql of [DOUBLED_TASKS, DOUBLED_ATTEMPTS]) facts.doubled += raw.prepare(sql).all().length;
  raw.close();
  const store = openSqliteStore(join(dir, 'seine.db'));
  const blobs = await openFolderBlobs(dir);
  try {
    const done = new Set<string>();
    for (const name of new Set(wanted.values())) {
      const { doneUrls, unreadable } = await checkJob(store, blobs, name, 10);
      for (const url of doneUrls) done.add(`${name} ${url}`);
      facts.unreadable += unreadable.length;
    }
    for (const [url, name] of wanted) {
      const count = counts.get(url) ?? 0;
      if (count === 0 || !done.has(`${name} ${url}`)) facts.lost++;
      else facts.refetched += count - 1;
    }
  } finally {
    await blobs.close();
    await store.close();
  }
}

const DOUBLED_TASKS = 'SELECT url FROM tasks GROUP BY job_id, url HAVING count(*) > 1';
const DOUBLED_ATTEMPTS = `
  SELECT task_id FROM attempts WHERE outcome = 'fetched' GROUP BY task_id HAVING count(*) > 1`;

function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
