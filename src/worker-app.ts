import type { S3Settings } from './aws/s3/s3-client.ts';
import { isPublicAddress } from './core/url/address.ts';
import { openHttpFetcher } from './fetch/http/http-fetcher.ts';
import { openGeneratedUserAgents } from './fetch/impersonate/generated-user-agents.ts';
import { openOtherFetchers } from './fetch/other-fetchers.ts';
import { loadHandlers } from './job/load-handlers.ts';
import { openBlobs } from './open-blobs.ts';
import type { Logger } from './ports/ambient.ts';
import type { BrowserSettings, CallbackSettings } from './ports/fetcher.ts';
import type { WorkerTools } from './worker/batch/process-batch.ts';
import { systemClock } from './worker/batch/system-clock.ts';
import { JobCache } from './worker/compile-job.ts';
import type { JobHandlers } from './worker/job/route-code.ts';

interface WorkerSettings {
  name: string;
  /** Where blobs are: a path or URL. */
  blobs: string;
  sync: boolean;
  s3?: S3Settings;
  /** `never` refuses private addresses, whatever a job says. */
  allowPrivate?: 'job' | 'never';
  browser?: BrowserSettings;
  apiCallbacks?: CallbackSettings;
  logger?: Logger;
}

/** The composition root of a worker: knows the adapters that a worker uses, and nothing of the store. */
export async function openWorkerTools(
  settings: WorkerSettings,
  handlers?: JobHandlers,
): Promise<WorkerTools & { close(): Promise<void> }> {
  const blobs = await openBlobs(settings.blobs, settings);
  const { browser, apiCallbacks, logger } = settings;
  const options = { clock: systemClock, isPublicAddress, browser, apiCallbacks, logger };
  const fetcher = openHttpFetcher(options);
  const others = openOtherFetchers(options);
  return {
    name: settings.name,
    fetcher,
    fetcherOf: others.of,
    openUserAgents: once(openGeneratedUserAgents),
    blobs,
    clock: systemClock,
    random: { next: Math.random },
    jobs: new JobCache(
      async (bundle) => handlers ?? (bundle === null ? new Map() : loadHandlers(blobs, bundle)),
      { forbidsPrivate: settings.allowPrivate === 'never' },
    ),
    async close() {
      await fetcher.close();
      await others.close();
      await blobs.close();
    },
  };
}

function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opening: Promise<T> | null = null;
  return () => {
    opening ??= open();
    return opening;
  };
}
