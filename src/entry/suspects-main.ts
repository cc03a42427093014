import type { Report } from '../core/batch/batch.ts';
import type { FromSuspectProcess, ToSuspectProcess } from '../transport/thread/suspect-process.ts';
import { openThreadDispatcher, type ThreadDispatcher } from '../transport/thread/thread-dispatcher.ts';

/** A process for batches of suspects. They run in a thread of it, so that a loop without end can be ended. */

const send = (message: FromSuspectProcess) => {
  if (process.connected) process.send?.(message, () => {});
};
const logAt = (level: 'info' | 'warn' | 'error') => (message: string) =>
  send({ kind: 'log', level, message });
const logger = { info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
let threads: ThreadDispatcher | null = null;

process.on('message', async (message: ToSuspectProcess) => {
  switch (message.kind) {
    case 'open': {
      const { thread, data, env, name, heapMbMax } = message;
      const heap = heapMbMax === undefined ? {} : { heapMbMax };
      threads = openThreadDispatcher({
        threads: 1,
        entry: new URL(thread),
        data,
        env,
        name,
        logger,
        ...heap,
      });
      break;
    }
    case 'batch': {
      const onPart = (report: Report) => send({ kind: 'part', report });
      const delivery = await threads?.dispatch(message.batch, onPart);
      if (delivery) send({ kind: 'delivery', delivery });
      break;
    }
    case 'recall':
      threads?.recall(message.batchId);
      break;
    case 'drain':
      await threads?.drain();
  }
});
// Nothing of it may outlive the process whose batches these are.
process.on('disconnect', () => process.exit(0));
