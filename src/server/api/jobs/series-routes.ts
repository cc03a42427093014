import {
  ALL_HOSTS,
  byHourOfDay,
  costOf,
  countsOf,
  latencyOf,
  pagesOf,
  ROLLUP_SECONDS_KEPT,
  type Rollup,
} from '../../../core/rollups/rollup.ts';
import type { RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { parseAs, seriesQuery } from '../requests/options.ts';

type WithId = { Params: { id: string } };

const CELLS_MAX = 1_000;
/** Most points of an answer, and how many there are when no beginning is given. */
const POINTS_MAX = 2_200;
const POINTS_DEFAULT = 360;

/** What happened over time, read from roll-ups: also after the run, and never from its rows. */
export const seriesRoutes: RoutePlugin = (app, context) => {
  const { reads, now } = context;

  app.get<WithId>('/jobs/:id/series', async (request) => {
    requireScope(request.caller, 'read');
    const { step, host, ...range } = parseAs(seriesQuery, request.query);
    const { job } = await jobOf(context, request.params.id, request.caller);
    const stepMs = step * 1_000;
    const to = range.to ?? (job.endedAt ?? now()) + stepMs;
    const kept = to - Math.min(ROLLUP_SECONDS_KEPT[step] * 1_000, POINTS_MAX * stepMs);
    const from = Math.max(range.from ?? to - POINTS_DEFAULT * stepMs, kept);
    const rows = await reads.rollups.series(job.id, { step, from, to, host: host ?? ALL_HOSTS });
    return { step_seconds: step, points: rows.map(({ at, rollup }) => pointOf(at, rollup)) };
  });

  app.get<WithId>('/jobs/:id/failures', async (request) => {
    requireScope(request.caller, 'read');
    const { job } = await jobOf(context, request.params.id, request.caller);
    const hours = { step: 3600, from: 0, to: Number.MAX_SAFE_INTEGER, host: ALL_HOSTS } as const;
    const [cells, total, rows] = await Promise.all([
      reads.rollups.failures(job.id, { limit: CELLS_MAX }),
      reads.rollups.total(job.id),
      reads.rollups.series(job.id, hours),
    ]);
    const failed = new Map(countsOf(total, 'proxied-failure'));
    const providers = countsOf(total, 'proxied').map(([provider, attempts]) => ({
      provider,
      attempts,
      failures: failed.get(provider) ?? 0,
    }));
    return { cells, providers, hours_of_day: byHourOfDay(rows) };
  });
};

function pointOf(at: number, rollup: Rollup) {
  const { succeeded, failed, skipped, requests, bytes } = rollup;
  return {
    at: new Date(at).toISOString(),
    pages: pagesOf(rollup),
    succeeded,
    failed,
    skipped,
    requests,
    bytes,
    latency_ms: latencyOf(rollup),
    failures: Object.fromEntries(countsOf(rollup, 'failure')),
    cost_usd: costOf(rollup),
  };
}
