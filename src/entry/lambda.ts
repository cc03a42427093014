import { hash, randomBytes } from 'node:crypto';
import type { CodeThread } from '../app/code-thread.ts';
import { openWorkerTools } from '../app/worker-app.ts';
import { type AwsCredentialsProvider, openCredentials } from '../aws/s3/s3-client.ts';
import { lambdaRuntimeOf } from '../config/lambda-runtime.ts';
import {
  allowPrivateElsewhere,
  browserOf,
  hideEnvironment,
  type LoadedConfig,
  loadConfig,
  s3Of,
} from '../config/load.ts';
import { type Batch, type Report, WIRE_VERSION } from '../core/batch/batch.ts';
import { batchProblem } from '../core/batch/check-batch.ts';
import { numberParts } from '../core/batch/report.ts';
import { messageOf, SeineError, StorageFullError } from '../core/errors.ts';
import { VERSION } from '../core/identity/identity.ts';
import { LIMITS } from '../core/limits.ts';
import { metricsLine } from '../transport/lambda/cloudwatch-metrics.ts';
import { InvocationClock } from '../transport/lambda/invocation-clock.ts';
import { watchDrain } from '../transport/lambda/watch-drain.ts';
import {
  answerKeyOf,
  decodeBatch,
  encodeParts,
  type LambdaAnswer,
  type LambdaEvent,
  type LambdaStatus,
  logLineOf,
  replyKeyOf,
} from '../transport/lambda/wire.ts';
import { type MessageSeal, openMessageSeal } from '../transport/message-seal.ts';
import { watchStrayErrors } from '../worker/batch/page-code.ts';
import { processBatch } from '../worker/batch/process-batch.ts';

/** What Lambda says about a call, as far as it is used. */
interface LambdaContext {
  awsRequestId: string;
  getRemainingTimeInMillis(): number;
}

type Tools = Awaited<ReturnType<typeof openWorkerTools>>;
type WorkerSettings = Parameters<typeof openWorkerTools>[0] & {
  s3: { credentials: AwsCredentialsProvider };
};

/** Pages must be stored and the answer given before the function is killed: this share of its time, within bounds. */
const RESERVE_SHARE = 0.1;
const RESERVE_MS_MIN = 2_000;
const RESERVE_MS_MAX = 10_000;

/** What is left of the time of a function when its thread is ended: enough to store the answer. */
const ANSWER_MS = 1_700;
/** Of the memory of the function: without this the function would end before the thread does. */
const HEAP_SHARE = 0.6;

/** Before the environment is hidden. */
const { memoryMb } = lambdaRuntimeOf();
const environment = randomBytes(4).toString('hex');
const clock = new InvocationClock();
let calls = 0;
/** Kept for all calls of this environment; one that failed to open is tried again. */
let tools: Promise<Tools> | null = null;

// The runtime of Lambda ends the process at the first of these errors; here most of them belong to one page.
process.removeAllListeners('uncaughtException');
process.removeAllListeners('unhandledRejection');
watchStrayErrors((message) => process.stderr.write(`${message}\n`));

export async function handler(event: LambdaEvent, context: LambdaContext): Promise<LambdaAnswer> {
  const cold = calls++ === 0;
  if (event.kind === 'warm') return { kind: 'here', here: await show(event.waitMs, cold, context) };
  if (event.version !== WIRE_VERSION)
    return {
      kind: 'refused',
      reason: `the function has another version of Seine, ${VERSION}: deploy it again`,
    };
  let opened: Tools;
  try {
    opened = await openTools();
  } catch (error) {
    return { kind: 'refused', reason: `cannot start the worker: ${messageOf(error)}` };
  }
  clock.begin(event.clockOffsetMs);
  const seal = openSeal();
  let given: Batch;
  try {
    given = await readBatch(event, seal);
  } catch (error) {
    return { kind: 'refused', reason: messageOf(error) };
  }
  // Its start must not be taken off the time of the batch.
  const thread = given.job.bundle === null ? null : await openCodeThread();
  const batch = within(given, context);
  process.stdout.write(`${logLineOf(batch)}\n`);
  const drain = watchDrain(opened.blobs, event.drainKey);
  const startedAt = performance.now();
  try {
    const reports =
      thread === null
        ? [await processBatch(batch, { ...opened, clock }, { drain: drain.signal })]
        : await thread.process(batch, {
            clockOffsetMs: event.clockOffsetMs,
            answerMs: Math.max(0, context.getRemainingTimeInMillis() - batch.budgetMs - ANSWER_MS),
            now: () => clock.now(),
            drain: drain.signal,
          });
    const ms = performance.now() - startedAt;
    process.stdout.write(`${metricsLine(batch, reports, { now: Date.now(), durationMs: ms, cold })}\n`);
    const options = { blobs: opened.blobs, seal, batch: given };
    const answer: LambdaAnswer = { kind: 'parts', parts: await encode(batch, reports, options) };
    if (seal.isSigned) await leaveReply(given, answer, opened.blobs);
    return answer;
  } finally {
    drain.close();
  }
}

