import { randomBytes } from 'node:crypto';
import type { AppSettings, Run } from '../app/app.ts';
import type { Folder } from '../app/folder.ts';
import { messageOf } from '../core/errors.ts';
import type { ListenAddress } from '../network/listen-address.ts';
import { jobMetrics } from '../observe/metrics/job-metrics.ts';
import { processMetrics } from '../observe/metrics/process-metrics.ts';
import { Forecasts } from './api/cost/forecasts.ts';
import { KeyAccess } from './api/keys/key-access.ts';
import type { JobControl, Work } from './api/requests/work.ts';
import { ROUTES } from './api/routes.ts';
import { AddedTasks } from './api/scrape/added-tasks.ts';
import { RowRoom } from './api/scrape/row-room.ts';
import { Scrapes } from './api/scrape/scrapes.ts';
import { SettleWatch } from './api/scrape/settle-watch.ts';
import { type HttpServer, openHttpServer } from './http-server.ts';
import { placeOf } from './server-place.ts';
import { makeWebhookPort } from './webhooks/attach-webhook.ts';
import { WorkerDirectory } from './workers/worker-directory.ts';

interface ReadOnlyServerOptions {
  listen: ListenAddress;
  settings: AppSettings;
  /** The run of this process, which tells more than what is stored. */
  run?: Run;
}

/** The dashboard and the API of a folder or database, where nothing can be changed: beside a run, or long after it. */
export async function openReadOnlyServer(
  folder: Folder,
  { listen, settings, run }: ReadOnlyServerOptions,
): Promise<HttpServer> {
  const { store, blobs } = folder;
  const reads = store.openReads?.() ?? { ...store, close: async () => {} };
  const access = new KeyAccess({
    keys: store.keys,
    token: randomBytes(24).toString('base64url'),
    now: Date.now,
  });
  const workers = new WorkerDirectory({
    settings,
    used: async () => (await run?.heartbeats()) ?? [],
    store: null,
    now: Date.now,
  });
  const server = await openHttpServer({
    listen,
    access,
    hasToken: () => false,
    routes: ROUTES,
    context: {
      ...workOf(folder, settings, run),
      workers,
      rowRoom: new RowRoom(),
      reads,
      blobs,
      access,
      webhooks: makeWebhookPort(store.webhooks, Date.now),
      place: placeOf(settings),
      logger: settings.logger,
      allowPrivate: false,
      proxyPools: new Map(),
      readOnly: true,
      now: () => Date.now(),
    },
    onError: (error) => settings.logger.error(`a request failed: ${messageOf(error)}`),
  });
  return {
    ...server,
    async close() {
      await server.close();
      await workers.close();
      await reads.close();
    },
  };
}

/** What a server does for its API, where there is nothing to do: jobs are neither started nor changed. */
function workOf(folder: Folder, settings: AppSettings, run: Run | undefined): Omit<Work, 'workers'> {
  const { store } = folder;
  const forecasts = new Forecasts({ folder, settings, start() {}, now: Date.now });
  return {
    store,
    runner: controlOf(run),
    adding: new AddedTasks(store),
    scrapes: new Scrapes({
      ...{ store, forecasts, allowPrivate: false, proxyPools: new Map(), now: Date.now },
      watch: new SettleWatch(),
      start() {},
    }),
    forecasts,
    server: {
      isReady: async () => true,
      internal: async () => null,
      removeJobs: async () => {},
      metrics: async (owner) => [
        ...(await jobMetrics(store, { now: Date.now(), ...(owner === null ? {} : { owner }) })),
        ...processMetrics(),
      ],
    },
  };
}

/** The run of this process is looked at and left alone. */
function controlOf(run: Run | undefined): JobControl {
  return {
    start: async () => {},
    stop: async () => {},
    wake: async () => {},
    has: async (jobId) => run?.job.id === jobId,
    views: async (jobIds) =>
      new Map(run && jobIds.includes(run.job.id) ? [[run.job.id, await run.view()]] : []),
    workers: async () => (run ? (await run.view()).workers : []),
  };
}
