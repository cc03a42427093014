import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import type { FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import { codeOf } from '../support/fixtures.ts';
import { Fleet } from './fleet.ts';
import { MemoryBlobs } from './memory-blobs.ts';
import { openMemoryStore } from './shared-store.ts';
import { Process, SeededRandom, World } from './virtual-time.ts';

/** How a sick page fails, every time. */
const SICKNESSES = ['503', '500', 'reset', 'timeout'] as const;
type Sickness = (typeof SICKNESSES)[number];

interface SickPages {
  sickness: Sickness;
  /** Sick pages of each host, spread evenly among the healthy ones. */
  sick: number;
  healthy: number;
  hosts: number;
  rate: number | 'max';
  /** What healthy pages take. */
  latencyMs?: number;
  /** Pages that take so long instead, of each host: they are as healthy as the others. */
  slow?: { pages: number; latencyMs: number };
  seed?: number;
}

interface SickResult {
  /** From the first request to the last healthy page. */
  ms: number;
  served: number;
  /** Healthy pages that were requested more than once. */
  again: number;
  state: string;
  stop: string | null;
  done: number;
  dead: number;
}

const HEADERS_TIMEOUT_MS = 2_000;
/** How often the real fetcher looks at its timeouts. */
const SWEEP_MS = 50;

/** What `npm run sick` does with real hosts, on virtual time: there it takes exactly as long as the rules say. */
export async function simulateSickPages(options: SickPages): Promise<SickResult> {
  const { sickness, sick, healthy, hosts, latencyMs = 5, slow } = options;
  const random = new SeededRandom(options.seed ?? 1);
  const world = new World(random);
  const served = new Map<string, number>();
  const asked = new Map<string, number>();
  let firstAt = Number.POSITIVE_INFINITY;
  const urls: string[] = [];
  const every = sick === 0 ? Number.POSITIVE_INFINITY : Math.floor((healthy + sick) / sick);
  for (let page = 0, ill = 0, late = 0; page < healthy + sick; page++) {
    const isSick = page % every === 0 && ill < sick;
    if (isSick) ill++;
    const isSlow = !isSick && late < (slow?.pages ?? 0) && page % 7 === 3;
    if (isSlow) late++;
    const kind = isSick ? 'sick' : isSlow ? 'slow' : 'well';
    for (let host = 1; host <= hosts; host++) urls.push(`http://h${host}.test/${kind}/${page}`);
  }
  const answerTo = (url: string): { result: FetchResult; ms: number } => {
    if (url.endsWith('/robots.txt')) return { result: response(404), ms: latencyMs };
    if (!url.includes('/sick/'))
      return { result: response(200), ms: url.includes('/slow/') ? slow!.latencyMs : latencyMs };
    if (sickness === 'timeout') return { result: noAnswer(HEADERS_TIMEOUT_MS), ms: HEADERS_TIMEOUT_MS };
    if (sickness === 'reset')
      return { result: { kind: 'failure', code: 'reset', detail: '', bytes: 0 }, ms: latencyMs };
    return { result: response(Number(sickness)), ms: latencyMs };
  };
  const fetch = (request: FetchRequest, process: Process): Promise<FetchResult> => {
    const { promise, resolve } = Promise.withResolvers<FetchResult>();
    if (!request.onSent()) return Promise.resolve({ kind: 'aborted' });
    const { result, ms } = answerTo(request.url);
    const sentAt = world.now;
    if (!request.url.endsWith('/robots.txt')) firstAt = Math.min(firstAt, sentAt);
    asked.set(request.url, (asked.get(request.url) ?? 0) + 1);
    let isOver = false;
    const end = (by: FetchResult) => {
      isOver = true;
      resolve(by);
    };
    request.signal.addEventListener('abort', () => end({ kind: 'aborted' }));
    world.after(ms, process, () => {
      if (isOver) return;
      if (result.kind === 'response' && result.status === 200 && !served.has(request.url))
        served.set(request.url, world.now);
      end(result);
    });
    const sweep = () => {
      if (isOver) return;
      const limitMs = request.headersMs?.() ?? Number.POSITIVE_INFINITY;
      if (world.now - sentAt > limitMs) end(noAnswer(limitMs));
      else world.after(SWEEP_MS, process, sweep);
    };
    if (ms > SWEEP_MS) world.after(SWEEP_MS, process, sweep);
    return promise;
  };
  const { store, db } = openMemoryStore();
  const spec = {
    sources: 'http://example.test/',
    politeness: { rate: options.rate },
    timeouts: { headersMs: HEADERS_TIMEOUT_MS },
  };
  const job = await store.jobs.create({ ...codeOf('sick', spec), name: 'sick', now: 0 });
  const blobs = new MemoryBlobs();
  const fleet = new Fleet(
    world,
    { workers: 2, slotsPerWorker: 8, areThreads: true, faults: { lost: 0, doubled: 0, late: 0 } },
    { fetch },
    blobs,
  );
  const process = new Process(world, 'coordinator-1');
  const { clock } = process;
  const logger = { info: () => {}, warn: () => {}, error: () => {} };
  const source = {
    name: 'the list',
    priority: 0,
    async *rows() {
      for (const [index, url] of urls.entries())
        yield { place: `row ${index}`, position: String(index + 1), row: { url, meta: null } };
    },
  };
  const coordinator = new Coordinator({
    ...{ store, job, clock, logger, blobs, random },
    dispatcher: fleet.dispatcherFor(process),
    feeder: new SourceFeeder({ store, job, clock, logger, sources: [source] }),
    progress: createProgress({ startedAt: clock.now() }),
    diskFree: async () => null,
  });
  let isDone = false;
  const ended = coordinator.run().finally(() => {
    isDone = true;
  });
  await world.run(() => isDone);
  const { counters, state, stop } = await ended;
  db.close();
  const ms = Math.max(...served.values()) - firstAt;
  const again = [...served.keys()].filter((url) => asked.get(url)! > 1).length;
  return {
    ms,
    served: served.size,
    again,
    state,
    stop: stop?.message ?? null,
    done: counters.done,
    dead: counters.dead,
  };
}

function response(status: number): FetchResult {
  const body = Buffer.from('<h1>page</h1>');
  const rawHeaders = ['Content-Type', 'text/html'];
  const about = { status, statusText: '', rawHeaders, wireBytes: body.length };
  return { kind: 'response', ...about, wireBody: body, body };
}

function noAnswer(ms: number): FetchResult {
  return { kind: 'failure', code: 'headers-timeout', detail: `no answer within ${ms} ms`, bytes: 0 };
}

/** Healthy pages beside sick ones take at most so many times as long as alone. */
const TIMES_MAX: Record<Sickness, number> = { '503': 1.5, '500': 1.5, reset: 1.5, timeout: 2 };

/** What is wrong with how pages fare beside sick ones, at hosts that the seed decides; null when nothing is. */
export async function sickPagesProblem(seed: number): Promise<string | null> {
  const random = new SeededRandom(seed ^ 0x51c4);
  const site = { healthy: 64, hosts: random.between(1, 3), rate: 20, seed };
  const sickness = random.pick(SICKNESSES);
  const sick = random.pick([3, 7, 16]);
  const alone = await simulateSickPages({ ...site, sickness, sick: 0 });
  const beside = await simulateSickPages({ ...site, sickness, sick });
  const what = `${sick} pages of each host that end with ${sickness}`;
  if (beside.state !== 'done') return `${what} stopped the job: ${beside.stop}`;
  if (beside.done !== site.healthy * site.hosts) return `with ${what}, only ${beside.done} pages are done`;
  const times = beside.ms / alone.ms;
  if (times <= TIMES_MAX[sickness]) return null;
  return `${what} hold up the others: ${times.toFixed(2)} times the time that they take alone`;
}
