import { type AppSettings, checkSources, openJobAccess, startRun } from './app/app.ts';
import { type Folder, openFolder } from './app/folder.ts';
import { loadConfig, s3Of, storeOf } from './config/load.ts';
import { type JobSummary, requireJob, submitJob, summarize } from './coordinator/jobs.ts';
import { latestQualityOf } from './coordinator/reports/quality.ts';
import type { RouteQuality, RunView } from './coordinator/reports/run-view.ts';
import type { AttemptRow, MediaRow, RecordRow, RecordVersionRow, ShotRow, TaskRow } from './core/model.ts';
import type { JobDefinition } from './job-file/define-job.ts';
import { bundleKeyOf } from './job-file/load-handlers.ts';
import { type LoadedJob, loadJobFile } from './job-file/load-job-file.ts';
import { hashOfSpec, parseJob } from './job-file/parse-job.ts';
import type { Logger } from './ports/ambient.ts';
import type { Job, Store } from './ports/store.ts';

export interface SeineOptions {
  /** Default: `.seine`, or SEINE_DIR. */
  dir?: string;
  /** Threads. Default: the number of cores, or SEINE_WORKERS. */
  workers?: number;
  /** Secrets that jobs may read: variables, mounted secrets, paths. Default: SEINE_JOB_SECRETS. */
  jobSecrets?: readonly string[];
  logger?: Logger;
}

export interface RunHandle {
  id: string;
  /** Resolves when the job has ended, however it ended; rejects only when Seine itself failed. */
  done: Promise<JobSummary>;
  view(): Promise<RunView>;
  /** Stops gently; `run` with the same job continues. */
  stop(): void;
}

/** Seine as a library: the same as the command line, in one process. */
export interface Seine {
  /** A job, or the path of a job file. Handlers of a job given as an object run in this thread. */
  run(job: JobDefinition | string, options?: { fresh?: boolean }): Promise<RunHandle>;
  status(job?: string): Promise<JobSummary>;
  jobs(): Promise<JobSummary[]>;
  /** By name those of all its runs, by name and run those that this run wrote last. */
  records(job?: string): AsyncIterable<RecordRow>;
  tasks(job?: string): AsyncIterable<TaskRow>;
  attempts(job?: string): AsyncIterable<AttemptRow>;
  media(job?: string): AsyncIterable<MediaRow>;
  /** Pictures of pages, as a browser made them, the newest first. */
  shots(job?: string): AsyncIterable<ShotRow>;
  /** Former states of records, of jobs that keep them. */
  history(job?: string): AsyncIterable<RecordVersionRow>;
  quality(job?: string): Promise<RouteQuality[]>;
  close(): Promise<void>;
}

const SILENT: Logger = { info() {}, warn() {}, error() {} };

export async function openSeine(options: SeineOptions = {}): Promise<Seine> {
  const settings = settingsOf(options);
  const folder = await openFolder(settings, { create: true, toWork: true });
  const { store } = folder;
  const rowsOf = <T>(name: string | undefined, read: (jobId: number, job: Job) => AsyncIterable<T>) =>
    rowsOfJob(store, name, read);
  return {
    run: (definition, { fresh = false } = {}) => runJob(folder, settings, definition, fresh),
    status: async (name) => summaryOf(folder, await requireJob(store, name ?? null)),
    jobs: async () => Promise.all((await store.jobs.list(1_000)).map((job) => summaryOf(folder, job))),
    records: (name) =>
      rowsOf(name, (jobId, job) => {
        const ownOnly = name !== undefined && name !== job.name;
        return store.views.records(jobId, { ownOnly });
      }),
    tasks: (name) => rowsOf(name, (jobId) => store.views.tasks(jobId)),
    attempts: (name) => rowsOf(name, (jobId) => store.views.attempts(jobId)),
    media: (name) => rowsOf(name, (jobId) => store.views.media(jobId)),
    shots: (name) => rowsOf(name, (jobId) => store.views.shots(jobId)),
    history: (name) => rowsOf(name, (jobId) => store.views.history(jobId)),
    quality: async (name) => (await latestQualityOf(store, await requireJob(store, name ?? null))).routes,
    close: () => folder.close(),
  };
}

function settingsOf(options: SeineOptions): AppSettings {
  const { config, readSecret, jobEnvironment } = loadConfig({
    ...(options.dir === undefined ? {} : { dir: options.dir }),
    ...(options.workers === undefined ? {} : { workers: String(options.workers) }),
    ...(options.jobSecrets === undefined ? {} : { jobSecrets: options.jobSecrets.join(',') }),
  });
  return {
    dir: config.dir,
    workers: config.workers,
    sync: config.sync,
    blobs: config.blobs,
    s3: s3Of(config),
    store: storeOf(config),
    allowPrivate: config.allowPrivate,
    readSecret,
    jobEnvironment,
    logger: options.logger ?? SILENT,
  };
}

async function runJob(
  folder: Folder,
  settings: AppSettings,
  definition: JobDefinition | string,
  fresh: boolean,
): Promise<RunHandle> {
  const { store } = folder;
  const loaded = await load(definition);
  await checkSources(loaded.spec.sources, settings, store, loaded.spec.allowPrivate);
  await openJobAccess(loaded.spec, settings);
  const bundle = loaded.code ? bundleKeyOf(loaded.code) : null;
  if (bundle) await folder.blobs.put(bundle, loaded.code!);
  const specHash = hashOfSpec(loaded.spec, bundle);
  const lock = folder.lock();
  const { job } = await submitJob(
    store,
    { spec: loaded.spec, specHash, bundle, file: loaded.file },
    { fresh, now: Date.now() },
  );
  const prepared = loaded.code ? {} : { handlers: loaded.handlers };
  const run = await startRun(folder, lock, job, settings, prepared);
  return {
    id: `${job.name}-${job.run}`,
    done: run.result.then(async () => summarize(store, await store.jobs.get(job.id), { alive: false })),
    view: run.view,
    stop: () => run.stop({ state: 'stopped', cause: 'request', message: 'stopped by request' }),
  };
}

async function summaryOf(folder: Folder, job: Job): Promise<JobSummary> {
  return summarize(folder.store, job, { alive: await folder.isAtWork(job.id) });
}

async function* rowsOfJob<T>(
  store: Store,
  name: string | undefined,
  read: (jobId: number, job: Job) => AsyncIterable<T>,
): AsyncIterable<T> {
  const job = await requireJob(store, name ?? null);
  yield* read(job.id, job);
}

async function load(definition: JobDefinition | string): Promise<LoadedJob> {
  if (typeof definition === 'string') return loadJobFile(definition);
  return { ...(await parseJob(definition, 'the job', 'job')), code: null, file: null };
}
