import { type AppSettings, checkSink, checkSources, openJobAccess, type Run, startRun } from './app/app.ts';
import { type Folder, openFolder } from './app/folder.ts';
import {
  browserOf,
  callbacksOf,
  lambdaOf,
  loadConfig,
  s3Of,
  storeOf,
  threadsOf,
  withEnvironment,
} from './config/load.ts';
import {
  askToRun,
  isResumable,
  type JobSummary,
  requireJob,
  submitJob,
  summarize,
} from './coordinator/jobs.ts';
import { latestQualityOf } from './coordinator/reports/quality.ts';
import type { RouteQuality, RunView } from './coordinator/reports/run-view.ts';
import { type AddedRow, type AddedRows, addToJob } from './coordinator/sources/add-to-job.ts';
import { SeineError } from './core/errors.ts';
import type {
  AttemptRow,
  MediaRow,
  Meta,
  RecordRow,
  RecordVersionRow,
  ShotRow,
  TaskRow,
} from './core/model.ts';
import { normalizeUrl } from './core/url/url.ts';
import { openSystemResolver } from './fetch/network/system-resolver.ts';
import type { JobDefinition } from './job-file/define-job.ts';
import { type LoadedJob, loadJobFile, storeCode } from './job-file/load-job-file.ts';
import { parseJob } from './job-file/parse-job.ts';
import type { Logger } from './ports/ambient.ts';
import type { DeadFilter, Job, Store } from './ports/store.ts';
import { type ReparseResult, reparse } from './reparse/reparse.ts';
import { compileJob } from './worker/compile-job.ts';
import { readPage } from './worker/storage/read-page.ts';

export interface SeineOptions {
  /** Default: `.seine`, or SEINE_DIR. */
  dir?: string;
  /** Threads. Default: the number of cores, or SEINE_WORKERS. */
  workers?: number;
  /** Where the state is instead of the folder: `postgres://user@host/database`. Default: SEINE_STORE. */
  store?: string;
  /** Where pages, media and code are stored: a folder or `s3://bucket/prefix`. Default: SEINE_BLOBS, or the folder. */
  blobs?: string;
  /** Where batches run: `threads`, `bullmq://host:port`, `lambda://function`. Default: SEINE_DISPATCH. */
  dispatch?: string;
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
  /** Queues dead letters again, all or some; how many. `run` or `resume` then fetches them. */
  retry(job?: string, filter?: DeadFilter): Promise<number>;
  /** Continues a job that was stopped or interrupted, with the code that it was started with. */
  resume(job?: string): Promise<RunHandle>;
  /** Adds URLs to a job that runs, waits or is finished. */
  add(job: string, urls: Iterable<string | AddedUrl>): Promise<AddedRows>;
  /** Reads the stored pages with the code of a job file, without a request; `dryRun` writes nothing. */
  reparse(file: string, options?: { job?: string; dryRun?: boolean }): Promise<ReparseResult>;
  /** A stored page, as the server sent it. Null when the job has no page of that URL. */
  page(url: string, job?: string): Promise<StoredPage | null>;
  close(): Promise<void>;
}

/** A URL with what its task is given. */
export interface AddedUrl {
  url: string;
  /** Kept with its results. */
  meta?: Meta;
  /** Higher runs first, from -1000 to 1000. */
  priority?: number;
  /** Instead of the route that the URL would get. */
  route?: string;
}

/** A page from the archive. */
export interface StoredPage {
  url: string;
  status: number;
  /** Alternating names and values, as received. */
  headers: string[];
  /** Content-Encoding undone. */
  body: Buffer;
  fetchedAt: Date;
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
    retry: (name, filter = {}) => retryDead(folder, name, filter),
    resume: (name) => resumeJob(folder, settings, name),
    add: (name, urls) => addUrls(folder, name, urls),
    reparse: (file, options = {}) => reparseJob(folder, settings, file, options),
    page: (url, name) => storedPage(folder, url, name),
    quality: async (name) => (await latestQualityOf(store, await requireJob(store, name ?? null))).routes,
    close: () => folder.close(),
  };
}

