import { setTimeout as sleep } from 'node:timers/promises';
import { pagesByHost } from '../../../coordinator/forecast/evidence.ts';
import { findEarlierRun } from '../../../coordinator/forecast/quote.ts';
import type { Forecast } from '../../../core/forecast/forecast.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import { hashOfSpec } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import { type ForecastTools, forecastFrom, forecastJob } from '../../../tune/forecast.ts';
import type { ApiContext, Caller } from '../requests/access.ts';
import { Problem } from '../requests/problems.ts';

/** How often it is looked whether a sample has ended. */
const LOOK_MS = 250;
/** A sample that takes longer is not waited for any more. */
const SAMPLE_MS_MAX = 3_600_000;

/** Runs a sample under the limits of all jobs, if there has to be one. */
export function forecastOfSpec(
  context: ApiContext,
  spec: JobSpec,
  { sample, caller }: { sample: number | null; caller: Caller },
): Promise<Forecast> {
  const code = { spec, specHash: hashOfSpec(spec, null), bundle: null, file: null };
  return forecastJob(toolsOf(context), code, { sample, owner: caller.keyId });
}

function toolsOf({ folder, settings, store, runner, now }: ApiContext): ForecastTools {
  const run = async (job: Job) => {
    runner.start(job);
    const until = now() + SAMPLE_MS_MAX;
    while ((await store.jobs.get(job.id)).state === 'running' && now() < until)
      await sleep(LOOK_MS, undefined, { ref: false });
  };
  return { folder, settings, run, now };
}

/** What pages of these hosts come to, without any request. */
async function quoteOf(
  context: ApiContext,
  spec: JobSpec,
  hosts: Map<string, number>,
  owner: string | null,
): Promise<Forecast> {
  const earlier = await findEarlierRun(context.store, spec, { owner, anyName: true });
  const seen = earlier && ({ job: earlier, growth: [], from: 'earlier runs' } as const);
  return forecastFrom(context, spec, { hosts }, seen && { ...seen, growth: [] });
}

/** A quote that is higher than what the caller wants to pay is the answer. */
export function checkQuote(quote: Forecast, maxCost: number): void {
  if (quote.dollars.p50 <= maxCost) return;
  const detail = `it would probably cost ${quote.dollars.p50.toPrecision(3)} USD, and ${maxCost} USD are allowed`;
  throw new Problem('over-budget', detail, { extensions: { quote } });
}

/** The quote of a job whose pages are written down becomes its own; a job that is too expensive is cancelled. */
export async function quoteJob(context: ApiContext, job: Job, maxCost: number): Promise<void> {
  const { store, now } = context;
  const quote = await quoteOf(context, job.spec, await pagesByHost(store, job.id), job.owner);
  try {
    checkQuote(quote, maxCost);
  } catch (problem) {
    await store.jobs.update(job.id, { state: 'cancelled', endedAt: now(), quote });
    throw problem;
  }
  await store.jobs.update(job.id, { quote });
}

/** The same for a page that is not written down yet. */
export async function quotePage(context: ApiContext, job: Job, url: string, maxCost: number): Promise<void> {
  const hosts = new Map([[URL.parse(url)?.host ?? '', 1]]);
  checkQuote(await quoteOf(context, job.spec, hosts, job.owner), maxCost);
}
