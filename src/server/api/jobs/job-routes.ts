import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { attachQuote } from '../../../coordinator/forecast/quote.ts';
import { toJobName } from '../../../core/job-schema/job.ts';
import { hashOfSpec, parseJob } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import { checkQuote } from '../cost/quote.ts';
import { admit, notePages } from '../keys/page-limits.ts';
import type { ApiContext, RoutePlugin } from '../requests/access.ts';
import { definedOf, isAdmin, jobOf, requireScope } from '../requests/callers.ts';
import { OpenRequests } from '../requests/open-requests.ts';
import {
  costSchema,
  createQuery,
  jobQuery,
  jobsQuery,
  parseAs,
  patchSchema,
  retrySchema,
} from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import { checkJobRights, checkSize, guardedSpec, tenantName } from '../scrape/api-jobs.ts';
import { hasEnded, isCancelled, isFinished, jobIdOf, jobView, statusOf } from '../scrape/results.ts';
import { scrapeView } from '../scrape/scrape-routes.ts';
import { sendRows } from './row-routes.ts';

/** Of a list with a filter: so many pages of jobs are looked through. */
const STEPS_MAX = 5;
/** How often a long poll looks. */
const LOOK_MS = 250;
/** So that the calls that only look, and do not wait, are always answered. */
const POLLS_MAX = 500;
const POLLS_OF_KEY_MAX = 250;

type WithId = { Params: { id: string } };

export const jobRoutes: RoutePlugin = (app, context) => {
  listRoute(app, context);
  createRoute(app, context);
  oneJobRoutes(app, context);
  actionRoutes(app, context);
};

const listRoute: RoutePlugin = (app, context) => {
  const { reads } = context;

  app.get('/jobs', async (request, reply) => {
    const { query, caller } = request;
    requireScope(caller, 'read');
    const { status, q, cursor, limit } = parseAs(jobsQuery, query);
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw new Problem('bad-cursor');
    let before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor);
    const owner = isAdmin(caller) || caller.keyId === null ? {} : { owner: caller.keyId };
    const rows: object[] = [];
    let isEnd = false;
    for (let step = 0; step < STEPS_MAX && !isEnd && rows.length < limit; step++) {
      const jobs = await reads.jobs.listBefore({ ...owner, before, limit });
      for (const job of jobs) {
        if (rows.length === limit) break;
        before = job.id;
        if (q !== undefined && !job.name.includes(q)) continue;
        const view = await viewOf(context, job);
        if (status === undefined || view.status === status) rows.push(view);
      }
      isEnd = jobs.length < limit && before === (jobs.at(-1)?.id ?? before);
    }
    return sendRows(request, reply, 'jobs', rows as Record<string, unknown>[], isEnd ? null : String(before));
  });
};

const createRoute: RoutePlugin = (app, context) => {
  const { store, runner, forecasts, now } = context;

  app.post('/jobs', async ({ query, body, caller, requestId }, reply) => {
    requireScope(caller, 'write');
    const { dry_run: dryRun } = parseAs(createQuery, query);
    if (typeof body !== 'object' || body === null) throw new Problem('bad-option', 'a job is an object');
    const { max_cost_usd: cost, ...definition } = body as Record<string, unknown>;
    const { max_cost_usd: maxCost } = parseAs(costSchema, { max_cost_usd: cost });
    checkSize(definition);
    const { spec } = await parseJob(definition, 'job', 'job');
    checkJobRights(spec, caller, context.allowPrivate);
    const limits = { ...spec.limits, dollars: lowerOf(spec.limits.dollars, maxCost ?? null) };
    const guarded = guardedSpec(spec, context.allowPrivate);
    const named = { ...guarded, name: toJobName(tenantName(caller, spec.name)), limits };
    // Before the job exists, and without a request.
    const quote =
      dryRun !== undefined || maxCost !== undefined
        ? await forecasts.ofSpec(named, { sample: 0, owner: caller.keyId })
        : null;
    if (maxCost !== undefined) checkQuote(quote!, maxCost);
    if (dryRun !== undefined) return { job: named, forecast: quote };
    const code = { spec: named, specHash: hashOfSpec(named, null), bundle: null, file: null };
    await admit(context.access, caller, 0);
    const job = await store.jobs.create({
      ...code,
      name: named.name,
      now: now(),
      owner: caller.keyId,
      countsPages: true,
      requestId,
    });
    await (quote ? store.jobs.update(job.id, { quote }) : attachQuote(store, job, now()));
    await runner.start(job);
    const statusUrl = `/api/v1/jobs/${jobIdOf(job)}`;
    return reply
      .code(202)
      .header('location', statusUrl)
      .send({ job_id: jobIdOf(job), name: job.name, status_url: statusUrl });
  });
};

