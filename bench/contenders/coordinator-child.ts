/**
 * The coordinator alone, against workers that answer at once: a list of pictures over many hosts goes through
 * planning, leasing and settling, and nothing is fetched. Prints `{"pages":…,"seconds":…,"runCpuSeconds":…}`.
 *
 * Arguments: folder, tasks, and for PostgreSQL its URL and how many coordinators share the job, each a process. The first
 * one starts the others, begins when they are ready, and adds what they took.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';
import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import { type Batch, type Report, WIRE_VERSION } from '../../src/core/batch/batch.ts';
import type { Outcome } from '../../src/core/batch/outcome.ts';
import { isPublicAddress } from '../../src/core/url/address.ts';
import { makeAddressGuard } from '../../src/core/url/address-guard.ts';
import type { Dispatcher } from '../../src/ports/dispatcher.ts';
import type { Store } from '../../src/ports/store.ts';
import { openFilesByScheme } from '../../src/sources/files/files-by-scheme.ts';
import { openSource } from '../../src/sources/open-source.ts';
import { systemClock } from '../../src/worker/batch/system-clock.ts';
import { codeOf } from '../../test/support/fixtures.ts';
import { readStat, treeCpuSeconds } from '../meter.ts';

const [folder, tasksText, storeUrl, coordinatorsText = '1'] = process.argv.slice(2) as [
  string,
  string,
  string | undefined,
  string | undefined,
];
const TASKS = Number(tasksText);
/** Set by the first of several coordinators: the job that it shares. */
const SHARED_JOB = process.env.BENCH_SHARED_JOB;
const HOSTS = 400;
/** As many batches under way as 400 workers would have. */
const WORKERS = 400;
/** A picture took so long, as far as the hosts' statistics are concerned. */
const VISIT_MS = 300;
const QUIET = { info() {}, warn: (text: string) => void process.stderr.write(`${text}\n`), error() {} };

async function openStore(): Promise<Store> {
  if (storeUrl) {
    const { openPostgresStore } = await import('../../src/store/postgres/postgres-store.ts');
    return openPostgresStore(storeUrl);
  }
  const { openSqliteStore } = await import('../../src/store/sqlite/sqlite-store.ts');
  return openSqliteStore(join(folder, 'seine.db'), { checkpointThread: true });
}

function outcomeOf({ id, url }: Batch['tasks'][number], startedAt: number): Outcome {
  const sha256 = hash('sha256', url, 'hex');
  return {
    kind: 'fetched',
    taskId: id,
    page: {
      route: null,
      httpStatus: 200,
      contentType: 'image/jpeg',
      bytes: 80_000,
      sha256,
      archive: null,
      media: { key: `media/${sha256.slice(0, 2)}/${sha256}.jpg`, md5: sha256.slice(0, 32), member: null },
      robotsTags: null,
      etag: '"abc"',
      lastModified: null,
    },
    links: [],
    records: [],
    shows: [],
    trace: { startedAt, durationMs: VISIT_MS, httpStatus: 200, bytes: 80_000 },
  };
}

function answer(batch: Batch): Report {
  const now = systemClock.now();
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: true,
    worker: 'instant',
    startedAt: now,
    durationMs: VISIT_MS,
    permits: batch.permits.map(({ host }, index) => {
      const sent = batch.tasks.filter(({ permit }) => permit === index).length;
      return { host, sent, lastSentAt: now, finished: true };
    }),
    robots: [],
    outcomes: batch.tasks.map((task) => outcomeOf(task, now)),
    quality: [],
    archive: null,
  };
}

const dispatcher: Dispatcher = {
  workers: WORKERS,
  slots: WORKERS,
  dispatch: async (batch) => ({ kind: 'report', report: answer(batch) }),
  async drain() {},
  async close() {},
};

/** Of the server with all its processes; it is on this machine. */
async function serverCpu(): Promise<() => number> {
  if (!storeUrl) return () => 0;
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: storeUrl });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const server = readStat(rows[0]!.pid)?.parent ?? Number.NaN;
  await client.end();
  return () => treeCpuSeconds(server);
}

const list = join(folder, 'urls.txt');
if (SHARED_JOB === undefined)
  writeFileSync(
    list,
    Array.from({ length: TASKS }, (_, index) => `https://host-${index % HOSTS}.example/p/${index}.jpg`).join(
      '\n',
    ),
  );
const store = await openStore();
const blobs = await openFolderBlobs(folder);
const files = openFilesByScheme(() => Promise.reject(new Error('no S3 here')), {
  guard: makeAddressGuard(isPublicAddress, false),
  jobAllowsPrivate: false,
});
const code = codeOf('instant', {
  sources: [list],
  politeness: { rate: 'max', robots: false },
  batchSize: 60,
});
const job =
  SHARED_JOB === undefined
    ? await store.jobs.create({ ...code, name: 'instant', now: Date.now() })
    : await store.jobs.get(Number(SHARED_JOB));
const sources = job.spec.sources.map((spec, source) =>
  openSource(spec, {
    files: files.of,
    query: (sql) => store.views.query(sql),
    spool: { dir: folder, jobId: job.id, pass: job.pass, source },
  }),
);
const shared = { store, job, clock: systemClock, logger: QUIET };
const coordinator = new Coordinator({
  ...shared,
  blobs,
  dispatcher,
  feeder: new SourceFeeder({ ...shared, sources }),
  progress: createProgress({ startedAt: systemClock.now() }),
  random: { next: Math.random },
  diskFree: async () => null,
});
/** What this process took from the start of its run to the end. */
async function run(): Promise<{ pages: number; seconds: number; cpuSeconds: number }> {
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const { counters } = await coordinator.run();
  const seconds = (performance.now() - startedAt) / 1_000;
  const cpu = process.cpuUsage(cpuBefore);
  return { pages: counters.done, seconds, cpuSeconds: (cpu.user + cpu.system) / 1e6 };
}

/** The others, ready to begin; rejects when one of them ends before. */
async function startOthers(): Promise<ChildProcess[]> {
  const others = Array.from({ length: Number(coordinatorsText) - 1 }, () =>
    fork(process.argv[1]!, process.argv.slice(2), {
      env: { ...process.env, BENCH_SHARED_JOB: String(job.id) },
    }),
  );
  await Promise.all(others.map(messageOf));
  return others;
}

async function messageOf(child: ChildProcess): Promise<{ cpuSeconds: number }> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a coordinator ended with ${code}`);
  });
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [{ cpuSeconds: number }];
  return message;
}

async function close(): Promise<void> {
  await blobs.close();
  await store.close();
}

if (SHARED_JOB === undefined) {
  const others = await startOthers();
  const cpuOfServer = await serverCpu();
  const serverBefore = cpuOfServer();
  for (const other of others) other.send('begin');
  const [own, ...theirs] = await Promise.all([run(), ...others.map(messageOf)]);
  const cpuSeconds = theirs.reduce((sum, each) => sum + each.cpuSeconds, own.cpuSeconds);
  const serverCpuSeconds = cpuOfServer() - serverBefore;
  await close();
  const { pages, seconds } = own;
  process.stdout.write(
    `${JSON.stringify({ pages, seconds, cpuSeconds, serverCpuSeconds, runCpuSeconds: cpuSeconds + serverCpuSeconds })}\n`,
  );
} else {
  process.send!({ cpuSeconds: 0 });
  await once(process, 'message');
  const taken = await run();
  await close();
  process.send!(taken);
  process.disconnect();
}
