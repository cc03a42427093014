import { hash } from 'node:crypto';
import type { BatchTask } from '../core/batch.ts';
import { messageOf } from '../core/errors.ts';
import { type FailureCode, failureOfStatus } from '../core/failures.ts';
import { LIMITS } from '../core/limits.ts';
import { isHtml, sniffMediaType } from '../core/media-type.ts';
import type { Outcome, RecordDraft, StoredPage, Trace } from '../core/outcome.ts';
import { parseRetryAfter } from '../core/retry.ts';
import { normalizeUrl } from '../core/url.ts';
import type { Clock } from '../ports/ambient.ts';
import type { Fetcher, FetchResponse } from '../ports/fetcher.ts';
import { type CompiledJob, routeOf } from './compile-job.ts';
import { discoverFollowed, discoverLinks } from './discover-links.ts';
import { toDrafts } from './extract.ts';
import { headerOf, Page } from './page.ts';

/** Puts a response into the batch's archive; null when the job keeps none. Synchronous, see `process-batch`. */
export type Keep = (
  url: string,
  response: FetchResponse,
  at: number,
  sha256: string,
) => StoredPage['archive'];

export interface TaskContext {
  job: CompiledJob;
  fetcher: Fetcher;
  clock: Clock;
  signal: AbortSignal;
  parallel: number;
  keep: Keep;
  /** Null, or what to wait for before more pages are fetched: the archive is slower than the network. */
  pressure(): Promise<void> | null;
  onSent(): boolean;
}

/** Fetches one URL and says what became of it. Never rejects because of a site or a handler. */
export async function processTask(task: BatchTask, context: TaskContext): Promise<Outcome> {
  const { job, clock } = context;
  const startedAt = clock.now();
  const result = await context.fetcher.fetch({
    url: task.url,
    headers: job.headers,
    timeouts: job.spec.timeouts,
    bodyBytesMax: job.spec.limits.bodyBytes,
    parallel: context.parallel,
    allowPrivate: job.spec.allowPrivate,
    signal: context.signal,
    onSent: context.onSent,
  });
  const trace = (httpStatus: number | null, bytes: number): Trace => ({
    startedAt,
    durationMs: clock.now() - startedAt,
    httpStatus,
    bytes,
  });
  if (result.kind === 'aborted') return { kind: 'deferred', taskId: task.id };
  if (result.kind === 'failure')
    return failed(task.id, result.code, result.detail, trace(null, result.bytes));

  const traced = trace(result.status, result.wireBody.length);
  if (isRedirect(result.status)) return redirected(task, context, result, traced);
  const code = failureOfStatus(result.status);
  if (code) {
    const retryAfterMs = parseRetryAfter(headerOf(result.rawHeaders, 'retry-after'), clock.now());
    return { ...failed(task.id, code, `status ${result.status}`, traced), retryAfterMs };
  }
  return fetched(task, context, result, traced);
}

async function fetched(
  task: BatchTask,
  context: TaskContext,
  response: FetchResponse,
  trace: Trace,
): Promise<Outcome> {
  const { job } = context;
  const contentTypeHeader = headerOf(response.rawHeaders, 'content-type');
  const contentType = sniffMediaType(response.body, contentTypeHeader);
  const route = routeOf(job, task.url, task.route);
  const page = new Page({
    url: task.url,
    status: response.status,
    contentType,
    contentTypeHeader,
    headers: response.rawHeaders,
    body: response.body,
    route: route?.name ?? null,
    meta: task.meta,
  });
  let records: RecordDraft[] = [];
  try {
    if (route?.handler) {
      const result = await withinTime(route.handler(page), context, trace);
      if (result === OVER) return { kind: 'deferred', taskId: task.id };
      records = toDrafts(task.url, result);
    } else if (route?.extract && isHtml(contentType)) records = toDrafts(task.url, route.extract(page));
  } catch (error) {
    const stored = store(task.url, context, response, contentType, trace, page.route);
    return { ...failed(task.id, 'parse-error', messageOf(error), trace), page: stored };
  }
  const wantsLinks = isHtml(contentType) && route?.follow !== false;
  const links = wantsLinks ? discoverLinks(page, job, task.depth) : [];
  links.push(...discoverFollowed(page, job, task.depth));
  return {
    kind: 'fetched',
    taskId: task.id,
    page: store(task.url, context, response, contentType, trace, page.route),
    links,
    records,
    trace,
  };
}

const OVER = Symbol('the batch is over');

/** A handler that waits has what is left of the task's time; the batch may end before that. */
async function withinTime(result: unknown, context: TaskContext, trace: Trace): Promise<unknown> {
  if (!(result instanceof Promise)) return result;
  const { signal, job } = context;
  const leftMs = Math.max(1, job.spec.timeouts.taskMs - trace.durationMs);
  const { promise: ended, resolve, reject } = Promise.withResolvers<unknown>();
  const timer = setTimeout(
    () => reject(new Error(`the handler did not finish within ${job.spec.timeouts.taskMs} ms`)),
    leftMs,
  );
  const onAbort = () => resolve(OVER);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([result, ended]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

function redirected(task: BatchTask, context: TaskContext, response: FetchResponse, trace: Trace): Outcome {
  const location = headerOf(response.rawHeaders, 'location');
  const target =
    location === null || location === '' ? null : normalizeUrl(location, task.url, context.job.spec.url);
  if (!target || target.url === task.url) {
    return failed(
      task.id,
      'bad-redirect',
      `status ${response.status}, Location: ${location ?? 'none'}`,
      trace,
    );
  }
  if (task.hops >= LIMITS.redirectsMax) {
    return failed(task.id, 'redirect-limit', `${task.hops} redirects, the last to ${target.url}`, trace);
  }
  const contentType = sniffMediaType(response.body, headerOf(response.rawHeaders, 'content-type'));
  const page = store(task.url, context, response, contentType, trace, task.route);
  return { kind: 'redirected', taskId: task.id, to: target.url, page, trace };
}

function store(
  url: string,
  context: TaskContext,
  response: FetchResponse,
  contentType: string | null,
  trace: Trace,
  route: string | null,
): StoredPage {
  const sha256 = hash('sha256', response.body, 'hex');
  return {
    route,
    httpStatus: response.status,
    contentType,
    bytes: response.body.length,
    sha256,
    archive: context.keep(url, response, trace.startedAt, sha256),
    etag: headerOf(response.rawHeaders, 'etag'),
    lastModified: headerOf(response.rawHeaders, 'last-modified'),
  };
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
  const clean = detail.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').slice(0, LIMITS.failureDetailMax);
  return { kind: 'failed', taskId, code, detail: clean, page: null, retryAfterMs: null, trace };
}
