import { Worker } from 'node:worker_threads';

export interface Checkpointer {
  close(): Promise<void>;
}

/** Starts the thread that keeps the write-ahead log short. Without it the writer does the same, more slowly. */
export function openCheckpointer(path: string): Checkpointer {
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
