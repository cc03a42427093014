import { resolve } from 'node:path';
import type { S3Settings } from '../aws/s3/s3-client.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { JobHandlers } from '../worker/job/route-code.ts';
import { type DispatchSettings, openDispatcher } from './open-dispatcher.ts';

/** What workers are opened with. */
export interface WorkerSettings extends DispatchSettings {
  dir: string;
  sync: 'normal' | 'full';
  /** Where blobs are instead of the folder: a path or URL. */
  blobs?: string | null;
  /** Where `s3://` is; AWS itself when absent. */
  s3?: S3Settings;
  /** `never`: private addresses are refused, whatever a job says. */
  allowPrivate?: 'job' | 'never';
}

/**
 * Threads of a run that are started before anything else of it is loaded: a thread computes for 100 ms before it can work,
 * and meanwhile this process reads the job and opens the folder. Whoever started them closes them where none were taken.
 */
export class EarlyThreads {
  #dispatcher: Promise<Dispatcher> | null = null;

  /** Where batches go elsewhere, too, nothing is started. */
  constructor(settings: WorkerSettings) {
    if (settings.dispatch?.some(({ kind }) => kind !== 'threads')) return;
    this.#dispatcher = openWorkers(settings.blobs ?? resolve(settings.dir), settings);
    // Whoever takes them is told.
    this.#dispatcher.catch(() => {});
  }

  take(): Promise<Dispatcher> | null {
    const taken = this.#dispatcher;
    this.#dispatcher = null;
    return taken;
  }

  async close(): Promise<void> {
    const left = await this.take()?.catch(() => null);
    await left?.close();
  }
}

export function openWorkers(
  blobsPlace: string,
  settings: WorkerSettings,
  handlers?: JobHandlers,
): Promise<Dispatcher> {
  const { s3, allowPrivate, browser, apiCallbacks } = settings;
  const sync = settings.sync === 'full';
  const data = { blobs: blobsPlace, sync, s3, allowPrivate, browser, apiCallbacks };
  return openDispatcher(data, settings, handlers);
}
