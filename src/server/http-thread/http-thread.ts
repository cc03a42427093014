import { parentPort, workerData } from 'node:worker_threads';
import { openReadStore } from '../../app/folder.ts';
import { openBlobs } from '../../app/open-blobs.ts';
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import { KeyAccess } from '../api/keys/key-access.ts';
import { hasToken } from '../api/keys/local-access.ts';
import type { Work } from '../api/requests/work.ts';
import { ROUTES } from '../api/routes.ts';
import { RowRoom } from '../api/scrape/row-room.ts';
import { openHttpServer } from '../http-server.ts';
import { makeWebhookPort } from '../webhooks/attach-webhook.ts';
import { copyError, RemoteCalls } from './calls.ts';
import type { HttpThreadData, HttpThreadMessage } from './thread-messages.ts';

/**
 * Answers HTTP. Coordinators plan and settle in another thread, for tens of milliseconds at a time: what is only read does not
 * wait for them.
 */

const data = workerData as HttpThreadData;
const port = parentPort!;
const tell = (message: HttpThreadMessage) => port.postMessage(message);

const logAt =
  (level: 'info' | 'warn' | 'error'): Logger['info'] =>
  (message, fields) =>
    tell({ kind: 'log', level, message, ...(fields ? { fields } : {}) });
const logger: Logger = { info: logAt('info'), warn: logAt('warn'), error: logAt('error') };

async function open(): Promise<{ url: string; close(): Promise<void> }> {
  const { listen, token, allowPrivate, proxyPools, place, dir, store: remote, blobs: blobsPlace, s3 } = data;
  const calls = new RemoteCalls(data.work);
  const store: Work['store'] = {
    jobs: calls.part('store.jobs'),
    frontier: calls.part('store.frontier'),
    hosts: calls.part('store.hosts'),
    proxies: calls.part('store.proxies'),
    escalations: calls.part('store.escalations'),
    keys: calls.part('store.keys'),
    webhooks: calls.part('store.webhooks'),
    alerts: calls.part('store.alerts'),
    requests: calls.part('store.requests'),
    removals: calls.part('store.removals'),
    views: calls.part('store.views'),
  };
  const reads = await openReadStore({ dir, store: remote }, logger);
  const blobs = await openBlobs(blobsPlace, s3 ? { s3 } : {});
  const keys = {
    byHash: (hash: string) => reads.keys.byHash(hash),
    hasSome: () => reads.keys.hasSome(),
    pagesUnderWay: (id: string) => store.keys.pagesUnderWay(id),
    usage: (id: string, day: number) => store.keys.usage(id, day),
    use: (...args: Parameters<typeof store.keys.use>) => store.keys.use(...args),
  };
  const access = new KeyAccess({ keys, token, now: Date.now });
  const http = await openHttpServer({
    listen,
    access,
    hasToken: (headers) => hasToken(headers, token),
    routes: ROUTES,
    context: {
      store,
      runner: calls.part('runner'),
      workers: calls.part('workers'),
      adding: calls.part('adding'),
      scrapes: calls.part('scrapes'),
      forecasts: calls.part('forecasts'),
      server: calls.part('server'),
      reads,
      blobs,
      access,
      webhooks: makeWebhookPort(store.webhooks, Date.now),
      place,
      logger,
      allowPrivate,
      rowRoom: new RowRoom(),
      proxyPools,
      now: () => Date.now(),
    },
    onError: (error) => logger.error(`a request failed: ${messageOf(error)}`),
  });
  return {
    url: http.url,
    async close() {
      await http.close();
      await reads.close();
      await blobs.close();
      data.work.close();
    },
  };
}

try {
  const { url, close } = await open();
  // The only message that comes: to end. What a call still waits for, for minutes perhaps, is not waited for.
  port.once('message', () => void close().finally(() => process.exit()));
  tell({ kind: 'listening', url });
} catch (error) {
  tell({ kind: 'failed', error: copyError(error) });
  data.work.close();
  port.close();
}
