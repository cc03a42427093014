import { randomBytes } from 'node:crypto';
import type { AppSettings, Run } from '../app/app.ts';
import type { Folder } from '../app/folder.ts';
import { messageOf } from '../core/errors.ts';
import { KeyAccess } from './api/keys/key-access.ts';
import { ROUTES } from './api/routes.ts';
import { SettleWatch } from './api/scrape/settle-watch.ts';
import { type HttpServer, type ListenAddress, openHttpServer } from './http-server.ts';
import { makeWebhookPort } from './webhooks/attach-webhook.ts';

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
  const server = await openHttpServer({
    listen,
    access,
    isReady: async () => true,
    internal: async () => null,
    hasToken: () => false,
    routes: ROUTES,
    context: {
      folder,
      store,
      reads,
      blobs,
      runner: {
        run: (jobId) => (run?.job.id === jobId ? run : null),
        workers: async () => (run ? (await run.view()).workers : []),
        has: (jobId) => run?.job.id === jobId,
        slots: { slots: 0, busy: 0 },
        start() {},
      },
      remover: { look() {} },
      access,
      webhooks: makeWebhookPort(store.webhooks, Date.now),
      settings,
      allowPrivate: false,
      readOnly: true,
      watch: new SettleWatch(),
      now: () => Date.now(),
    },
    onError: (error) => settings.logger.error(`a request failed: ${messageOf(error)}`),
  });
  return {
    ...server,
    async close() {
      await server.close();
      await reads.close();
    },
  };
}
