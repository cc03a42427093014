import { SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job.ts';
import type { Counters, JobState } from '../core/model.ts';
import type { Job, Store } from '../ports/store.ts';

/** What CLI and API do with jobs, apart from running them. */

export interface NewJob {
  spec: JobSpec;
  specHash: string;
  bundle: string | null;
}

/** The same job again continues where it was interrupted; otherwise a new run starts. */
export async function submitJob(
  store: Store,
  job: NewJob,
  options: { fresh: boolean; now: number },
): Promise<{ job: Job; resumed: boolean }> {
  const last = await store.jobs.find(job.spec.name);
  const same = last?.name === job.spec.name && last.specHash === job.specHash;
  if (last && same && isResumable(last.state) && !options.fresh) return { job: last, resumed: true };
  return { job: await store.jobs.create({ ...job, name: job.spec.name, now: options.now }), resumed: false };
}

export function isResumable(state: JobState): boolean {
  return state === 'running' || state === 'stopped' || state === 'tripped';
}

export async function requireJob(store: Store, name: string | null): Promise<Job> {
  const job = await store.jobs.find(name);
  if (job) return job;
  throw new SeineError(name === null ? 'there is no job in this folder yet' : `there is no job '${name}'`, {
    hint: name === null ? 'start one with `seine run`' : 'see `seine jobs`',
  });
}

export interface JobSummary extends Counters {
  job: string;
  run: number;
  /** Names exactly this run, wherever a job is asked for. */
  id: string;
  state: JobState | 'interrupted';
  reason: string | null;
  seconds: number;
  pagesPerSecond: number;
  createdAt: string;
  endedAt: string | null;
}

/** `alive`: whether a coordinator is at work in the folder. */
export async function summarize(store: Store, job: Job, options: { alive: boolean }): Promise<JobSummary> {
  const counters = await store.jobs.counters(job.id);
  const { workedMs } = job;
  const pages = counters.done + counters.unchanged;
  return {
    job: job.name,
    run: job.run,
    id: `${job.name}-${job.run}`,
    state: job.state === 'running' && !options.alive ? 'interrupted' : job.state,
    reason: job.reason,
    ...counters,
    seconds: Math.round(workedMs) / 1_000,
    pagesPerSecond: workedMs > 0 ? Math.round((pages / workedMs) * 10_000) / 10 : 0,
    createdAt: new Date(job.createdAt).toISOString(),
    endedAt: job.endedAt === null ? null : new Date(job.endedAt).toISOString(),
  };
}
