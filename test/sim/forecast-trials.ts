import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { readEvidence, readPlan } from '../../src/coordinator/forecast/evidence.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import { PRICES_DEFAULT } from '../../src/core/cost/cost.ts';
import { type Forecast, forecastOf } from '../../src/core/forecast/forecast.ts';
import type { GrowthPoint } from '../../src/core/forecast/growth.ts';
import type { JobInput } from '../../src/core/job-schema/job.ts';
import type { FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import type { Source } from '../../src/ports/source.ts';
import { codeOf } from '../support/fixtures.ts';
import { Fleet } from './fleet.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { openMemoryStore } from './shared-store.ts';
import { type Process, SeededRandom, Process as SimProcess, World } from './virtual-time.ts';

/**
 * Forecasts against the truth: a sample of a synthetic web is run on virtual time by the real coordinator and workers, a
 * forecast is made of it, and then the whole job is run.
 */
export interface Trial {
  seed: number;
  kind: 'list' | 'crawl';
  rate: number | 'max';
  forecast: Forecast;
  /** What the whole job came to. */
  seconds: number;
  requests: number;
  pages: number;
  dollars: number;
}

const WORKERS = 2;
/** A page through a proxy, so that there is a bill. */
const PRICES = { ...PRICES_DEFAULT, egressGb: 10, machineHour: 0.1 };
const SILENT = { info() {}, warn() {}, error() {} };

export async function runTrial(seed: number, sample: number): Promise<Trial> {
  const random = new SeededRandom(seed);
  const kind = random.chance(0.6) ? 'list' : 'crawl';
  const web = new SyntheticWeb(random, kind);
  const spec: Partial<JobInput> = {
    follow: kind === 'crawl',
    politeness: { rate: random.pick([1, 2, 4, 4, 10, 'max'] as const), adaptive: random.chance(0.7) },
    limits: { perTemplate: null, diskFreeBytes: 0 },
  };
  const listed = new Map<string, number>();
  for (const url of web.listed) listed.set(new URL(url).host, (listed.get(new URL(url).host) ?? 0) + 1);
  const first = kind === 'list' ? shuffled(web.listed, random).slice(0, sample) : web.listed;
  const sampled = await run(web, first, { ...spec, limits: { ...spec.limits, requests: sample } }, seed);
  const given = { listed, workers: WORKERS, prices: PRICES, sampledAs: sampled.job.id };
  const job = codeOf('whole', { sources: 'http://example.test/', ...spec });
  const plan = await readPlan(sampled.store, job.spec, given);
  const evidence = await readEvidence(sampled.store, sampled.job, sampled.growth);
  const forecast = forecastOf(plan, evidence, 'sample');
  await sampled.store.close();
  const whole = await run(web, web.listed, spec, seed + 1);
  const bill = await whole.store.jobs.costs(whole.job.id);
  await whole.store.close();
  return {
    seed,
    kind,
    rate: job.spec.politeness.rate,
    forecast,
    seconds: whole.seconds,
    requests: whole.counters.requests,
    pages: whole.counters.accepted,
    dollars: bill.reduce((sum, { dollars }) => sum + dollars, 0),
  };
}

function shuffled<T>(list: readonly T[], random: SeededRandom): T[] {
  const result = [...list];
  for (let index = result.length - 1; index > 0; index--) {
    const other = random.between(0, index + 1);
    [result[index], result[other]] = [result[other]!, result[index]!];
  }
  return result;
}

async function run(web: SyntheticWeb, urls: readonly string[], spec: Partial<JobInput>, seed: number) {
  const world = new World(new SeededRandom(seed * 7 + 1));
  web.reset();
  const { store } = openMemoryStore();
  const process = new SimProcess(world, 'coordinator-1');
  const { clock } = process;
  const blobs = new MemoryBlobs();
  const faults = { lost: 0, doubled: 0, late: 0 };
  const workers = { workers: WORKERS, slotsPerWorker: 8, areThreads: true, faults };
  const fleet = new Fleet(world, workers, { fetch: (request, by) => web.fetch(request, by, world) }, blobs);
  const code = codeOf('trial', { sources: 'http://example.test/', ...spec });
  const job = await store.jobs.create({ ...code, name: 'trial', now: Math.floor(clock.now()) });
  const parts = { store, job, clock, logger: SILENT };
  const source: Source = {
    name: 'the list',
    priority: 0,
    async *rows(from) {
      for (let index = from === null ? 0 : Number(from); index < urls.length; index++)
        yield { place: String(index), position: String(index + 1), row: { url: urls[index]!, meta: null } };
    },
  };
  const coordinator = new Coordinator({
    ...parts,
    blobs,
    dispatcher: fleet.dispatcherFor(process),
    feeder: new SourceFeeder({ ...parts, sources: [source] }),
    progress: createProgress({ startedAt: clock.now() }),
    random: world.random,
    costs: { prices: PRICES, storesInS3: false },
    diskFree: async () => null,
  });
  const growth: GrowthPoint[] = [];
  const look = () => {
    void store.jobs.counters(job.id).then(({ attempted, accepted }) => {
      growth.push({ visited: attempted, known: accepted });
    });
    world.after(1_000, process, look);
  };
  look();
  let ended: Awaited<ReturnType<Coordinator['run']>> | null = null;
  let failure: unknown = null;
  coordinator.run().then(
    (result) => (ended = result),
    (error: unknown) => (failure = error),
  );
  await world.run(() => ended !== null || failure !== null);
  if (failure !== null) throw failure;
  return { store, job, growth, seconds: world.elapsedMs / 1_000, counters: ended!.counters };
}

interface SyntheticPage {
  /** Milliseconds, without the chance of the moment. */
  latencyMs: number;
  bytes: number;
  links: string[];
  /** Tries that fail before one succeeds. */
  failures: number;
  isMissing: boolean;
}

/** Hosts of very different sizes and speeds, with pages that link to each other. */
class SyntheticWeb {
  readonly listed: string[] = [];
  readonly #pages = new Map<string, SyntheticPage>();
  #failed = new Map<string, number>();

  constructor(random: SeededRandom, kind: Trial['kind']) {
    if (kind === 'list') this.#addList(random);
    else this.#addSite(random);
  }

  #addList(random: SeededRandom): void {
    const hosts = random.between(1, 25);
    const total = random.between(400, 1_600);
    const shape = random.next() * 1.5;
    const weights = Array.from({ length: hosts }, (_, index) => (index + 1) ** -shape);
    const sum = weights.reduce((a, b) => a + b, 0);
    for (let host = 0; host < hosts; host++) {
      const slow = Math.exp(normal(random)) * random.pick([50, 200, 800]);
      const count = Math.max(1, Math.round((total * weights[host]!) / sum));
      for (let page = 0; page < count; page++) {
        const url = `http://h${host}.test/${page}`;
        this.listed.push(url);
        this.#pages.set(url, pageOf(random, slow, []));
      }
    }
  }

  /** A home page, lists of pages with their next ones, and pages that link to others. */
  #addSite(random: SeededRandom): void {
    const origin = 'http://site.test';
    const slow = Math.exp(normal(random)) * random.pick([50, 200, 800]);
    const total = random.between(250, 1_100);
    const url = (page: number) => `${origin}/p/${page}`;
    const related = random.between(3, 12);
    const navigation = Array.from({ length: random.between(5, 20) }, (_, page) => url(page));
    const perList = random.between(2, 30);
    for (let page = 0; page < total; page++) {
      const children = Array.from(
        { length: perList },
        (_, child) => page * perList + child + navigation.length,
      );
      const others = Array.from({ length: related }, () => url(random.between(0, total)));
      const below = children.filter((child) => child < total).map(url);
      this.#pages.set(url(page), pageOf(random, slow, [...navigation, ...below, ...others]));
    }
    this.listed.push(url(0));
  }

  /** As it was before anything was requested. */
  reset(): void {
    this.#failed = new Map();
  }

  fetch(request: FetchRequest, process: Process, world: World): Promise<FetchResult> {
    const { promise, resolve } = Promise.withResolvers<FetchResult>();
    if (request.signal.aborted || !request.onSent()) return Promise.resolve({ kind: 'aborted' });
    const page = this.#pages.get(request.url);
    const { random } = world;
    const ms = (page?.latencyMs ?? 50) * Math.exp(0.4 * normal(random));
    let end = (result: FetchResult) => resolve(result);
    const cancel = world.after(ms, process, () => end(this.#answer(request.url, page)));
    const abort = () => {
      cancel();
      end({ kind: 'aborted' });
    };
    request.signal.addEventListener('abort', abort);
    const inner = end;
    end = (result) => {
      request.signal.removeEventListener('abort', abort);
      inner(result);
    };
    return promise;
  }

  #answer(url: string, page: SyntheticPage | undefined): FetchResult {
    if (!page || page.isMissing) return response(404, Buffer.alloc(0));
    const failed = this.#failed.get(url) ?? 0;
    if (failed < page.failures) {
      this.#failed.set(url, failed + 1);
      return response(502, Buffer.alloc(0));
    }
    const anchors = page.links.map((link) => `<a href="${link}">more</a>`).join('\n');
    const body = `<html><body><h1>${url}</h1>\n${anchors}</body></html>`;
    return response(200, Buffer.from(body.padEnd(page.bytes, ' ')));
  }
}

function pageOf(random: SeededRandom, slowMs: number, links: string[]): SyntheticPage {
  return {
    latencyMs: Math.min(15_000, slowMs * Math.exp(0.5 * normal(random))),
    bytes: Math.round(3_000 * Math.exp(0.7 * normal(random))),
    links,
    failures: random.chance(0.02) ? random.between(1, 3) : 0,
    isMissing: links.length === 0 && random.chance(0.03),
  };
}

function response(status: number, body: Buffer): FetchResult {
  const rawHeaders = ['Content-Type', 'text/html; charset=utf-8'];
  return {
    kind: 'response',
    status,
    statusText: '',
    rawHeaders,
    wireBytes: body.length,
    wireBody: body,
    body,
  };
}

function normal(random: SeededRandom): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
