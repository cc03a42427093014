import { existsSync, openSync, readSync } from 'node:fs';
import type { NewTask } from '../src/core/model.ts';
import type { LeasedBatch, Settlement, Store, TaskChange } from '../src/ports/store.ts';

/** What a coordinator asks of its store again and again: enqueue, lease, settle, status. */

const CHUNK = 1_000;
const BATCH = 60;

/** What the tasks of a store are like. */
export interface TaskShape {
  /**
   * `even`: a catalogue with numbers, over all hosts alike. `skewed`: one host has nine of ten tasks, names instead of
   * numbers, and priorities at random.
   */
  kind: 'even' | 'skewed';
  hosts: number;
  /** So many links of one host come together, as pages have them. */
  run: number;
}

const EVEN: TaskShape = { kind: 'even', hosts: 100, run: 500 };
const LARGEST_HOST = 'host-0.example';

function hostOf(index: number, { kind, hosts, run: runLength }: TaskShape): string {
  const run = Math.floor(index / runLength);
  if (kind === 'even') return `host-${run % hosts}.example`;
  return index % 10 < 9 ? LARGEST_HOST : `host-${1 + (run % (hosts - 1))}.example`;
}

/** Another number below 2^32 for each index, in no order. */
const scattered = (index: number) => Math.imul(index, 2_654_435_761) >>> 0;
const WORDS = 'lamp table chair red oak steel garden set for small light wall home new classic blue'.split(
  ' ',
);
const wordOf = (number: number) => WORDS[number % WORDS.length];

export function url(index: number, shape: TaskShape = EVEN): string {
  const host = hostOf(index, shape);
  if (shape.kind === 'even') return `http://${host}/shop/category-${index % 977}/product-${index}.html`;
  const number = scattered(index);
  return `http://${host}/${wordOf(number)}-${wordOf(number >>> 4)}-${wordOf(number >>> 8)}-${number.toString(36)}`;
}

function task(index: number, shape: TaskShape): NewTask {
  const isEven = shape.kind === 'even';
  return {
    url: url(index, shape),
    host: hostOf(index, shape),
    depth: 1,
    priority: isEven ? 0 : (scattered(index) % 2_001) - 1_000,
    route: null,
    meta: null,
    hops: 0,
    template: isEven ? 'host/shop/category-{n}/product-{n}.html' : 'host/{s}',
    modifiedAt: null,
  };
}

export async function enqueue(
  store: Store,
  jobId: number,
  from: number,
  count: number,
  shape: TaskShape = EVEN,
): Promise<void> {
  for (let start = from; start < from + count; start += CHUNK) {
    const size = Math.min(CHUNK, from + count - start);
    const tasks = Array.from({ length: size }, (_, offset) => task(start + offset, shape));
    await store.frontier.enqueue(jobId, tasks, { now: start, perTemplateMax: null, source: null });
  }
}

export async function lease(
  store: Store,
  jobId: number,
  round: number,
  wantedHost: number | null = null,
): Promise<LeasedBatch> {
  const due = await store.frontier.dueHosts(jobId, { now: round, before: round + 400, limit: 1_000 });
  const hostId = wantedHost ?? due[0]?.id;
  if (hostId === undefined) throw new Error('no host is due');
  const grants = [{ hostId, count: BATCH, nextAt: round }];
  const [batch] = await store.frontier.lease(jobId, { now: round, batches: [{ grants, leaseMs: 60_000 }] });
  return batch!;
}

