import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { parseJob } from '../src/job-file/parse-job.ts';
import type { Store } from '../src/ports/store.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import {
  type Costs,
  enqueue,
  type Frontier,
  lease,
  noCosts,
  type TaskShape,
  url,
  workRound,
} from './flat-work.ts';

/**
 * Fills two stores of one kind, a small and a large one, and works on both in turns:
 * `node bench/scale-child.ts '{"places": [small, large], "tasks": [n, m], "shape": …}'`. A place is a folder or the
 * address of an empty database. Prints what it measured as JSON, and how far it is to standard error.
 */

interface Plan {
  places: [string, string];
  tasks: [number, number];
  shape: TaskShape;
}

export interface ScaleRow {
  tasks: number;
  enqueueUs: number;
  leaseUs: number;
  settleUs: number;
  statusUs: number;
  /** Of whole calls, while the store also writes back what the others have written. */
  leaseMsP99: number;
  resumeMs: number;
  bytesPerTask: number;
  fillPerSecond: number;
  rssMb: number;
}

const STEP = 1_000_000;
const WARM_UP = 50;
const ROUNDS = 1_000;
const BATCH = 60;

const plan = JSON.parse(process.argv[2] ?? '{}') as Plan;
const isPostgres = /^postgres(ql)?:/.test(plan.places[0]);

async function open(place: string): Promise<Store> {
  if (!isPostgres) mkdirSync(place, { recursive: true });
  return isPostgres
    ? openPostgresStore(place)
    : openSqliteStore(join(place, 'seine.db'), { checkpointThread: true });
}

async function bytesOf(place: string): Promise<number> {
  if (!isPostgres) return readdirSync(place).reduce((sum, name) => sum + statSync(join(place, name)).size, 0);
  const client = new Client({ connectionString: place });
  await client.connect();
  const { rows } = await client.query<{ bytes: string }>(
    'SELECT pg_database_size(current_database()) AS bytes',
  );
  await client.end();
  return Number(rows[0]!.bytes);
}

async function fill(place: string, tasks: number): Promise<{ jobId: number; fillPerSecond: number }> {
  const store = await open(place);
  const { spec } = await parseJob({ sources: ['http://host-0.example/'], follow: true }, 'bench', 'bench');
  const draft = { name: 'bench', spec, specHash: 'bench', bundle: null, file: null, now: 0 };
  const { id: jobId } = await store.jobs.create(draft);
  const startedAt = performance.now();
  let shownAt = startedAt;
  for (let from = 0; from < tasks; from += STEP) {
    await enqueue(store, jobId, from, Math.min(STEP, tasks - from), plan.shape);
    const now = performance.now();
    if (now - shownAt < 15_000) continue;
    shownAt = now;
    const done = Math.min(from + STEP, tasks);
    const minutesLeft = (((now - startedAt) / done) * (tasks - done)) / 60_000;
    process.stderr.write(
      `    ${(done / 1e6).toFixed(0)}M of ${(tasks / 1e6).toFixed(0)}M, about ${minutesLeft.toFixed(0)} min left\n`,
    );
  }
  const fillPerSecond = Math.round(tasks / ((performance.now() - startedAt) / 1_000));
  await store.close();
  return { jobId, fillPerSecond };
}

/** Open, take back what was out, read the counters, lease the first batch, and be ready to say what is new. */
async function resume(
  place: string,
  jobId: number,
  tasks: number,
): Promise<{ store: Store; resumeMs: number }> {
  const startedAt = performance.now();
  const store = await open(place);
  await store.jobs.find('bench');
  await store.frontier.orphans(jobId);
  await store.jobs.counters(jobId);
  const first = await lease(store, jobId, 1);
  if (await store.frontier.knows(jobId, url(tasks + 10 * STEP, plan.shape)))
    throw new Error('a URL is known before it was added');
  const resumeMs = performance.now() - startedAt;
  await store.frontier.release(first.id, { now: 1, blame: 'none', reason: 'bench' });
  return { store, resumeMs };
}

interface Side {
  frontier: Frontier;
  costs: Costs;
  filled: Pick<ScaleRow, 'tasks' | 'fillPerSecond' | 'resumeMs' | 'bytesPerTask'>;
}

const sides: Side[] = [];
for (const [index, place] of plan.places.entries()) {
  const tasks = plan.tasks[index]!;
  process.stderr.write(`  filling ${tasks.toLocaleString('en')} tasks\n`);
  const { jobId, fillPerSecond } = await fill(place, tasks);
  const bytesPerTask = (await bytesOf(place)) / tasks;
  const { store, resumeMs } = await resume(place, jobId, tasks);
  sides.push({
    frontier: { store, jobId, known: tasks, nextUrl: tasks, shape: plan.shape },
    costs: noCosts(),
    filled: { tasks, fillPerSecond, resumeMs, bytesPerTask },
  });
}
process.stderr.write('  working on both in turns\n');
for (let round = 0; round < WARM_UP + ROUNDS; round++)
  for (const { frontier, costs } of sides)
    await workRound(frontier, 1_000 + round, round < WARM_UP ? noCosts() : costs);
const rssMb = process.memoryUsage().rss / 1024 ** 2;
for (const { frontier } of sides) await frontier.store.close();
if (!isPostgres) for (const place of plan.places) rmSync(place, { recursive: true });

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const p99 = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)]!;
const rows = sides.map(
  ({ costs, filled }): ScaleRow => ({
    ...filled,
    enqueueUs: mean(costs.enqueue),
    leaseUs: mean(costs.lease),
    settleUs: mean(costs.settle),
    statusUs: mean(costs.status),
    leaseMsP99: (p99(costs.lease) * BATCH) / 1_000,
    rssMb,
  }),
);
process.stdout.write(`${JSON.stringify(rows)}\n`);
