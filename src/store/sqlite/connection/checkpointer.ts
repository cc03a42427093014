import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

interface Checkpointer {
  close(): Promise<void>;
}

/** How often it is looked whether the thread is worth its 20 MB. */
const LOOK_MS = 1_000;
/** A run that has written less so far has checkpoints of a moment. */
const LOG_BYTES_MIN = 4 * 1024 * 1024;

/**
 * Starts the thread that keeps the write-ahead log short, once much is written. Without it the writer does the same,
 * more slowly.
 */
export function openCheckpointer(path: string): Checkpointer {
  let thread: Checkpointer | null = null;
  const timer = setInterval(() => {
    // The file of the log only ever grows: it is written again from its start.
    const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
    if ((log?.size ?? 0) < LOG_BYTES_MIN) return;
    clearInterval(timer);
    thread = startThread(path);
  }, LOOK_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await thread?.close();
    },
  };
}

function startThread(path: string): Checkpointer {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const worker = new Worker(new URL(`./checkpoint-thread.${ending}`, import.meta.url), {
    workerData: { path },
    name: 'checkpoint',
    resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
  });
  // A helper that fails must not end the run: the writer's own checkpoints remain.
  worker.on('error', () => {});
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
