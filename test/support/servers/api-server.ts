import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolder } from '../../../src/app/folder.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Prices } from '../../../src/core/cost/cost.ts';
import { Server } from '../../../src/server/server.ts';
import { temporaryFolder } from '../seine-process.ts';

export interface ApiServer {
  url: string;
  token: string;
  dir: string;
  /** What the server wrote into its log. */
  log: string[];
  close(): Promise<void>;
}

/** A whole server in this process: store in a folder of its own, one worker thread, a port of the system. */
export async function openApiServer({
  dir,
  prices,
  environment = {},
  allowPrivate = true,
  queue,
}: {
  dir?: string;
  prices?: Prices;
  /** Of settings that jobs use. */
  environment?: Record<string, string>;
  /** Whether requests may lead to this machine: pages and webhooks. */
  allowPrivate?: boolean;
  /** Where workers take batches, instead of a thread. */
  queue?: { url: string; fleetKeys: string[] };
} = {}): Promise<ApiServer> {
  const own = dir === undefined ? temporaryFolder() : null;
  const place = dir ?? join(own!.path, 'served');
  const log: string[] = [];
  const note = (message: string) => void log.push(message);
  const { config, readSecret } = loadConfig({}, environment);
  const settings = {
    dir: place,
    readSecret,
    proxyPools: config.proxyPools,
    sync: 'normal' as const,
    workers: 1,
    ...(prices ? { prices } : {}),
    ...(queue
      ? { dispatch: [{ kind: 'bullmq', weight: 1, url: queue.url } as const], fleetKeys: queue.fleetKeys }
      : {}),
    jobEnvironment: {},
    logger: { info: note, warn: note, error: note },
  };
  const folder = await openFolder(settings, { create: true, toWork: true });
  const server = await Server.open(folder, {
    listen: { host: '127.0.0.1', port: 0 },
    jobFiles: [],
    jobsFolder: null,
    settings,
    allowPrivate,
    webhooksAllowPrivate: allowPrivate,
    onEnd: () => {},
  });
  const running = server.run();
  const { token } = JSON.parse(readFileSync(join(place, 'server.json'), 'utf8'));
  return {
    url: server.url,
    token,
    dir: place,
    log,
    async close() {
      await server.close();
      await running;
      await folder.close();
      own?.remove();
    },
  };
}
