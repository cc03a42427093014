import { billOf, type CostLine, type Prices, quantityOf, totalOf, type Usage } from '../cost/cost.ts';
import { guardedGapMs } from '../politeness/permits.ts';
import { type GrowthPoint, siteSizeOf } from './growth.ts';
import { type LatencyModel, latencyModelOf, meanLatencyOf } from './latency-model.ts';
import { normal, seeded } from './random.ts';

/**
 * What a run will take, told from a sample of it. The model:
 *
 * - Requests: pages × requests per page of the sample, and robots.txt of each host.
 * - Time of a host: its requests × the time between two of them, which is what the sample saw, and at least the gap that
 *   the job allows or the latency shared by parallel requests.
 * - Time of the run: that of the host which takes longest, or the time that the workers need for all pages.
 * - Money and bytes: those of the sample by request; machine hours by time.
 *
 * The sample is resampled (bootstrap), so that its own chance shows in the result; the error of the model itself is a
 * factor with a spread that `npm run forecast-check` has measured.
 */
export interface Forecast {
  requests: number;
  pages: number;
  seconds: { p50: number; p90: number };
  bytes: number;
  /** `items`: the lines of the bill that `p50` adds up. */
  dollars: { p50: number; p90: number; items: CostLine[] };
  /** The host that decides how long it takes; null when that is not a single one. */
  criticalHost: string | null;
  /** What it was concluded from. */
  sample: { from: 'sample' | 'earlier runs' | 'assumptions'; requests: number; pages: number };
}

/** One request of the sample. */
export interface SampledRequest {
  url: string;
  host: string;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  bytes: number;
  /** Not the last request for its page: it failed and is tried again, or it was redirected. */
  goesOn: boolean;
}

export interface Evidence {
  requests: readonly SampledRequest[];
  /** Requests that were sent, with those for robots.txt. */
  sent: number;
  /** Pages known and visited in the course of the sample, for jobs that find pages. */
  growth: readonly GrowthPoint[];
  /** Pages known at its end, by host. */
  known: ReadonlyMap<string, number>;
  bill: readonly CostLine[];
}

export interface RunPlan {
  /** Pages of the lists, by host. */
  listed: ReadonlyMap<string, number>;
  /** Whether the job finds more pages: links, sitemaps, pagination. */
  finds: boolean;
  limits: { pages: number | null; requests: number | null; seconds: number | null; bytes: number | null };
  /** Least time between two requests to a host, and how many at once. */
  paceOf(host: string): { gapMs: number; parallel: number };
  adaptive: boolean;
  workers: number;
  prices: Prices;
}

const REPLICATES = 300;
/** What a worker computes for a page. */
const CPU_MS = 1;
/** A host that is asked at half its rate first, and the start of a run. */
const START_MS = 1_500;
/** Retries of the last pages wait. */
const BACKOFF_MS = 2_000;
/**
 * A slow host is asked with fewer requests at once than it is allowed, because a batch waits for its last pages: this share of
 * them, and besides each request waits for this part of the gap, and for a hand-over.
 */
const PARALLEL_SHARE = 0.75;
const WAITED_GAPS = 0.43;
const HAND_OVER_MS = 60;
const HAND_OVER_SHARE = 0.2;
/** The next permit of a host follows its report: where that takes longer than the gap, the host waits for it once in a permit. */
const REPORT_MS = 380;
const PERMIT_MS = 5_000;
/** Where pace and latency allow about as much, both hold it up: the higher this is, the less. */
const SHARPNESS = 8;
/** Without a rate, parallelism grows with the pages that there are: a job of ten times the pages takes about seven times as long. */
const UNPACED_GROWTH = 0.87;
/** How far times are off: standard deviations of the logarithm. Where the pace decides, where the latency does, and where nothing is set. */
const SPREAD = { paced: 0.015, slow: 0.09, seen: 0.025, unpaced: 0.4 } as const;
/** Of the number of requests. */
const REQUESTS_SPREAD = 0.015;
/** With fewer of them, times between requests to a host say little. */
const GAPS_MIN = 9;
/** With so many, they tell as much as the model does. */
const GAPS_MANY = 60;
/** Hosts with the most work: one of them decides. */
const HOSTS_MAX = 200;
/** Besides, where there is no sample of this job now. What is only assumed may be far off. */
const MODEL_SPREAD = { sample: 0, 'earlier runs': 0.03, assumptions: 0.8 } as const;
/** Money goes with requests, of which more is known than of time. */
const COST_SHARE = 0.45;
/** Of the number of pages that are not known yet. */
const FOUND_SPREAD = 0.3;

