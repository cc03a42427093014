import { parentPort, workerData } from 'node:worker_threads';
import { openWorkerTools } from '../app/worker-app.ts';
import type { Report } from '../core/batch/batch.ts';
import { ThreadMarks } from '../transport/thread/code-marks.ts';
import type { FromThread, ThreadData, ToThread } from '../transport/thread/thread-messages.ts';
import { watchStrayErrors } from '../worker/batch/page-code.ts';
import { processBatch } from '../worker/batch/process-batch.ts';

if (!parentPort) throw new Error('this file is the entry of a worker thread');
const port = parentPort;
const send = (message: FromThread) => port.postMessage(message);
const logAt = (level: 'info' | 'warn' | 'error') => (message: string, fields?: Record<string, unknown>) =>
  send({ kind: 'log', level, message, fields });
const logger = { info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
const { marks: buffer, ...data } = workerData as ThreadData;
const marks = new ThreadMarks(buffer);
const tools = { ...(await openWorkerTools({ ...data, logger })), marks };
/** Shows that the thread still takes turns. */
const BEAT_MS = 250;
/** By batch: makes it return what it has. */
const recalls = new Map<number, AbortController>();
let isDraining = false;

port.on('message', async (message: ToThread) => {
  switch (message.kind) {
    case 'batch': {
      const onPart = (report: Report) => send({ kind: 'part', report });
      const recall = new AbortController();
      recalls.set(message.batch.id, recall);
      if (isDraining) recall.abort();
      const report = await processBatch(message.batch, tools, { onPart, drain: recall.signal });
      recalls.delete(message.batch.id);
      send({ kind: 'report', report });
      break;
    }
    case 'recall':
      recalls.get(message.batchId)?.abort();
      break;
    case 'drain':
      isDraining = true;
      for (const recall of recalls.values()) recall.abort();
      break;
    case 'close':
      await tools.close();
      port.close();
  }
});
watchStrayErrors(logger.warn);
marks.beat();
setInterval(() => marks.beat(), BEAT_MS).unref();
send({ kind: 'ready' });