const oneJobRoutes: RoutePlugin = (app, context) => {
  const { store, reads, runner, server, now } = context;
  const polls = new OpenRequests({ what: 'calls that wait', max: POLLS_MAX, keyMax: POLLS_OF_KEY_MAX });

  app.get<WithId>('/jobs/:id', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { wait } = parseAs(jobQuery, request.query);
    const { job, taskId, formats } = await jobOf(context, request.params.id, request.caller);
    const release = wait > 0 ? polls.take(request.caller) : () => {};
    try {
      const view =
        taskId === null
          ? await waitedView(context, job, wait * 1_000)
          : await taskView(context, request.params.id, taskId, { job, formats, waitMs: wait * 1_000 });
      return sendCached(request, reply, view);
    } finally {
      release();
    }
  });

  app.patch<WithId>('/jobs/:id', async ({ params, body, caller }) => {
    requireScope(caller, 'write');
    const { job } = await jobOf(context, params.id, caller);
    const { rate, parallel, hosts = {}, priority, ...limits } = parseAs(patchSchema, body);
    const spec = {
      ...job.spec,
      politeness: {
        ...job.spec.politeness,
        ...definedOf({ rate, parallel }),
        hosts: withRules(job.spec.politeness.hosts, hosts),
      },
      limits: { ...job.spec.limits, ...definedOf(limits) },
      ...definedOf({ priority }),
    };
    checkJobRights({ ...spec, sources: [] }, caller, true);
    await store.jobs.update(job.id, { spec, specHash: hashOfSpec(spec, job.bundle) });
    // The run reads its job when it begins: another one goes on at once, and nothing is lost.
    await runner.stop(job.id, { state: 'stopped', cause: 'restart', message: 'the job was changed' });
    return viewOf(context, await reads.jobs.get(job.id));
  });

  app.delete<WithId>('/jobs/:id', async ({ params, caller }, reply) => {
    requireScope(caller, 'write');
    const { job, taskId } = await jobOf(context, params.id, caller);
    if (taskId !== null) throw new Problem('conflict', 'one scrape cannot be deleted, only a batch or a job');
    const isWorkedOn = (await runner.has(job.id)) || (await store.jobs.atWork(job.id)) > 0;
    if (isWorkedOn || !(await store.removals.mark(job.id, now())))
      throw new Problem('conflict', 'the job runs; stop or cancel it first');
    await server.removeJobs();
    return reply.code(204).send();
  });
};

const actionRoutes: RoutePlugin = (app, context) => {
  const { store, reads, now } = context;

  for (const action of ['stop', 'cancel', 'resume', 'refresh'] as const)
    app.post<WithId>(`/jobs/:id/${action}`, async ({ params, caller }) => {
      requireScope(caller, 'write');
      const { job } = await jobOf(context, params.id, caller);
      if (action === 'resume') await admit(context.access, caller, 0);
      if (action === 'refresh') await admit(context.access, caller, await pagesAgain(context, job));
      await act(context, job, action);
      return viewOf(context, await reads.jobs.get(job.id));
    });

  app.post<WithId>('/jobs/:id/retry', async ({ params, body, caller }) => {
    requireScope(caller, 'write');
    const { job } = await jobOf(context, params.id, caller);
    const { code, host, url } = parseAs(retrySchema, body ?? {});
    const filter = definedOf({ code, host, urlContains: url });
    if (isCancelled(job)) throw new Problem('conflict', 'the job is cancelled');
    await admit(context.access, caller, 0);
    const retried = await store.views.retryDead(job.id, filter, now());
    if (!job.countsPages) await notePages(context, caller, retried);
    if (retried > 0 && job.state !== 'running') await run(context, job);
    return { retried };
  });
};

