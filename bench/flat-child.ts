import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseJob } from '../src/job-file/parse-job.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import { enqueue, lease, noCosts, url, workRound } from './flat-work.ts';

/**
 * Fills a store with so many tasks and leaves it: `node bench/flat-child.ts <folder> <tasks>`. Prints as JSON how fast
 * that was, what a resume takes, and the memory after some work.
 */

const [folder = '', tasksText = '10000'] = process.argv.slice(2);
const TASKS = Number(tasksText);
const ROUNDS = 100;

const path = join(folder, 'seine.db');
if (existsSync(folder)) rmSync(folder, { recursive: true });
mkdirSync(folder, { recursive: true });
const { spec } = await parseJob({ sources: ['http://host-0.example/'], follow: true }, 'bench', 'bench');
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
await store.frontier.release(first.id, { now: 1, blame: 'none', reason: 'bench' });

const frontier = { store, jobId: job.id, known: TASKS, nextUrl: TASKS };
for (let round = 0; round < ROUNDS; round++) await workRound(frontier, round + 2, noCosts());
const rssMb = process.memoryUsage().rss / 1024 ** 2;
await store.close();
process.stdout.write(
  `${JSON.stringify({
    tasks: TASKS,
    fillPerSecond: Math.round(TASKS / fillSeconds),
    nextUrl: frontier.nextUrl,
    resumeMs,
    rssMb,
  })}\n`,
);
