import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { JobSpec } from '../src/core/job.ts';
import type { NewTask } from '../src/core/model.ts';
import { parseJob } from '../src/job/parse-job.ts';
import type { LeasedBatch, Settlement, Store, TaskChange } from '../src/ports/store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';

/** Costs of the store with so many tasks in the frontier: `node bench/flat-child.ts <folder> <tasks>`, prints JSON. */

const [folder = '', tasksText = '10000'] = process.argv.slice(2);
const TASKS = Number(tasksText);
const HOSTS = 100;
const RUN = 500;
const CHUNK = 1_000;
const BATCH = 60;
const ROUNDS = 200;

/** Links come in runs of one host, as pages have them. */
const hostOf = (index: number) => `host-${Math.floor(index / RUN) % HOSTS}.example`;
const url = (index: number) => `http://${hostOf(index)}/shop/category-${index % 977}/product-${index}.html`;

function task(index: number): NewTask {
  return {
    url: url(index),
    host: hostOf(index),
    depth: 1,
    priority: 0,
    route: null,
    meta: null,
    hops: 0,
    template: 'host/shop/category-{n}/product-{n}.html',
    modifiedAt: null,
  };
}

async function enqueue(store: Store, jobId: number, from: number, count: number): Promise<void> {
  for (let start = from; start < from + count; start += CHUNK) {
    const size = Math.min(CHUNK, from + count - start);
    const tasks = Array.from({ length: size }, (_, offset) => task(start + offset));
    await store.frontier.enqueue(jobId, tasks, { now: start, perTemplateMax: null, source: null });
  }
}

async function lease(store: Store, jobId: number, round: number): Promise<LeasedBatch> {
  const due = await store.frontier.dueHosts(jobId, { now: round, before: round + 400, limit: 1_000 });
  const host = due[0];
  if (!host) throw new Error('no host is due');
  const grants = [{ hostId: host.id, count: BATCH, nextAt: round }];
  const [batch] = await store.frontier.lease(jobId, { now: round, batches: [{ grants, leaseMs: 60_000 }] });
  return batch!;
}

function changeOf(id: number, index: number): TaskChange {
  return {
    id,
    outcome: 'fetched',
    to: 'done',
    code: null,
    detail: null,
    dueAt: null,
    countsAsAttempt: true,
    moveTo: null,
    redirectTo: null,
    page: {
      route: null,
      httpStatus: 200,
      contentType: 'text/html',
      bytes: 24_000,
      sha256: 'ab'.repeat(32),
      archive: { offset: index * 5_000, length: 5_000 },
      media: null,
      robotsTags: null,
      etag: null,
      lastModified: null,
    },
    trace: { startedAt: index, durationMs: 12, httpStatus: 200, bytes: 24_000 },
    links: [],
    records: [],
    shows: [],
  };
}

/** One new link and two known ones a page: about what the recent-links filter of the workers lets through. */
function settlementOf(jobId: number, batch: LeasedBatch, round: number, nextUrl: number): Settlement {
  const tasks = batch.tasks.map((leased, index) => {
    const change = changeOf(leased.id, index);
    change.links = [
      task(nextUrl + index),
      task((round * 7_919 + index) % TASKS),
      task((round * 104_729 + index) % TASKS),
    ];
    return change;
  });
  return {
    jobId,
    batchId: batch.id,
    now: round,
    worker: 'bench',
    final: true,
    durationMs: 100,
    archive: { key: `warc/bench-1/${batch.id}.warc.gz`, bytes: 300_000 },
    requests: tasks.length,
    perTemplateMax: null,
    records: { guardMs: 3_600_000, history: false },
    quality: [],
    tasks,
    hosts: [],
    robots: [],
  };
}

/** Microseconds of each call. */
async function timed<T>(into: number[], work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  into.push((performance.now() - startedAt) * 1_000);
  return result;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const path = join(folder, 'seine.db');
if (existsSync(folder)) rmSync(folder, { recursive: true });
mkdirSync(folder, { recursive: true });
const { spec }: { spec: JobSpec } = await parseJob(
  { sources: ['http://host-0.example/'], follow: true },
  'bench',
  'bench',
);
let store = openSqliteStore(path, { checkpointThread: true });
const job = await store.jobs.create({
  name: 'bench',
  spec,
  specHash: 'bench',
  bundle: null,
  file: null,
  now: 0,
});
const fillStartedAt = performance.now();
await enqueue(store, job.id, 0, TASKS);
const fillSeconds = (performance.now() - fillStartedAt) / 1_000;
await store.close();

// A resume: open, take back what was out, read the counters, lease the first batch, and be ready to say what is new.
const resumeStartedAt = performance.now();
store = openSqliteStore(path, { checkpointThread: true });
await store.jobs.find('bench');
await store.frontier.orphans(job.id);
await store.jobs.counters(job.id);
const first = await lease(store, job.id, 1);
if (await store.frontier.knows(job.id, url(TASKS))) throw new Error('a URL is known before it was added');
const resumeMs = performance.now() - resumeStartedAt;
await store.frontier.release(first.id, { now: 1, suspect: false, reason: 'bench' });

const costs = {
  enqueue: [] as number[],
  lease: [] as number[],
  settle: [] as number[],
  status: [] as number[],
};
let nextUrl = TASKS;
for (let round = 0; round < ROUNDS + 50; round++) {
  // The first rounds warm up code and cache, as a running coordinator is.
  const into = round < 50 ? { enqueue: [], lease: [], settle: [], status: [] } : costs;
  // Sources come in chunks of this size; links of pages are part of settling.
  await timed(into.enqueue, () => enqueue(store, job.id, nextUrl, CHUNK));
  nextUrl += CHUNK;
  const batch = await timed(into.lease, () => lease(store, job.id, round + 2));
  await timed(into.settle, () => store.frontier.settle(settlementOf(job.id, batch, round + 2, nextUrl)));
  nextUrl += BATCH;
  await timed(into.status, () => store.jobs.counters(job.id));
}
const rssMb = process.memoryUsage().rss / 1024 ** 2;
await store.close();
rmSync(folder, { recursive: true });
const perTask = (values: number[]) => mean(values) / BATCH;
process.stdout.write(
  `${JSON.stringify({
    tasks: TASKS,
    fillPerSecond: Math.round(TASKS / fillSeconds),
    enqueueUs: mean(costs.enqueue) / CHUNK,
    leaseUs: perTask(costs.lease),
    settleUs: perTask(costs.settle),
    statusUs: mean(costs.status),
    resumeMs,
    rssMb,
  })}\n`,
);
