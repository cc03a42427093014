import type { FastifyReply } from 'fastify';
import type { NumberedTask } from '../../../ports/store.ts';
import type { ApiContext, RoutePlugin } from '../requests/access.ts';
import { requireScope } from '../requests/callers.ts';
import type { Format } from '../requests/options.ts';
import { parseAs, scrapeSchema } from '../requests/options.ts';
import { urlError } from '../requests/problems.ts';
import { scrapeIdOf, wholeResult } from './results.ts';

export const scrapeRoutes: RoutePlugin = (app, context) => {
  const { scrapes } = context;

  app.post('/scrape', async (request, reply) => {
    requireScope(request.caller, 'write');
    const asked = parseAs(scrapeSchema, request.body);
    const { jobId, taskId, task } = await scrapes.scrape(asked, request.caller, asked.wait * 1_000);
    const id = scrapeIdOf(jobId, taskId, asked.formats);
    return task ? scrapeView(context, id, task, asked.formats) : pending(reply, id);
  });

  app.post('/scrape/async', async (request, reply) => {
    requireScope(request.caller, 'write');
    const asked = parseAs(scrapeSchema, request.body);
    const { jobId, taskId } = await scrapes.accept(asked, request.caller);
    return pending(reply, scrapeIdOf(jobId, taskId, asked.formats));
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
