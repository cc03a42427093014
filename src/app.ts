import { statfs } from 'node:fs/promises';
import { sweepTemporary } from './blobs/folder-blobs.ts';
import { Coordinator, type RunResult } from './coordinator/coordinator.ts';
import { createProgress, type Progress, type RunView } from './coordinator/progress.ts';
import { type Reject, SourceFeeder } from './coordinator/seeds.ts';
import type { StopReason } from './coordinator/stop.ts';
import { openInlineDispatcher } from './dispatch/inline-dispatcher.ts';
import { openThreadDispatcher } from './dispatch/thread-dispatcher.ts';
import type { Folder } from './folder.ts';
import type { Logger } from './ports/ambient.ts';
import type { Dispatcher } from './ports/dispatcher.ts';
import type { Job } from './ports/store.ts';
import { openSource } from './sources/open-source.ts';
import type { FolderLock } from './store/sqlite/folder-lock.ts';
import type { Handlers } from './worker/compile-job.ts';
import { systemClock } from './worker/system-clock.ts';

export interface AppSettings {
  dir: string;
  workers: number;
  sync: 'normal' | 'full';
  logger: Logger;
}

/** A job under way. */
export interface Run {
  job: Job;
  result: Promise<RunResult & { rejects: Reject[] }>;
  view(): Promise<RunView>;
  stop(reason: StopReason): void;
}

/**
 * Starts or continues a job in a folder whose lock the caller holds; it is released when the run ends.
 * Closures as handlers keep the work in this thread.
 */
export async function startRun(
  folder: Folder,
  lock: FolderLock,
  job: Job,
  settings: AppSettings,
  inlineHandlers?: Handlers,
): Promise<Run> {
  let dispatcher: Dispatcher | null = null;
  try {
    await sweepTemporary(folder.dir);
    const sources = job.spec.sources.map(openSource);
    dispatcher = await openDispatcher(folder, settings, inlineHandlers);
    const progress = createProgress({ startedAt: systemClock.now() });
    const feeder = new SourceFeeder({
      store: folder.store,
      job,
      sources,
      clock: systemClock,
      logger: settings.logger,
    });
    const coordinator = new Coordinator({
      store: folder.store,
      blobs: folder.blobs,
      dispatcher,
      job,
      feeder,
      progress,
      clock: systemClock,
      random: { next: Math.random },
      logger: noting(settings.logger, progress),
      diskFree: freeBytesOf(folder.dir),
    });
    const opened = dispatcher;
    const result = coordinator.run().finally(async () => {
      await opened.close();
      lock.release();
    });
    return {
      job,
      result: result.then((outcome) => {
        if (feeder.failure) throw feeder.failure;
        return { ...outcome, rejects: feeder.rejects };
      }),
      view: () => viewOf(folder, job, progress, feeder, coordinator),
      stop: (reason) => coordinator.stop(reason),
    };
  } catch (error) {
    await dispatcher?.close();
    lock.release();
    throw error;
  }
}

async function openDispatcher(
  folder: Folder,
  settings: AppSettings,
  handlers?: Handlers,
): Promise<Dispatcher> {
  const data = { blobsDir: folder.dir, sync: settings.sync === 'full' };
  if (handlers && handlers.size > 0) {
    const { openWorkerTools } = await import('./worker-app.ts');
    const { processBatch } = await import('./worker/process-batch.ts');
    const tools = await openWorkerTools({ ...data, name: 'inline' }, handlers);
    return openInlineDispatcher((batch, options) => processBatch(batch, tools, options), tools.close);
  }
  // The same tree runs from sources and from the build: the entry has this file's ending.
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return openThreadDispatcher({
    threads: settings.workers,
    entry: new URL(`./entry/thread.${ending}`, import.meta.url),
    data,
  });
}

async function viewOf(
  folder: Folder,
  job: Job,
  progress: Progress,
  feeder: SourceFeeder,
  coordinator: Coordinator,
): Promise<RunView> {
  return progress.view({
    now: systemClock.now(),
    counters: await folder.store.jobs.counters(job.id),
    tallies: await folder.store.views.tallies(job.id),
    nextDueAt: await folder.store.frontier.nextDueAt(job.id),
    job: { name: job.name, state: coordinator.state, dir: folder.dir },
    sourcesDone: feeder.done,
  });
}

/** Warnings also reach the dashboard. */
function noting(logger: Logger, progress: Progress): Logger {
  const at =
    (level: 'info' | 'warn' | 'error'): Logger['info'] =>
    (message, fields) => {
      if (level !== 'info') progress.note(message, systemClock.now(), level);
      logger[level](message, fields);
    };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** Asked often, answered from memory for a few seconds. */
function freeBytesOf(dir: string): () => Promise<number | null> {
  let known: number | null = null;
  let askedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (systemClock.now() - askedAt < 2_000) return known;
    askedAt = systemClock.now();
    known = await statfs(dir).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => null,
    );
    return known;
  };
}
