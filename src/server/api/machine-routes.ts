import type { ProxyRow } from '../../ports/store/proxy-store.ts';
import { hostOf } from './jobs/row-routes.ts';
import type { RoutePlugin } from './requests/access.ts';
import { isAdmin, requireScope } from './requests/callers.ts';
import { listQuery, parseAs } from './requests/options.ts';

/** Proxies that were not used for so long are not shown. */
const PROXIES_MS = 7 * 86_400_000;
const PROXIES_MAX = 1_000;

/** What jobs share: hosts, proxies and slots. The former two tell of the jobs of all keys, so they are for the operator. */
export const machineRoutes: RoutePlugin = (app, { reads, store, server, proxyPools, now }) => {
  app.get('/hosts', async ({ query, caller }) => {
    requireScope(caller, 'admin');
    const { cursor, limit } = parseAs(listQuery, query);
    const after = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString('utf8');
    const hosts = await reads.hosts.listAfter({ after, limit });
    const next = hosts.length < limit ? null : Buffer.from(hosts.at(-1)!.host).toString('base64url');
    return { hosts: hosts.map(hostOf), next_cursor: next };
  });

  app.get('/proxies', async ({ caller }) => {
    requireScope(caller, 'admin');
    const pools = [...proxyPools].map(([name, { type }]) => ({ name, type }));
    const rows = await store.proxies.load(now() - PROXIES_MS, PROXIES_MAX);
    return { pools, proxies: rows.map((row) => proxyOf(row, now())) };
  });

  app.get('/pressure', async ({ caller }) => {
    requireScope(caller, 'read');
    const metrics = await server.metrics(isAdmin(caller) ? null : caller.keyId);
    const samplesOf = (name: string) => metrics.find((metric) => metric.name === name)?.samples ?? [];
    const sumOf = (name: string, state: string) =>
      samplesOf(name)
        .filter(({ labels }) => labels?.state === state)
        .reduce((sum, { value }) => sum + value, 0);
    const [busy, free] = [sumOf('seine_worker_slots', 'busy'), sumOf('seine_worker_slots', 'free')];
    const ages = samplesOf('seine_oldest_ready_task_age_seconds').map(({ value }) => value);
    return {
      slots: { total: busy + free, busy, free },
      urls: { pending: sumOf('seine_tasks', 'pending'), running: sumOf('seine_tasks', 'leased') },
      oldest_ready_seconds: Math.max(0, ...ages),
    };
  });
};

/** Its id has nothing of its address or its credentials. */
function proxyOf({ proxy, host, health }: ProxyRow, now: number): object {
  const { ok, bad, at, inRow, until } = health;
  return {
    proxy,
    /** Null for the proxy in general. */
    host,
    succeeded: Math.round(ok),
    failed: Math.round(bad),
    failures_in_row: inRow,
    rests_until: until > now ? new Date(until).toISOString() : null,
    updated_at: new Date(at).toISOString(),
  };
}
