import { hostOf } from './jobs/row-routes.ts';
import type { RoutePlugin } from './requests/access.ts';
import { requireScope } from './requests/callers.ts';
import { listQuery, parseAs } from './requests/options.ts';

/** What jobs share: hosts. They tell of the jobs of all keys, so they are for the operator. */
export const machineRoutes: RoutePlugin = (app, { reads }) => {
  app.get('/hosts', async ({ query, caller }) => {
    requireScope(caller, 'admin');
    const { cursor, limit } = parseAs(listQuery, query);
    const after = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString('utf8');
    const hosts = await reads.hosts.listAfter({ after, limit });
    const next = hosts.length < limit ? null : Buffer.from(hosts.at(-1)!.host).toString('base64url');
    return { hosts: hosts.map(hostOf), next_cursor: next };
  });
};