/** Pages of a batch count when they are accepted, those of a job when they are fetched. */
async function pagesAgain({ reads }: ApiContext, job: Job): Promise<number> {
  return job.countsPages ? 0 : (await reads.jobs.counters(job.id)).accepted;
}

function lowerOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

type HostRules = Job['spec']['politeness']['hosts'];

/** The first rule that fits a host holds: those of a request come before patterns of the job. */
function withRules(
  before: HostRules,
  given: Record<string, { rate?: number; parallel?: number }>,
): HostRules {
  const changed = Object.entries(given).map(([host, rule]): [string, HostRules[string]] => {
    const known = Object.hasOwn(before, host) ? before[host] : {};
    return [host, { ...known, ...definedOf(rule) } as HostRules[string]];
  });
  const names = new Set(Object.keys(given));
  return Object.fromEntries([...changed, ...Object.entries(before).filter(([host]) => !names.has(host))]);
}

async function run({ store, runner }: ApiContext, job: Job): Promise<void> {
  await store.jobs.update(job.id, { state: 'running', requestedState: 'run', reason: null, endedAt: null });
  await runner.start(await store.jobs.get(job.id));
}

export async function act(
  context: ApiContext,
  job: Job,
  action: 'stop' | 'cancel' | 'resume' | 'refresh',
): Promise<void> {
  const { store, runner, now } = context;
  if (action === 'resume') {
    if (isCancelled(job)) throw new Problem('conflict', 'the job is cancelled');
    if (job.state === 'done') throw new Problem('conflict', 'the job is done');
    if (job.state !== 'running' || job.requestedState !== 'run') await run(context, job);
  } else if (action === 'refresh') {
    if (job.state !== 'done' && job.state !== 'waiting')
      throw new Problem('conflict', `the job is ${job.state}`);
    const { spec, specHash, bundle, file } = job;
    await runner.start(await store.jobs.beginPass(job.id, { spec, specHash, bundle, file, now: now() }));
  } else if (job.state === 'running') {
    if (isCancelled(job) && action === 'stop') return;
    await store.jobs.update(job.id, { requestedState: action });
    await runner.wake(job.id);
  } else if (action === 'cancel' && job.state !== 'done') {
    await store.jobs.update(job.id, { state: 'cancelled', requestedState: 'cancel', endedAt: now() });
  }
}

export async function viewOf({ reads }: Pick<ApiContext, 'reads'>, job: Job) {
  const counters = await reads.jobs.counters(job.id);
  const needsCodes = statusOf(job, counters) === 'failed';
  return jobView(job, counters, needsCodes ? await reads.views.tallies(job.id) : []);
}

async function waitedView(context: ApiContext, job: Job, waitMs: number) {
  const until = context.now() + waitMs;
  let view = await viewOf(context, job);
  while (!hasEnded(view.status) && context.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    view = await viewOf(context, await context.reads.jobs.get(job.id));
  }
  return view;
}

async function taskView(
  context: ApiContext,
  id: string,
  taskId: number,
  { job, formats, waitMs }: { job: Job; waitMs: number } & Pick<Awaited<ReturnType<typeof jobOf>>, 'formats'>,
): Promise<object> {
  const [step] = (await context.reads.views.taskStep(job.id, { after: taskId - 1, limit: 1 })).rows;
  if (step?.id !== taskId) throw new Problem('not-found', 'no such job');
  const now = await context.reads.views.numberedTask(taskId);
  const isAwaited = waitMs > 0 && now !== null && !isFinished(now);
  const task = isAwaited ? ((await context.scrapes.finished(taskId, waitMs)) ?? now) : now;
  return scrapeView(context, id, task!, formats);
}

/** Who asks again and again gets 304 while nothing has changed. */
function sendCached(request: FastifyRequest, reply: FastifyReply, view: object): FastifyReply {
  const body = JSON.stringify(view);
  const etag = `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;
  reply.headers({ etag, 'cache-control': 'no-cache' });
  const { status } = view as { status?: string };
  if (status === 'queued' || status === 'running') reply.header('retry-after', '1');
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  return reply.header('content-type', 'application/json; charset=utf-8').send(body);
}
