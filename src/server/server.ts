import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AppSettings } from '../app/app.ts';
import type { Folder } from '../app/folder.ts';
import { notifyEnd } from '../app/notify.ts';
import { withEnvironment } from '../config/load.ts';
import {
  endingRuns,
  isResumable,
  type JobSummary,
  type SubmittedJob,
  submitJob,
} from '../coordinator/jobs.ts';
import type { RunView } from '../coordinator/reports/run-view.ts';
import { THRESHOLDS_DEFAULT, type Thresholds } from '../core/alerts/alerts.ts';
import { messageOf } from '../core/errors.ts';
import { PRIVATE_FILE } from '../core/file-modes.ts';
import { compareJobs } from '../core/job-schema/job-change.ts';
import { nextRunAt } from '../core/job-schema/schedule.ts';
import { type LoadedJob, storeCode } from '../job-file/load-job-file.ts';
import type { ListenAddress } from '../network/listen-address.ts';
import { jobMetrics } from '../observe/metrics/job-metrics.ts';
import { processMetrics } from '../observe/metrics/process-metrics.ts';
import { slotMetrics } from '../observe/metrics/slot-metrics.ts';
import type { Metric } from '../observe/metrics/text-format.ts';
import type { Job, JobCode, Settlement } from '../ports/store.ts';
import { type AlertTargets, AlertWatch } from './alerts/alert-watch.ts';
import { Forecasts } from './api/cost/forecasts.ts';
import { PageMeter } from './api/keys/page-meter.ts';
import { IDEMPOTENCY_MS } from './api/requests/idempotency.ts';
import type { JobControl, Work } from './api/requests/work.ts';
import { AddedTasks } from './api/scrape/added-tasks.ts';
import { closeCutOffBatches } from './api/scrape/open-batches.ts';
import { Scrapes } from './api/scrape/scrapes.ts';
import { SettleWatch, watchSettles } from './api/scrape/settle-watch.ts';
import { HttpThread } from './http-thread/open-http-thread.ts';
import { JobFiles } from './job-files.ts';
import { JobRemover } from './job-remover.ts';
import { JobRunner } from './job-runner.ts';
import { keepAdminKey } from './keys/manage-keys.ts';
import { LambdaWarmer } from './lambda-warmer.ts';
import { SERVER_FILE } from './server-file.ts';
import { placeOf } from './server-place.ts';
import { WebhookDeliverer } from './webhooks/deliverer.ts';
import { WorkerDirectory } from './workers/worker-directory.ts';

/** How often the store is asked for jobs to be run. */
const LOOK_MS = 500;
/** How often job files and schedules are looked at. */
const SCHEDULE_MS = 2_000;
/**
 * A run that is new is given to whoever made it: with a shared database, `seine run` elsewhere makes the job first and
 * begins to work on it then.
 */
const UNATTENDED_MS = 5_000;
/** Servers that share a database find the same jobs, and the first to look would take them all: each takes half of them. */
const SHARE_TAKEN = 0.5;
/** How often batches that were cut off are looked for. */
const CUT_OFF_LOOK_MS = 600_000;
const FORGET_AT_ONCE = 1_000;
/** In a shared database another server may be reading the list of a batch, which takes less than this. */
const READING_MS_MAX = 3_600_000;

interface ServerOptions {
  listen: ListenAddress;
  jobFiles: readonly string[];
  jobsFolder: string | null;
  settings: AppSettings;
  /** An API key that is known from the start; see config. */
  adminKey?: string | null;
  /** Jobs of the API may fetch private addresses. */
  allowPrivate?: boolean;
  webhooksAllowPrivate?: boolean;
  /** Thresholds, and where alerts go; by default to webhooks alone. */
  alerts?: { thresholds: Thresholds; targets: AlertTargets };
  /** A run has ended. */
  onEnd(summary: JobSummary): void;
}

/** Runs all jobs of a folder or database that are not finished, keeps schedules, and answers over HTTP. */
export class Server {
  readonly #folder: Folder;
  readonly #options: ServerOptions;
  readonly #runner: JobRunner;
  readonly #work: Work;
  readonly #deliverer: WebhookDeliverer;
  readonly #alerts: AlertWatch;
  readonly #remover: JobRemover;
  readonly #workers: WorkerDirectory;
  readonly #files: JobFiles;
  readonly #warmer: LambdaWarmer;
  readonly #token = randomBytes(24).toString('base64url');
  readonly #startedAt = Date.now();
  #http: HttpThread | null = null;
  #scheduledAt = Number.NEGATIVE_INFINITY;
  /** Files that are read now may be as they were when their jobs ran. */
  #isFirstLook = true;
  #cutOffLookedAt = Number.NEGATIVE_INFINITY;
  #isClosing = false;
  #broken: unknown = null;
  /** Resolves when the loop has nothing to wait for any more. */
  #wake: () => void = () => {};

