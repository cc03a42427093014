import { setTimeout as sleep } from 'node:timers/promises';
import { type AppSettings, openAddedSources } from '../app/app.ts';
import type { Folder } from '../app/folder.ts';
import { findsPages, readEvidence, readPlan } from '../coordinator/forecast/evidence.ts';
import { findEarlierRun, isAlike, sampleName } from '../coordinator/forecast/quote.ts';
import { toNewTask } from '../coordinator/sources/new-task.ts';
import { PRICES_DEFAULT } from '../core/cost/cost.ts';
import { assumptionsOf, type Evidence, type Forecast, forecastOf } from '../core/forecast/forecast.ts';
import type { GrowthPoint } from '../core/forecast/growth.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import { hashOfSpec } from '../job-file/parse-job.ts';
import type { Job, JobCode } from '../ports/store.ts';

/** What a forecast needs of the place where the job would run. */
interface ForecastTools {
  folder: Folder;
  settings: AppSettings;
  /** Runs a job to its end, however it ends. */
  run(job: Job): Promise<unknown>;
  now(): number;
}

export const SAMPLE_DEFAULT = 200;
/** A sample this young is not taken again. */
const SAMPLE_MS = 3_600_000;
/** URLs that are told apart exactly; of longer lists repeated rows count as new. */
const EXACT_MAX = 1_000_000;
/** Of a short list only a part is requested. */
const SHARE_MAX = 0.25;
const LEAST = 5;
const LOOK_MS = 250;

/** What the lists of a job have. */
interface Listed {
  /** Pages by host. */
  hosts: Map<string, number>;
  /** Some of the URLs, all with the same chance. */
  some: string[];
}

/**
 * What a job will take. From its last finished run where there is one, else from a sample: a small run of its own, under
 * the same limits of politeness. `sample` 0 sends nothing; null leaves the choice.
 */
export async function forecastJob(
  tools: ForecastTools,
  code: JobCode,
  options: { sample: number | null; owner?: string | null },
): Promise<Forecast> {
  const { store } = tools.folder;
  const { spec } = code;
  const owner = options.owner ?? null;
  const wanted = options.sample ?? SAMPLE_DEFAULT;
  const listed = await countLists(tools, spec, wanted);
  const isEnough = options.sample === null || wanted === 0;
  const earlier = isEnough ? await findEarlierRun(store, spec, { owner, anyName: false }) : null;
  if (earlier) return forecastFrom(tools, spec, listed, { job: earlier, growth: [], from: 'earlier runs' });
  if (wanted === 0) return forecastFrom(tools, spec, listed, null);
  const known = await youngSample(tools, spec);
  if (known) return known;
  const { job, growth } = await takeSample(tools, code, listed, wanted, owner);
  const forecast = await forecastFrom(tools, spec, listed, { job, growth, from: 'sample' });
  // So that nothing takes it for a job that waits to be continued.
  await store.jobs.update(job.id, { quote: forecast, state: 'cancelled', reason: 'a sample for a forecast' });
  return forecast;
}

/** Without any request: what the pages by host come to, as earlier runs went or as is usual. */
export async function forecastFrom(
  { folder, settings }: Pick<ForecastTools, 'folder' | 'settings'>,
  spec: JobSpec,
  { hosts }: Pick<Listed, 'hosts'>,
  seen: { job: Job; growth: GrowthPoint[]; from: Forecast['sample']['from'] } | null,
): Promise<Forecast> {
  const { store, blobsPlace } = folder;
  const isLambda = settings.dispatch?.some(({ kind }) => kind === 'lambda') ?? false;
  const workers = isLambda ? (settings.lambda?.concurrency ?? settings.workers) : settings.workers;
  const prices = settings.prices ?? PRICES_DEFAULT;
  const plan = await readPlan(store, spec, {
    listed: hosts,
    workers,
    prices,
    sampledAs: seen?.job.id ?? null,
  });
  if (seen) return forecastOf(plan, await readEvidence(store, seen.job, seen.growth), seen.from);
  const storesInS3 = /^s3:/i.test(blobsPlace);
  const evidence: Evidence = assumptionsOf({
    isLambda,
    storesInS3,
    hasProxies: spec.proxies?.default !== undefined,
    fetchers: spec.routes.map(({ fetcher }) => fetcher ?? 'http'),
    gapMs: plan.paceOf('').gapMs,
  });
  return forecastOf(plan, evidence, 'assumptions');
}

async function youngSample({ folder, now }: ForecastTools, spec: JobSpec): Promise<Forecast | null> {
  const name = sampleName(spec);
  const last = await folder.store.jobs.find(name);
  if (last?.name !== name || now() - last.createdAt > SAMPLE_MS || !isAlike(last.spec, spec)) return null;
  return last.quote;
}

async function countLists(
  { folder, settings }: ForecastTools,
  spec: JobSpec,
  wanted: number,
): Promise<Listed> {
  const listed: Listed = { hosts: new Map(), some: [] };
  const seen = new Set<string>();
  const { sources, close } = openAddedSources(folder, { id: 0, pass: 1, spec }, folder.dir, settings);
  let count = 0;
  try {
    for (const source of sources)
      for await (const { row } of source.rows(null)) {
        const task = 'reason' in row ? row.reason : toNewTask(row, spec, 0);
        if (typeof task === 'string' || seen.has(task.url)) continue;
        if (seen.size < EXACT_MAX) seen.add(task.url);
        listed.hosts.set(task.host, (listed.hosts.get(task.host) ?? 0) + 1);
        // Reservoir sampling: each row of a list of unknown length with the same chance.
        count++;
        if (listed.some.length < wanted) listed.some.push(task.url);
        else if (Math.random() < wanted / count) listed.some[Math.floor(Math.random() * wanted)] = task.url;
      }
  } finally {
    await close();
  }
  return listed;
}

async function takeSample(
  tools: ForecastTools,
  { spec, bundle, file }: JobCode,
  { hosts, some }: Listed,
  wanted: number,
  owner: string | null,
): Promise<{ job: Job; growth: GrowthPoint[] }> {
  const { store } = tools.folder;
  const total = [...hosts.values()].reduce((sum, count) => sum + count, 0);
  const finds = findsPages(spec);
  const share = finds ? wanted : Math.min(wanted, Math.max(LEAST, Math.ceil(total * SHARE_MAX)));
  const { schedule: _, keepOpen: __, ...rest } = spec;
  const sampled: JobSpec = {
    ...rest,
    name: sampleName(spec),
    sources: finds ? spec.sources : some.slice(0, share),
    limits: { ...spec.limits, requests: Math.min(share, spec.limits.requests ?? share) },
    archive: false,
  };
  const made = { spec: sampled, specHash: hashOfSpec(sampled, bundle), bundle, file };
  const job = await store.jobs.create({ ...made, name: sampled.name, now: tools.now(), owner });
  const growth: GrowthPoint[] = [];
  const ended = new AbortController();
  // A store that fails ends the run as well.
  const watching = watchGrowth(store, job, growth, ended.signal).catch(() => {});
  try {
    await tools.run(job);
  } finally {
    ended.abort();
    await watching;
  }
  return { job, growth };
}

async function watchGrowth(
  { jobs }: Pick<Folder['store'], 'jobs'>,
  { id }: Job,
  growth: GrowthPoint[],
  ended: AbortSignal,
): Promise<void> {
  while (!ended.aborted) {
    const { attempted, accepted } = await jobs.counters(id);
    growth.push({ visited: attempted, known: accepted });
    await sleep(LOOK_MS, undefined, { signal: ended }).catch(() => {});
  }
}
