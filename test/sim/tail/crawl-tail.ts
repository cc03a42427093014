import { Coordinator } from '../../../src/coordinator/coordinator.ts';
import { createProgress } from '../../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../../src/coordinator/sources/source-feeder.ts';
import type { Batch, Report } from '../../../src/core/batch/batch.ts';
import type { TailPolicy } from '../../../src/core/tail/tail.ts';
import type { Delivery, Dispatcher } from '../../../src/ports/dispatcher.ts';
import type { FetchRequest, FetchResult } from '../../../src/ports/fetcher.ts';
import type { Source } from '../../../src/ports/source.ts';
import { Lateness } from '../../../src/worker/batch/pace.ts';
import { processBatch } from '../../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../../src/worker/compile-job.ts';
import { codeOf } from '../../support/fixtures.ts';
import { MemoryBlobs } from '../memory-blobs.ts';
import { openMemoryStore } from '../shared-store.ts';
import { Process, SeededRandom, World } from '../virtual-time.ts';

/** Whole crawls on virtual time whose last pages are slow. */

const WORKERS = 2;
const BODY = Buffer.from('<html><body><h1>A page</h1></body></html>');

export interface TailWeb {
  seed: number;
  hosts: number;
  /** Spread evenly over the hosts. */
  pages: number;
  gapMs: number;
  /** What becomes of a request: when it ends, and whether the page comes. `count`: how often the page was requested by now. */
  answer(request: { page: number; pages: number; count: number; random: SeededRandom }): {
    ms: number;
    comes: boolean;
  };
}

export interface TailResult {
  /** Of the whole time: what the last hundredth of the pages took. */
  tailShare: number;
  counters: { accepted: number; done: number; pending: number; dead: number };
  reason: string | null;
  /** Times of requests by host. */
  sent: Map<string, number[]>;
  requests: Map<string, number>;
}

export async function crawlTail(tail: TailPolicy, web: TailWeb): Promise<TailResult> {
  const world = new World(new SeededRandom(web.seed));
  const { store, db } = openMemoryStore();
  const main = new Process(world, 'main');
  const workers = Array.from({ length: WORKERS }, (_, index) => new Process(world, `worker-${index}`));
  const sent = new Map<string, number[]>();
  const requests = new Map<string, number>();
  const doneAt: number[] = [];

  const fetch = (request: FetchRequest, process: Process): Promise<FetchResult> => {
    const { host, pathname } = new URL(request.url);
    const page = Number(pathname.slice(1));
    if (!request.onSent()) return Promise.resolve({ kind: 'aborted' });
    const times = sent.get(host) ?? [];
    times.push(world.now);
    sent.set(host, times);
    const count = (requests.get(request.url) ?? 0) + 1;
    requests.set(request.url, count);
    const { ms, comes } = web.answer({ page, pages: web.pages, count, random: world.random });
    const { promise, resolve } = Promise.withResolvers<FetchResult>();
    const cancel = world.after(ms, process, () =>
      resolve(
        comes
          ? {
              ...{ kind: 'response', status: 200, statusText: '', rawHeaders: ['Content-Type', 'text/html'] },
              ...{ wireBytes: BODY.length, wireBody: BODY, body: BODY },
            }
          : { kind: 'failure', code: 'body-timeout', detail: 'the body stalled', bytes: 0 },
      ),
    );
    request.signal.addEventListener('abort', () => {
      cancel();
      resolve({ kind: 'aborted' });
    });
    return promise;
  };

  const drain = new AbortController();
  let turn = 0;
  const work = (batch: Batch, onPart: (report: Report) => void): Promise<Report> => {
    const process = workers[turn++ % workers.length]!;
    const tools = {
      ...{ name: process.name, clock: process.clock, random: world.random, lateness: new Lateness() },
      fetcher: { fetch: (request: FetchRequest) => fetch(request, process), close: async () => {} },
      ...{ blobs: new MemoryBlobs(), jobs: new JobCache(async () => new Map()) },
    };
    return processBatch(batch, tools, { onPart, drain: drain.signal });
  };
  const dispatcher: Dispatcher = {
    ...{ workers: WORKERS, slots: WORKERS * 8 },
    dispatch: (batch, onPart) =>
      new Promise<Delivery>((resolve) => {
        world.after(2, main, () => {
          void work(batch, (part) => void world.after(5, main, () => onPart(part))).then((report) =>
            world.after(5, main, () => resolve({ kind: 'report', report })),
          );
        });
      }),
    drain: async () => drain.abort(),
    close: async () => {},
  };
  const source: Source = {
    ...{ name: 'the list', priority: 0 },
    async *rows() {
      for (let page = 0; page < web.pages; page++)
        yield {
          place: `row ${page}`,
          position: String(page + 1),
          row: { url: `http://h${page % web.hosts}.example.test/${page}`, meta: null },
        };
    },
  };
  const code = codeOf('tail', {
    sources: 'http://example.test/',
    politeness: { rate: 1_000 / web.gapMs, parallel: 4, adaptive: false, robots: false },
    limits: { perTemplate: null, diskFreeBytes: 0 },
    archive: false,
    tail,
  });
  const job = await store.jobs.create({ ...code, name: 'tail', now: 0 });
  const parts = { store, job, clock: main.clock, logger: { info() {}, warn() {}, error() {} } };
  const { frontier } = store;
  const settle = frontier.settle.bind(frontier);
  frontier.settle = async (settlement) => {
    const result = await settle(settlement);
    if (result.applied) for (const { to } of settlement.tasks) if (to === 'done') doneAt.push(world.now);
    return result;
  };
  const coordinator = new Coordinator({
    ...parts,
    ...{ dispatcher, blobs: new MemoryBlobs(), random: world.random, diskFree: async () => null },
    feeder: new SourceFeeder({ ...parts, sources: [source] }),
    progress: createProgress({ startedAt: main.clock.now() }),
  });
  const startedAt = world.now;
  let endedAt: number | null = null;
  const run = coordinator.run().then((ended) => {
    endedAt = world.now;
    return ended;
  });
  await world.run(() => endedAt !== null);
  const { stop, counters } = await run;
  db.close();
  const tailAt = doneAt[Math.floor(web.pages * 0.99) - 1] ?? endedAt!;
  const tailShare = (endedAt! - tailAt) / (endedAt! - startedAt);
  return { tailShare, counters, reason: stop?.message ?? null, sent, requests };
}
