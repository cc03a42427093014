import { wantedOf } from '../../coordinator/explain/explain-job.ts';
import { latestQualityOf } from '../../coordinator/reports/quality.ts';
import type { CostLine } from '../../core/cost/cost.ts';
import { addTimes, SLOT_STATES, type SlotTimes } from '../../core/explain/slot-states.ts';
import { TASK_STATES } from '../../core/model.ts';
import {
  addRollup,
  countsOf,
  emptyRollup,
  latencyOf,
  OTHER_HOSTS,
  type Rollup,
} from '../../core/rollups/rollup.ts';
import type { Wanted } from '../../core/scaling/scaling.ts';
import type { Job, Store } from '../../ports/store.ts';
import { histogramSamples } from './histogram-samples.ts';
import type { Metric } from './text-format.ts';

/** Labels are bounded: so many jobs are told of, the newest of those that run. */
const JOBS_MAX = 50;
/** A job that has ended is told of for so long, so that its last pages are not missed between two scrapes. */
const ENDED_MS = 900_000;
const HOSTS_MAX = 20;
/** Hosts come and go, so what is told of them is of the last minutes and not since the beginning. */
const HOSTS_MS = 300_000;

interface JobMetricsOptions {
  /** Only jobs of this API key; those of all when absent. */
  owner?: string | null;
  now: number;
}

interface JobNumbers {
  job: Job;
  total: Rollup;
  counters: Awaited<ReturnType<Store['jobs']['counters']>>;
  costs: readonly CostLine[];
  slotTimes: SlotTimes;
  oldestReadySeconds: number;
  quality: { route: string; score: number }[];
  /** Of a job that runs, once something is measured. */
  wanted: Wanted | null;
}

type Labels = Record<string, string>;

/** What is known of jobs, read from the store: the same for a server, for one run, and after a restart. */
export async function jobMetrics(store: Store, options: JobMetricsOptions): Promise<Metric[]> {
  const jobs = await jobsToTell(store, options);
  const numbers: JobNumbers[] = [];
  for (const job of jobs) numbers.push(await numbersOf(store, job, options.now));
  return [...counters(numbers), ...gauges(numbers), ...(await hostMetrics(store, jobs, options.now))];
}

type MakeSamples = (each: JobNumbers, job: Labels) => Metric['samples'];

function samplesOf(numbers: readonly JobNumbers[], make: MakeSamples): Metric['samples'] {
  return numbers.flatMap((each) => make(each, { job: each.job.name }));
}

function counters(numbers: readonly JobNumbers[]): Metric[] {
  const counter = (name: string, help: string, make: MakeSamples): Metric => ({
    name,
    type: 'counter',
    help,
    samples: samplesOf(numbers, make),
  });
  return [
    counter('seine_pages_total', 'URLs that came to their end.', ({ total }, job) => [
      { labels: { ...job, outcome: 'succeeded' }, value: total.succeeded },
      { labels: { ...job, outcome: 'failed' }, value: total.failed },
      { labels: { ...job, outcome: 'skipped' }, value: total.skipped },
    ]),
    counter('seine_attempt_failures_total', 'Attempts that failed, by code.', ({ total }, job) =>
      countsOf(total, 'failure').map(([code, value]) => ({ labels: { ...job, code }, value })),
    ),
    counter('seine_proxy_attempts_total', 'Attempts through proxies, by provider.', ({ total }, job) =>
      countsOf(total, 'proxied').map(([provider, value]) => ({ labels: { ...job, provider }, value })),
    ),
    counter(
      'seine_proxy_failures_total',
      'Attempts through proxies that failed, by provider.',
      ({ total }, job) =>
        countsOf(total, 'proxied-failure').map(([provider, value]) => ({
          labels: { ...job, provider },
          value,
        })),
    ),
    counter('seine_requests_total', 'Requests that were sent.', ({ total }, labels) => [
      { labels, value: total.requests },
    ]),
    counter('seine_bytes_total', 'Bytes of bodies that were received.', ({ total }, labels) => [
      { labels, value: total.bytes },
    ]),
    counter('seine_cost_dollars_total', 'What was spent, by item.', ({ costs }, job) =>
      costs.map(({ item, dollars }) => ({ labels: { ...job, item }, value: dollars })),
    ),
    counter('seine_slot_seconds_total', 'Where the time of slots went, by state.', ({ slotTimes }, job) =>
      SLOT_STATES.map((state) => ({ labels: { ...job, state }, value: (slotTimes[state] ?? 0) / 1_000 })),
    ),
    {
      name: 'seine_fetch_duration_seconds',
      type: 'histogram',
      help: 'How long fetches took.',
      samples: samplesOf(numbers, ({ total }, labels) => histogramSamples(total.latency, labels)),
    },
  ];
}

