import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { Coordinator, type RunResult } from '../coordinator/coordinator.ts';
import { explainJob } from '../coordinator/explain/explain-job.ts';
import { HostGroups } from '../coordinator/hosts/host-groups.ts';
import type { OpenPermits } from '../coordinator/hosts/open-permits.ts';
import { TaskPriorities } from '../coordinator/priority/task-priorities.ts';
import {
  checkServices,
  type JobAccess,
  loadJobAccess,
  type ReadSecret,
} from '../coordinator/proxies/job-access.ts';
import { createProgress, type Progress, type RunView } from '../coordinator/reports/progress.ts';
import type { PageUnit } from '../coordinator/reports/run-view.ts';
import { PARSED_ROBOTS_BYTES_MAX, ParsedRobots } from '../coordinator/robots/parsed-robots.ts';
import { RejectLog } from '../coordinator/sources/reject-log.ts';
import { SourceFeeder } from '../coordinator/sources/source-feeder.ts';
import type { StopReason } from '../coordinator/stop.ts';
import { StoreRoom, waitForRoom } from '../coordinator/storage/store-room.ts';
import { PRICES_DEFAULT } from '../core/cost/cost.ts';
import { SeineError } from '../core/errors.ts';
import { mayRender } from '../core/escalation/escalation.ts';
import type { Explanation } from '../core/explain/explain.ts';
import type { JobSpec, SourceSpec } from '../core/job-schema/job.ts';
import type { SharedPool } from '../core/proxies/shared-pools.ts';
import { hideCredentials, makeRedact, type Redact } from '../core/text/redact.ts';
import { isPublicAddress } from '../core/url/address.ts';
import { type AddressGuard, makeAddressGuard } from '../core/url/address-guard.ts';
import { openSystemResolver } from '../fetch/network/system-resolver.ts';
import { completeSpec } from '../job-file/parse-job.ts';
import { memoryShare } from '../machine/machine.ts';
import type { Logger } from '../ports/ambient.ts';
import type { DispatchCost, Dispatcher, WorkerHeartbeat } from '../ports/dispatcher.ts';
import type { Reject, Source } from '../ports/source.ts';
import type { Job, Store } from '../ports/store.ts';
import type { TraceSink } from '../ports/trace-sink.ts';
import { type FilesByScheme, openFilesByScheme } from '../sources/files/files-by-scheme.ts';
import { openRejectFile } from '../sources/files/reject-file.ts';
import { checkSource, openSource } from '../sources/open-source.ts';
import type { FolderLock } from '../store/sqlite/connection/folder-lock.ts';
import { systemClock } from '../worker/batch/system-clock.ts';
import type { JobHandlers } from '../worker/job/route-code.ts';
import { type EarlyThreads, openWorkers, type WorkerSettings } from './early-threads.ts';
import type { Folder, RemoteStore } from './folder.ts';
import { checkCommands } from './notify.ts';
import { folderOf, prepareBlobs } from './open-blobs.ts';

export interface AppSettings extends WorkerSettings {
  /** Where the state is instead of the folder. */
  store?: RemoteStore | null;
  /** Reads the secrets that jobs refer to. */
  readSecret?: ReadSecret;
  /** Lists of proxies that jobs may use by name. */
  proxyPools?: ReadonlyMap<string, SharedPool>;
  /** Programs that jobs without code may run; absent where the operator has not said it. */
  jobCommands?: readonly string[] | undefined;
  /** How long entries of host logs are kept. */
  hostLogDays?: number;
  /** Where traces of batches go, when somebody asked for them. */
  traces?: TraceSink | undefined;
}

/** A job under way. */
export interface Run {
  job: Job;
  /** `rejects` are the first rows that could not be used; the file has more of them, once there are any. */
  result: Promise<RunResult & { rejects: Reject[]; rejectsFile: string; cost: DispatchCost | null }>;
  view(): Promise<RunView>;
  /** Batches that may be under way at once. */
  slots(): number;
  /** The processes that work for it. */
  heartbeats(): Promise<WorkerHeartbeat[]>;
  stop(reason: StopReason): void;
  /** Tasks were added: they are looked for at once. */
  wake(): void;
}