  private constructor(opened: Folder, options: ServerOptions) {
    this.#options = options;
    const { settings, jobFiles, jobsFolder } = options;
    const { logger } = settings;
    const watch = new SettleWatch();
    this.#folder = this.#watched(opened, watch);
    const { store, blobs } = this.#folder;
    const runCode = withEnvironment(settings.jobEnvironment);
    this.#files = new JobFiles({ files: jobFiles, folder: jobsFolder, logger, runCode });
    this.#warmer = new LambdaWarmer(settings);
    this.#runner = new JobRunner({
      folder: this.#folder,
      settings,
      onEnd: (job, summary) => {
        options.onEnd(summary);
        if (job.state === 'done' || job.state === 'tripped') void notifyEnd(job, summary, settings);
      },
      onBroken: (error) => this.#break(error),
    });
    this.#deliverer = new WebhookDeliverer({
      webhooks: store.webhooks,
      logger,
      allowPrivate: options.webhooksAllowPrivate ?? false,
    });
    this.#alerts = new AlertWatch({
      store,
      dir: this.#folder.dir,
      thresholds: options.alerts?.thresholds ?? THRESHOLDS_DEFAULT,
      targets: options.alerts?.targets ?? { slackUrl: null, command: null, mail: null },
      // Threads that ended because fewer are enough are no loss.
      slots: () => ({ slots: this.#runner.slots.slots + this.#runner.slots.spare }),
      logger,
      now: Date.now,
    });
    this.#workers = new WorkerDirectory({
      settings,
      used: () => this.#runner.heartbeats(),
      store,
      now: Date.now,
    });
    this.#remover = new JobRemover({ store, blobs, logger });
    this.#work = this.#workFor(watch);
  }

  /** The folder, with a store that tells of each report that is settled: who waits for a page, and who counts pages. */
  #watched(opened: Folder, watch: SettleWatch): Folder {
    const meter = new PageMeter({
      store: opened.store,
      now: Date.now,
      onUsedUp: (jobId, message) =>
        this.#runner.run(jobId)?.stop({ state: 'stopped', cause: 'limit', message }),
    });
    const onSettled = async (settlement: Settlement) => {
      watch.tell(settlement);
      await meter.count(settlement);
    };
    return { ...opened, store: watchSettles(opened.store, onSettled) };
  }

  /** What the thread that answers HTTP may ask of this one. */
  #workFor(watch: SettleWatch): Work {
    const { settings, allowPrivate = false } = this.#options;
    const { store } = this.#folder;
    const proxyPools = settings.proxyPools ?? new Map();
    const start = (job: Job) => this.#runner.start(job);
    const forecasts = new Forecasts({ folder: this.#folder, settings, start, now: Date.now });
    return {
      store,
      runner: controlOf(this.#runner),
      workers: this.#workers,
      adding: new AddedTasks(store),
      scrapes: new Scrapes({
        ...{ store, watch, forecasts, allowPrivate, proxyPools, now: Date.now },
        // Its caller waits: another server would only find the page when it looks again.
        start: (job) => this.#runner.start(job, { evenIfTaken: true }),
      }),
      forecasts,
      server: {
        isReady: () => this.#isReady(),
        internal: (method, path) => this.#internal(method, path),
        metrics: (owner) => this.#metrics(owner),
        removeJobs: async () => this.#remover.look(),
      },
    };
  }

  static async open(folder: Folder, options: ServerOptions): Promise<Server> {
    const server = new Server(folder, options);
    await keepAdminKey(folder.store.keys, options.adminKey ?? null, Date.now());
    await server.#releaseRequests();
    server.#http = await server.#openHttp();
    server.#deliverer.start();
    server.#alerts.start();
    server.#workers.start();
    const about = { url: server.#http.url, token: server.#token, pid: process.pid };
    writeFileSync(join(folder.dir, SERVER_FILE), JSON.stringify(about), { mode: PRIVATE_FILE });
    return server;
  }

  #openHttp(): Promise<HttpThread> {
    const { listen, settings, allowPrivate = false } = this.#options;
    const { dir, blobsPlace } = this.#folder;
    return HttpThread.open({
      data: {
        listen,
        token: this.#token,
        allowPrivate,
        proxyPools: settings.proxyPools ?? new Map(),
        place: placeOf(settings),
        dir,
        store: settings.store ?? null,
        blobs: blobsPlace,
        s3: settings.s3 ?? null,
      },
      work: this.#work,
      logger: settings.logger,
      onEnded: () => this.#releaseRequests(),
      onBroken: (error) => this.#break(error),
    });
  }

  /** Whoever was answering requests here is gone. In a shared database others may be answering theirs. */
  async #releaseRequests(): Promise<void> {
    if (this.#options.settings.store == null) await this.#folder.store.requests.releaseAll();
  }

  get url(): string {
    return this.#http!.url;
  }

  /** Until `close`, or until the store fails. */
  async run(): Promise<void> {
    while (!this.#isClosing && this.#broken === null) {
      try {
        await this.#look();
      } catch (error) {
        this.#break(error);
        break;
      }
      await this.#sleep(LOOK_MS);
    }
    if (this.#broken !== null) throw this.#broken;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#wake();
    rmSync(join(this.#folder.dir, SERVER_FILE), { force: true });
    await this.#http?.close();
    await this.#runner.close();
    await this.#workers.close();
    await this.#alerts.close();
    await this.#deliverer.close();
    await this.#remover.close();
    await this.#warmer.close();
  }

  async #look(): Promise<void> {
    const now = Date.now();
    const isShared = this.#options.settings.store != null;
    if (now - this.#scheduledAt >= SCHEDULE_MS) {
      this.#scheduledAt = now;
      this.#remover.look();
      for (const loaded of await this.#files.changed()) await this.#register(loaded);
      this.#isFirstLook = false;
      await this.#startScheduled(now);
    }
    if (now - this.#cutOffLookedAt >= CUT_OFF_LOOK_MS) {
      this.#cutOffLookedAt = now;
      const madeBefore = isShared ? now - READING_MS_MAX : this.#startedAt;
      await closeCutOffBatches(this.#folder.store, { madeBefore, now });
      while ((await this.#folder.store.requests.forget(now - IDEMPOTENCY_MS, FORGET_AT_ONCE)) > 0);
    }
    const free: Job[] = [];
    const running = await this.#folder.store.jobs.running();
    const ending = endingRuns(running);
    for (const job of running)
      if (this.#runner.has(job.id)) this.#runner.followChange(job);
      else if (!isAfter(job, ending) && !(await this.#isWorkedOn(job, now))) free.push(job);
    const taken = isShared ? Math.ceil(free.length * SHARE_TAKEN) : free.length;
    for (const job of free.slice(0, taken)) this.#runner.start(job);
  }

  /** The folder of a server has no other coordinator; a database may have some. */
  async #isWorkedOn(job: Job, now: number): Promise<boolean> {
    const atWork = await this.#folder.store.jobs.atWork(job.id);
    if (atWork > 0) return true;
    return this.#options.settings.store != null && now - job.createdAt < UNATTENDED_MS;
  }

  /** A job without a schedule runs when its file appears or changes; one with a schedule waits for its time. */
  async #register(loaded: LoadedJob): Promise<void> {
    if (loaded.spec.schedule) return;
    try {
      await this.#submit(loaded);
    } catch (error) {
      this.#options.settings.logger.error(`cannot start ${loaded.spec.name}: ${messageOf(error)}`);
      this.#files.forget(loaded);
    }
  }

  async #submit(loaded: LoadedJob): Promise<void> {
    const { store, blobs } = this.#folder;
    const code = await storeCode(blobs, loaded);
    const last = await newestOf(this.#folder, loaded.spec.name);
    if (last?.specHash === code.specHash) return;
    if (last && this.#isFirstLook && isFinishedAs(last, code)) return;
    const { job, replaced } = await submitJob(store, code, { fresh: false, now: Date.now() });
    if (replaced) this.#tellReplaced(job, replaced);
    // One that was stopped goes on with what the file says now.
    if (job.state !== 'running' && job.state !== 'waiting')
      await store.jobs.update(job.id, {
        state: 'running',
        requestedState: 'run',
        reason: null,
        endedAt: null,
      });
  }

  /** The run that is replaced ends before the new one begins. */
  #tellReplaced(job: Job, { job: { id, name, run }, changes }: NonNullable<SubmittedJob['replaced']>): void {
    const message = `its job file has changed: ${changes.join(', ')}`;
    this.#options.settings.logger.warn(
      `${job.name}-${job.run} is a new run, because ${message}; ${name}-${run} is stopped, and \`seine resume ${name}-${run}\` continues it`,
    );
    this.#runner.run(id)?.stop({ state: 'stopped', cause: 'request', message });
  }

  async #startScheduled(now: number): Promise<void> {
    const { store, blobs } = this.#folder;
    const stored = new Map((await store.jobs.scheduled()).map((job) => [job.name, job]));
    const fromFiles = new Map([...this.#files.all()].map((loaded) => [loaded.spec.name, loaded]));
    for (const name of new Set([...stored.keys(), ...fromFiles.keys()])) {
      const loaded = fromFiles.get(name);
      const last = stored.get(name) ?? (loaded ? await newestOf(this.#folder, name) : null);
      const schedule = loaded ? loaded.spec.schedule : last?.spec.schedule;
      if (!schedule || (last && this.#runner.has(last.id))) continue;
      const dueAt = nextRunAt(schedule, last?.passStartedAt ?? this.#startedAt);
      if (dueAt !== null) this.#warmer.look(name, dueAt, now);
      if (dueAt === null || dueAt > now) continue;
      try {
        await this.#runAgain(last, loaded ? await storeCode(blobs, loaded) : last!, now);
      } catch (error) {
        this.#options.settings.logger.error(`cannot start ${name}: ${messageOf(error)}`);
      }
    }
  }

  /**
   * Makes the run; the next look starts it. A run that was stopped goes on. Of several servers that keep the schedule, one
   * makes the run.
   */
  async #runAgain(last: Job | null, code: JobCode, now: number): Promise<void> {
    const { jobs } = this.#folder.store;
    const { spec, specHash, bundle, file } = code;
    const given = { spec, specHash, bundle, file, now };
    if (!last) await jobs.create({ ...given, name: spec.name, unlessUnfinished: true });
    else if (last.state !== 'running' && last.state !== 'waiting' && isResumable(last.state))
      await jobs.update(last.id, { state: 'running', requestedState: 'run', spec, specHash, bundle, file });
    else if (last.state !== 'running' && spec.schedule?.refresh !== false && last.state !== 'cancelled')
      await jobs.beginPass(last.id, { ...given, after: last.pass });
    else if (last.state !== 'running')
      await jobs.create({ ...given, name: spec.name, unlessUnfinished: true });
  }

  async #isReady(): Promise<boolean> {
    if (this.#isClosing || this.#broken !== null) return false;
    await this.#folder.store.jobs.running();
    return true;
  }

  /** `GET /internal/jobs/7`: what the dashboard of a run shows. `POST` looks for it at once. */
  async #internal(method: string, path: string): Promise<object | null> {
    const [, id] = /^\/internal\/jobs\/(\d{1,15})$/.exec(path) ?? [];
    if (id === undefined) return null;
    const jobId = Number(id);
    if (method === 'POST') {
      const { jobs } = this.#folder.store;
      const job = await jobs.get(jobId);
      if (job.state === 'running' && !isAfter(job, endingRuns(await jobs.running()))) this.#runner.start(job);
      return {};
    }
    if (method !== 'GET') return null;
    const run = this.#runner.run(jobId);
    return { view: (await run?.view()) ?? null, end: run ? null : this.#runner.end(jobId) };
  }

  async #metrics(owner: string | null): Promise<Metric[]> {
    const jobs = await jobMetrics(this.#folder.store, {
      now: Date.now(),
      ...(owner === null ? {} : { owner }),
    });
    const { slots, busy } = this.#runner.slots;
    const use = { slots: slots > 0 ? slots : await this.#workers.waitingSlots(), busy };
    return [...jobs, ...slotMetrics(use), ...processMetrics()];
  }

  #break(error: unknown): void {
    this.#broken ??= error;
    this.#wake();
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#isClosing) this.#wake();
    });
  }
}

/** As the thread that answers HTTP may use it. */
function controlOf(runner: JobRunner): JobControl {
  return {
    start: async (job) => runner.start(job),
    stop: async (jobId, reason) => runner.run(jobId)?.stop(reason),
    wake: async (jobId) => runner.run(jobId)?.wake(),
    has: async (jobId) => runner.has(jobId),
    workers: () => runner.workers(),
    async views(jobIds) {
      const views = new Map<number, RunView>();
      for (const jobId of jobIds) {
        const view = await runner.run(jobId)?.view();
        if (view) views.set(jobId, view);
      }
      return views;
    },
  };
}

/** Only the pace or limits of its run were others: those may have been changed since the file was read, by a command. */
function isFinishedAs(last: Job, { spec, bundle }: JobCode): boolean {
  const isFinished = last.state === 'done' || last.state === 'cancelled';
  return isFinished && last.bundle === bundle && compareJobs(last.spec, spec).scraped.length === 0;
}

function isAfter({ name, run }: Job, ending: ReadonlyMap<string, number>): boolean {
  return run > (ending.get(name) ?? run);
}

async function newestOf({ store }: Folder, name: string): Promise<Job | null> {
  const found = await store.jobs.find(name);
  return found?.name === name ? found : null;
}
