import { Worker } from 'node:worker_threads';

export interface Checkpointer {
  close(): Promise<void>;
}

/** Most commands and many runs are over by then, and a thread takes a while to start. */
const START_AFTER_MS = 1_000;

/** Starts the thread that keeps the write-ahead log short. Without it the writer does the same, more slowly. */
export function openCheckpointer(path: string): Checkpointer {
  let thread: Checkpointer | null = null;
  const timer = setTimeout(() => {
    thread = startThread(path);
  }, START_AFTER_MS).unref();
  return {
    async close() {
      clearTimeout(timer);
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