/** What a run has been given already. */
export interface Prepared {
  /** Closures as handlers keep the work in this thread. */
  handlers?: JobHandlers;
  /** Of `openServices`. */
  dispatcher?: Dispatcher;
  /** Both shared with the other jobs of this process. */
  permits?: OpenPermits;
  parsedRobots?: ParsedRobots;
  /** How long a job that is kept open stays ready for more URLs. */
  lingerMs?: number;
  /** How the workers are is written down for all jobs of this process together. */
  isHealthNoted?: boolean;
}

/** A table that records are to be written into must be there before the first page. */
export async function checkSink({ store }: Folder, { sink }: JobSpec): Promise<void> {
  if (!sink) return;
  if (!store.checkSink)
    throw new SeineError('the job has a sink, which needs a store in PostgreSQL', {
      hint: 'set --store postgres://… or SEINE_STORE; the table has to be in the same database',
    });
  await store.checkSink(sink);
}

/** Blobs that can be written and workers that can be reached, for a job that need not be stored yet, or for many. */
export async function openServices(
  folder: Folder,
  spec: JobSpec | null,
  settings: AppSettings,
  { handlers, threads }: { handlers?: JobHandlers | undefined; threads?: EarlyThreads | undefined } = {},
): Promise<Dispatcher> {
  const { s3, logger } = settings;
  const owned = folder.isOwned() ? folder.dir : null;
  await prepareBlobs(folder.blobsPlace, { owned, s3, logger });
  const dispatcher = await (threads?.take() ?? openWorkers(folder.blobsPlace, settings, handlers));
  // Before the first request: a job whose pages no worker can render would wait for ever.
  const refusal = spec?.routes.some(mayRender) ? dispatcher.refusal?.('browser') : null;
  if (!refusal) return dispatcher;
  await dispatcher.close();
  throw refusal;
}

/** Starts or continues a job in a folder whose lock the caller holds; it is released when the run ends. */
export async function startRun(
  folder: Folder,
  lock: FolderLock,
  stored: Job,
  settings: AppSettings,
  prepared: Prepared = {},
): Promise<Run> {
  const job = { ...stored, spec: completeSpec(stored.spec) };
  let dispatcher = prepared.dispatcher ?? null;
  const files = openFiles(settings, job.spec);
  try {
    const access = await openJobAccess(job.spec, settings);
    checkCommands(job, settings);
    await checkSink(folder, job.spec);
    const sources = openSources(folder, job, files, settings);
    dispatcher ??= await openServices(folder, job.spec, settings, { handlers: prepared.handlers });
    const opened = dispatcher;
    const { permits, parsedRobots = openParsedRobots(), lingerMs, isHealthNoted = false } = prepared;
    const shared = { permits, parsedRobots, lingerMs, isHealthNoted };
    const parts = createParts(folder, job, settings, { sources, access, dispatcher, ...shared });
    return runToItsEnd(folder, job, parts, opened, async () => {
      await opened.close();
      await files.close();
      await parts.feeder.rejects.flush();
      lock.release();
    });
  } catch (error) {
    await dispatcher?.close();
    await files.close();
    lock.release();
    throw error;
  }
}

/** For the jobs of one process together, by the memory of the machine or of its container. */
export function openParsedRobots(): ParsedRobots {
  return new ParsedRobots(memoryShare(1 / 16, { min: 4 * 1024 * 1024, max: PARSED_ROBOTS_BYTES_MAX }));
}

/** What works on a run. */
interface RunParts {
  coordinator: Coordinator;
  feeder: SourceFeeder;
  progress: Progress;
  rejectsFile: string;
}

