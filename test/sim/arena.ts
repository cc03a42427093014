import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { explainJob } from '../../src/coordinator/explain/explain-job.ts';
import { loadJobAccess } from '../../src/coordinator/proxies/job-access.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import type { Batch, Report } from '../../src/core/batch/batch.ts';
import type { Explanation } from '../../src/core/explain/explain.ts';
import { pagesPerSecond } from '../../src/core/explain/predict.ts';
import type { Delivery, Dispatcher } from '../../src/ports/dispatcher.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import type { Source } from '../../src/ports/source.ts';
import type { Store } from '../../src/ports/store.ts';
import { Lateness } from '../../src/worker/batch/pace.ts';
import { processBatch, type WorkerTools } from '../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../src/worker/compile-job.ts';
import { codeOf } from '../support/fixtures.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { openMemoryStore } from './shared-store.ts';
import { Process, SeededRandom, World } from './virtual-time.ts';

/** A crawl on virtual time: real coordinator, real workers, and sites, stores and machines as slow as the case says. */
interface Machines {
  workers: number;
  slotsPerWorker: number;
  hosts: number;
  latencyMs: number;
  rate: number | 'max';
  parallel: number;
  batchSize: number;
  /** What writing a report takes in the store, one after the other. */
  storeMs: number;
  /** What storing the pages of a batch takes. */
  archiveMs: number;
  /** Proxies that each take one request a second. */
  proxies: number;
  /** Pages need a browser, and so many batches for one may be out. */
  browsers: number | null;
  /** From then on there is none. */
  browsersGoneAtMs: number;
  /** Every so many requests a host says that it wants none for `pauseSeconds`. */
  refusesEach: number;
  pauseSeconds: number;
  /** What robots.txt takes; null: it is not asked for. */
  robotsMs: number | null;
  /** Pages of a host that come one after the other. */
  pagesInRow: number;
  /** Between two rows of the source. */
  rowMs: number;
  /** What the code of the job computes for each page. */
  computeMs: number;
  /** Until a worker begins with a batch. */
  startMs: number;
  pagesMax: number | null;
  /** Batches under way follow what hosts and backlog need. */
  scales: boolean;
}

const USUAL: Machines = {
  workers: 2,
  slotsPerWorker: 4,
  hosts: 20,
  latencyMs: 200,
  rate: 'max',
  parallel: 2,
  batchSize: 10,
  storeMs: 0,
  archiveMs: 0,
  proxies: 0,
  browsers: null,
  browsersGoneAtMs: Number.POSITIVE_INFINITY,
  refusesEach: Number.POSITIVE_INFINITY,
  pauseSeconds: 0,
  robotsMs: null,
  pagesInRow: 1,
  rowMs: 0,
  computeMs: 0,
  startMs: 0,
  pagesMax: null,
  scales: false,
};

interface Situation {
  name: string;
  /** What it is known to be limited by. */
  cause: NonNullable<Explanation['limiting']>;
  machines: Partial<Machines>;
  /** As for `--what-if`, and what that is in machines. */
  change: string;
  changed: Partial<Machines>;
  /** Few steps for much virtual time: for tests that must be short. */
  isCheap?: true;
}

const HOST = 'h0.example.test';

