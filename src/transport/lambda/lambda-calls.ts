import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadedLambda } from '../../aws/lambda/lambda-client.ts';
import { hasNotRun, isThrottled } from '../../aws/lambda/lambda-errors.ts';
import type { Batch, BatchTask, Report, WorkerKind } from '../../core/batch/batch.ts';
import { deferredReport } from '../../core/batch/report.ts';
import { type Prices, sumOfUsage, type Usage } from '../../core/cost/cost.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { makeRedact } from '../../core/text/redact.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Delivery, DispatchCost, Dispatcher } from '../../ports/dispatcher.ts';
import type { MessageSeal } from '../message-seal.ts';
import { ConcurrencyLimit } from './concurrency-limit.ts';
import { CostMeter } from './lambda-cost.ts';
import { functionErrorOf, isBrokenCode, type LambdaFunction } from './lambda-function.ts';
import { decodeParts, encodeBatch, type LambdaAnswer, logLineOf, readReply, replyKeyOf } from './wire.ts';

interface LambdaCallsOptions {
  lambda: LoadedLambda;
  http: LambdaFunction;
  browser: LambdaFunction;
  hasBrowser: boolean;
  concurrency: number;
  clockOffsetMs: number;
  drainKey: string;
  seal: MessageSeal;
  openBlobs(): Promise<Blobs>;
  logger: Logger;
  prices?: Prices | undefined;
}

/** A batch waits for a place no longer: its lease has no more than this to spare. */
const WAIT_MS_MAX = 20_000;
/** With less time left, a batch would only be carried there and back. */
const WORTH_MS = 1_000;
/** Each look is paid for, though little. */
const REPLY_LOOK_MS = 250;
const REPLY_LOOK_MS_MAX = 3_000;
const BACKOFF_MS = 200;
const BACKOFF_MS_MAX = 5_000;

type OnPart = (report: Report) => void;

export class LambdaCalls implements Dispatcher {
  readonly #options: LambdaCallsOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #costs: CostMeter;
  readonly #leaving = new AbortController();
  readonly #under = new Set<AbortController>();
  #blobs: Promise<Blobs> | null = null;
  #closing: Promise<void> | null = null;
  /** Only where answers are signed do functions leave them in the blobs. */
  readonly adopt?: NonNullable<Dispatcher['adopt']>;

  constructor(options: LambdaCallsOptions) {
    this.#options = options;
    if (options.seal.isSigned)
      this.adopt = (batch, _, onPart) =>
        this.#awaitReply(batch, onPart).catch((error: unknown) => lose(batch, messageOf(error)));
    this.#limit = new ConcurrencyLimit(options.concurrency);
    this.#costs = new CostMeter(options.prices);
  }

  get workers(): number {
    return this.#limit.limit;
  }

  /** Each environment has its own, for as long as it lives. */
  get addresses(): number {
    return this.#limit.limit;
  }

  /** An environment does one batch at a time. */
  get slots(): number {
    return this.#limit.limit;
  }

  /** An answer comes by the connection of its call. Where that is gone, it is in the blobs. */
  get replyTo(): string {
    return 'lambda';
  }

  serves(kind: WorkerKind): boolean {
    return kind === 'http' || this.#options.hasBrowser;
  }

  refusal(kind: WorkerKind): SeineError | null {
    if (this.serves(kind)) return null;
    const { browser } = this.#options;
    return new SeineError(`pages need a browser, but the function ${browser.name} has none`, {
      hint: 'build one with `seine lambda build --kind browser`, and set SEINE_LAMBDA_BROWSER_FUNCTION to its name',
    });
  }

  cost(): DispatchCost {
    return this.#costs.sum;
  }