/** Whoever made the call may be gone: then the next coordinator finds the answer. Without it the pages come again. */
async function leaveReply(batch: Batch, answer: LambdaAnswer, blobs: Tools['blobs']): Promise<void> {
  try {
    await blobs.put(replyKeyOf(batch), Buffer.from(JSON.stringify(answer)));
  } catch (error) {
    process.stderr.write(`cannot leave the answer in the blobs: ${messageOf(error)}\n`);
  }
}

function openSeal(): MessageSeal {
  return openMessageSeal(readSettings().config.fleetKey ?? []);
}

async function readBatch(event: Extract<LambdaEvent, { kind: 'batch' }>, seal: MessageSeal): Promise<Batch> {
  const batch = await decodeBatch(event.batch, seal, Date.now());
  const problem = batchProblem(batch);
  if (problem !== null) throw new Error(`the batch is not valid: ${problem}`);
  return batch as Batch;
}

/** Ends in time to be answered, and never under the name of another call: one that is made twice must not overwrite. */
function within(batch: Batch, context: LambdaContext): Batch {
  const leftMs = context.getRemainingTimeInMillis();
  const reserveMs = Math.min(Math.max(RESERVE_MS_MIN, leftMs * RESERVE_SHARE), RESERVE_MS_MAX, leftMs / 2);
  const own = hash('sha256', context.awsRequestId, 'hex').slice(0, 8);
  return {
    ...batch,
    budgetMs: Math.floor(Math.min(batch.budgetMs, leftMs - reserveMs)),
    archiveKey: `${batch.archiveKey}-${own}`,
    packKey: `${batch.packKey}-${own}`,
  };
}

function encode(
  batch: Batch,
  reports: readonly Report[],
  options: Pick<Parameters<typeof encodeParts>[1], 'blobs' | 'seal' | 'batch'>,
) {
  return encodeParts(numberParts(reports, LIMITS.partItemsMax), {
    ...options,
    keyOf: (part) => answerKeyOf(batch, part),
    // What cannot be told has not happened: those tasks come again.
    onUnstored: (part, error) => ({
      ...part,
      outcomes: part.outcomes.map(({ taskId }) => ({ kind: 'deferred', taskId })),
      quality: [],
      archive: null,
      trouble: `cannot store a part of the answer: ${messageOf(error)}`,
      storageFull: error instanceof StorageFullError,
    }),
  });
}

function openTools(): Promise<Tools> {
  tools ??= open().catch((error: unknown) => {
    tools = null;
    throw error;
  });
  return tools;
}

/** Read before the environment is hidden from the code of jobs, which runs in this process. */
let settings: LoadedConfig | null = null;
let withWhole: ReturnType<typeof hideEnvironment> | null = null;

function readSettings(): LoadedConfig {
  settings ??= loadConfig({});
  return settings;
}

async function open(): Promise<Tools> {
  return openWorkerTools(workerSettings());
}

function workerSettings(): WorkerSettings {
  const loaded = readSettings();
  const { config } = loaded;
  if (config.blobs === null) throw new SeineError('SEINE_BLOBS of the function is not set');
  return {
    name: `lambda-${environment}`,
    blobs: config.blobs,
    sync: config.sync === 'full',
    s3: { ...s3Of(config), credentials: findCredentials() },
    allowPrivate: allowPrivateElsewhere(loaded),
    browser: browserOf(config),
  };
}

function findCredentials(): AwsCredentialsProvider {
  withWhole ??= hideEnvironment(readSettings().jobEnvironment);
  const [whole, find] = [withWhole, openCredentials()];
  return () => whole(find);
}

/** Opened with the first batch that has code: a function without such jobs does not pay for it. */
let codeThread: Promise<CodeThread> | null = null;

async function openCodeThread(): Promise<CodeThread> {
  codeThread ??= import('../app/code-thread.ts').then((module) => {
    const { name, s3, ...data } = workerSettings();
    const { credentials, ...place } = s3;
    const { jobEnvironment } = readSettings();
    return new module.CodeThread({
      ...{ name, credentials, env: jobEnvironment },
      data: { ...data, s3: place },
      // Beside this file, in the zip and in the tree.
      entry: new URL(`./thread.${import.meta.url.split('.').at(-1)}`, import.meta.url),
      logger: STDERR,
      heapMbMax: memoryMb === null ? undefined : Math.floor(memoryMb * HEAP_SHARE),
    });
  });
  const thread = await codeThread;
  await thread.started;
  return thread;
}

const toStderr = (message: string) => void process.stderr.write(`${message}\n`);
const STDERR = { info: toStderr, warn: toStderr, error: toStderr };

async function show(waitMs: number, cold: boolean, context: LambdaContext): Promise<LambdaStatus> {
  const startedAt = Date.now();
  const { config } = readSettings();
  const ms = Math.min(waitMs, context.getRemainingTimeInMillis() / 2);
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  return {
    seine: VERSION,
    wire: WIRE_VERSION,
    environment,
    cold,
    blobs: config.blobs,
    keyIds: [...openSeal().keyIds],
    browser: await hasBrowser(),
    startedAt,
    endedAt: Date.now(),
  };
}

/** The image has what drives one beside the worker; in the zip its place says that it is not there. */
function hasBrowser(): Promise<boolean> {
  return import('playwright-core').then(
    () => true,
    () => false,
  );
}
