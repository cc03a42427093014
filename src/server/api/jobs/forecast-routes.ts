import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { receiptOf } from '../../../coordinator/reports/receipt.ts';
import type { Forecast } from '../../../core/forecast/forecast.ts';
import { type JobSpec, toJobName } from '../../../core/job-schema/job.ts';
import { parseJob } from '../../../job-file/parse-job.ts';
import { SAMPLE_DEFAULT } from '../../../tune/forecast.ts';
import { admit } from '../keys/page-limits.ts';
import type { ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { forecastSchema, parseAs } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import { checkJobRights, checkSize, guardedSpec, specOf, tenantName } from '../scrape/api-jobs.ts';

export const forecastRoutes: RoutePlugin = (app, context) => {
  /** By the name of the job. They go on when the caller does not wait any longer. */
  const underWay = new Map<string, Promise<Forecast>>();

  app.post('/forecast', async ({ body, caller }, reply) => {
    requireScope(caller, 'write');
    const asked = parseAs(forecastSchema, body);
    const spec = await specToForecast(context, asked, caller);
    const sample = asked.sample ?? null;
    if (!underWay.has(spec.name)) {
      if (sample !== 0) await admit(context.access, caller, sample ?? SAMPLE_DEFAULT);
      const made = context.forecasts.ofSpec(spec, { sample, owner: caller.keyId });
      underWay.set(spec.name, made);
      made.catch(() => {}).finally(() => underWay.delete(spec.name));
    }
    const forecast = await Promise.race([
      underWay.get(spec.name)!,
      sleep(asked.wait * 1_000, null, { ref: false }),
    ]);
    if (forecast) return forecast;
    return reply.code(202).header('retry-after', '5').send({ status: 'running' });
  });

  app.get<{ Params: { id: string } }>('/jobs/:id/receipt', async ({ params, caller }) => {
    requireScope(caller, 'read');
    const { job } = await jobOf(context, params.id, caller);
    return receiptOf(context.store, job);
  });
};

async function specToForecast(
  context: ApiContext,
  { urls, job, sample: _, wait: __, ...options }: ReturnType<typeof parseAs<typeof forecastSchema>>,
  caller: Caller,
): Promise<JobSpec> {
  if ((urls === undefined) === (job === undefined))
    throw new Problem('bad-option', 'either urls or job is needed');
  if (job) {
    checkSize(job);
    const { spec } = await parseJob(job, 'job', 'job');
    checkJobRights(spec, caller, context.allowPrivate);
    const guarded = guardedSpec(spec, context.allowPrivate);
    return { ...guarded, name: toJobName(tenantName(caller, spec.name)) };
  }
  const id = hash('sha256', JSON.stringify([urls, options]), 'hex').slice(0, 16);
  const { keepOpen: ___, ...spec } = await specOf(
    options,
    tenantName(caller, `batch-${id}`),
    context,
    caller,
  );
  return { ...spec, sources: urls! };
}
