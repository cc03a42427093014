import type { AlertRow } from '../../ports/store/alert-store.ts';
import { isSilenced } from '../alerts/alert-watch.ts';
import type { RoutePlugin } from './requests/access.ts';
import { requireScope } from './requests/callers.ts';
import { listQuery, parseAs, silenceSchema } from './requests/options.ts';
import { Problem } from './requests/problems.ts';

/** Alerts tell of the jobs of all keys, so they are for the operator. */
export const alertRoutes: RoutePlugin = (app, { store, now }) => {
  app.get('/alerts', async ({ query, caller }) => {
    requireScope(caller, 'admin');
    const { cursor, limit } = parseAs(listQuery, query);
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw new Problem('bad-cursor');
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor);
    const alerts = await store.alerts.list({ before, limit });
    const silences = await store.alerts.silences(now());
    const silencedUntil = (alert: AlertRow) =>
      silences.filter((silence) => isSilenced(alert, silence)).map(({ until }) => until);
    return {
      alerts: alerts.map((alert) => ({
        id: alert.id,
        kind: alert.kind,
        job: alert.subject === '' ? null : alert.subject,
        state: alert.resolvedAt === null ? 'firing' : 'resolved',
        text: alert.text,
        fired_at: new Date(alert.firedAt).toISOString(),
        resolved_at: alert.resolvedAt === null ? null : new Date(alert.resolvedAt).toISOString(),
        silenced_until: latest(silencedUntil(alert)),
      })),
      next_cursor: alerts.length < limit ? null : String(alerts.at(-1)!.id),
    };
  });

  app.post('/alerts/silence', async ({ body, caller }) => {
    requireScope(caller, 'admin');
    const { kind, job, seconds } = parseAs(silenceSchema, body ?? {});
    const until = now() + seconds * 1_000;
    await store.alerts.silence({ kind: kind ?? null, subject: job ?? null, until });
    return { kind: kind ?? null, job: job ?? null, until: new Date(until).toISOString() };
  });
};

function latest(times: readonly number[]): string | null {
  return times.length === 0 ? null : new Date(Math.max(...times)).toISOString();
}
