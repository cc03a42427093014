import type { S3Settings } from '../aws/s3/s3-client.ts';
import type { FetcherKind } from '../core/escalation/escalation.ts';
import { isPublicAddress } from '../core/url/address.ts';
import type { BrowserFetcherOptions } from '../fetch/browser/browser-fetcher.ts';
import { openHttpFetcher } from '../fetch/http/http-fetcher.ts';
import { openGeneratedUserAgents } from '../fetch/impersonate/generated-user-agents.ts';
import type { RemoteApiOptions } from '../fetch/remote-api/remote-api-fetcher.ts';
import { asItIs, loadHandlers } from '../job-file/load-handlers.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Fetcher } from '../ports/fetcher.ts';
import type { ThreadData } from '../transport/thread/thread-messages.ts';
import type { WorkerTools } from '../worker/batch/process-batch.ts';
import { RequestGate } from '../worker/batch/request-gate.ts';
import { systemClock } from '../worker/batch/system-clock.ts';
import { JobCache } from '../worker/compile-job.ts';
import type { JobHandlers } from '../worker/job/route-code.ts';
import { openBlobs } from './open-blobs.ts';

/** A thread is told the same, apart from what cannot be sent to it. */
interface WorkerSettings extends Omit<ThreadData, 's3'> {
  logger?: Logger;
  s3?: S3Settings | undefined;
}

/** The composition root of a worker: knows the adapters that a worker uses, and nothing of the store. */
export async function openWorkerTools(
  settings: WorkerSettings,
  handlers?: JobHandlers,
): Promise<WorkerTools & { close(): Promise<void> }> {
  const { s3 } = settings;
  const blobs = await openBlobs(settings.blobs, { sync: settings.sync, ...(s3 ? { s3 } : {}) });
  const { browser, apiCallbacks, logger } = settings;
  const forbidsPrivate = settings.allowPrivate === 'never';
  const options = { clock: systemClock, isPublicAddress, forbidsPrivate, browser, apiCallbacks, logger };
  const fetcher = openHttpFetcher(options);
  const others = openOtherFetchers(options);
  const busyMs = () => performance.eventLoopUtilization().active;
  return {
    name: settings.name,
    fetcher,
    fetcherOf: others.of,
    openUserAgents: once(openGeneratedUserAgents),
    chromiumMajor: once(async () => {
      const { findChromiumMajor } = await import('../fetch/browser/process/find-chromium.ts');
      return findChromiumMajor(browser?.path ?? null);
    }),
    blobs,
    clock: systemClock,
    random: { next: Math.random },
    busyMs,
    gate: new RequestGate({ clock: systemClock, busyMs }),
    jobs: new JobCache(
      async (bundle) => handlers ?? (bundle === null ? new Map() : loadHandlers(blobs, bundle, asItIs)),
      { forbidsPrivate },
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

type OtherKind = Exclude<FetcherKind, 'http'>;

/** Fetchers that few jobs want: each is loaded and opened when it is first asked for. */
interface OtherFetchers {
  of(kind: OtherKind): Promise<Fetcher>;
  close(): Promise<void>;
}

type OtherFetcherOptions = RemoteApiOptions & Pick<BrowserFetcherOptions, 'browser' | 'logger'>;

function openOtherFetchers(options: OtherFetcherOptions): OtherFetchers {
  const opening = new Map<OtherKind, Promise<Fetcher>>();
  return {
    of(kind) {
      const known = opening.get(kind) ?? openFetcher(kind, options);
      opening.set(kind, known);
      return known;
    },
    async close() {
      const opened = await Promise.allSettled(opening.values());
      await Promise.all(opened.map((each) => (each.status === 'fulfilled' ? each.value.close() : null)));
    },
  };
}

async function openFetcher(kind: OtherKind, options: OtherFetcherOptions): Promise<Fetcher> {
  if (kind === 'api') {
    const { openRemoteApiFetcher } = await import('../fetch/remote-api/remote-api-fetcher.ts');
    return openRemoteApiFetcher(options);
  }
  if (kind === 'browser') {
    const { openBrowserFetcher } = await import('../fetch/browser/browser-fetcher.ts');
    return openBrowserFetcher(options);
  }
  const { openImpersonateFetcher } = await import('../fetch/impersonate/impersonate-fetcher.ts');
  return openImpersonateFetcher(options);
}
