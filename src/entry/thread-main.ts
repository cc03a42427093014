import { parentPort, workerData } from 'node:worker_threads';
import { openWorkerTools } from '../app/worker-app.ts';
import { AWS_ITSELF, type AwsCredentials } from '../aws/s3/s3-client.ts';
import type { Report } from '../core/batch/batch.ts';
import { InvocationClock } from '../transport/lambda/invocation-clock.ts';
import { packReport } from '../transport/packed-report.ts';
import { ThreadMarks } from '../transport/thread/code-marks.ts';
import type { FromThread, ThreadData, ToThread } from '../transport/thread/thread-messages.ts';
import { watchStrayErrors } from '../worker/batch/page-code.ts';
import { processBatch } from '../worker/batch/process-batch.ts';
import { WantedHosts } from '../worker/batch/wanted-hosts.ts';

if (!parentPort) throw new Error('this file is the entry of a worker thread');
const port = parentPort;
const send = (message: FromThread) => port.postMessage(message);
const sendPacked = (kind: 'part' | 'report', report: Report) => {
  const packed = packReport(report);
  const message: FromThread = { kind, report: packed };
  port.postMessage(
    message,
    packed.pieces.map(({ buffer }) => buffer),
  );
};
const logAt = (level: 'info' | 'warn' | 'error') => (message: string, fields?: Record<string, unknown>) =>
  send({ kind: 'log', level, message, fields });
const logger = { info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
const { marks: buffer, ...data } = workerData as ThreadData;
const marks = new ThreadMarks(buffer);
/** Whoever waits for credentials gets the next that come. */
const asking: PromiseWithResolvers<AwsCredentials>[] = [];
const credentials = () => {
  const { promise, resolve, reject } = Promise.withResolvers<AwsCredentials>();
  asking.push({ promise, resolve, reject });
  send({ kind: 'credentials' });
  return promise;
};
const s3 = { ...(data.s3 ?? AWS_ITSELF), credentials };
const tools = { ...(await openWorkerTools({ ...data, s3, logger })), marks };
/** For batches of a coordinator on another machine. */
const elsewhere = new InvocationClock();
/** Shows that the thread still takes turns. */
const BEAT_MS = 250;
/** By batch: makes it return what it has, and gives back hosts. */
const open = new Map<number, { recall: AbortController; wanted: WantedHosts }>();
let isDraining = false;

port.on('message', async (message: ToThread) => {
  switch (message.kind) {
    case 'batch': {
      const sendReport = (kind: 'part' | 'report', report: Report) =>
        message.packed ? sendPacked(kind, report) : send({ kind, report });
      const onPart = (report: Report) => sendReport('part', report);
      const recall = new AbortController();
      const wanted = new WantedHosts();
      open.set(message.batch.id, { recall, wanted });
      if (isDraining) recall.abort();
      const { batch, clockOffsetMs } = message;
      if (clockOffsetMs !== undefined) elsewhere.begin(clockOffsetMs);
      const own = clockOffsetMs === undefined ? tools : { ...tools, clock: elsewhere };
      const report = await processBatch(batch, own, { onPart, drain: recall.signal, wanted });
      open.delete(message.batch.id);
      sendReport('report', report);
      break;
    }
    case 'recall':
      open.get(message.batchId)?.recall.abort();
      break;
    case 'giveBack':
      open.get(message.batchId)?.wanted.ask(message.hosts);
      break;
    case 'announce':
      tools.gate?.announce(message.priority);
      break;
    case 'drain':
      isDraining = true;
      for (const { recall } of open.values()) recall.abort();
      break;
    case 'credentials': {
      const first = asking.shift();
      if ('problem' in message.credentials)
        first?.reject(
          Object.assign(new Error(message.credentials.problem), { name: 'CredentialsProviderError' }),
        );
      else first?.resolve(message.credentials);
      break;
    }
    case 'close':
      await tools.close();
      port.close();
  }
});
watchStrayErrors(logger.warn);
marks.beat();
setInterval(() => marks.beat(), BEAT_MS).unref();
send({ kind: 'ready' });