interface Draw {
  pages: number;
  requests: number;
  bytes: number;
  ms: number;
  usage: Usage;
  critical: string | null;
}

export function forecastOf(plan: RunPlan, evidence: Evidence, from: Forecast['sample']['from']): Forecast {
  const random = seeded(evidence.requests.length + 1);
  const latencies = latencyModelOf(evidence.requests);
  const draws: Draw[] = [];
  for (let index = 0; index < REPLICATES; index++)
    draws.push(drawOf(plan, evidence, latencies, MODEL_SPREAD[from], random));
  const ms = draws.map((draw) => draw.ms).sort((a, b) => a - b);
  const bills = draws.map(({ usage }) => billOf(usage, plan.prices)).sort((a, b) => totalOf(a) - totalOf(b));
  const items = quantileOf(bills, 0.5);
  return {
    requests: Math.round(medianOf(draws.map(({ requests }) => requests))),
    pages: Math.round(medianOf(draws.map(({ pages }) => pages))),
    seconds: { p50: toSeconds(quantileOf(ms, 0.5)), p90: toSeconds(quantileOf(ms, 0.9)) },
    bytes: Math.round(medianOf(draws.map(({ bytes }) => bytes))),
    dollars: { p50: totalOf(items), p90: totalOf(quantileOf(bills, 0.9)), items },
    criticalHost: mostFrequent(draws.map(({ critical }) => critical)),
    sample: { from, requests: evidence.sent, pages: evidence.sent === 0 ? 0 : urlsIn(evidence) },
  };
}

/** What is usual, for jobs of which nothing is known. */
const USUAL = {
  durationMs: 500,
  bytes: 50_000,
  browserMs: 3_000,
  pagesPerPut: 40,
  memoryGb: 1,
  sitePages: 1_000,
};

/** Pages of a usual web, in the place of a sample. */
export function assumptionsOf(given: {
  isLambda: boolean;
  storesInS3: boolean;
  hasProxies: boolean;
  fetchers: readonly string[];
  gapMs: number;
}): Evidence {
  const { isLambda, storesInS3, hasProxies, fetchers, gapMs } = given;
  const shareOf = (name: string) =>
    fetchers.length === 0 ? 0 : fetchers.filter((fetcher) => fetcher === name).length / fetchers.length;
  const browserShare = shareOf('browser');
  const durationMs = USUAL.durationMs + browserShare * USUAL.browserMs;
  const usage: Usage = {
    ...(isLambda
      ? {
          lambdaCalls: 1 / USUAL.pagesPerPut,
          lambdaGbSeconds: (USUAL.memoryGb * Math.max(gapMs, durationMs / 4)) / 1_000,
        }
      : {}),
    s3Puts: storesInS3 ? 1 / USUAL.pagesPerPut : 0,
    egressGb: 1_000 / 1e9,
    proxyGb: hasProxies ? USUAL.bytes / 1e9 : 0,
    apiCalls: shareOf('api'),
    browserSeconds: (browserShare * durationMs) / 1_000,
  };
  const bill = (Object.keys(usage) as (keyof Usage)[]).map((item) => ({
    item,
    quantity: usage[item] ?? 0,
    dollars: 0,
  }));
  // One page in 20 is requested again.
  const requests = Array.from({ length: 20 }, (_, index) => ({
    url: String(index),
    host: '',
    startedAt: 0,
    durationMs,
    bytes: USUAL.bytes,
    goesOn: index === 0,
  }));
  const growth = [{ visited: USUAL.sitePages, known: USUAL.sitePages }];
  return { requests, sent: 0, growth, known: new Map(), bill };
}