export const SITUATIONS: readonly Situation[] = [
  {
    name: 'one slow host',
    isCheap: true,
    cause: 'hostGap',
    machines: { hosts: 1, rate: 4, parallel: 8 },
    change: `rate:${HOST}=8`,
    changed: { rate: 8 },
  },
  {
    name: 'one slow host, more workers',
    isCheap: true,
    cause: 'hostGap',
    machines: { hosts: 1, rate: 4, parallel: 4 },
    change: 'workers=+8',
    changed: { workers: 10 },
  },
  {
    name: 'too few requests at once for a host',
    isCheap: true,
    cause: 'hostParallelism',
    machines: { hosts: 1, latencyMs: 600, parallel: 2 },
    change: `parallel:${HOST}=4`,
    changed: { parallel: 4 },
  },
  {
    name: 'too few workers',
    cause: 'workers',
    machines: { workers: 1, hosts: 200, latencyMs: 2_000, parallel: 1 },
    change: 'workers=+1',
    changed: { workers: 2 },
  },
  {
    name: 'slow store',
    isCheap: true,
    cause: 'store',
    machines: { storeMs: 400, batchSize: 4 },
    change: 'store=2x',
    changed: { storeMs: 200 },
  },
  {
    name: 'slow store, more workers',
    isCheap: true,
    cause: 'store',
    machines: { storeMs: 400, batchSize: 4 },
    change: 'workers=+2',
    changed: { workers: 4 },
  },
  {
    name: 'slow S3',
    cause: 'archive',
    machines: { archiveMs: 6_000, hosts: 40 },
    change: 'archive=2x',
    changed: { archiveMs: 3_000 },
  },
  {
    name: 'full proxy pool',
    cause: 'proxy',
    machines: { proxies: 3 },
    change: 'proxy=2x',
    changed: { proxies: 6 },
  },
  {
    name: 'too few browser workers',
    cause: 'browserRoom',
    machines: { browsers: 1, latencyMs: 1_500, batchSize: 4 },
    change: 'browserRoom=2x',
    changed: { browsers: 2 },
  },
  {
    name: 'no browser worker any more',
    cause: 'browserRoom',
    machines: { browsers: 1, latencyMs: 1_500, batchSize: 4, browsersGoneAtMs: 0.5 },
    change: 'browserRoom=2x',
    changed: { browsersGoneAtMs: Number.POSITIVE_INFINITY },
  },
  {
    name: 'backoff storm',
    isCheap: true,
    cause: 'retryBackoff',
    machines: { hosts: 4, rate: 20, refusesEach: 20, pauseSeconds: 8 },
    change: 'retryBackoff=2x',
    changed: { pauseSeconds: 4 },
  },
  {
    name: 'robots.txt is waited for',
    cause: 'robots',
    machines: { hosts: 2_000, robotsMs: 3_000, pagesInRow: 2, latencyMs: 100, batchSize: 2 },
    change: 'robots=2x',
    changed: { robotsMs: 1_500 },
  },
  {
    name: 'source too slow',
    isCheap: true,
    cause: 'source',
    machines: { rowMs: 300 },
    change: 'source=2x',
    changed: { rowMs: 150 },
  },
  {
    name: 'code that computes',
    isCheap: true,
    cause: 'cpu',
    machines: { workers: 1, computeMs: 150 },
    change: 'workers=+1',
    changed: { workers: 2 },
  },
  {
    name: 'limit of pages reached',
    isCheap: true,
    cause: 'budget',
    machines: { rate: 1, pagesMax: 300 },
    change: 'budget=2x',
    changed: { pagesMax: 600 },
  },
  {
    name: 'cold starts',
    cause: 'coldStart',
    machines: { startMs: 5_000, hosts: 40 },
    change: 'coldStart=2x',
    changed: { startMs: 2_500 },
  },
];

interface Verdict {
  explanation: Explanation;
  /** Pages per second: as it was, as predicted with the change, and as it then was. */
  before: number;
  predicted: number;
  after: number;
}

/** What is said of a situation, without a look at the change. */
export async function explainSituation(situation: Situation, virtualMs: number): Promise<Explanation> {
  return (await crawl({ ...USUAL, ...situation.machines }, virtualMs, [situation.change])).explanation;
}

export async function judge(situation: Situation, virtualMs: number): Promise<Verdict> {
  const machines = { ...USUAL, ...situation.machines };
  const first = await crawl(machines, virtualMs, [situation.change]);
  const second = await crawl({ ...machines, ...situation.changed }, virtualMs, []);
  const predicted = first.rate * (1 + first.explanation.gains[0]!.gainPercent / 100);
  return { explanation: first.explanation, before: first.rate, predicted, after: second.rate };
}

/** Pages per second of hosts that need few of many slots, and how many batches were under way on average. */
export async function rateWithScaling(
  scales: boolean,
  virtualMs: number,
): Promise<{ rate: number; batches: number }> {
  const machines = { ...USUAL, workers: 16, hosts: 12, rate: 4, parallel: 4, batchSize: 20, scales } as const;
  const { store, db } = openMemoryStore();
  try {
    const crawling = new Crawl(store, machines, virtualMs);
    const { rate } = await crawling.run([]);
    return { rate, batches: crawling.batchesMax };
  } finally {
    db.close();
  }
}

async function crawl(
  machines: Machines,
  virtualMs: number,
  changes: readonly string[],
): Promise<{ explanation: Explanation; rate: number }> {
  const { store, db } = openMemoryStore();
  try {
    return await new Crawl(store, machines, virtualMs).run(changes);
  } finally {
    db.close();
  }
}

const BODY = Buffer.from('<html><body><h1>A page</h1></body></html>');
const HTML = ['Content-Type', 'text/html; charset=utf-8'];
const SILENT = { info() {}, warn() {}, error() {} };

class Crawl {
  readonly #world = new World(new SeededRandom(1));
  readonly #machines: Machines;
  readonly #virtualMs: number;
  readonly #store: Store;
  /** Not called a coordinator: every one of its timers fires. */
  readonly #process: Process;
  readonly #open = new Map<Worker, number>();
  readonly #requests = new Map<string, number>();
  #storeFreeAt = 0;
  #workers: Worker[] = [];
  #batches = 0;
  /** Most batches that were under way at once. */
  batchesMax = 0;

  constructor(store: Store, machines: Machines, virtualMs: number) {
    this.#store = store;
    this.#machines = machines;
    this.#virtualMs = virtualMs;
    this.#process = new Process(this.#world, 'main');
  }

