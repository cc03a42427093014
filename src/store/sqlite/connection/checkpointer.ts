import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** Pages of the log from which on a writer without a thread moves them: every 40 MB instead of every 4 keeps it out of the profile. */
export const WRITER_PAGES = 5_000;
/**
 * The same beside the thread. The writer then begins the log anew and waits for the disk twice, 10 to 100 ms: every 128 MB
 * that is out of the slowest hundredth of leases, and the thread leaves little to be moved.
 */
const WRITER_PAGES_BESIDE_THREAD = 16_384;

/**
 * The same for a command beside a process that works: with the 5,000 of others, each small write of it found a log that was
 * long enough, moved it, and waited for the disk: commits of 11 and 17 ms were seen. It does so only if that process does not.
 */
export const GUEST_PAGES = 4 * WRITER_PAGES_BESIDE_THREAD;

/** The connection that writes. */
interface Writer {
  path: string;
  checkpointEvery: (pages: number) => void;
}

interface Checkpointer {
  close(): Promise<void>;
}

/** How often it is looked whether the thread is worth its 20 MB. */
const LOOK_MS = 1_000;
/** A run that has written less so far has checkpoints of a moment. The writer's own would come at 20 MB. */
const LOG_BYTES_MIN = 12 * 1024 * 1024;

/**
 * Starts the thread that keeps the write-ahead log short, once much is written. Without it the writer does the same,
 * more slowly.
 */
export function openCheckpointer(writer: Writer): Checkpointer {
  const { path } = writer;
  let thread: Checkpointer | null = null;
  const timer = setInterval(() => {
    // The file of the log only ever grows: it is written again from its start.
    const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
    if ((log?.size ?? 0) < LOG_BYTES_MIN) return;
    clearInterval(timer);
    thread = startThread(writer);
  }, LOOK_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await thread?.close();
    },
  };
}

function startThread({ path, checkpointEvery }: Writer): Checkpointer {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./checkpoint-thread.${ending}`, import.meta.url), {
    workerData: { path },
    name: 'checkpoint',
    // Node 22 warns of SQLite in each thread.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
  });
  // A helper that fails must not end the run: the writer's own checkpoints remain.
  worker.on('error', () => checkpointEvery(WRITER_PAGES));
  worker.once('online', () => checkpointEvery(WRITER_PAGES_BESIDE_THREAD));
  worker.unref();
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  return {
    async close() {
      worker.ref();
      worker.postMessage('close');
      await exited;
    },
  };
}