function settingsOf(options: SeineOptions): AppSettings {
  const { config, readSecret, jobEnvironment } = loadConfig({
    ...(options.dir === undefined ? {} : { dir: options.dir }),
    ...(options.workers === undefined ? {} : { workers: String(options.workers) }),
    ...(options.store === undefined ? {} : { store: options.store }),
    ...(options.blobs === undefined ? {} : { blobs: options.blobs }),
    ...(options.dispatch === undefined ? {} : { dispatch: options.dispatch }),
    ...(options.jobSecrets === undefined ? {} : { jobSecrets: options.jobSecrets.join(',') }),
  });
  return {
    dir: config.dir,
    ...threadsOf(config),
    sync: config.sync,
    prices: config.prices,
    hostLogDays: config.hostLogDays,
    blobs: config.blobs,
    dispatch: config.dispatch,
    fleetKeys: config.fleetKey ?? [],
    lambda: lambdaOf(config),
    browser: browserOf(config),
    apiCallbacks: callbacksOf(config),
    s3: s3Of(config),
    store: storeOf(config),
    allowPrivate: config.allowPrivate,
    readSecret,
    proxyPools: config.proxyPools,
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
  const loaded = await load(definition, settings);
  if (!loaded.code) checkClosures(loaded, settings);
  await checkSources(loaded.spec.sources, settings, store, loaded.spec);
  await openJobAccess(loaded.spec, settings);
  await checkSink(folder, loaded.spec);
  const code = await storeCode(folder.blobs, loaded);
  const lock = folder.lock();
  const { job } = await submitJob(store, code, { fresh, now: Date.now() });
  await askToRun(store, job);
  const prepared = loaded.code ? {} : { handlers: loaded.handlers };
  const run = await startRun(folder, lock, job, settings, prepared);
  return handleOf(folder, job, run);
}

function handleOf({ store }: Folder, job: Job, run: Run): RunHandle {
  return {
    id: `${job.name}-${job.run}`,
    done: run.result.then(async () => summarize(store, await store.jobs.get(job.id), { alive: false })),
    view: run.view,
    stop: () => run.stop({ state: 'stopped', cause: 'request', message: 'stopped by request' }),
  };
}

/** Closures cannot travel: where the user wants workers elsewhere, they must not silently run here. */
function checkClosures({ handlers }: LoadedJob, { dispatch = [] }: AppSettings): void {
  if (handlers.size === 0 || dispatch.every(({ kind }) => kind === 'threads')) return;
  throw new SeineError(
    'functions of a job that is given as an object run only in this process, but dispatch names other workers',
    { hint: 'pass the path of a job file, or set dispatch to threads' },
  );
}

async function retryDead({ store }: Folder, name: string | undefined, filter: DeadFilter): Promise<number> {
  const job = await requireJob(store, name ?? null);
  const count = await store.views.retryDead(job.id, filter, Date.now());
  if (count > 0 && job.state === 'done')
    await store.jobs.update(job.id, { state: 'stopped', reason: 'dead letters were queued again' });
  return count;
}

async function resumeJob(
  folder: Folder,
  settings: AppSettings,
  name: string | undefined,
): Promise<RunHandle> {
  const job = await requireJob(folder.store, name ?? null);
  if (!isResumable(job.state))
    throw new SeineError(`${job.name}-${job.run} is ${job.state}: nothing left to do`, {
      hint: 'start a new run with `run`',
    });
  return handleOf(folder, job, await startRun(folder, folder.lock(), job, settings));
}

async function addUrls(
  { store }: Folder,
  name: string,
  urls: Iterable<string | AddedUrl>,
): Promise<AddedRows> {
  const job = await requireJob(store, name);
  return addToJob(store, job.id, addedRows(urls), { now: Date.now, resolver: openSystemResolver() });
}

async function* addedRows(urls: Iterable<string | AddedUrl>): AsyncIterable<AddedRow> {
  for (const each of urls) {
    const { meta = null, ...rest } = typeof each === 'string' ? { url: each } : each;
    yield { ...rest, meta };
  }
}

async function reparseJob(
  { store, blobs }: Folder,
  { jobEnvironment }: AppSettings,
  file: string,
  { job: name, dryRun = false }: { job?: string; dryRun?: boolean },
): Promise<ReparseResult> {
  const { spec, handlers } = await loadJobFile(file, withEnvironment(jobEnvironment));
  const job = await requireJob(store, name ?? spec.name);
  const newest = await store.jobs.find(job.name);
  const code = await compileJob(spec, handlers);
  const isNewest = newest?.id === job.id;
  const resolver = openSystemResolver();
  return reparse({ store, blobs, job, isNewest, code, dryRun, limit: null, now: Date.now(), resolver });
}

async function storedPage(
  { store, blobs }: Folder,
  url: string,
  name: string | undefined,
): Promise<StoredPage | null> {
  const job = await requireJob(store, name ?? null);
  const target = normalizeUrl(url, null, job.spec.url);
  const task = target && (await store.views.task(job.id, target.url));
  if (!task?.archive) return null;
  const page = await readPage(blobs, task.archive, { sha256: task.sha256 });
  const { status, headers, body } = page;
  return { url: page.url, status, headers, body, fetchedAt: new Date(page.date) };
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

async function load(definition: JobDefinition | string, settings: AppSettings): Promise<LoadedJob> {
  if (typeof definition === 'string')
    return loadJobFile(definition, withEnvironment(settings.jobEnvironment));
  return { ...(await parseJob(definition, 'the job', 'job')), code: null, file: null };
}