  async run(changes: readonly string[]): Promise<{ explanation: Explanation; rate: number }> {
    const machines = this.#machines;
    const { clock } = this.#process;
    const code = codeOf('arena', {
      sources: 'http://example.test/',
      politeness: {
        rate: machines.rate,
        parallel: machines.parallel,
        adaptive: false,
        robots: machines.robotsMs !== null,
      },
      timeouts: { connectMs: 20_000, headersMs: 20_000, bodyMs: 20_000, taskMs: 40_000 },
      limits: { perTemplate: null, diskFreeBytes: 0, window: 1_000, pages: machines.pagesMax },
      batchSize: machines.batchSize,
      scaling: { adaptive: machines.scales },
      archive: machines.archiveMs > 0,
      ...(machines.browsers === null && machines.computeMs === 0
        ? {}
        : { routes: [{ name: 'page', ...(machines.browsers === null ? {} : { fetcher: 'browser' }) }] }),
      ...(machines.proxies === 0 ? {} : { proxies: proxiesOf(machines.proxies) }),
    } as Parameters<typeof codeOf>[1]);
    const job = await this.#store.jobs.create({ ...code, name: 'arena', now: 0 });
    const access = machines.proxies > 0 ? await loadJobAccess(job.spec, async () => '') : null;
    const store = this.#slowStore();
    const parts = { store, job, clock, logger: SILENT };
    for (let index = 0; index < machines.workers; index++) this.#workers.push(this.#worker(index));
    const coordinator = new Coordinator({
      ...parts,
      blobs: new MemoryBlobs(),
      dispatcher: this.#dispatcher(),
      feeder: new SourceFeeder({ ...parts, sources: [this.#source()] }),
      progress: createProgress({ startedAt: clock.now() }),
      random: this.#world.random,
      access,
      diskFree: async () => null,
    });
    let explanation: Explanation | null = null;
    let rate = 0;
    let isOver = false;
    const look = async (isAlive: boolean) => {
      const [account] = await this.#store.slotTimes.load(job.id);
      explanation = await explainJob(this.#store, await this.#store.jobs.get(job.id), { changes, isAlive });
      rate = pagesPerSecond(isAlive ? account!.recent : account!.total);
    };
    const ended = coordinator.run().then(async ({ stop }) => {
      if (stop?.cause === 'limit') await look(false);
      isOver = true;
    });
    this.#world.after(this.#virtualMs, this.#process, () => {
      void look(true).then(() =>
        coordinator.stop({ state: 'stopped', cause: 'request', message: 'it was looked at' }),
      );
    });
    await this.#world.run(() => isOver);
    await ended;
    return { explanation: explanation!, rate };
  }

  #source(): Source {
    const { hosts, rowMs, pagesInRow } = this.#machines;
    const wait = (ms: number) =>
      new Promise<void>((resolve) => void this.#world.after(ms, this.#process, resolve));
    return {
      name: 'the list',
      priority: 0,
      async *rows(from) {
        for (let index = Number(from ?? 0); index < 100_000; index++) {
          if (rowMs > 0) await wait(rowMs);
          const host = Math.floor(index / pagesInRow) % hosts;
          const url = `http://h${host}.example.test/p/${index}`;
          yield { place: `row ${index}`, position: String(index + 1), row: { url, meta: null } };
        }
      },
    };
  }

  /** Reports are written one after the other, as in a database of one process. */
  #slowStore(): Store {
    const { storeMs } = this.#machines;
    if (storeMs === 0) return this.#store;
    const { frontier } = this.#store;
    const settle: typeof frontier.settle = async (settlement) => {
      const now = this.#world.now;
      this.#storeFreeAt = Math.max(now, this.#storeFreeAt) + storeMs;
      await new Promise<void>((resolve) => {
        this.#world.after(this.#storeFreeAt - now, this.#process, resolve);
      });
      return frontier.settle(settlement);
    };
    const own = { settle };
    return {
      ...this.#store,
      frontier: new Proxy(frontier, {
        get: (target, name) => {
          const method = Reflect.get(own, name) ?? Reflect.get(target, name);
          return (...args: unknown[]) => (method as (...given: unknown[]) => unknown).apply(target, args);
        },
      }),
    };
  }

  #dispatcher(): Dispatcher {
    const { workers, slotsPerWorker, startMs, browsers, browsersGoneAtMs } = this.#machines;
    const goneAt = browsersGoneAtMs < 1 ? browsersGoneAtMs * this.#virtualMs : browsersGoneAtMs;
    const drain = new AbortController();
    return {
      workers,
      slots: workers * slotsPerWorker,
      ...(browsers === null
        ? {}
        : {
            slotsFor: (kind) =>
              kind === 'browser' ? (this.#world.elapsedMs < goneAt ? browsers : 0) : workers * slotsPerWorker,
          }),
      dispatch: (batch, onPart) =>
        new Promise<Delivery>((resolve) => {
          this.#world.after(startMs + 2, this.#process, () => {
            void this.#work(batch, onPart, drain.signal).then((report) =>
              this.#world.after(5, this.#process, () => resolve({ kind: 'report', report })),
            );
          });
        }),
      drain: async () => drain.abort(),
      close: async () => {},
    };
  }

  async #work(batch: Batch, onPart: (report: Report) => void, drain: AbortSignal): Promise<Report> {
    const load = (worker: Worker) => this.#open.get(worker) ?? 0;
    const worker = this.#workers.reduce((best, each) => (load(each) < load(best) ? each : best));
    this.#open.set(worker, load(worker) + 1);
    this.batchesMax = Math.max(this.batchesMax, ++this.#batches);
    const sendPart = (report: Report) => void this.#world.after(5, this.#process, () => onPart(report));
    const report = await processBatch(batch, worker.tools, { onPart: sendPart, drain });
    this.#open.set(worker, load(worker) - 1);
    this.#batches--;
    return report;
  }

  #worker(index: number): Worker {
    const { archiveMs, computeMs } = this.#machines;
    const process = new Process(this.#world, `worker-${index}`);
    const cpu = new VirtualCpu(this.#world, process);
    const fetcher: Fetcher = { fetch: (request) => this.#fetch(request, process), close: async () => {} };
    const handlers =
      computeMs > 0 ? new Map([['page', { handler: () => cpu.compute(computeMs) }]]) : new Map();
    const tools: WorkerTools = {
      name: process.name,
      fetcher,
      fetcherOf: async () => fetcher,
      blobs: slowBlobs(archiveMs, this.#world, process),
      clock: process.clock,
      random: this.#world.random,
      lateness: new Lateness(),
      jobs: new JobCache(async () => handlers),
      busyMs: () => cpu.busyMs,
    };
    return { tools };
  }

  #fetch(request: FetchRequest, process: Process): Promise<FetchResult> {
    const { latencyMs, robotsMs, refusesEach, pauseSeconds, browsers } = this.#machines;
    const { host, pathname } = new URL(request.url);
    const isRobots = pathname === '/robots.txt';
    const count = (this.#requests.get(host) ?? 0) + 1;
    this.#requests.set(host, count);
    const { promise, resolve } = Promise.withResolvers<FetchResult>();
    if (!request.onSent()) return Promise.resolve({ kind: 'aborted' });
    const answer = (): FetchResult => {
      if (isRobots) return response(404);
      if (count % refusesEach === 0) return response(429, ['Retry-After', String(pauseSeconds)]);
      const page = response(200, HTML, BODY);
      return browsers === null ? page : { ...page, rendered: { shots: [], captured: {} } };
    };
    const cancel = this.#world.after(isRobots ? (robotsMs ?? 0) : latencyMs, process, () =>
      resolve(answer()),
    );
    request.signal.addEventListener('abort', () => {
      cancel();
      resolve({ kind: 'aborted' });
    });
    return promise;
  }
}

interface Worker {
  tools: WorkerTools;
}

/** Does one thing after the other. */
class VirtualCpu {
  readonly #world: World;
  readonly #process: Process;
  #freeAt = 0;
  #givenMs = 0;

  constructor(world: World, process: Process) {
    this.#world = world;
    this.#process = process;
  }

  get busyMs(): number {
    return this.#givenMs - Math.max(0, this.#freeAt - this.#world.now);
  }

  compute(ms: number): Promise<null> {
    this.#freeAt = Math.max(this.#world.now, this.#freeAt) + ms;
    this.#givenMs += ms;
    return new Promise((resolve) => {
      this.#world.after(this.#freeAt - this.#world.now, this.#process, () => resolve(null));
    });
  }
}

function slowBlobs(ms: number, world: World, process: Process): MemoryBlobs {
  const blobs = new MemoryBlobs();
  if (ms === 0) return blobs;
  const write = blobs.write.bind(blobs);
  blobs.write = async (key) => {
    const writer = await write(key);
    return Object.assign(writer, {
      commit: async () => {
        await new Promise<void>((resolve) => void world.after(ms, process, resolve));
      },
    });
  };
  return blobs;
}

function response(status: number, rawHeaders: string[] = [], body: Buffer = Buffer.alloc(0)) {
  const about = { status, statusText: '', rawHeaders, wireBytes: body.length };
  return { kind: 'response' as const, ...about, wireBody: body, body };
}

function proxiesOf(count: number) {
  const list = Array.from({ length: count }, (_, index) => `http://192.0.2.${index + 1}:8080`);
  return { pools: { all: { from: { list }, ratePerProxy: 1 } }, default: 'all' };
}
