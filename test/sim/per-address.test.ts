import { beforeAll, describe, expect, test } from 'vitest';
import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import type { Report } from '../../src/core/batch/batch.ts';
import type { HostPace } from '../../src/core/pace/pace.ts';
import type { Delivery, Dispatcher } from '../../src/ports/dispatcher.ts';
import type { FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import type { Source } from '../../src/ports/source.ts';
import { Lateness } from '../../src/worker/batch/pace.ts';
import { processBatch } from '../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../src/worker/compile-job.ts';
import { codeOf, collect } from '../support/fixtures.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { openMemoryStore } from './shared-store.ts';
import { Process, SeededRandom, World } from './virtual-time.ts';

/** Whole crawls on virtual time of a host that counts requests by the address they come from. */

const ADDRESSES = 6;
const LIMIT = 5;
const HOST_LOG_MS = 5 * 86_400_000;
const BODY = Buffer.from('<html><body><h1>A page</h1></body></html>');

interface Options {
  perAddress: boolean;
  pages: number;
  rate: number;
  /** When an address is banned, in milliseconds from the beginning, and for how long. */
  ban?: { address: string; fromMs: number; forMs: number };
}

interface Request {
  at: number;
  address: string;
  status: number;
}

interface Result {
  ms: number;
  counters: { done: number; dead: number; pending: number };
  requests: Request[];
  pace: HostPace | null;
  /** When the log of the host was looked at. */
  looks: { host: string; keepMs: number }[];
  workers: Set<string>;
}

/** Environments as those of Lambda: each has one batch at a time, and nobody can say which one takes the next. */
async function crawl({ perAddress, pages, rate, ban }: Options): Promise<Result> {
  const random = new SeededRandom(11);
  const world = new World(random);
  const { store, db } = openMemoryStore();
  const main = new Process(world, 'main');
  const idle = Array.from({ length: ADDRESSES }, (_, index) => new Process(world, `lambda-${index}`));
  const requests: Request[] = [];
  const answered = new Map<string, number[]>();
  const startedAt = world.now;

  /** At most `LIMIT` in any second from one address. */
  const statusOf = (address: string): number => {
    const sinceMs = world.now - startedAt;
    if (ban?.address === address && sinceMs >= ban.fromMs && sinceMs < ban.fromMs + ban.forMs) return 403;
    const recent = (answered.get(address) ?? []).filter((at) => at > world.now - 1_000);
    answered.set(address, recent);
    if (recent.length >= LIMIT) return 429;
    recent.push(world.now);
    return 200;
  };
  const fetch = async (request: FetchRequest, process: Process): Promise<FetchResult> => {
    if (!request.onSent()) return { kind: 'aborted' };
    const status = statusOf(process.name);
    requests.push({ at: world.now, address: process.name, status });
    await new Promise<void>((resolve) => void world.after(random.between(30, 60), process, resolve));
    const body = status === 200 ? BODY : Buffer.alloc(0);
    return {
      ...{ kind: 'response', status, statusText: '', rawHeaders: ['Content-Type', 'text/html'] },
      ...{ wireBytes: body.length, wireBody: body, body },
    };
  };
  const drain = new AbortController();
  const dispatcher: Dispatcher = {
    ...{ workers: ADDRESSES, slots: ADDRESSES, addresses: ADDRESSES },
    dispatch: (batch, onPart) =>
      new Promise<Delivery>((resolve) => {
        const [process] = idle.splice(random.between(0, idle.length), 1);
        const tools = {
          ...{ name: process!.name, clock: process!.clock, random, lateness: new Lateness() },
          fetcher: { fetch: (request: FetchRequest) => fetch(request, process!), close: async () => {} },
          ...{ blobs: new MemoryBlobs(), jobs: new JobCache(async () => new Map()) },
        };
        world.after(5, main, () => {
          const parts = (part: Report) => void world.after(5, main, () => onPart(part));
          void processBatch(batch, tools, { onPart: parts, drain: drain.signal }).then((report) => {
            idle.push(process!);
            world.after(6, main, () => resolve({ kind: 'report', report }));
          });
        });
      }),
    drain: async () => drain.abort(),
    close: async () => {},
  };
  const source: Source = {
    ...{ name: 'the list', priority: 0 },
    async *rows() {
      for (let page = 0; page < pages; page++)
        yield {
          place: `row ${page}`,
          position: String(page + 1),
          row: { url: `http://shop.example.test/${page}`, meta: null },
        };
    },
  };
  const code = codeOf('addresses', {
    sources: 'http://example.test/',
    politeness: { rate, parallel: 24, perAddress, robots: false },
    limits: { perTemplate: null, diskFreeBytes: 0 },
    archive: false,
  });
  const job = await store.jobs.create({ ...code, name: 'addresses', now: 0 });
  const parts = { store, job, clock: main.clock, logger: { info() {}, warn() {}, error() {} } };
  const looks: Result['looks'] = [];
  const checkpointLog = store.hosts.checkpointLog.bind(store.hosts);
  store.hosts.checkpointLog = (host, options) => {
    looks.push({ host, keepMs: options.keepMs });
    return checkpointLog(host, options);
  };
  const coordinator = new Coordinator({
    ...{ ...parts, hostLogMs: HOST_LOG_MS },
    ...{ dispatcher, blobs: new MemoryBlobs(), random, diskFree: async () => null },
    feeder: new SourceFeeder({ ...parts, sources: [source] }),
    progress: createProgress({ startedAt: main.clock.now() }),
  });
  let endedAt: number | null = null;
  const run = coordinator.run().then((ended) => {
    endedAt = world.now;
    return ended;
  });
  await world.run(() => endedAt !== null);
  const { counters } = await run;
  const [facts] = await collect(store.hosts.list(job.id));
  const workers = new Set<string>();
  for await (const { worker } of store.views.attempts(job.id)) workers.add(worker);
  db.close();
  return { ms: endedAt! - startedAt, counters, requests, pace: facts?.pace ?? null, looks, workers };
}

/** The most requests of any stretch of time. */
function mostWithin(requests: readonly Request[], ms: number): number {
  let first = 0;
  let most = 0;
  for (const [index, { at }] of requests.entries()) {
    while (requests[first]!.at <= at - ms) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

const refusedIn = (requests: readonly Request[]) => requests.filter(({ status }) => status === 429).length;

describe('a host that takes 5 requests a second from one address', () => {
  let one: Result;
  let many: Result;
  beforeAll(async () => {
    one = await crawl({ perAddress: false, pages: 300, rate: 40 });
    many = await crawl({ perAddress: true, pages: 2_000, rate: 40 });
  });

  test('is asked far more often with a pace for each of six addresses than with one pace', () => {
    expect([one.counters.done, many.counters.done]).toEqual([300, 2_000]);
    // Five times as much is to be had, and here it comes to 18/s against 4/s.
    expect(many.requests.length / many.ms).toBeGreaterThan((3 * one.requests.length) / one.ms);
  });

  test('no address goes beyond its limit, once it is learned', () => {
    const later = many.requests.slice(many.requests.length / 2);
    expect(new Set(later.map(({ address }) => address)).size).toBe(ADDRESSES);
    expect(refusedIn(later)).toBeLessThanOrEqual(later.length / 200);
    expect(refusedIn(many.requests)).toBeLessThanOrEqual(40);
    expect(Object.keys(many.pace?.addresses ?? {})).toHaveLength(ADDRESSES);
    for (const { rate } of Object.values(many.pace?.addresses ?? {})) expect(rate).toBeLessThan(LIMIT * 1.1);
  });

  test('the attempts tell which address was used', () => {
    expect(many.workers).toEqual(new Set(many.requests.map(({ address }) => address)));
  });

  test('all addresses together never get more than the rate of the job', async () => {
    const { requests, counters } = await crawl({ perAddress: true, pages: 400, rate: 12 });
    expect(counters.done).toBe(400);
    expect(new Set(requests.map(({ address }) => address)).size).toBeGreaterThan(2);
    for (const seconds of [1, 5, 20])
      expect(mostWithin(requests, seconds * 1_000)).toBeLessThanOrEqual(12 * seconds);
  });

  test('when it bans one address, it is left alone by all of them, and no page is lost', async () => {
    const ban = { address: 'lambda-2', fromMs: 20_000, forMs: 90_000 };
    const { requests, counters, looks } = await crawl({ perAddress: true, pages: 900, rate: 40, ban });
    expect([counters.done, counters.dead, counters.pending]).toEqual([900, 0, 0]);
    const banned = requests.filter(({ status }) => status === 403);
    expect(banned.length).toBeLessThanOrEqual(30);
    // Permits that were out may end; from then on nobody asks.
    const restAt = banned[0]!.at + 6_000;
    expect(requests.filter(({ at }) => at > restAt && at < banned[0]!.at + 20_000)).toEqual([]);
    // It is still banned when the first rest is over: the next is twice as long.
    const rests = requests.slice(1).map(({ at }, index) => at - requests[index]!.at);
    expect(rests.filter((ms) => ms > 15_000).map((ms) => Math.round(ms / 10_000))).toEqual([2, 4, 8]);
    // Over so many batches its log was looked at, for entries that are too old.
    expect(looks[0]).toEqual({ host: 'shop.example.test', keepMs: HOST_LOG_MS });
    expect(looks.length).toBeLessThan(20);
  });
});