/** One run as it may go, by a sample as it may have been. */
function drawOf(
  plan: RunPlan,
  evidence: Evidence,
  latencies: LatencyModel,
  spread: number,
  random: () => number,
): Draw {
  const sampled = resampled(evidence.requests, random);
  const perPage = requestsPerPage(evidence.requests, sampled);
  const { pages, ofHost } = pagesOf(plan, evidence, perPage, random);
  const requests = capped(pages * perPage + ofHost.size, plan.limits.requests);
  const {
    ms,
    critical,
    spread: ofTime,
  } = timeOf(plan, { ofHost, perPage, requests, evidence, latencies }, random);
  const factor = Math.exp(Math.hypot(spread, ofTime) * normal(random));
  const seconds = plan.limits.seconds ?? Number.POSITIVE_INFINITY;
  const total = Math.min(ms * factor, seconds * 1_000);
  const bytes = requests * meanOf(sampled.map((each) => each.bytes));
  return {
    pages,
    requests,
    bytes: capped(bytes, plan.limits.bytes),
    ms: total,
    usage: usageOf(
      evidence,
      requests * Math.exp(Math.hypot(COST_SHARE * spread, REQUESTS_SPREAD) * normal(random)),
      total,
    ),
    critical,
  };
}

function urlsIn({ requests }: Evidence): number {
  return new Set(requests.map(({ url }) => url)).size;
}

/** Pages that wait for another try when the sample ends will take more requests. */
function requestsPerPage(all: readonly SampledRequest[], sampled: readonly SampledRequest[]): number {
  if (all.length === 0) return 1;
  const goingOn = sampled.filter(({ goesOn }) => goesOn).length / sampled.length;
  // A page that never ends is given up after some tries.
  return 1 / Math.max(0.25, 1 - goingOn);
}

function pagesOf(
  { listed, finds, limits }: RunPlan,
  { growth, known }: Evidence,
  perPage: number,
  random: () => number,
): { pages: number; ofHost: ReadonlyMap<string, number> } {
  const inLists = sumOf(listed.values());
  const ofHost = finds && known.size > 0 ? known : listed;
  let pages = inLists;
  if (finds) {
    const site = siteSizeOf(growth);
    pages = Math.max(inLists, site.known + site.more * Math.exp(FOUND_SPREAD * normal(random)));
  }
  pages = capped(pages, limits.pages);
  if (limits.requests !== null) pages = Math.min(pages, limits.requests / perPage);
  const share = pages / Math.max(1, sumOf(ofHost.values()));
  return { pages, ofHost: new Map([...ofHost].map(([host, count]) => [host, count * share])) };
}

interface Work {
  ofHost: ReadonlyMap<string, number>;
  perPage: number;
  requests: number;
  evidence: Evidence;
  latencies: LatencyModel;
}

function timeOf(
  plan: RunPlan,
  work: Work,
  random: () => number,
): { ms: number; critical: string | null; spread: number } {
  const { ofHost, perPage, requests, evidence, latencies } = work;
  const seenGaps = gapsByHost(evidence.requests);
  const busiest = [...ofHost].sort((a, b) => b[1] - a[1]).slice(0, HOSTS_MAX);
  let ms = 0;
  let critical: string | null = null;
  let spread = 0;
  for (const [host, pages] of busiest) {
    const { gapMs, parallel } = plan.paceOf(host);
    const count = pages * perPage + 1;
    const latencyMs = meanLatencyOf(latencies, host, count, random);
    const pacedMs = guardedGapMs(gapMs, null) * (1 + Math.max(0, REPORT_MS - gapMs) / PERMIT_MS);
    const slowMs = slowInterval(latencyMs, gapMs, parallel);
    const gaps = seenGaps.get(host) ?? [];
    const isSeen = gaps.length >= (gapMs === 0 ? GAPS_MIN : GAPS_MANY);
    const seenMs = isSeen ? meanOf(resampled(gaps, random)) : 0;
    const modelMs = eitherOf(pacedMs, slowMs);
    const intervalMs = !isSeen
      ? modelMs
      : gapMs === 0
        ? seenMs
        : Math.sqrt(modelMs * Math.max(gapMs, seenMs));
    const hostMs = count * intervalMs + latencyMs;
    if (hostMs <= ms) continue;
    ms = hostMs;
    critical = host;
    const ofSlow = gapMs === 0 ? SPREAD.unpaced : isSeen ? SPREAD.seen : SPREAD.slow;
    spread = slowMs <= pacedMs * 0.9 ? SPREAD.paced : ofSlow;
  }
  const sampledMs = spanOf(evidence.requests);
  if (spread === SPREAD.unpaced && !plan.finds && sampledMs > 0)
    ms = sampledMs * (requests / evidence.requests.length) ** UNPACED_GROWTH;
  const workMs = (requests * CPU_MS) / plan.workers;
  const backoffMs = perPage > 1 ? BACKOFF_MS * (perPage - 1) : 0;
  const startMs = plan.adaptive ? START_MS : START_MS / 3;
  return workMs > ms
    ? { ms: workMs + startMs + backoffMs, critical: null, spread: SPREAD.paced }
    : { ms: ms + startMs + backoffMs, critical, spread };
}