function gauges(numbers: readonly JobNumbers[]): Metric[] {
  const gauge = (name: string, help: string, make: MakeSamples): Metric => ({
    name,
    type: 'gauge',
    help,
    samples: samplesOf(numbers, make),
  });
  return [
    gauge('seine_tasks', 'URLs of a job, by state.', ({ counters: counts }, job) =>
      TASK_STATES.map((state) => ({ labels: { ...job, state }, value: counts[state] })),
    ),
    gauge(
      'seine_oldest_ready_task_age_seconds',
      'How long the URLs have waited that were ready first.',
      ({ oldestReadySeconds }, labels) => [{ labels, value: oldestReadySeconds }],
    ),
    gauge('seine_workers_wanted', 'Workers that the job could use.', ({ wanted }, labels) =>
      wanted === null ? [] : [{ labels, value: wanted.workers }],
    ),
    gauge('seine_record_quality_score', 'How complete records are, from 0 to 100.', ({ quality }, job) =>
      quality.map(({ route, score }) => ({ labels: { ...job, route }, value: score })),
    ),
  ];
}

/** One run of each name: labels tell jobs apart by their names. */
async function jobsToTell(store: Store, { owner, now }: JobMetricsOptions): Promise<Job[]> {
  const all = [...(await store.jobs.running()), ...(await store.jobs.list(JOBS_MAX))];
  const byName = new Map<string, Job>();
  for (const job of all) {
    const isOwn = owner === undefined || job.owner === owner;
    const isOver = job.state !== 'running' && job.state !== 'waiting' && now - (job.endedAt ?? 0) > ENDED_MS;
    const known = byName.get(job.name);
    if (isOwn && !isOver && (known?.id ?? 0) < job.id) byName.set(job.name, job);
  }
  return [...byName.values()].sort((a, b) => b.id - a.id).slice(0, JOBS_MAX);
}

async function numbersOf(store: Store, job: Job, now: number): Promise<JobNumbers> {
  const [total, counters, dueAt, quality, costs, accounts] = await Promise.all([
    store.rollups.total(job.id),
    store.jobs.counters(job.id),
    store.frontier.nextDueAt(job.id),
    latestQualityOf(store, job),
    store.jobs.costs(job.id),
    store.slotTimes.load(job.id),
  ]);
  const slotTimes: SlotTimes = {};
  for (const { total: sums } of accounts)
    for (const times of [sums.busy, sums.idle]) addTimes(slotTimes, times);
  // A host that was never asked is due since the beginning of time.
  const readyAt = dueAt === null ? now : Math.max(dueAt, job.createdAt);
  return {
    job,
    total,
    counters,
    costs,
    slotTimes,
    oldestReadySeconds: Math.max(0, now - readyAt) / 1_000,
    quality: quality.routes,
    wanted: job.state === 'running' ? await wantedOf(store, job) : null,
  };
}

/** The busiest hosts of the last minutes over all jobs, and the others as one. */
async function hostMetrics(store: Store, jobs: readonly Job[], now: number): Promise<Metric[]> {
  const hosts = new Map<string, Rollup>();
  const since = now - HOSTS_MS;
  for (const job of jobs)
    for (const { host, rollup } of await store.rollups.hosts(job.id, { limit: 100, since })) {
      const known = hosts.get(host) ?? emptyRollup();
      addRollup(known, rollup);
      hosts.set(host, known);
    }
  const others = hosts.get(OTHER_HOSTS) ?? emptyRollup();
  hosts.delete(OTHER_HOSTS);
  const ranked = [...hosts].sort(([a, x], [b, y]) => y.requests - x.requests || (a < b ? -1 : 1));
  for (const [, rollup] of ranked.slice(HOSTS_MAX)) addRollup(others, rollup);
  const told = ranked.slice(0, HOSTS_MAX);
  if (others.requests > 0) told.push([OTHER_HOSTS, others]);
  const gauge = (name: string, help: string, make: (rollup: Rollup, host: Labels) => Metric['samples']) => ({
    name,
    type: 'gauge' as const,
    help,
    samples: told.flatMap(([host, rollup]) => make(rollup, { host })),
  });
  const perSecond = (amount: number) => (amount * 1_000) / HOSTS_MS;
  return [
    gauge('seine_host_requests_per_second', 'Over 5 minutes, of the 20 busiest hosts.', (rollup, labels) => [
      { labels, value: perSecond(rollup.requests) },
    ]),
    gauge('seine_host_failures_per_second', 'Failed attempts over 5 minutes.', (rollup, labels) => [
      { labels, value: perSecond(countsOf(rollup, 'failure').reduce((sum, [, count]) => sum + count, 0)) },
    ]),
    gauge('seine_host_latency_seconds', 'How long fetches took over 5 minutes.', (rollup, labels) => {
      const { p50, p95, p99 } = latencyOf(rollup);
      return Object.entries({ p50, p95, p99 }).flatMap(([percentile, ms]) =>
        ms === null ? [] : [{ labels: { ...labels, percentile }, value: ms / 1_000 }],
      );
    }),
  ];
}
