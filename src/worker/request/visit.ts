import type { BatchTask } from '../../core/batch/batch.ts';
import type { Outcome, Trace } from '../../core/batch/outcome.ts';
import { detectBlock, detectBlockedRedirect } from '../../core/blocking/block-detection.ts';
import { type FailureCode, failureOfStatus } from '../../core/failures.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { parseRetryAfter } from '../../core/retry/retry.ts';
import { normalizeUrl } from '../../core/url/url.ts';
import type { Clock, Random } from '../../ports/ambient.ts';
import type { FetchRequest, FetchResponse } from '../../ports/fetcher.ts';
import { headerOf } from '../page/page.ts';
import type { PageArchiver } from '../storage/archive.ts';
import type { Snapshot } from '../storage/screenshots.ts';
import { type SendContext, sendBy } from './send.ts';

/** Text of a failure kept in the store. */
const FAILURE_DETAIL_MAX = 500;

export interface VisitContext extends SendContext {
  clock: Clock;
  /** For jitter; without it gaps are as short as permitted. */
  random?: Random;
  signal: AbortSignal;
  parallel: number;
  onSent(): boolean;
  nextTurn?: FetchRequest['nextTurn'];
  headersMs?: FetchRequest['headersMs'];
  /** Less than the job gives a request, where it is known how long those of the host take. */
  timeoutMs?: number | undefined;
  /** Absent for requests that are not of a task. */
  keep?: Pick<PageArchiver, 'errors'>;
}

/** `over`: the outcome is known without looking at a body. `answer`: what the archive may keep of it. */
type Visit =
  | { kind: 'over'; outcome: Outcome; snapshot?: Snapshot; answer?: FetchResponse }
  | { kind: 'redirect'; to: string; response: FetchResponse; trace: Trace }
  | { kind: 'response'; response: FetchResponse; trace: Trace };

/** Sends the one request of a task, with what is known of its last visit, and judges the head of the answer. */
export async function visit(
  task: BatchTask,
  context: VisitContext,
  options: Pick<FetchRequest, 'bodyBytesMax' | 'sinkFor' | 'bodyMemory' | 'render' | 'wantsResources'> & {
    accepts?: (status: number) => boolean;
  },
): Promise<Visit> {
  const { accepts, ...wanted } = options;
  const { job, clock } = context;
  const startedAt = clock.now();
  const request = {
    url: task.url,
    timeouts: timeoutsOf(job.spec.timeouts, context.timeoutMs),
    parallel: context.parallel,
    allowPrivate: job.spec.allowPrivate,
    privateServices: job.spec.privateServices,
    signal: context.signal,
    onSent: context.onSent,
    nextTurn: context.nextTurn,
    headersMs: context.headersMs,
    ...wanted,
  };
  const conditions = conditionsOf(task);
  const { result, ...sent } = task.fetchMethod
    ? await sendBy(task.fetchMethod, task, context, request, conditions)
    : { result: await context.fetcher.fetch({ ...request, headers: headersWith(job.headers, conditions) }) };
  const over = (outcome: Outcome) => ({ kind: 'over' as const, outcome });
  const traceOf = (httpStatus: number | null, bytes: number): Trace => ({
    startedAt,
    durationMs: clock.now() - startedAt,
    httpStatus,
    bytes,
    ...sent,
  });
  if (result.kind === 'aborted') return over({ kind: 'deferred', taskId: task.id });
  if (result.kind === 'failure') {
    const { code, detail, bytes, snapshot } = result;
    const outcome = failed(task.id, code, detail, traceOf(null, bytes));
    return { kind: 'over', outcome, ...(snapshot ? { snapshot } : {}) };
  }

  const trace = traceOf(result.status, result.wireBytes);
  if (result.status === 304 && hasValidator(task))
    return { ...over({ kind: 'unchanged', taskId: task.id, page: null, trace }), answer: result };
  if (isRedirect(result.status)) return redirect(task, context, result, trace);
  const code = failureOfStatus(result.status);
  if (!code || accepts?.(result.status)) return { kind: 'response', response: result, trace };
  const retryAfterMs = parseRetryAfter(headerOf(result.rawHeaders, 'retry-after'), clock.now());
  const block = detectBlock({ ...result, isHtml: true, url: task.url }, job.spec.blocking);
  const failure = block
    ? failed(task.id, block.code, block.evidence, trace)
    : failed(task.id, code, `status ${result.status}`, trace);
  return {
    kind: 'over',
    outcome: { ...failure, retryAfterMs },
    ...snapshotOf(result),
    ...(block || context.keep?.errors ? { answer: result } : {}),
  };
}

function timeoutsOf(timeouts: JobSpec['timeouts'], learnedMs: number | undefined): JobSpec['timeouts'] {
  return learnedMs === undefined || learnedMs >= timeouts.taskMs
    ? timeouts
    : { ...timeouts, taskMs: learnedMs };
}

/** A failure that a browser has pictures of. */
export function snapshotOf({ rendered, body }: FetchResponse): { snapshot?: Snapshot } {
  const screenshot = rendered?.shots.find(({ kind }) => kind === 'screenshot');
  return screenshot ? { snapshot: { html: body, screenshot } } : {};
}

/** Only the visited URL itself has validators: after a redirect they belong to another. */
function hasValidator({ lastVisit, hops }: BatchTask): boolean {
  return hops === 0 && lastVisit !== null && (lastVisit.etag !== null || lastVisit.lastModified !== null);
}

const NO_CONDITIONS: Record<string, string> = {};

/** The same object for most requests of a job, by which fetcher and archive know what they made of it. */
function headersWith(
  headers: Record<string, string>,
  conditions: Record<string, string>,
): Record<string, string> {
  return conditions === NO_CONDITIONS ? headers : { ...headers, ...conditions };
}

function conditionsOf(task: BatchTask): Record<string, string> {
  if (!hasValidator(task)) return NO_CONDITIONS;
  const { etag, lastModified } = task.lastVisit!;
  return {
    ...(etag === null ? {} : { 'if-none-match': etag }),
    ...(lastModified === null ? {} : { 'if-modified-since': lastModified }),
  };
}

function redirect(task: BatchTask, context: VisitContext, response: FetchResponse, trace: Trace): Visit {
  const location = headerOf(response.rawHeaders, 'location');
  const target =
    location === null || location === '' ? null : normalizeUrl(location, task.url, context.job.spec.url);
  if (!target || target.url === task.url) {
    const detail = `status ${response.status}, Location: ${location ?? 'none'}`;
    return { kind: 'over', outcome: failed(task.id, 'bad-redirect', detail, trace) };
  }
  const block = context.job.spec.blocking.detect === 'off' ? null : detectBlockedRedirect(target.url);
  if (block) return { kind: 'over', outcome: failed(task.id, block.code, block.evidence, trace) };
  if (task.hops >= LIMITS.redirectsMax) {
    const detail = `${task.hops} redirects, the last to ${target.url}`;
    return { kind: 'over', outcome: failed(task.id, 'redirect-limit', detail, trace) };
  }
  return { kind: 'redirect', to: target.url, response, trace };
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

export function failed(
  taskId: number,
  code: FailureCode,
  detail: string,
  trace: Trace | null,
): Extract<Outcome, { kind: 'failed' }> {
  // Remote text: no control characters may reach a terminal or a log.
  const clean = detail.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, FAILURE_DETAIL_MAX);
  return { kind: 'failed', taskId, code, detail: clean, page: null, retryAfterMs: null, trace };
}
