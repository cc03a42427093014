import { expect, test } from 'vitest';
import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import type { Batch, Report } from '../../src/core/batch/batch.ts';
import type { TailPolicy } from '../../src/core/tail/tail.ts';
import type { Delivery, Dispatcher } from '../../src/ports/dispatcher.ts';
import type { FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import type { Source } from '../../src/ports/source.ts';
import { Lateness } from '../../src/worker/batch/pace.ts';
import { processBatch } from '../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../src/worker/compile-job.ts';
import { codeOf } from '../support/fixtures.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { openMemoryStore } from './shared-store.ts';
import { Process, SeededRandom, World } from './virtual-time.ts';

/** Whole crawls on virtual time whose last pages are slow. */

const HOSTS = 5;
const PAGES = 500;
const GAP_MS = 250;
const STALL_MS = 20_000;
const BODY = Buffer.from('<html><body><h1>A page</h1></body></html>');

interface Trouble {
  /** Pages whose first body stalls. */
  stalls?: (page: number) => boolean;
  /** Pages that never come. */
  dead?: (page: number) => boolean;
}

interface Result {
  /** Of the whole time: what the last hundredth of the pages took. */
  tailShare: number;
  counters: { accepted: number; done: number; pending: number; dead: number };
  reason: string | null;
  /** Times of requests by host. */
  sent: Map<string, number[]>;
  requests: Map<string, number>;
}

async function crawl(tail: TailPolicy, trouble: Trouble): Promise<Result> {
  const world = new World(new SeededRandom(7));
  const { store, db } = openMemoryStore();
  const main = new Process(world, 'main');
  const workers = [0, 1].map((index) => new Process(world, `worker-${index}`));
  const sent = new Map<string, number[]>();
  const requests = new Map<string, number>();
  const doneAt: number[] = [];

  const fetch = (request: FetchRequest, process: Process): Promise<FetchResult> => {
    const { host, pathname } = new URL(request.url);
    const page = Number(pathname.slice(1));
    if (!request.onSent()) return Promise.resolve({ kind: 'aborted' });
    sent.set(host, [...(sent.get(host) ?? []), world.now]);
    const count = (requests.get(request.url) ?? 0) + 1;
    requests.set(request.url, count);
    const isLost = (count === 1 && trouble.stalls?.(page)) || trouble.dead?.(page);
    const { promise, resolve } = Promise.withResolvers<FetchResult>();
    const cancel = world.after(isLost ? STALL_MS : 200, process, () =>
      resolve(
        isLost
          ? { kind: 'failure', code: 'body-timeout', detail: 'the body stalled', bytes: 0 }
          : {
              ...{ kind: 'response', status: 200, statusText: '', rawHeaders: ['Content-Type', 'text/html'] },
              ...{ wireBytes: BODY.length, wireBody: BODY, body: BODY },
            },
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
    ...{ workers: 2, slots: 16 },
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
      for (let page = 0; page < PAGES; page++)
        yield {
          place: `row ${page}`,
          position: String(page + 1),
          row: { url: `http://h${page % HOSTS}.example.test/${page}`, meta: null },
        };
    },
  };
  const code = codeOf('tail', {
    sources: 'http://example.test/',
    politeness: { rate: 1_000 / GAP_MS, parallel: 4, adaptive: false, robots: false },
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
  const tailAt = doneAt[Math.floor(PAGES * 0.99) - 1] ?? endedAt!;
  const tailShare = (endedAt! - tailAt) / (endedAt! - startedAt);
  return { tailShare, counters, reason: stop?.message ?? null, sent, requests };
}

/** No two requests of a host came sooner after each other than the job allows. */
function expectPolite({ sent }: Result): void {
  for (const times of sent.values())
    for (let index = 1; index < times.length; index++)
      expect(times[index]! - times[index - 1]!).toBeGreaterThanOrEqual(GAP_MS);
}

const LAST = (page: number) => page >= PAGES - 3;

test('bodies that stall: late pages are requested elsewhere, each is done once, and no gap is shorter', async () => {
  const waited = await crawl('wait', { stalls: LAST });
  const repeated = await crawl('repeat', { stalls: LAST });
  for (const result of [waited, repeated]) {
    expect(result.counters).toMatchObject({ accepted: PAGES, done: PAGES, pending: 0, dead: 0 });
    expectPolite(result);
  }
  expect(waited.tailShare).toBeGreaterThan(0.3);
  expect(repeated.tailShare).toBeLessThan(0.1);
  expect(Math.max(...repeated.requests.values())).toBe(2);
});

test('pages that never come are left for the next run, when they have taken a tenth of the time', async () => {
  const trouble = { dead: LAST };
  const waited = await crawl('wait', trouble);
  expect(waited.counters).toMatchObject({ done: PAGES - 3, dead: 3 });
  const deferred = await crawl('defer', trouble);
  expect(deferred.counters).toMatchObject({ accepted: PAGES, done: PAGES - 3, pending: 3, dead: 0 });
  expect(deferred.reason).toBe('limit of 10 % of the time for the last 1 % of the tasks reached');
});
