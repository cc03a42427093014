import type { FastifyInstance, FastifyReply } from 'fastify';
import type { AddedRow } from '../../../coordinator/sources/add-to-job.ts';
import type { Counters } from '../../../core/model.ts';
import type { Job, NumberedTask } from '../../../ports/store.ts';
import { act } from '../jobs/job-routes.ts';
import { steps } from '../jobs/row-routes.ts';
import { admit } from '../keys/page-limits.ts';
import type { ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { parseAs } from '../requests/options.ts';
import { Problem, urlError } from '../requests/problems.ts';
import { acceptBatch } from '../scrape/batch-routes.ts';
import { STATES_OF, scrapeIdOf, statusOf } from '../scrape/results.ts';
import { createCrawl } from './crawl-job.ts';
import { documentOf, type FirecrawlDocument } from './document.ts';
import { mapSite } from './map-site.ts';
import {
  batchRequest,
  DOCUMENT_PARTS,
  type DocumentPart,
  firecrawlBatch,
  firecrawlCrawl,
  firecrawlMap,
  firecrawlScrape,
  partsOf,
  scrapeRequest,
} from './options.ts';

/** Documents are whole pages: so many in one answer. */
const DOCUMENTS_MAX = 20;
const ERRORS_MAX = 10_000;
const INVALID_NAMED_MAX = 1_000;
/** Of a page that takes longer: when to send the request again. */
const RETRY_SECONDS = 5;

type WithId = { Params: { id: string }; Querystring: { cursor?: string } };
type Kind = 'crawl' | 'batch';

/** Firecrawl's API, version 2, for its clients: the same work as below `/api/v1`, in other words. */
export const firecrawlRoutes: RoutePlugin = (app, context) => {
  // Its clients read `error`, beside what problems have.
  app.addHook('onSend', async (_request, reply, payload) => {
    if (!String(reply.getHeader('content-type')).startsWith('application/problem+json')) return payload;
    const problem = JSON.parse(String(payload)) as { detail: string };
    return JSON.stringify({ success: false, error: problem.detail, ...problem });
  });

  scrapeRoutes(app, context);
  crawlRoutes(app, context);
  for (const [kind, path] of [
    ['crawl', '/crawl/:id'],
    ['batch', '/batch/scrape/:id'],
  ] as const)
    resultRoutes(app, context, kind, path);
};

const scrapeRoutes: RoutePlugin = (app, context) => {
  app.post('/scrape', async ({ body, caller }, reply) => {
    requireScope(caller, 'write');
    const { url, ...fields } = parseAs(firecrawlScrape, body);
    await admit(context.access, caller, 1);
    const asked = scrapeRequest(url, fields);
    const { jobId, taskId, task } = await context.scrapes.scrape(asked, caller, asked.wait * 1_000);
    if (!task) return sendTooLate(reply);
    const scrapeId = scrapeIdOf(jobId, taskId, asked.formats);
    return scrapeAnswer(context, task, partsOf(fields), scrapeId);
  });

  app.post('/batch/scrape', async (request) => {
    const { body, caller } = request;
    requireScope(caller, 'write');
    const { urls, webhook, appendToId, ignoreInvalidURLs, ...fields } = parseAs(firecrawlBatch, body);
    await admit(context.access, caller, urls.length);
    const appended = appendToId === undefined ? {} : { append_to: jobIdIn(appendToId, 'batch') };
    const options = batchRequest(
      fields,
      { on_invalid: ignoreInvalidURLs ? 'skip' : 'fail', ...appended },
      webhook,
    );
    const rows = urls.map((url): AddedRow => ({ url, meta: null }));
    const { job, rejects } = await acceptBatch(context, request, async () => ({ options, rows }));
    const id = idOf('batch', job, partsOf(fields));
    const invalidURLs = rejects.slice(0, INVALID_NAMED_MAX).map(({ index }) => urls[index]);
    return { success: true, id, url: `/v2/batch/scrape/${id}`, invalidURLs };
  });
};

const crawlRoutes: RoutePlugin = (app, context) => {
  app.post('/crawl', async ({ body, caller, requestId }) => {
    requireScope(caller, 'write');
    const asked = parseAs(firecrawlCrawl, body);
    await admit(context.access, caller, 0);
    const job = await createCrawl(context, asked, { caller, requestId });
    await context.runner.start(job);
    const id = idOf('crawl', job, partsOf(asked.scrapeOptions));
    return { success: true, id, url: `/v2/crawl/${id}` };
  });

  app.post('/map', async ({ body, caller }) => {
    requireScope(caller, 'write');
    const asked = parseAs(firecrawlMap, body);
    return { success: true, links: await mapSite(context, asked, caller) };
  });
};

function resultRoutes(app: FastifyInstance, context: ApiContext, kind: Kind, path: string): void {
  app.get<WithId>(path, async ({ params, query, caller }) => {
    requireScope(caller, 'read');
    const { job, parts } = await jobWith(context, params.id, kind, caller);
    const { documents, next } = await documentsAfter(context, job, parts, query.cursor);
    const here = `/v2${path.replace(':id', params.id)}`;
    return {
      success: true,
      ...statusView(job, await context.reads.jobs.counters(job.id)),
      next: next === null ? null : `${here}?cursor=${next}`,
      data: documents,
    };
  });

  app.get<WithId>(`${path}/errors`, async ({ params, caller }) => {
    requireScope(caller, 'read');
    const { job } = await jobWith(context, params.id, kind, caller);
    return errorsOf(context, job);
  });

  app.delete<WithId>(path, async ({ params, caller }) => {
    requireScope(caller, 'write');
    const { job } = await jobWith(context, params.id, kind, caller);
    if (job.state === 'done') throw new Problem('conflict', 'the job is done');
    await act(context, job, 'cancel');
    return { success: true, status: 'cancelled' };
  });
}

/** Clients that see this code send the request again; the fetch goes on. */
function sendTooLate(reply: FastifyReply): FastifyReply {
  return reply
    .code(408)
    .header('retry-after', String(RETRY_SECONDS))
    .send({
      success: false,
      code: 'SCRAPE_TIMEOUT',
      error: 'The page takes longer than the timeout.',
      details: { state: 'processing_continues', retryAfterSeconds: RETRY_SECONDS },
    });
}

async function scrapeAnswer(
  { blobs }: ApiContext,
  task: NumberedTask,
  parts: readonly DocumentPart[],
  scrapeId: string,
): Promise<object> {
  if (task.state === 'dead' || task.state === 'skipped') {
    const error = urlError(task.failureCode ?? 'internal', task.failureDetail, task.httpStatus);
    return { success: false, error: error.detail ?? error.title, ...error, url: task.url };
  }
  const document = await documentOf(blobs, task, parts);
  const metadata = { ...(document.metadata as object), scrapeId };
  return { success: true, data: { ...document, metadata } };
}

/** Names the job, and what its documents have. */
function idOf(kind: Kind, { id }: Pick<Job, 'id'>, parts: readonly DocumentPart[]): string {
  const asked = DOCUMENT_PARTS.reduce((sum, part, at) => sum + (parts.includes(part) ? 2 ** at : 0), 0);
  return `${kind}_${id}_${asked}`;
}

/** The job's own id is one as well: webhooks have it. */
function parseId(id: string, kind: Kind): { jobId: string; parts: DocumentPart[] } {
  const [, name, number, asked] = /^(job|crawl|batch)_(\d{1,15})(?:_(\d{1,3}))?$/.exec(id) ?? [];
  if (number === undefined || (name !== 'job' && name !== kind))
    throw new Problem('not-found', 'no such job');
  const parts = DOCUMENT_PARTS.filter((_, at) => Math.floor(Number(asked ?? 1) / 2 ** at) % 2 === 1);
  return { jobId: `job_${number}`, parts };
}

const jobIdIn = (id: string, kind: Kind) => parseId(id, kind).jobId;

async function jobWith(
  context: ApiContext,
  id: string,
  kind: Kind,
  caller: Caller,
): Promise<{ job: Job; parts: DocumentPart[] }> {
  const { jobId, parts } = parseId(id, kind);
  return { job: (await jobOf(context, jobId, caller)).job, parts };
}

async function documentsAfter(
  { reads, blobs }: ApiContext,
  job: Job,
  parts: readonly DocumentPart[],
  cursor: string | undefined,
): Promise<{ documents: FirecrawlDocument[]; next: string | null }> {
  const found = await steps(cursor, DOCUMENTS_MAX, (after, limit) =>
    reads.views.taskStep(job.id, { states: STATES_OF.succeeded, after, limit }),
  );
  const documents: FirecrawlDocument[] = [];
  for (const task of found.rows) documents.push(await documentOf(blobs, task, parts));
  return { documents, next: found.next };
}

function statusView(job: Job, counters: Counters): Record<string, unknown> {
  const { accepted, attempted, done, unchanged } = counters;
  const { pages } = job.spec.limits;
  const status = statusOf(job, counters);
  // A crawl that has all the pages that it may have is complete.
  const isFull = status === 'stopped' && pages !== null && attempted >= pages;
  const completed = done + unchanged;
  return {
    status: isFull ? 'completed' : STATUS_WORDS[status],
    total: pages === null ? accepted : Math.min(accepted, pages),
    completed,
    creditsUsed: completed,
    ...(job.reason === null ? {} : { warning: job.reason }),
  };
}

/** A job that was stopped can be resumed, but its clients would wait for ever. */
const STATUS_WORDS = {
  queued: 'scraping',
  running: 'scraping',
  completed: 'completed',
  failed: 'failed',
  stopped: 'cancelled',
  cancelled: 'cancelled',
} as const;

async function errorsOf({ reads }: ApiContext, job: Job): Promise<object> {
  const errors: object[] = [];
  const robotsBlocked: string[] = [];
  let after = 0;
  for (let isEnd = false; !isEnd && errors.length + robotsBlocked.length < ERRORS_MAX; ) {
    const states = [...STATES_OF.failed, ...STATES_OF.skipped];
    const found = await reads.views.taskStep(job.id, { states, after, limit: 1_000 });
    for (const task of found.rows) {
      const code = task.failureCode ?? 'internal';
      if (code === 'robots') robotsBlocked.push(task.url);
      else errors.push(errorOf(task, code));
    }
    ({ after, isEnd } = found);
  }
  return { errors, robotsBlocked };
}

function errorOf(task: NumberedTask, code: string): object {
  const { title, detail } = urlError(code, task.failureDetail, task.httpStatus);
  const timestamp = task.fetchedAt === null ? {} : { timestamp: task.fetchedAt };
  return { id: String(task.id), ...timestamp, url: task.url, code, error: detail ?? title };
}
