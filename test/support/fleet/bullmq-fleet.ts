import { jobEnvironment } from '../../../src/config/job-environment.ts';
import type { Logger } from '../../../src/ports/ambient.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { openBullmqDispatcher } from '../../../src/transport/bullmq/bullmq-dispatcher.ts';
import { type BullmqWorker, openBullmqWorker } from '../../../src/transport/bullmq/bullmq-worker.ts';
import {
  openThreadDispatcher,
  type ThreadDispatcher,
} from '../../../src/transport/thread/thread-dispatcher.ts';
import { openSite, type Site } from '../../contract/dispatcher-contract.ts';
import { temporaryFolder } from '../fixtures.ts';
import { FLEET_KEY } from '../seine-process.ts';
import { type RedisServer, startRedis } from '../servers/services.ts';

const ENTRY = new URL('../../../src/entry/thread.ts', import.meta.url);

export function memoryLogger(): Logger & { lines: string[] } {
  const lines: string[] = [];
  const write = (message: string) => void lines.push(message);
  return { lines, info: write, warn: write, error: write };
}

interface LocalWorker {
  worker: BullmqWorker;
  threads: ThreadDispatcher;
  lines: string[];
  end(): Promise<void>;
}

let workers = 0;

/** What `seine worker` runs, within this process. */
export async function startWorker(
  url: string,
  blobs: string,
  options: {
    kind?: 'http' | 'browser';
    threads?: number;
    name?: string;
    fleetKeys?: string[];
    allowPrivate?: 'job' | 'never';
  } = {},
): Promise<LocalWorker> {
  const name = options.name ?? `w${++workers}`;
  const logger = memoryLogger();
  const threads = openThreadDispatcher({
    threads: options.threads ?? 1,
    entry: ENTRY,
    name,
    env: jobEnvironment(process.env, []),
    data: { blobs, sync: false, allowPrivate: options.allowPrivate },
  });
  const { kind = 'http', fleetKeys = [FLEET_KEY] } = options;
  const worker = await openBullmqWorker({ url, kind, name, threads, fleetKeys, logger });
  return {
    worker,
    threads,
    lines: logger.lines,
    async end() {
      await worker.drain();
      await worker.close();
      await threads.close();
    },
  };
}

/** A coordinator's side, which sees the workers that are there already. */
export async function openDispatcher(
  url: string,
  fleetKeys: string[] = [FLEET_KEY],
): Promise<Dispatcher & { lines: string[] }> {
  const logger = memoryLogger();
  const dispatcher = await openBullmqDispatcher({ url, fleetKeys, logger });
  return Object.assign(dispatcher, { lines: logger.lines });
}

/** A Redis, a site and a folder of one test's own, with whatever it opens there. */
interface Fleet {
  redis: RedisServer;
  site: Site;
  blobs: string;
  addWorker(options?: Parameters<typeof startWorker>[2]): Promise<LocalWorker>;
  addDispatcher(fleetKeys?: string[]): ReturnType<typeof openDispatcher>;
}

export async function withFleet(
  settings: Record<string, string>,
  work: (fleet: Fleet) => Promise<void>,
): Promise<void> {
  const redis = await startRedis({ own: true, settings });
  const site = await openSite();
  const folder = await temporaryFolder();
  const open: (() => Promise<void>)[] = [() => site.close(), () => redis.stop(), folder.remove];
  try {
    await work({
      redis,
      site,
      blobs: folder.dir,
      async addWorker(options) {
        const worker = await startWorker(redis.url, folder.dir, options);
        open.unshift(() => worker.end());
        return worker;
      },
      async addDispatcher(fleetKeys) {
        const dispatcher = await openDispatcher(redis.url, fleetKeys);
        open.unshift(() => dispatcher.close());
        return dispatcher;
      },
    });
  } finally {
    for (const close of open) await close();
  }
}
