import { VERSION } from '../../core/identity/identity.ts';
import { OPERATIONS } from './openapi.ts';
import type { RoutePlugin } from './requests/access.ts';
import { isAdmin, requireScope } from './requests/callers.ts';

/** What server this is, and what the caller may do. Where it keeps things is for the operator alone. */
export const serverRoutes: RoutePlugin = (app, context) => {
  const { place, allowPrivate, now } = context;
  const startedAt = new Date(now()).toISOString();

  app.get('/server', async ({ caller }) => {
    requireScope(caller, 'read');
    return {
      version: VERSION,
      node: process.version,
      started_at: startedAt,
      read_only: context.readOnly ?? false,
      allow_private: allowPrivate,
      ...(isAdmin(caller) ? place : {}),
      key_id: caller.keyId,
      scopes: [...caller.scopes],
      /** Older servers have fewer calls than the programs that use them. */
      calls: OPERATIONS.map(({ method, path }) => `${method.toUpperCase()} ${path}`),
    };
  });
};
