import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from 'pg';
import { parseJob } from '../src/job-file/parse-job.ts';
import type { Store } from '../src/ports/store.ts';
import { openPostgresStore } from '../src/store/postgres/postgres-store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import {
  type Costs,
  type CostsOfRound,
  enqueue,
  type Frontier,
  lease,
  noRound,
  type TaskShape,
  threadTimes,
  url,
  workTimedRound,
} from './flat-work.ts';

/**
 * Fills two stores of one kind, a small and a large one, and works on both in turns:
 * `node bench/scale-child.ts '{"places": [small, large], "tasks": [n, m], "shape": …}'`. A place is a folder or the
 * address of an empty database; a folder with tasks is filled up to its number, so that a run may be ended and started
 * again. Prints what it measured as JSON, and after each phase a line of JSON to standard error and to `log`.
 */

export interface ScalePlan {
  id: string;
  places: [string, string];
  tasks: [number, number];
  shape: TaskShape;
  /** Where a line for each phase is added. */
  log: string;
  /** Whether the folder of the large store stays. */
  keep: boolean;
}

type Call = keyof Costs;

export interface ScaleRow {
  tasks: number;
  enqueueUs: number;
  leaseUs: number;
  settleUs: number;
  statusUs: number;
  /** CPU time of the coordinator's thread in those calls. Linux adds it up at ticks, so that some of one call is another's. */
  cpuUs: Record<Call, number>;
  /** With the time in which the thread was ready and others had the cores, which the figures above are without. */
  wallUs: Record<Call, number>;
  /** Of whole calls, while the store also writes back what the others have written. */
  leaseMsP99: number;
  wallLeaseMsP99: number;
  resumeMs: number;
  wallResumeMs: number;
  bytesPerTask: number;
  fillPerSecond: number;
  rssMb: number;
  /** Average of a minute at the end. */
  load: number;
}

const CHUNK = 1_000;
const KEPT_EVERY = 100_000;
/** The large store is compared with the small one after each of them. */
const PARTS = 10;
const ROUNDS_OF_PART = 25;
const WARM_UP = 50;
const ROUNDS = 1_000;
const BATCH = 60;
const KINDS: readonly (keyof CostsOfRound)[] = ['wall', 'cpu', 'unhindered'];
const CALLS: readonly Call[] = ['enqueue', 'lease', 'settle', 'status'];
/** No URL of the benchmark has a number as large. */
const UNKNOWN_URL = 2 ** 31;

const plan = JSON.parse(process.argv[2] ?? '{}') as ScalePlan;
const isPostgres = /^postgres(ql)?:/.test(plan.places[0]);

/**
 * A process that is stopped for a while and continued says so, and what it measured meanwhile is left out. Turns of the
 * event loop also let the store's timers run, as they do in a coordinator.
 */
let pauses = 0;
process.on('SIGCONT', () => pauses++);
async function wasPaused(since: number): Promise<boolean> {
  await nextTurn();
  await nextTurn();
  return pauses !== since;
}

function note(phase: string, facts: object): void {
  const [load] = loadavg();
  const line = JSON.stringify({ date: new Date().toISOString(), case: plan.id, phase, ...facts, load });
  appendFileSync(plan.log, `${line}\n`);
  process.stderr.write(`  ${line}\n`);
}

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

/** A store, and where it goes on. */
interface Side {
  place: string;
  frontier: Frontier;
  round: number;
  fillMs: number;
  filled: number;
}

/** What a later run must know of a folder. URLs that were added after it was written are duplicates then. */
type Position = Pick<Side, 'round' | 'fillMs' | 'filled'> & { nextUrl: number };

const positionFile = (place: string) => join(place, 'position.json');

function keepPosition({ place, frontier, round, fillMs, filled }: Side): void {
  const position: Position = { nextUrl: frontier.nextUrl, round, fillMs, filled };
  if (!isPostgres) writeFileSync(positionFile(place), JSON.stringify(position));
}

async function openSide(place: string): Promise<Side> {
  const store = await open(place);
  const { spec } = await parseJob({ sources: ['http://host-0.example/'], follow: true }, 'bench', 'bench');
  const draft = { name: 'bench', spec, specHash: 'bench', bundle: null, file: null, now: 0 };
  const { id: jobId } = (await store.jobs.find('bench')) ?? (await store.jobs.create(draft));
  const kept: Position = existsSync(positionFile(place))
    ? JSON.parse(readFileSync(positionFile(place), 'utf8'))
    : { nextUrl: 0, round: 1_000, fillMs: 0, filled: 0 };
  const { nextUrl, ...rest } = kept;
  return { place, frontier: { store, jobId, known: nextUrl, nextUrl, shape: plan.shape }, ...rest };
}

/** Up to that number. Chunks during which the process was stopped do not count. */
async function fill(side: Side, tasks: number): Promise<void> {
  const { frontier } = side;
  const from = { at: performance.now(), url: frontier.nextUrl, cpu: process.cpuUsage() };
  if (frontier.nextUrl >= tasks) return;
  while (frontier.nextUrl < tasks) {
    const count = Math.min(CHUNK, tasks - frontier.nextUrl);
    const [startedAt, before] = [performance.now(), pauses];
    await enqueue(frontier.store, frontier.jobId, frontier.nextUrl, count, plan.shape);
    frontier.nextUrl += count;
    const took = performance.now() - startedAt;
    if (frontier.nextUrl % KEPT_EVERY < CHUNK) keepPosition(side);
    if (await wasPaused(before)) continue;
    side.fillMs += took;
    side.filled += count;
  }
  frontier.known = tasks;
  keepPosition(side);
  const added = tasks - from.url;
  const { user, system } = process.cpuUsage(from.cpu);
  note('filled', {
    tasks,
    seconds: Math.round((performance.now() - from.at) / 1_000),
    perSecond: Math.round(added / ((performance.now() - from.at) / 1_000)),
    cpuUsPerTask: Number(((user + system) / added).toFixed(2)),
    bytesPerTask: Number(((await bytesOf(side.place)) / tasks).toFixed(1)),
  });
}

