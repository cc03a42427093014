import type { S3Settings } from '../aws/s3/s3-client.ts';
import type { Prices } from '../core/cost/cost.ts';
import type { DispatchTarget } from '../core/job-schema/dispatch-target.ts';
import { threadHeapMb } from '../core/machine/machine-shares.ts';
import type { ThreadRange } from '../core/scaling/threads.ts';
import { machine } from '../machine/machine.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { BrowserSettings, CallbackSettings } from '../ports/fetcher.ts';
import { openInlineDispatcher } from '../transport/inline-dispatcher.ts';
import { openThreadDispatcher } from '../transport/thread/thread-dispatcher.ts';
import type { JobHandlers } from '../worker/job/route-code.ts';
import { openBlobs } from './open-blobs.ts';
import { threadEntries } from './thread-entries.ts';

export interface DispatchSettings {
  /** Where batches go; threads of this process when absent. */
  dispatch?: readonly DispatchTarget[];
  /** Most threads. */
  workers: number;
  /** The range in which their number follows the work; always the most when absent. */
  threads?: ThreadRange | undefined;
  /** Sign batches and reports that leave this machine; the first is used, all are accepted. */
  fleetKeys?: readonly string[];
  /** How Lambda is called. */
  lambda?: LambdaSettings;
  /** Of workers in this process. */
  browser?: BrowserSettings;
  apiCallbacks?: CallbackSettings | undefined;
  logger: Logger;
  /** What is paid by use; the default prices when absent. */
  prices?: Prices;
  /** What code of jobs sees of the environment in threads. */
  jobEnvironment: Record<string, string>;
}

export interface LambdaSettings {
  /** Something that speaks Lambda's API, instead of AWS itself. */
  endpoint: string | null;
  region: string | null;
  /** A file with an access key; what the SDK finds by itself when absent. */
  credentials?: string | null;
  /** Most invocations at once. */
  concurrency: number;
  /** Function for batches that need a browser; null sends those to the same one. */
  browserFunction: string | null;
}

/** What a worker in this process needs. */
interface WorkerData {
  blobs: string;
  sync: boolean;
  s3?: S3Settings | undefined;
  allowPrivate?: 'job' | 'never' | undefined;
  browser?: BrowserSettings | undefined;
  apiCallbacks?: CallbackSettings | undefined;
}

export async function openDispatcher(
  data: WorkerData,
  settings: DispatchSettings,
  handlers?: JobHandlers,
): Promise<Dispatcher> {
  if (handlers && handlers.size > 0) return openInline(data, handlers, settings.logger);
  const targets = settings.dispatch ?? [{ kind: 'threads', weight: 1 }];
  const [only] = targets;
  if (targets.length === 1) return openTarget(only!, data, settings);
  const opened: { dispatcher: Dispatcher; weight: number }[] = [];
  try {
    for (const target of targets)
      opened.push({ dispatcher: await openTarget(target, data, settings), weight: target.weight });
    const { openWeightedDispatcher } = await import('../transport/weighted-dispatcher.ts');
    return openWeightedDispatcher(opened);
  } catch (error) {
    await Promise.all(opened.map(({ dispatcher }) => dispatcher.close()));
    throw error;
  }
}

/** Closures as handlers cannot travel: their batches stay in this thread. */
async function openInline(data: WorkerData, handlers: JobHandlers, logger: Logger): Promise<Dispatcher> {
  const { openWorkerTools } = await import('./worker-app.ts');
  const { processBatch } = await import('../worker/batch/process-batch.ts');
  const tools = await openWorkerTools({ ...data, name: 'inline', logger }, handlers);
  return openInlineDispatcher((batch, options) => processBatch(batch, tools, options), tools.close);
}

async function openTarget(
  target: DispatchTarget,
  data: WorkerData,
  settings: DispatchSettings,
): Promise<Dispatcher> {
  const { logger } = settings;
  if (target.kind === 'bullmq') {
    const { openBullmqDispatcher } = await import('../transport/bullmq/bullmq-dispatcher.ts');
    return openBullmqDispatcher({ url: target.url, fleetKeys: settings.fleetKeys ?? [], logger });
  }
  if (target.kind === 'lambda') {
    const { openLambdaDispatcher } = await import('../transport/lambda/lambda-dispatcher.ts');
    const blobs = { place: data.blobs, open: () => openBlobs(data.blobs, data) };
    const { fleetKeys = [], prices } = settings;
    return openLambdaDispatcher({ name: target.name, ...settings.lambda, fleetKeys, blobs, logger, prices });
  }
  return openThreadDispatcher({
    threads: settings.threads ?? settings.workers,
    ...threadEntries(),
    data,
    env: settings.jobEnvironment,
    heapMbMax: threadHeapMb(machine()),
    logger,
  });
}
