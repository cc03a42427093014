import { parentPort, workerData } from 'node:worker_threads';
import type { Report } from '../core/batch.ts';
import type { FromThread, ThreadData, ToThread } from '../dispatch/thread-messages.ts';
import { processBatch } from '../worker/process-batch.ts';
import { openWorkerTools } from '../worker-app.ts';

if (!parentPort) throw new Error('this file is the entry of a worker thread');
const port = parentPort;
const tools = await openWorkerTools(workerData as ThreadData);
const drain = new AbortController();
const send = (message: FromThread) => port.postMessage(message);

port.on('message', async (message: ToThread) => {
  switch (message.kind) {
    case 'batch': {
      const onPart = (report: Report) => send({ kind: 'part', report });
      send({
        kind: 'report',
        report: await processBatch(message.batch, tools, { onPart, drain: drain.signal }),
      });
      break;
    }
    case 'drain':
      drain.abort();
      break;
    case 'close':
      await tools.close();
      port.close();
  }
});
send({ kind: 'ready' });