/** Where one host has most of the tasks, most batches are for it. */
async function wantedHostOf(frontier: Frontier, round: number): Promise<number | null> {
  const { store, jobId, shape } = frontier;
  if (shape?.kind !== 'skewed' || round % 10 === 9) return null;
  if (frontier.largestHost === undefined) {
    const due = await store.frontier.dueHosts(jobId, { now: round, before: round + 400, limit: shape.hosts });
    frontier.largestHost = due.find(({ host }) => host === LARGEST_HOST)?.id;
  }
  return frontier.largestHost ?? null;
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
function settlementOf(
  jobId: number,
  batch: LeasedBatch,
  { round, nextUrl, known, shape }: { round: number; nextUrl: number; known: number; shape: TaskShape },
): Settlement {
  const tasks = batch.tasks.map((leased, index) => {
    const change = changeOf(leased.id, index);
    change.links = [
      task(nextUrl + index, shape),
      task((round * 7_919 + index) % known, shape),
      task((round * 104_729 + index) % known, shape),
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
    owner: null,
    perTemplateMax: null,
    records: { guardMs: 3_600_000, history: false },
    quality: [],
    tasks,
    hosts: [],
    robots: [],
  };
}

export interface Costs {
  enqueue: number[];
  lease: number[];
  settle: number[];
  status: number[];
}

export function noCosts(): Costs {
  return { enqueue: [], lease: [], settle: [], status: [] };
}

/** One store with so many tasks, and where it goes on. */
export interface Frontier {
  store: Store;
  jobId: number;
  /** URLs up to this number are known. */
  known: number;
  nextUrl: number;
  /** `EVEN` when absent. */
  shape?: TaskShape;
  /** Once it is known. */
  largestHost?: number | undefined;
}

/** What a call took on the clock, in CPU of this thread, and on the clock without the time in which others had the cores. */
export interface CostsOfRound {
  wall: Costs;
  cpu: Costs;
  unhindered: Costs;
}

export function noRound(): CostsOfRound {
  return { wall: noCosts(), cpu: noCosts(), unhindered: noCosts() };
}

/** Adds what each call has taken, in microseconds for a task or, of the status, for a call. */
export async function workRound(frontier: Frontier, round: number, into: Costs): Promise<void> {
  await workTimedRound(frontier, round, { ...noRound(), wall: into });
}

export async function workTimedRound(frontier: Frontier, round: number, into: CostsOfRound): Promise<void> {
  const timed = async <T>(call: keyof Costs, tasks: number, work: () => Promise<T>): Promise<T> => {
    // In this order: no more can be waited than the clock has gone.
    const startedAt = performance.now();
    const before = threadTimes();
    const result = await work();
    const { cpuUs, waitedUs } = threadTimes();
    const wallUs = (performance.now() - startedAt) * 1_000;
    into.wall[call].push(wallUs / tasks);
    into.cpu[call].push((cpuUs - before.cpuUs) / tasks);
    into.unhindered[call].push((wallUs - (waitedUs - before.waitedUs)) / tasks);
    return result;
  };
  const { store, jobId, known, shape = EVEN } = frontier;
  // Sources come in chunks of this size; links of pages are part of settling.
  await timed('enqueue', CHUNK, () => enqueue(store, jobId, frontier.nextUrl, CHUNK, shape));
  frontier.nextUrl += CHUNK;
  const wantedHost = await wantedHostOf(frontier, round);
  const batch = await timed('lease', BATCH, () => lease(store, jobId, round, wantedHost));
  const { nextUrl } = frontier;
  const settlement = settlementOf(jobId, batch, { round, nextUrl, known, shape });
  await timed('settle', BATCH, () => store.frontier.settle(settlement));
  frontier.nextUrl += BATCH;
  await timed('status', 1, () => store.jobs.counters(jobId));
}

/** Of the main thread: nanoseconds on a core, and ready to run while others were. */
const SCHEDULED = '/proc/self/schedstat';
const scheduled = existsSync(SCHEDULED) ? openSync(SCHEDULED, 'r') : null;
const text = Buffer.alloc(128);

/** Where Linux does not tell, nothing is known of waiting. */
export function threadTimes(): { cpuUs: number; waitedUs: number } {
  if (scheduled === null) {
    const { user, system } = process.threadCpuUsage();
    return { cpuUs: user + system, waitedUs: 0 };
  }
  const length = readSync(scheduled, text, 0, text.length, 0);
  const [cpuNs, waitedNs] = text.toString('latin1', 0, length).split(' ');
  return { cpuUs: Number(cpuNs) / 1_000, waitedUs: Number(waitedNs) / 1_000 };
}
