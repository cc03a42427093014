import type { Prices } from '../../core/cost/cost.ts';
import type { Evidence, RunPlan, SampledRequest } from '../../core/forecast/forecast.ts';
import type { GrowthPoint } from '../../core/forecast/growth.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { AttemptRow } from '../../core/model.ts';
import { compileHostLimits } from '../../core/politeness/host-limits.ts';
import type { Job, Store } from '../../ports/store.ts';

/** Rows that are looked at: a sample is small, and the first rows of an earlier run tell as much. */
const ATTEMPTS_MAX = 2_000;
const TASKS_MAX = 100_000;

type Read = Pick<Store, 'jobs' | 'views' | 'hosts'>;

/** What a run has shown of the pages that it requested. `growth`: as it was watched. */
export async function readEvidence(
  store: Read,
  { id }: Pick<Job, 'id'>,
  growth: readonly GrowthPoint[],
): Promise<Evidence> {
  const attempts: AttemptRow[] = [];
  for await (const attempt of store.views.attempts(id)) if (attempts.push(attempt) >= ATTEMPTS_MAX) break;
  const { requests: sent, accepted, attempted } = await store.jobs.counters(id);
  return {
    requests: await sampledOf(store, id, attempts),
    sent,
    growth: [...growth, { visited: attempted, known: accepted }],
    known: await pagesByHost(store, id),
    bill: await store.jobs.costs(id),
  };
}

async function sampledOf(
  store: Read,
  jobId: number,
  attempts: readonly AttemptRow[],
): Promise<SampledRequest[]> {
  const last = new Map(attempts.map((attempt) => [attempt.url, attempt]));
  const waiting = new Set<string>();
  for (const url of last.keys())
    if ((await store.views.task(jobId, url))?.state === 'pending') waiting.add(url);
  return attempts.map((attempt) => ({
    url: attempt.url,
    host: URL.parse(attempt.url)?.host ?? '',
    startedAt: Date.parse(attempt.startedAt),
    durationMs: attempt.durationMs,
    bytes: attempt.bytes,
    goesOn: last.get(attempt.url) !== attempt || waiting.has(attempt.url),
  }));
}

/** Accepted pages by host; of very many, as the first ones are spread. */
export async function pagesByHost(
  store: Pick<Store, 'jobs' | 'views'>,
  jobId: number,
): Promise<Map<string, number>> {
  const known = new Map<string, number>();
  let count = 0;
  for await (const { url } of store.views.tasks(jobId)) {
    const host = URL.parse(url)?.host ?? '';
    known.set(host, (known.get(host) ?? 0) + 1);
    if (++count >= TASKS_MAX) break;
  }
  const { accepted } = await store.jobs.counters(jobId);
  const share = accepted / Math.max(1, count);
  return new Map([...known].map(([host, pages]) => [host, pages * share]));
}

/** What a job is going to do. `sampledAs`: the job whose robots.txt are known. */
export async function readPlan(
  store: Pick<Store, 'hosts'>,
  spec: JobSpec,
  given: { listed: ReadonlyMap<string, number>; workers: number; prices: Prices; sampledAs: number | null },
): Promise<RunPlan> {
  const { listed, workers, prices, sampledAs } = given;
  const delays = new Map<string, number>();
  if (sampledAs !== null && spec.politeness.robots)
    for await (const { host, robots } of store.hosts.list(sampledAs))
      delays.set(host, Math.max(0, ...robots.map(({ crawlDelayMs }) => crawlDelayMs ?? 0)));
  const limitsOf = compileHostLimits(spec);
  const { pages, requests, seconds, bytes } = spec.limits;
  return {
    listed,
    finds: findsPages(spec),
    limits: { pages, requests, seconds, bytes },
    paceOf(host) {
      const { rate, parallel } = limitsOf(host);
      const gapMs = Number.isFinite(rate) ? 1_000 / rate : 0;
      return { gapMs: Math.max(gapMs, delays.get(host) ?? 0), parallel };
    },
    adaptive: spec.politeness.adaptive,
    workers,
    prices,
  };
}

/** Whether pages are requested that no list has. */
export function findsPages({ follow, routes, sources }: JobSpec): boolean {
  const isSitemap = (source: JobSpec['sources'][number]) =>
    typeof source === 'string' ? source.startsWith('sitemap:') : 'sitemap' in source;
  return (
    follow.length > 0 ||
    sources.some(isSitemap) ||
    routes.some((route) => route.paginate || route.kind === 'sitemap' || route.media.length > 0)
  );
}
