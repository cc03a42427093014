import type { FastifyReply } from 'fastify';
import { toNewTask } from '../../../coordinator/sources/new-task.ts';
import type { Job, NumberedTask } from '../../../ports/store.ts';
import { quotePage } from '../cost/quote.ts';
import type { ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { requireScope } from '../requests/callers.ts';
import type { Format } from '../requests/options.ts';
import { parseAs, scrapeSchema } from '../requests/options.ts';
import { Problem, urlError } from '../requests/problems.ts';
import { ScrapeJobs } from './api-jobs.ts';
import { isFinished, scrapeIdOf, wholeResult } from './results.ts';

type ScrapeRequest = ReturnType<typeof parseScrape>;
const parseScrape = (body: unknown) => parseAs(scrapeSchema, body);

interface Accepted {
  job: Job;
  taskId: number;
}

/** Waiting is told by the settle; a batch that was lost, or that another server settles, is noticed by a look. */
const LOOK_MS = 1_000;

export const scrapeRoutes: RoutePlugin = (app, context) => {
  const jobs = new ScrapeJobs(context);

  app.post('/scrape', async (request, reply) => {
    requireScope(request.caller, 'write');
    const asked = parseScrape(request.body);
    const accepted = await accept(context, jobs, asked, request.caller);
    const task = await finished(context, accepted.taskId, asked.wait * 1_000);
    const id = scrapeIdOf(accepted.job, accepted.taskId, asked.formats);
    return task ? scrapeView(context, id, task, asked.formats) : pending(reply, id);
  });

  app.post('/scrape/async', async (request, reply) => {
    requireScope(request.caller, 'write');
    const asked = parseScrape(request.body);
    const { job, taskId } = await accept(context, jobs, asked, request.caller);
    return pending(reply, scrapeIdOf(job, taskId, asked.formats));
  });
};

function pending(reply: FastifyReply, id: string): FastifyReply {
  const statusUrl = `/api/v1/jobs/${id}`;
  return reply
    .code(202)
    .headers({ location: statusUrl, 'retry-after': '1' })
    .send({ job_id: id, status: 'queued', status_url: statusUrl });
}

/** `{status: completed, result}` or `{status: failed, error}`. */
export async function scrapeView(
  context: Pick<ApiContext, 'reads' | 'blobs'>,
  id: string,
  task: NumberedTask,
  formats: readonly Format[],
): Promise<object> {
  const { state, failureCode, failureDetail, httpStatus } = task;
  if (state === 'pending' || state === 'leased')
    return { job_id: id, status: state === 'leased' ? 'running' : 'queued' };
  if (state === 'dead' || state === 'skipped') {
    const error = urlError(failureCode ?? 'internal', failureDetail, httpStatus);
    return { job_id: id, status: 'failed', error: { ...error, url: task.url } };
  }
  return { job_id: id, status: 'completed', result: await wholeResult(context, task, formats) };
}

/** The scrape is written down when this returns. Scrapes of one page at the same time share one fetch. */
export async function accept(
  context: ApiContext,
  jobs: ScrapeJobs,
  asked: ScrapeRequest,
  caller: Caller,
): Promise<Accepted> {
  const { store, runner, now } = context;
  const job = await jobs.of(caller, asked);
  const task = toNewTask({ url: asked.url, meta: asked.meta ?? null }, job.spec, asked.priority);
  if (typeof task === 'string') throw new Problem('bad-url', task);
  if (asked.max_cost_usd !== undefined) await quotePage(context, job, task.url, asked.max_cost_usd);
  const known = await store.views.taskId(job.id, task.url);
  if (known !== null) {
    const isYoung = asked.max_age > 0 && (await ageOf(context, known)) <= asked.max_age * 1_000;
    if (!isYoung) await store.frontier.revisit(job.id, known);
  } else {
    const options = { now: now(), perTemplateMax: null, source: null, added: { rejected: 0 } };
    await store.frontier.enqueue(job.id, [task], options);
  }
  const taskId = known ?? (await store.views.taskId(job.id, task.url));
  if (taskId === null) throw new Error('a task was not found after it was written');
  runner.start(job);
  return { job, taskId };
}

async function ageOf({ reads, now }: ApiContext, taskId: number): Promise<number> {
  const task = await reads.views.numberedTask(taskId);
  if (task?.state !== 'done' && task?.state !== 'unchanged') return Number.POSITIVE_INFINITY;
  return task.fetchedAt === null ? Number.POSITIVE_INFINITY : now() - Date.parse(task.fetchedAt);
}

/** Null when the time is over before the task is. */
export async function finished(
  { reads, watch, now }: ApiContext,
  taskId: number,
  waitMs: number,
): Promise<NumberedTask | null> {
  const until = now() + waitMs;
  while (true) {
    const left = until - now();
    const settled = watch.wait(taskId, Math.max(0, Math.min(LOOK_MS, left)));
    const task = await reads.views.numberedTask(taskId);
    if (task && isFinished(task)) return task;
    if (left <= 0) return null;
    await settled;
  }
}
