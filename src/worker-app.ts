import { openFolderBlobs } from './blobs/folder-blobs.ts';
import { isPublicAddress } from './core/address.ts';
import { openHttpFetcher } from './fetch/http-fetcher.ts';
import { loadHandlers } from './job/load-handlers.ts';
import { type Handlers, JobCache } from './worker/compile-job.ts';
import type { WorkerTools } from './worker/process-batch.ts';
import { systemClock } from './worker/system-clock.ts';

export interface WorkerSettings {
  name: string;
  blobsDir: string;
  sync: boolean;
}

/** The composition root of a worker: knows the adapters that a worker uses, and nothing of the store. */
export async function openWorkerTools(
  settings: WorkerSettings,
  handlers?: Handlers,
): Promise<WorkerTools & { close(): Promise<void> }> {
  const blobs = await openFolderBlobs(settings.blobsDir, { sync: settings.sync });
  const fetcher = openHttpFetcher({ clock: systemClock, isPublicAddress });
  return {
    name: settings.name,
    fetcher,
    blobs,
    clock: systemClock,
    jobs: new JobCache(
      async (bundle) => handlers ?? (bundle === null ? new Map() : loadHandlers(blobs, bundle)),
    ),
    async close() {
      await fetcher.close();
      await blobs.close();
    },
  };
}
