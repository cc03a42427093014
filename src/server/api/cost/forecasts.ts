import { setTimeout as sleep } from 'node:timers/promises';
import type { AppSettings } from '../../../app/app.ts';
import type { Folder } from '../../../app/folder.ts';
import { pagesByHost } from '../../../coordinator/forecast/evidence.ts';
import { findEarlierRun } from '../../../coordinator/forecast/quote.ts';
import type { Forecast } from '../../../core/forecast/forecast.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import { hashOfSpec } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import { forecastFrom, forecastJob } from '../../../tune/forecast.ts';
import type { ForecastCalls } from '../requests/work.ts';

/** How often it is looked whether a sample has ended. */
const LOOK_MS = 250;
/** A sample that takes longer is not waited for any more. */
const SAMPLE_MS_MAX = 3_600_000;

interface ForecastsOptions {
  folder: Folder;
  settings: AppSettings;
  start(job: Job): void;
  now(): number;
}

/** Forecasts of jobs that come by the API, made where the jobs run. */
export class Forecasts implements ForecastCalls {
  readonly #options: ForecastsOptions;

  constructor(options: ForecastsOptions) {
    this.#options = options;
  }

  ofSpec(spec: JobSpec, options: { sample: number | null; owner: string | null }): Promise<Forecast> {
    const { folder, settings, now } = this.#options;
    const code = { spec, specHash: hashOfSpec(spec, null), bundle: null, file: null };
    return forecastJob({ folder, settings, now, run: (job) => this.#run(job) }, code, options);
  }

  async ofJob(job: Job): Promise<Forecast> {
    const { store } = this.#options.folder;
    return this.ofHosts(job.spec, await pagesByHost(store, job.id), job.owner);
  }

  /** What pages of these hosts come to, without any request. */
  async ofHosts(spec: JobSpec, hosts: Map<string, number>, owner: string | null): Promise<Forecast> {
    const earlier = await findEarlierRun(this.#options.folder.store, spec, { owner, anyName: true });
    const seen = earlier && { job: earlier, growth: [], from: 'earlier runs' as const };
    return forecastFrom(this.#options, spec, { hosts }, seen);
  }

  async #run(job: Job): Promise<void> {
    const { folder, start, now } = this.#options;
    start(job);
    const until = now() + SAMPLE_MS_MAX;
    while ((await folder.store.jobs.get(job.id)).state === 'running' && now() < until)
      await sleep(LOOK_MS, undefined, { ref: false });
  }
}
