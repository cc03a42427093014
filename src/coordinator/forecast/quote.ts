import type { Forecast } from '../../core/forecast/forecast.ts';
import { type JobSpec, toJobName } from '../../core/job-schema/job.ts';
import { compareJobs } from '../../core/job-schema/job-change.ts';
import type { Job, Store } from '../../ports/store.ts';

/** A site changes: an older forecast is no quote. */
const QUOTE_MS_MAX = 7 * 86_400_000;
const LOOKED_AT_MAX = 50;

/** The job that takes samples for the forecasts of a job. */
export function sampleName({ name }: Pick<JobSpec, 'name'>): string {
  return toJobName(`${name.slice(0, 55)}.forecast`);
}

/** Fields that a sample has otherwise than its job. */
const OF_SAMPLE = new Set(['name', 'sources', 'archive', 'keepOpen', 'schedule', 'records.history']);

/** Whether pages of the two jobs are fetched in the same way, and the same is done with them. */
export function isAlike(one: JobSpec, other: JobSpec): boolean {
  return compareJobs(one, other).scraped.every(({ field }) => OF_SAMPLE.has(field));
}

/** The newest forecast that was made for the job as it is now. */
export async function findQuote(
  store: Pick<Store, 'jobs'>,
  spec: JobSpec,
  now: number,
): Promise<Forecast | null> {
  const name = sampleName(spec);
  const sample = await store.jobs.find(name);
  if (sample?.name !== name || sample.quote === null || now - sample.createdAt > QUOTE_MS_MAX) return null;
  return isAlike(sample.spec, spec) ? sample.quote : null;
}

/** The forecast of a job becomes its quote, unless it has one. */
export async function attachQuote(store: Pick<Store, 'jobs'>, job: Job, now: number): Promise<void> {
  if (job.quote !== null) return;
  const quote = await findQuote(store, job.spec, now);
  if (quote) await store.jobs.update(job.id, { quote });
}

/** The newest finished run of the job; with `anyName`, else one of the same owner that did the same to other pages. */
export async function findEarlierRun(
  store: Pick<Store, 'jobs'>,
  spec: JobSpec,
  { owner, anyName }: { owner: string | null; anyName: boolean },
): Promise<Job | null> {
  const isUsable = async (job: Job) =>
    job.state === 'done' && isAlike(job.spec, spec) && (await store.jobs.counters(job.id)).attempted > 0;
  const last = await store.jobs.find(spec.name);
  if (last?.name === spec.name && (await isUsable(last))) return last;
  if (!anyName) return null;
  const of = owner === null ? {} : { owner };
  const jobs = await store.jobs.listBefore({ ...of, before: Number.MAX_SAFE_INTEGER, limit: LOOKED_AT_MAX });
  for (const job of jobs) if (job.owner === owner && (await isUsable(job))) return job;
  return null;
}
