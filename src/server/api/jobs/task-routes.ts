import { toNewTask } from '../../../coordinator/sources/new-task.ts';
import type { RecordVersionRow } from '../../../core/model.ts';
import type { RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { keyQuery, parseAs, urlQuery } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import { resultOf } from '../scrape/results.ts';
import { attemptOf } from './row-routes.ts';

/** One task, one record, and dead letters by reason: each is found by an index, however many tasks there are. */

type WithId = { Params: { id: string } };

const ATTEMPTS_MAX = 100;
const VERSIONS_MAX = 50;
const GROUPS_MAX = 1_000;

export const taskRoutes: RoutePlugin = (app, context) => {
  oneTask(app, context);
  oneRecord(app, context);
  deadLetters(app, context);
};

const oneTask: RoutePlugin = (app, context) => {
  const { store, reads } = context;

  app.get<WithId>('/jobs/:id/task', async ({ params, query, caller }) => {
    requireScope(caller, 'read');
    const { url } = parseAs(urlQuery, query);
    const { job } = await jobOf(context, params.id, caller);
    const known = toNewTask({ url, meta: null }, job.spec, 0);
    const id = typeof known === 'string' ? null : await store.views.taskId(job.id, known.url);
    const task = id === null ? null : await reads.views.numberedTask(id);
    if (!task) throw new Problem('not-found', 'the job has no such URL');
    const [attempts, records] = await Promise.all([
      reads.views.attemptsOf(task.id, ATTEMPTS_MAX),
      reads.views.recordsOf(task.id),
    ]);
    const withVersions = records.map(async ({ key, url: page, data, updatedAt }) => ({
      key,
      url: page,
      data,
      updated_at: updatedAt,
      versions: (await reads.views.versionsOf(job.id, key, VERSIONS_MAX)).map(versionOf),
    }));
    return {
      ...resultOf(task),
      host: task.host,
      route: task.route,
      depth: task.depth,
      priority: task.priority,
      revisit_seconds: task.revisitSeconds,
      has_page: task.archive !== null,
      attempt_log: attempts.map(attemptOf),
      records: await Promise.all(withVersions),
    };
  });
};

const oneRecord: RoutePlugin = (app, context) => {
  const { reads } = context;

  app.get<WithId>('/jobs/:id/record', async ({ params, query, caller }) => {
    requireScope(caller, 'read');
    const { key } = parseAs(keyQuery, query);
    const { job } = await jobOf(context, params.id, caller);
    const record = await reads.views.record(job.id, key);
    if (!record) throw new Problem('not-found', 'the job has no such record');
    const { url, data, createdAt, updatedAt, checkedAt, goneAt } = record;
    return {
      key,
      url,
      data,
      created_at: createdAt,
      updated_at: updatedAt,
      checked_at: checkedAt,
      gone_at: goneAt,
      versions: (await reads.views.versionsOf(job.id, key, VERSIONS_MAX)).map(versionOf),
    };
  });
};

const deadLetters: RoutePlugin = (app, context) => {
  const { reads } = context;

  app.get<WithId>('/jobs/:id/dead', async ({ params, caller }) => {
    requireScope(caller, 'read');
    const { job } = await jobOf(context, params.id, caller);
    const groups = await reads.views.dead(job.id);
    return {
      groups: groups.slice(0, GROUPS_MAX).map(({ code, host, count, sampleUrl, sampleDetail }) => ({
        code,
        host,
        count,
        sample_url: sampleUrl,
        sample_detail: sampleDetail,
      })),
      groups_total: groups.length,
    };
  });
};

/** The newest first. */
function versionOf({ data, from, until }: RecordVersionRow) {
  return { data, from, until };
}
