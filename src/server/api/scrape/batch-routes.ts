import type { FastifyRequest } from 'fastify';
import type { AddedRow, AddedRows, ListedRows } from '../../../coordinator/sources/add-to-job.ts';
import { hashOfSpec } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import { quoteJob } from '../cost/quote.ts';
import type { ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import {
  type BatchOptions,
  batchOptionsSchema,
  batchSchema,
  batchUrlSchema,
  META_CHARS_MAX,
  META_TOO_LONG,
  parseAs,
} from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import { readLines } from '../requests/read-body.ts';
import { addToServedJob } from './added-tasks.ts';
import { specOf, tenantName } from './api-jobs.ts';
import { discardJob } from './discard-job.ts';
import { batchName } from './open-batches.ts';
import { isCancelled, jobIdOf } from './results.ts';

/** `rejected` names so many of them; all are counted. */
const REJECTED_NAMED_MAX = 100;
/** Why a batch does not run yet. */
const BEING_READ = 'its list is being read';

export const batchRoutes: RoutePlugin = (app, context) => {
  // Not read here: lines are written down as they come, so a list of any length takes the same memory.
  app.addContentTypeParser('application/x-ndjson', (_request, payload, done) => done(null, payload));

  app.post('/batch', async (request, reply) => {
    requireScope(request.caller, 'write');
    const { job, ...added } = await acceptBatch(context, request, () => readBatch(request));
    const id = jobIdOf(job);
    const statusUrl = `/api/v1/jobs/${id}`;
    return reply
      .code(202)
      .header('location', statusUrl)
      .send({
        batch_id: id,
        job_id: id,
        accepted: added.accepted,
        duplicates: added.duplicates,
        rejected: added.rejects.slice(0, REJECTED_NAMED_MAX),
        rejected_count: added.rejected,
        status_url: statusUrl,
      });
  });
};

/** The batch is written down when this returns. */
export async function acceptBatch(
  context: ApiContext,
  request: FastifyRequest,
  read: () => Promise<BatchBody>,
): Promise<AddedRows & { job: Job }> {
  const { options, rows } = await read();
  const { caller, requestId } = request;
  const opened = await openBatch(context, options, { caller, requestId });
  const { job, origin } = opened;
  const added = await addRows(context, opened, rows, options);
  if (origin !== 'appended' && job.reason === BEING_READ) await release(context, job, options);
  await context.runner.start(job);
  return { job, ...added };
}

/** A batch that was kept from running until its list was read, unless it would cost too much. */
async function release(
  context: ApiContext,
  job: Job,
  { max_cost_usd: maxCost }: BatchOptions,
): Promise<void> {
  try {
    if (maxCost !== undefined) await quoteJob(context, job, maxCost);
  } catch (error) {
    await discardJob(context, job);
    throw error;
  }
  await context.store.jobs.update(job.id, { state: 'running', reason: null });
}

interface OpenedBatch {
  job: Job;
  /** `repeated`: made by the same request before, of which no answer came. */
  origin: 'new' | 'appended' | 'repeated';
}

interface BatchBody {
  options: BatchOptions;
  rows: ListedRows;
}

async function readBatch({ headers, body }: FastifyRequest): Promise<BatchBody> {
  if (!headers['content-type']?.startsWith('application/x-ndjson')) {
    const { urls, ...options } = parseAs(batchSchema, body);
    const rows = urls.map(rowOf);
    if (options.on_invalid === 'fail') for (const row of rows) if ('reason' in row) throw badUrl(row);
    return { options, rows: [rows] };
  }
  const lines = readLines(body as NodeJS.ReadableStream & AsyncIterable<Buffer>);
  const { value: first = [] } = await lines.next();
  const head = first[0] === undefined ? null : optionsOf(first[0]);
  const options = parseAs(batchOptionsSchema, head ?? {});
  return { options, rows: rowsOf(head ? first.slice(1) : first, lines) };
}

/** The first line may be an object without `url`: the options of the batch. */
function optionsOf(line: string): object | null {
  if (!line.startsWith('{')) return null;
  const value = tryJson(line);
  return typeof value === 'object' && value !== null && !('url' in value) ? value : null;
}

async function* rowsOf(first: string[], lines: AsyncIterable<string[]>): AsyncIterable<AddedRow[]> {
  yield first.map(rowOfLine);
  for await (const next of lines) yield next.map(rowOfLine);
}

/** `"https://…"`, `{"url": …}` or the URL alone. */
function rowOfLine(line: string): AddedRow {
  if (line.startsWith('http')) return { url: line, meta: null };
  return rowOf(tryJson(line));
}

function rowOf(value: unknown): AddedRow {
  if (typeof value === 'string') return { url: value, meta: null };
  const parsed = batchUrlSchema.safeParse(value);
  if (!parsed.success || typeof parsed.data === 'string')
    return { reason: 'neither a URL nor an object with a URL, and perhaps meta and priority' };
  const { url, meta, priority } = parsed.data;
  if (meta && JSON.stringify(meta).length > META_CHARS_MAX) return { url, reason: `meta: ${META_TOO_LONG}` };
  return { url, meta: meta ?? null, ...(priority === undefined ? {} : { priority }) };
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function badUrl({ url, reason }: { url?: string; reason: string }): Problem {
  return new Problem('bad-url', url === undefined ? reason : `${url.slice(0, 200)}: ${reason}`);
}

async function openBatch(
  context: ApiContext,
  options: BatchOptions,
  { caller, requestId }: { caller: Caller; requestId: string | null },
): Promise<OpenedBatch> {
  const { webhooks } = context;
  if (options.append_to !== undefined) {
    if (options.max_cost_usd !== undefined)
      throw new Problem('bad-option', 'max_cost_usd: the batch of append_to has its own');
    const { job, taskId } = await jobOf(context, options.append_to, caller);
    if (taskId !== null) throw new Problem('bad-option', 'append_to: not a batch');
    if (isCancelled(job)) throw new Problem('conflict', 'the batch was cancelled');
    return { job, origin: 'appended' };
  }
  const hook = options.webhook ?? (options.callback_url === undefined ? null : { url: options.callback_url });
  if (hook) webhooks.check(definedOf(hook));
  const name = tenantName(caller, batchName());
  // Kept open until all of it is written: it must not be finished before.
  const spec = await specOf(options, name, context, caller);
  const code = { spec, specHash: hashOfSpec(spec, null), bundle: null, file: null };
  const job = await createBatch(context, { ...code, name, owner: caller.keyId, requestId }, options);
  try {
    if (hook) await webhooks.attach(job.id, definedOf(hook), caller);
  } catch (error) {
    await discardJob(context, job);
    throw error;
  }
  // The request was cut off after it had made this batch: what is missing is added.
  return { job, origin: job.name === name ? 'new' : 'repeated' };
}

/** Pages of a list are fetched while the rest of it is read, unless what comes later may refuse all of them. */
async function createBatch(
  { store, now }: ApiContext,
  code: Omit<Parameters<ApiContext['store']['jobs']['create']>[0], 'now'>,
  { max_cost_usd: maxCost, on_invalid: onInvalid }: BatchOptions,
): Promise<Job> {
  const stopped = maxCost !== undefined || onInvalid === 'fail' ? BEING_READ : null;
  return store.jobs.create({ ...code, now: now(), stopped });
}

function definedOf({ url, events, metadata }: NonNullable<BatchOptions['webhook']>) {
  return { url, ...(events ? { events } : {}), ...(metadata === undefined ? {} : { metadata }) };
}

async function addRows(
  context: ApiContext,
  { job, origin }: OpenedBatch,
  rows: BatchBody['rows'],
  options: BatchOptions,
): Promise<AddedRows> {
  const { store, now } = context;
  try {
    const added = await addToServedJob(context, job.id, rows, options);
    const hasFailed = options.on_invalid === 'fail' && added.rejected > 0;
    if (origin === 'new' && (hasFailed || added.accepted + added.duplicates === 0)) {
      await discardJob(context, job);
      const rejected = added.rejects.slice(0, REJECTED_NAMED_MAX);
      throw new Problem('nothing-accepted', undefined, {
        extensions: { rejected, rejected_count: added.rejected },
      });
    }
    return added;
  } finally {
    // Also when the client is gone: the batch ends with what was written down.
    if (origin !== 'appended') await store.jobs.closeToMore(job.id, now());
  }
}