function createParts(
  folder: Folder,
  job: Job,
  settings: AppSettings,
  opened: {
    sources: Source[];
    access: JobAccess | null;
    dispatcher: Dispatcher;
    permits: OpenPermits | undefined;
    parsedRobots: ParsedRobots;
    lingerMs: number | undefined;
    isHealthNoted: boolean;
  },
): RunParts {
  const { blobs } = folder;
  const { sources, access, dispatcher, permits, parsedRobots, lingerMs, isHealthNoted } = opened;
  const progress = createProgress({ startedAt: systemClock.now() });
  const own = settings.logger.withFields?.({ job: `${job.name}-${job.run}` }) ?? settings.logger;
  const logger = noting(own, progress, makeRedact(access?.secrets ?? []));
  const room = new StoreRoom({ clock: systemClock, logger });
  const store = waitForRoom(folder.store, room);
  const groups = new HostGroups({ store, job, resolver: openSystemResolver() });
  const rejectsFile = join(folder.dir, 'rejects', `${job.name}-${job.run}.jsonl`);
  const priorities = new TaskPriorities(job);
  const feeder = new SourceFeeder({
    store,
    job,
    sources,
    clock: systemClock,
    logger: settings.logger,
    rejects: new RejectLog(settings.logger, openRejectFile(rejectsFile, job.pass)),
    groups,
    priorities,
  });
  const coordinator = new Coordinator({
    store,
    blobs,
    dispatcher,
    job,
    feeder,
    progress,
    clock: systemClock,
    random: { next: Math.random },
    logger,
    access,
    groups,
    priorities,
    ...(permits ? { permits } : {}),
    parsedRobots,
    ...(lingerMs === undefined ? {} : { lingerMs }),
    room,
    traces: settings.traces,
    ...(settings.hostLogDays === undefined ? {} : { hostLogMs: settings.hostLogDays * DAY_MS }),
    isHealthNoted,
    costs: {
      prices: settings.prices ?? PRICES_DEFAULT,
      storesInS3: /^s3:/i.test(folder.blobsPlace),
    },
    diskFree: freeBytesOf([folder.dir, folderOf(folder.blobsPlace)]),
  });
  return { coordinator, feeder, progress, rejectsFile };
}

/** Lets the coordinator run, and closes what it used when it has ended. */
function runToItsEnd(
  folder: Folder,
  job: Job,
  parts: RunParts,
  dispatcher: Dispatcher,
  close: () => Promise<void>,
): Run {
  const { coordinator, feeder, progress, rejectsFile } = parts;
  const ended = coordinator.run().finally(close);
  const explanation = explanationOf(folder.store, job);
  return {
    job,
    result: ended.then((outcome) => {
      if (feeder.failure) throw feeder.failure;
      return { ...outcome, rejects: feeder.rejects.shown, rejectsFile, cost: dispatcher.cost?.() ?? null };
    }),
    view: () => viewOf(folder, job, progress, feeder, coordinator, explanation),
    slots: () => dispatcher.slots,
    heartbeats: async () => (await dispatcher.heartbeats?.()) ?? [],
    stop: (reason) => coordinator.stop(reason),
    wake: () => coordinator.wake(),
  };
}

/** Which private addresses a job may reach. */
type JobReach = Pick<JobSpec, 'allowPrivate' | 'privateServices'>;

export function openFiles(settings: AppSettings, reach: JobReach): FilesByScheme {
  const openS3 = async () => {
    const { openS3Files } = await import('../aws/s3/s3-files.ts');
    const { AWS_ITSELF } = await import('../aws/s3/s3-client.ts');
    return openS3Files(settings.s3 ?? AWS_ITSELF);
  };
  const { allowPrivate: jobAllowsPrivate, privateServices } = reach;
  return openFilesByScheme(openS3, { guard: guardOf(settings), jobAllowsPrivate, privateServices });
}

function guardOf({ allowPrivate }: AppSettings): AddressGuard {
  return makeAddressGuard(isPublicAddress, allowPrivate === 'never');
}

function openSources(
  folder: Folder,
  job: Pick<Job, 'id' | 'pass' | 'spec'>,
  files: FilesByScheme,
  settings: AppSettings,
  spoolDir = join(folder.dir, 'inputs'),
): Source[] {
  const sockets = { isAllowed: guardOf(settings).services(job.spec.privateServices) };
  return job.spec.sources.map((spec, source) =>
    openSource(spec, {
      files: files.of,
      query: (sql, options) => folder.store.views.query(sql, options),
      spool: { dir: spoolDir, jobId: job.id, pass: job.pass, source },
      sockets,
    }),
  );
}

/** Lists whose rows are added to a job besides those of its own sources, which `job` has in place of them. */
export function openAddedSources(
  folder: Folder,
  job: Pick<Job, 'id' | 'pass' | 'spec'>,
  spoolDir: string,
  settings: AppSettings,
): { sources: Source[]; close(): Promise<void> } {
  const files = openFiles(settings, job.spec);
  return { sources: openSources(folder, job, files, settings, spoolDir), close: () => files.close() };
}