/** Between two requests to a host that answers slowly. */
function slowInterval(latencyMs: number, gapMs: number, parallel: number): number {
  const handOverMs = Math.min(HAND_OVER_MS, latencyMs * HAND_OVER_SHARE);
  return latencyMs / (parallel * PARALLEL_SHARE) + gapMs * WAITED_GAPS + handOverMs;
}

function eitherOf(aMs: number, bMs: number): number {
  return (aMs ** SHARPNESS + bMs ** SHARPNESS) ** (1 / SHARPNESS);
}

/**
 * Times between requests to a host, where there are enough. Not those of its start, when its pace is still rising, nor those
 * of its end, when there was little left to request.
 */
function gapsByHost(requests: readonly SampledRequest[]): Map<string, number[]> {
  const gaps = new Map<string, number[]>();
  for (const [host, own] of Map.groupBy(requests, (request) => request.host)) {
    const starts = own.map(({ startedAt }) => startedAt).sort((a, b) => a - b);
    const inner = starts.slice(Math.floor(starts.length * 0.3), Math.ceil(starts.length * 0.85));
    gaps.set(
      host,
      inner.slice(1).map((at, index) => at - inner[index]!),
    );
  }
  return gaps;
}

/** From the first request of the sample to its last answer. */
function spanOf(requests: readonly SampledRequest[]): number {
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  for (const { startedAt, durationMs } of requests) {
    first = Math.min(first, startedAt);
    last = Math.max(last, startedAt + durationMs);
  }
  return Math.max(0, last - first);
}

/** What the sample used by request; time of the machine by time. */
function usageOf({ bill, sent }: Evidence, requests: number, ms: number): Usage {
  const usage: Usage = { machineHours: ms / 3_600_000 };
  for (const { item } of bill)
    if (item !== 'machineHours') usage[item] = (quantityOf(bill, item) / Math.max(1, sent)) * requests;
  return usage;
}

function capped(value: number, limit: number | null): number {
  return limit === null ? value : Math.min(value, limit);
}

function resampled<T>(list: readonly T[], random: () => number): T[] {
  return list.map(() => list[Math.floor(random() * list.length)]!);
}

function meanOf(list: readonly number[]): number {
  return list.length === 0 ? 0 : sumOf(list) / list.length;
}

function sumOf(list: Iterable<number>): number {
  let sum = 0;
  for (const value of list) sum += value;
  return sum;
}

function medianOf(list: readonly number[]): number {
  return quantileOf(
    list.toSorted((a, b) => a - b),
    0.5,
  );
}

function quantileOf<T>(sorted: readonly T[], share: number): T {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

function toSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

function mostFrequent(hosts: readonly (string | null)[]): string | null {
  const counts = [...Map.groupBy(hosts, (host) => host)].sort(([, a], [, b]) => b.length - a.length);
  return counts[0]?.[0] ?? null;
}