  async dispatch(batch: Batch, onPart: OnPart): Promise<Delivery> {
    const refusal = this.refusal(batch.needs);
    if (refusal) return this.#putOff(batch, { trouble: refusal.message });
    const used: Usage[] = [];
    const delivery = await this.#deliver(batch, onPart, used).catch((error: unknown) =>
      lose(batch, messageOf(error)),
    );
    return used.length === 0 ? delivery : { ...delivery, used: sumOfUsage(...used) };
  }

  async drain(): Promise<void> {
    if (this.#leaving.signal.aborted) return;
    this.#leave();
    try {
      const blobs = await this.#openBlobs();
      await blobs.put(this.#options.drainKey, Buffer.from('drain'));
    } catch (error) {
      this.#options.logger.warn(`cannot tell workers to end early: ${messageOf(error)}`);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** A refused call has not run, so it may be made again while its permits are good. `used` gets what each call took. */
  async #deliver(batch: Batch, onPart: OnPart, used: Usage[]): Promise<Delivery> {
    const { drainKey, clockOffsetMs, seal } = this.#options;
    const arrivedAt = performance.now();
    const startBy = arrivedAt + usefulMs(batch);
    for (let tries = 0; ; tries++) {
      if (!(await this.#limit.enter(startBy - performance.now()))) return this.#putOff(batch, {});
      let call: Call;
      let left: BatchTask[];
      try {
        const budgetMs = batch.budgetMs - Math.floor(performance.now() - arrivedAt);
        const encoded = encodeBatch({ ...batch, budgetMs }, { drainKey, clockOffsetMs }, seal);
        if (!encoded) return this.#putOff(batch, { trouble: 'a task is too large for one Lambda call' });
        left = encoded.left;
        call = await this.#call(batch.needs, encoded.payload, used);
        if (call.kind === 'throttled') this.#limit.onThrottled();
      } finally {
        this.#limit.leave();
      }
      switch (call.kind) {
        case 'answered':
          try {
            return await this.#take(batch, call.answer, left, onPart);
          } catch (error) {
            return lose(batch, messageOf(error), call);
          }
        case 'lost':
          return (!call.ended && (await this.#takeReply(batch, onPart))) || lose(batch, call.reason, call);
        case 'unstarted':
          return this.#putOff(batch, { trouble: call.reason });
      }
      const pauseMs = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** tries) * (0.5 + Math.random() / 2);
      if (performance.now() + pauseMs > startBy) return this.#putOff(batch, { untilMs: pauseMs });
      await pause(pauseMs, this.#leaving.signal);
    }
  }

  async #call(kind: WorkerKind, payload: Buffer, used: Usage[]): Promise<Call> {
    const { lambda, browser, http } = this.#options;
    const aborter = new AbortController();
    this.#under.add(aborter);
    try {
      return await callFunction(kind === 'browser' ? browser : http, payload, {
        lambda,
        aborter,
        onUse: (call, size) => used.push(this.#costs.add(call, size)),
      });
    } finally {
      this.#under.delete(aborter);
    }
  }

  /** The parts in order; tasks that had no room in the request come back with the last. */
  async #take(
    batch: Batch,
    answer: LambdaAnswer,
    left: BatchTask[],
    onPart: OnPart,
    isAdopted = false,
  ): Promise<Delivery> {
    if (answer?.kind === 'refused') return this.#putOff(batch, { trouble: String(answer.reason) });
    if (answer?.kind !== 'parts' || !Array.isArray(answer.parts))
      throw new Error('the answer of the function is not a report');
    let last: Report | null = null;
    for await (const report of decodeParts(answer.parts, {
      batch,
      isAdopted,
      seal: this.#options.seal,
      blobs: () => this.#openBlobs(),
    })) {
      if (last) onPart(last);
      last = report;
    }
    if (!last?.final) throw new Error('the end of the report is missing');
    void this.#forget(batch, answer.parts);
    const outcomes = [...last.outcomes, ...left.map(({ id }) => ({ kind: 'deferred' as const, taskId: id }))];
    return { kind: 'report', report: { ...last, outcomes } };
  }

  /** What a function left for whoever takes its batch over; null when that is nothing that can be used. */
  async #takeReply(batch: Batch, onPart: OnPart): Promise<Delivery | null> {
    if (!this.#options.seal.isSigned) return null;
    try {
      const parts = await readReply(batch, await this.#openBlobs());
      return parts && (await this.#take(batch, { kind: 'parts', parts }, [], onPart, true));
    } catch (error) {
      this.#options.logger.warn(`cannot use the answer to batch ${batch.id}: ${messageOf(error)}`);
      return null;
    }
  }

  /** The call may still run: its answer is looked for until the lease of the batch ends. */
  async #awaitReply(batch: Batch, onPart: OnPart): Promise<Delivery> {
    const until = performance.now() + batch.budgetMs;
    const blobs = await this.#openBlobs();
    for (let pauseMs = REPLY_LOOK_MS; !this.#closing; pauseMs = Math.min(pauseMs * 1.5, REPLY_LOOK_MS_MAX)) {
      if (await blobs.has(replyKeyOf(batch))) {
        const delivery = await this.#takeReply(batch, onPart);
        if (delivery) return delivery;
        break;
      }
      if (performance.now() > until) break;
      await sleep(pauseMs, undefined, { ref: false });
    }
    const reason = 'the coordinator ended, and its function left no answer';
    return { kind: 'lost', batchId: batch.id, reason, blameless: true };
  }

  /** Tasks that no worker has seen are not suspected of anything: they come back as they went. */
  #putOff(batch: Batch, { trouble, untilMs = 0 }: { trouble?: string; untilMs?: number }): Delivery {
    const now = performance.timeOrigin + performance.now();
    const report = deferredReport(batch, { worker: 'lambda', now });
    const until = untilMs > 0 ? { until: now + untilMs } : {};
    return {
      kind: 'report',
      report: {
        ...report,
        outcomes: batch.tasks.map(({ id }) => ({ kind: 'deferred', taskId: id, ...until })),
        robots: batch.robots.map(({ origin }) => ({ kind: 'deferred', origin })),
        ...(trouble ? { trouble: withoutSecrets(batch, trouble) } : {}),
      },
    };
  }

  /** What is not deleted now is swept with its batch. */
  async #forget(batch: Batch, parts: Extract<LambdaAnswer, { kind: 'parts' }>['parts']): Promise<void> {
    const keys = parts.flatMap((part) => ('key' in part ? [part.key] : []));
    if (this.#options.seal.isSigned) keys.push(replyKeyOf(batch));
    if (keys.length === 0) return;
    const blobs = await this.#openBlobs();
    await Promise.allSettled(keys.map((key) => blobs.delete(key)));
  }

  #leave(): void {
    this.#leaving.abort();
    this.#limit.close();
  }

  #openBlobs(): Promise<Blobs> {
    this.#blobs ??= this.#options.openBlobs().catch((error: unknown) => {
      this.#blobs = null;
      throw error;
    });
    return this.#blobs;
  }

  async #close(): Promise<void> {
    this.#leave();
    for (const aborter of this.#under) aborter.abort();
    this.#options.lambda.client.destroy();
    if (!this.#blobs) return;
    const blobs = await this.#blobs.catch(() => null);
    await blobs?.delete(this.#options.drainKey).catch(() => {});
    await blobs?.close();
  }
}

/** How long a batch may wait and still be of use under its permits and its budget. */
function usefulMs(batch: Batch): number {
  const now = performance.timeOrigin + performance.now();
  const permitMs = Math.max(0, ...batch.permits.map(({ endAt, gapMs }) => endAt - gapMs - now));
  return Math.max(0, Math.min(permitMs, batch.budgetMs - WORTH_MS, WAIT_MS_MAX));
}

/** The reason says what to search for in the log of the function: the id of the request, or what the worker writes. */
function lose(
  batch: Batch,
  reason: string,
  { ended, requestId }: { ended?: true; requestId?: string } = {},
): Delivery {
  const inLog = requestId === undefined ? `'${logLineOf(batch)}'` : requestId;
  const where = reason.includes(inLog) ? '' : requestId ? ` (request ${inLog})` : ` (in its log: ${inLog})`;
  const lost = { kind: 'lost' as const, batchId: batch.id, reason: withoutSecrets(batch, reason) + where };
  return ended ? { ...lost, ended } : lost;
}

/** A function that failed may quote what it was given. */
function withoutSecrets(
  { apiKey, proxies = [], secretHeaders = {}, loginState }: Batch,
  text: string,
): string {
  const headers = Object.values(secretHeaders).flatMap((values) => Object.values(values));
  const secrets = [apiKey ?? '', loginState ?? '', ...proxies.map(({ url }) => url), ...headers];
  return makeRedact(secrets)(text);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => {});
}

/** What one call came to. `unstarted`: for certain nothing of the batch was begun. */
type Call =
  | { kind: 'answered'; answer: LambdaAnswer; requestId?: string }
  | { kind: 'throttled' }
  | { kind: 'unstarted'; reason: string }
  | { kind: 'lost'; reason: string; ended?: true; requestId?: string };

/** A function may take its whole time, and before that ten seconds to start, and the network has its share. */
const ANSWER_AFTER_MS = 20_000;

/** Invokes once, and waits for the answer. Never rejects. */
async function callFunction(
  target: LambdaFunction,
  payload: Uint8Array,
  {
    lambda,
    aborter,
    onUse,
  }: {
    lambda: LoadedLambda;
    aborter: AbortController;
    onUse: (...call: Parameters<CostMeter['add']>) => void;
  },
): Promise<Call> {
  const { sdk, client } = lambda;
  const timer = setTimeout(() => aborter.abort(), target.timeoutMs + ANSWER_AFTER_MS);
  const sentAt = performance.now();
  try {
    const reply = await client.send(
      new sdk.InvokeCommand({
        FunctionName: target.name,
        InvocationType: 'RequestResponse',
        LogType: 'Tail',
        Payload: payload,
      }),
      { abortSignal: aborter.signal },
    );
    onUse({ logResult: reply.LogResult, waitedMs: performance.now() - sentAt }, target);
    const text = Buffer.from(reply.Payload ?? []).toString('utf8');
    return { ...callOf(target.name, text, reply.FunctionError), ...requestIdOf(reply) };
  } catch (error) {
    if (aborter.signal.aborted) {
      onUse({ logResult: undefined, waitedMs: performance.now() - sentAt }, target);
      return { kind: 'lost', reason: `the function ${target.name} did not answer in time` };
    }
    if (isThrottled(error)) return { kind: 'throttled' };
    const reason = `the function ${target.name} could not be invoked: ${messageOf(error)}`;
    return { kind: hasNotRun(error) ? 'unstarted' : 'lost', reason, ...requestIdOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

function requestIdOf(reply: unknown): { requestId?: string } {
  const requestId = (reply as { $metadata?: { requestId?: string } })?.$metadata?.requestId;
  return requestId ? { requestId } : {};
}

function callOf(name: string, payload: string, functionError: string | undefined): Call {
  if (!functionError) return { kind: 'answered', answer: JSON.parse(payload) };
  const reason = `the function ${name} failed: ${functionErrorOf(payload)}`;
  return isBrokenCode(payload) ? { kind: 'unstarted', reason } : { kind: 'lost', reason, ended: true };
}