/** The machine's speed moves by half within seconds, and so it moves for both. */
async function workInTurns(sides: Side[], rounds: number): Promise<CostsOfRound[]> {
  const all = sides.map(noRound);
  for (let round = 0; round < rounds; ) {
    const before = pauses;
    const each: CostsOfRound[] = [];
    for (const side of sides) {
      const measured = noRound();
      await workTimedRound(side.frontier, side.round++, measured);
      each.push(measured);
      await nextTurn();
    }
    if (await wasPaused(before)) continue;
    for (const [index, one] of each.entries())
      for (const kind of KINDS) for (const call of CALLS) all[index]![kind][call].push(...one[kind][call]);
    round++;
  }
  for (const side of sides) keepPosition(side);
  return all;
}

/** Open, take back what was out, read the counters, lease the first batch, and be ready to say what is new. */
async function resume(side: Side): Promise<Pick<ScaleRow, 'resumeMs' | 'wallResumeMs'>> {
  const { place, frontier } = side;
  await frontier.store.close();
  const startedAt = performance.now();
  const before = threadTimes();
  const store = await open(place);
  const { jobId } = frontier;
  await store.jobs.find('bench');
  await store.frontier.orphans(jobId);
  await store.jobs.counters(jobId);
  const first = await lease(store, jobId, side.round++);
  if (await store.frontier.knows(jobId, url(UNKNOWN_URL, plan.shape)))
    throw new Error('a URL is known before it was added');
  const waitedMs = (threadTimes().waitedUs - before.waitedUs) / 1_000;
  const wallResumeMs = performance.now() - startedAt;
  await store.frontier.release(first.id, { now: side.round, blame: 'none', reason: 'bench' });
  frontier.store = store;
  return { resumeMs: wallResumeMs - waitedMs, wallResumeMs };
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const p99 = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)]!;
const leaseMsP99 = ({ lease: each }: Costs) => (p99(each) * BATCH) / 1_000;
const rounded = (value: number) => Number(value.toPrecision(4));
const means = (costs: Costs) =>
  Object.fromEntries(CALLS.map((call) => [call, rounded(mean(costs[call]))])) as Record<Call, number>;

function growths([small, large]: CostsOfRound[]): object {
  const over = (of: keyof CostsOfRound) =>
    Object.fromEntries(CALLS.map((call) => [call, rounded(mean(large![of][call]) / mean(small![of][call]))]));
  return {
    growth: over('unhindered'),
    wallGrowth: over('wall'),
    cpuGrowth: over('cpu'),
    us: means(large!.unhindered),
    wallUs: means(large!.wall),
    cpuUs: means(large!.cpu),
    leaseMsP99: rounded(leaseMsP99(large!.unhindered)),
    wallLeaseMsP99: rounded(leaseMsP99(large!.wall)),
  };
}

async function newSmall(): Promise<Side> {
  const [place] = plan.places;
  if (!isPostgres) rmSync(place, { recursive: true, force: true });
  const side = await openSide(place);
  await fill(side, plan.tasks[0]);
  return side;
}

const [smallPlace, largePlace] = plan.places;
let small = await newSmall();
const large = await openSide(largePlace);
for (let part = 1; part <= PARTS; part++) {
  const tasks = Math.round((plan.tasks[1] * part) / PARTS);
  if (large.frontier.nextUrl >= tasks) continue;
  await fill(large, tasks);
  await workInTurns([small, large], 5);
  note('in turns', { tasks, ...growths(await workInTurns([small, large], ROUNDS_OF_PART)) });
}
// It has grown by what was done in turns.
if (!isPostgres) {
  await small.frontier.store.close();
  small = await newSmall();
}
const sides = [small, large];
const facts: Pick<ScaleRow, 'resumeMs' | 'wallResumeMs' | 'bytesPerTask'>[] = [];
for (const side of sides) {
  const resumed = await resume(side);
  facts.push({ ...resumed, bytesPerTask: (await bytesOf(side.place)) / side.frontier.nextUrl });
  note('resumed', { tasks: side.frontier.nextUrl, ...facts.at(-1) });
}
await workInTurns(sides, WARM_UP);
const measured = await workInTurns(sides, ROUNDS);
const rssMb = process.memoryUsage().rss / 1024 ** 2;
note('measured', { tasks: plan.tasks[1], ...growths(measured), rssMb: Math.round(rssMb) });
for (const { frontier } of sides) await frontier.store.close();
if (!isPostgres) rmSync(smallPlace, { recursive: true });
if (!isPostgres && !plan.keep) rmSync(largePlace, { recursive: true });

const rows = sides.map(({ fillMs, filled }, index): ScaleRow => {
  const { wall, cpu, unhindered } = measured[index]!;
  return {
    tasks: plan.tasks[index]!,
    enqueueUs: mean(unhindered.enqueue),
    leaseUs: mean(unhindered.lease),
    settleUs: mean(unhindered.settle),
    statusUs: mean(unhindered.status),
    cpuUs: means(cpu),
    wallUs: means(wall),
    leaseMsP99: leaseMsP99(unhindered),
    wallLeaseMsP99: leaseMsP99(wall),
    ...facts[index]!,
    fillPerSecond: Math.round(filled / (fillMs / 1_000)),
    rssMb,
    load: loadavg()[0]!,
  };
});
process.stdout.write(`${JSON.stringify(rows)}\n`);
