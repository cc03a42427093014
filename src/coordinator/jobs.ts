import { SeineError } from '../core/errors.ts';
import { compareJobs, type FieldChange } from '../core/job-schema/job-change.ts';
import type { Counters, JobState } from '../core/model.ts';
import type { RecordChanges } from '../core/record-changes/record-changes.ts';
import type { Quantiles } from '../core/rollups/histogram.ts';
import { latencyOf } from '../core/rollups/rollup.ts';
import type { Job, JobCode, Store } from '../ports/store.ts';
import { latestQualityOf } from './reports/quality.ts';
import type { RouteQuality } from './reports/run-view.ts';

/** What CLI and API do with jobs, apart from running them. */

export interface SubmittedJob {
  job: Job;
  resumed: boolean;
  /** What the unfinished run goes on with that it did not have before. */
  changes: FieldChange[];
  /** The unfinished run that this one does not continue, and what differs. It is stopped, wherever it is at work. */
  replaced: { job: Job; changes: string[] } | null;
}

/**
 * The same job again continues where it was interrupted, also with another pace or other limits; a refresh visits its URLs
 * again; otherwise a new run starts.
 */
export async function submitJob(
  store: Store,
  job: JobCode,
  options: { fresh: boolean; refresh?: boolean; now: number },
): Promise<SubmittedJob> {
  const found = await store.jobs.find(job.spec.name);
  const last = found?.name === job.spec.name ? found : null;
  const isOver = last?.state === 'waiting' && options.refresh;
  const unfinished = last && isResumable(last.state) && !options.fresh && !isOver ? last : null;
  const isSame = unfinished?.specHash === job.specHash;
  if (unfinished && isSame) return { job: unfinished, resumed: true, changes: [], replaced: null };
  const change = unfinished && compareJobs(unfinished.spec, job.spec);
  if (unfinished && change?.scraped.length === 0 && unfinished.bundle === job.bundle) {
    const { spec, specHash } = job;
    await store.jobs.update(unfinished.id, { spec, specHash });
    return { job: { ...unfinished, spec, specHash }, resumed: true, changes: change.tuned, replaced: null };
  }
  if (last && options.refresh && last.state !== 'cancelled') {
    const begun = await store.jobs.beginPass(last.id, { ...job, now: options.now });
    return { job: begun, resumed: false, changes: [], replaced: null };
  }
  const made = await store.jobs.create({
    ...job,
    name: job.spec.name,
    now: options.now,
    // Another coordinator may be starting the very same job at this moment: then this one joins it.
    unlessUnfinished: !options.fresh,
  });
  const resumed = made.createdAt !== options.now;
  if (unfinished && !resumed) await stopReplaced(store, unfinished, options.now);
  const fields = (change?.scraped ?? []).map(({ field }) => field);
  const changes = unfinished?.bundle === job.bundle ? fields : [...fields, 'the code of the job file'];
  return {
    job: made,
    resumed,
    changes: [],
    replaced: unfinished && !resumed ? { job: unfinished, changes } : null,
  };
}

/** Two runs of one job would fetch its pages twice, and overwrite each other's records. What it has done is kept. */
async function stopReplaced({ jobs }: Store, { id, state }: Job, now: number): Promise<void> {
  if (state === 'running') await jobs.update(id, { requestedState: 'stop' });
  if (state === 'waiting')
    await jobs.update(id, {
      ...{ state: 'stopped', requestedState: 'stop' },
      ...{ reason: 'a new run of the job has begun', endedAt: now },
    });
}

/** The names of jobs with a run that was asked to end and has not yet: a later run of the name waits for it. */
export function endingRuns(running: readonly Job[]): ReadonlyMap<string, number> {
  const ending = running.filter(({ requestedState }) => requestedState !== 'run');
  return new Map(ending.map(({ name, run }) => [name, run]));
}

/** A person runs the job now: what was requested of it before no longer counts. */
export async function askToRun({ jobs }: Store, { id, requestedState }: Job): Promise<void> {
  if (requestedState !== 'run') await jobs.update(id, { requestedState: 'run' });
}

export function isResumable(state: JobState): boolean {
  return state === 'running' || state === 'waiting' || state === 'stopped' || state === 'tripped';
}

export async function requireJob(store: Store, name: string | null): Promise<Job> {
  const job = await store.jobs.find(name);
  if (job) return job;
  throw new SeineError(name === null ? 'no jobs in this folder yet' : `no job named '${name}'`, {
    hint: name === null ? 'start one with `seine run`' : 'list the jobs with `seine jobs`',
  });
}

export type PassCounters = Pick<Counters, (typeof ADDED_UP)[number]>;

export interface JobSummary extends Counters {
  job: string;
  run: number;
  /** Names exactly this run, wherever a job is asked for. */
  id: string;
  /** Counts the visits of this run to its URLs; a refresh begins the next. */
  pass: number;
  state: JobState | 'interrupted';
  reason: string | null;
  seconds: number;
  pagesPerSecond: number;
  /** How long answers took, over all of the run; null where there were none. */
  latencyMs: Quantiles;
  createdAt: string;
  endedAt: string | null;
  /** What the remote scraping API took; absent for jobs without one. */
  apiCost?: number;
  /** What the present pass has added so far; absent in the first. */
  thisPass?: PassCounters;
  /** What the present pass changed among the records of the name; absent in the very first. */
  changes?: RecordChanges;
  /** Of the records of the newest pass that has some, which `qualityPass` names. */
  quality: RouteQuality[];
  qualityPass: number | null;
}

/** `alive`: whether a coordinator is at work in the folder. */
export async function summarize(store: Store, job: Job, options: { alive: boolean }): Promise<JobSummary> {
  const counters = await store.jobs.counters(job.id);
  const { workedMs } = job;
  const pages = counters.done + counters.unchanged;
  const quality = await latestQualityOf(store, job);
  return {
    job: job.name,
    run: job.run,
    id: `${job.name}-${job.run}`,
    pass: job.pass,
    state: job.state === 'running' && !options.alive ? 'interrupted' : job.state,
    reason: job.reason,
    ...counters,
    seconds: Math.round(workedMs) / 1_000,
    pagesPerSecond: workedMs > 0 ? Math.round((pages / workedMs) * 10_000) / 10 : 0,
    latencyMs: latencyOf(await store.rollups.total(job.id)),
    createdAt: new Date(job.createdAt).toISOString(),
    endedAt: job.endedAt === null ? null : new Date(job.endedAt).toISOString(),
    ...(job.spec.api ? { apiCost: await store.proxies.cost(job.id) } : {}),
    ...(job.passStart === null ? {} : { thisPass: difference(counters, job.passStart) }),
    ...(job.run > 1 || job.pass > 1 ? { changes: await store.views.recordChanges(job.id, job.pass) } : {}),
    quality: quality.routes,
    qualityPass: quality.pass,
  };
}

/** The rest of the counters say what state tasks are in, not what happened. */
const ADDED_UP = [
  'accepted',
  'records',
  'bytes',
  'requests',
  'batches',
  'retries',
  'duplicates',
  'dropped',
  'rejected',
] as const satisfies readonly (keyof Counters)[];

function difference(now: Counters, before: Counters): PassCounters {
  return Object.fromEntries(ADDED_UP.map((name) => [name, now[name] - before[name]])) as PassCounters;
}