/** The secrets of a job, read anew at each start. Null for jobs that have none. */
export async function openJobAccess(spec: JobSpec, settings: AppSettings): Promise<JobAccess | null> {
  const isAllowed = guardOf(settings).services(spec.privateServices);
  if (!spec.proxies && !spec.api && !spec.identity.secretHeaders && !spec.login) {
    checkServices(spec, [], isAllowed);
    return null;
  }
  const unable: ReadSecret = () => Promise.reject(new SeineError('secrets are not available here'));
  const access = await loadJobAccess(spec, settings.readSecret ?? unable);
  checkServices(spec, access.pools, isAllowed);
  return access;
}

/** What is known to go wrong with sources, before a job is made of them. Without a store, queries are not asked. */
export async function checkSources(
  sources: readonly SourceSpec[],
  settings: AppSettings,
  store: Store | null,
  reach: JobReach = { allowPrivate: false },
): Promise<void> {
  const files = openFiles(settings, reach);
  const query = store && ((sql: string) => store.views.query(sql));
  try {
    for (const source of sources) await checkSource(source, { files: files.of, query });
  } finally {
    await files.close();
  }
}

async function viewOf(
  folder: Folder,
  job: Job,
  progress: Progress,
  feeder: SourceFeeder,
  coordinator: Coordinator,
  explanation: () => Promise<Explanation | null>,
): Promise<RunView> {
  return progress.view({
    now: systemClock.now(),
    counters: await folder.store.jobs.counters(job.id),
    tallies: await folder.store.views.tallies(job.id),
    nextDueAt: await folder.store.frontier.nextDueAt(job.id),
    job: { name: job.name, state: coordinator.state, dir: placesOf(folder), unit: unitOf(job.spec) },
    waitingFor: coordinator.waitingFor,
    limits: job.spec.limits,
    sourcesDone: feeder.done,
    explanation: await explanation(),
    sourcesRead: feeder.shareRead,
  });
}

const EXPLAIN_MS = 5_000;
const DAY_MS = 86_400_000;

/** Looked up now and then: what it is made of is written every few seconds. */
function explanationOf(store: Store, job: Job): () => Promise<Explanation | null> {
  let known: Explanation | null = null;
  let askedAt = systemClock.now();
  return async () => {
    if (systemClock.now() - askedAt < EXPLAIN_MS) return known;
    askedAt = systemClock.now();
    const found = await explainJob(store, job, { isAlive: true });
    known = found.limiting === null ? null : found;
    return known;
  };
}

/** Where the results are, as people name it. */
function placesOf(folder: Folder): string {
  const files = folder.blobsPlace;
  return `${hideCredentials(files)}${folder.isRemote ? ', state in PostgreSQL' : files === folder.dir ? '' : `, state in ${folder.dir}`}`;
}

/** What the tasks of the job are: pages, unless all of them are stored as media. */
function unitOf({ routes, media }: JobSpec): PageUnit {
  const isMedia = routes.length > 0 && routes[0]!.kind === 'media' && routes[0]!.match === undefined;
  if (!isMedia) return 'pages';
  return media.types.length > 0 && media.types.every((type) => type.startsWith('image/'))
    ? 'images'
    : 'files';
}

/** Warnings also reach the dashboard; secrets do not. */
function noting(logger: Logger, progress: Progress, redact: Redact): Logger {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error'): Logger['info'] =>
    (text, given) => {
      const message = redact(text);
      const fields = given && JSON.parse(redact(JSON.stringify(given)));
      if (level === 'warn' || level === 'error') progress.warn(message, systemClock.now(), level);
      logger[level]?.(message, fields);
    };
  const debug = logger.debug ? { debug: at('debug') } : {};
  return { info: at('info'), warn: at('warn'), error: at('error'), ...debug };
}

/** Asked often, answered from memory for a few seconds. */
function freeBytesOf(dirs: readonly (string | null)[]): () => Promise<number | null> {
  let known: number | null = null;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (systemClock.now() - askedAt < 2_000) return known;
    askedAt = systemClock.now();
    const found = await Promise.all(dirs.map((dir) => (dir === null ? null : statfs(dir).catch(() => null))));
    const free = found.filter((disk) => disk !== null).map(({ bavail, bsize }) => bavail * bsize);
    known = free.length === 0 ? null : Math.min(...free);
    return known;
  };
}
