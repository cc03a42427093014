import type { NewTask } from '../src/core/model.ts';
import type { LeasedBatch, Settlement, Store, TaskChange } from '../src/ports/store.ts';

/** What a coordinator asks of its store again and again: enqueue, lease, settle, status. */

const HOSTS = 100;
const RUN = 500;
const CHUNK = 1_000;
const BATCH = 60;

/** Links come in runs of one host, as pages have them. */
const hostOf = (index: number) => `host-${Math.floor(index / RUN) % HOSTS}.example`;
export const url = (index: number) =>
  `http://${hostOf(index)}/shop/category-${index % 977}/product-${index}.html`;

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

export async function enqueue(store: Store, jobId: number, from: number, count: number): Promise<void> {
  for (let start = from; start < from + count; start += CHUNK) {
    const size = Math.min(CHUNK, from + count - start);
    const tasks = Array.from({ length: size }, (_, offset) => task(start + offset));
    await store.frontier.enqueue(jobId, tasks, { now: start, perTemplateMax: null, source: null });
  }
}

export async function lease(store: Store, jobId: number, round: number): Promise<LeasedBatch> {
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
function settlementOf(
  jobId: number,
  batch: LeasedBatch,
  { round, nextUrl, known }: { round: number; nextUrl: number; known: number },
): Settlement {
  const tasks = batch.tasks.map((leased, index) => {
    const change = changeOf(leased.id, index);
    change.links = [
      task(nextUrl + index),
      task((round * 7_919 + index) % known),
      task((round * 104_729 + index) % known),
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
}

/** Adds what each call has taken, in microseconds for a task or, of the status, for a call. */
export async function workRound(frontier: Frontier, round: number, into: Costs): Promise<void> {
  const { store, jobId, known } = frontier;
  // Sources come in chunks of this size; links of pages are part of settling.
  await timed(into.enqueue, CHUNK, () => enqueue(store, jobId, frontier.nextUrl, CHUNK));
  frontier.nextUrl += CHUNK;
  const batch = await timed(into.lease, BATCH, () => lease(store, jobId, round));
  const { nextUrl } = frontier;
  const settlement = settlementOf(jobId, batch, { round, nextUrl, known });
  await timed(into.settle, BATCH, () => store.frontier.settle(settlement));
  frontier.nextUrl += BATCH;
  await timed(into.status, 1, () => store.jobs.counters(jobId));
}

async function timed<T>(into: number[], tasks: number, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  into.push(((performance.now() - startedAt) * 1_000) / tasks);
  return result;
}
