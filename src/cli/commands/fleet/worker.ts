import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { openBlobs } from '../../../app/open-blobs.ts';
import { threadEntries } from '../../../app/thread-entries.ts';
import { allowPrivateElsewhere } from '../../../config/load.ts';
import { WORKER_KINDS, type WorkerKind } from '../../../core/batch/batch.ts';
import { type ExitName, messageOf, SeineError } from '../../../core/errors.ts';
import { fixedThreads, type ThreadRange } from '../../../core/scaling/threads.ts';
import { hideCredentials } from '../../../core/text/redact.ts';
import { WorkerMetrics } from '../../../observe/metrics/worker-metrics.ts';
import type { BullmqWorker } from '../../../transport/bullmq/bullmq-worker.ts';
import { openThreadDispatcher, type ThreadDispatcher } from '../../../transport/thread/thread-dispatcher.ts';
import { formatAmount } from '../../../tui/format.ts';
import { type Context, print, printable } from '../../context.ts';
import { withMetrics } from '../run/serve-metrics.ts';
import { watchSignals } from '../run/watch-signals.ts';

/** Works on batches of other machines' runs, until a signal comes. */
export async function workerCommand(context: Context): Promise<ExitName> {
  const { settings } = context;
  const url = queueUrl(context);
  const kind = kindOf(context.parsed.values.kind);
  const name = `${printable(hostname())}-${process.pid}-${randomBytes(2).toString('hex')}`;
  const blobs = await requireBlobs(context, name);
  const signals = watchSignals({ secondExits: true });
  const threads = openThreads(context, blobs, name);
  try {
    const { openBullmqWorker } = await import('../../../transport/bullmq/bullmq-worker.ts');
    const { fleetKeys = [], logger } = settings;
    const counts = new WorkerMetrics();
    const counted = counts.counting(threads);
    const work = async () => {
      const worker = await openBullmqWorker({ url, kind, name, threads: counted, fleetKeys, logger });
      print(
        context.stderr,
        `worker ${name} takes ${kind} batches with ${threadsText(threadsOf(settings, context.loaded))}; pages go to ${hideCredentials(blobs)}\n`,
      );
      const signal = await untilEnded(context, name, worker, signals.first);
      if (signal) {
        print(context.stderr, `worker ${name} is stopping and returns unfinished tasks\n`);
        await worker.drain();
      } else print(context.stderr, `worker ${name} has finished its batches and exits\n`);
      await worker.close();
      return signal;
    };
    // Metrics come first: a worker that cannot serve them must not take a batch.
    const signal = await withMetrics(context, async () => counts.read(threads), work);
    return signal === 'SIGINT' ? 'interrupted' : 'success';
  } finally {
    await threads.close();
    signals.close();
  }
}

/** Null when it was drained: it has nothing left. A signal ends it before that. */
async function untilEnded<Signal>(
  context: Context,
  name: string,
  worker: BullmqWorker,
  signal: Promise<Signal>,
): Promise<Signal | null> {
  const first = await Promise.race([signal, worker.drainRequested.then(() => null)]);
  if (first !== null) return first;
  const batches = formatAmount(worker.batches, 'batch', 'batches');
  print(context.stderr, `worker ${name} is drained: it finishes ${batches} and takes no more\n`);
  return Promise.race([signal, worker.finish().then(() => null)]);
}

/** What coordinators send follows the slots of the workers: they stay the same unless somebody gives a range. */
function threadsOf({ workers, threads }: Context['settings'], { origins }: Context['loaded']): ThreadRange {
  return threads && origins.workers !== 'default' ? threads : fixedThreads(workers);
}

function threadsText({ min, max }: ThreadRange): string {
  return min < max ? `${min} to ${max} threads` : `${max} threads`;
}

/** The queue that the setting names. */
export function queueUrl(context: Context): string {
  const targets = context.settings.dispatch ?? [];
  const queues = targets.filter((target) => target.kind === 'bullmq');
  if (queues.length === 1) return queues[0]!.url;
  throw new SeineError(
    queues.length === 0 ? 'no queue given' : 'a worker can use only one queue, but several are given',
    { hint: 'pass --dispatch bullmq://host:6379, or set SEINE_DISPATCH' },
  );
}

function kindOf(text = 'http'): WorkerKind {
  const kind = WORKER_KINDS.find((each) => each === text);
  if (kind) return kind;
  throw new SeineError(`invalid value for --kind: '${text}'`, {
    hint: `use one of ${WORKER_KINDS.join(', ')}`,
  });
}

/** A worker that keeps pages where its coordinator does not look would lose them, so the place is never guessed. */
async function requireBlobs({ settings }: Context, name: string): Promise<string> {
  const place = settings.blobs ?? null;
  if (place === null)
    throw new SeineError('a worker needs a location for pages', {
      hint: 'pass the same --blobs (SEINE_BLOBS) as for the runs: s3://bucket/prefix or a shared folder',
    });
  try {
    const blobs = await openBlobs(place, settings.s3 ? { s3: settings.s3 } : {});
    const probe = `workers/${name.replace(/[^\w.-]/g, '-')}`;
    try {
      await blobs.put(probe, Buffer.from('seine'));
      await blobs.delete(probe);
    } finally {
      await blobs.close();
    }
  } catch (error) {
    if (error instanceof SeineError) throw error;
    throw new SeineError(`cannot write to ${hideCredentials(place)}: ${messageOf(error)}`, {
      hint: 'correct --blobs (SEINE_BLOBS), or the permissions of that location',
      cause: error,
    });
  }
  return place;
}

function openThreads({ settings, loaded, parsed }: Context, blobs: string, name: string): ThreadDispatcher {
  const { s3, apiCallbacks, browser, logger } = settings;
  const allowPrivate = parsed.values['allow-private'] ? 'job' : allowPrivateElsewhere(loaded);
  return openThreadDispatcher({
    threads: threadsOf(settings, loaded),
    ...threadEntries(),
    name,
    env: settings.jobEnvironment,
    data: {
      blobs,
      sync: settings.sync === 'full',
      ...(s3 ? { s3 } : {}),
      allowPrivate,
      ...(apiCallbacks ? { apiCallbacks } : {}),
      ...(browser ? { browser } : {}),
    },
    logger,
  });
}
