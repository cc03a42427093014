import { z } from 'zod';
import { KEY_WEIGHT_MAX, KEY_WEIGHT_MIN, SCOPES } from '../../../core/keys/api-key.ts';
import type { ApiKey } from '../../../ports/store/key-store.ts';
import { createKey } from '../../keys/manage-keys.ts';
import type { RoutePlugin } from '../requests/access.ts';
import { requireScope } from '../requests/callers.ts';
import { parseAs } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';

const limit = z.number().positive().nullable();
/** Half a request is never sent, so a budget that ends with one would never be used up. */
const wholeLimit = z.int().positive().nullable();

export const newKeySchema = z.strictObject({
  name: z.string().trim().min(1).max(100).describe('For you to tell it from others.'),
  scope: z
    .enum(SCOPES)
    .default('read')
    .describe('What it may do: `read`, `write` (and read) or `admin` (everything).'),
  limits: z
    .strictObject({
      requests_per_minute: limit,
      pages_under_way: limit,
      pages_per_day: limit,
      cost_per_day: limit,
      requests_per_day: wholeLimit,
      browser_seconds_per_day: limit,
      weight: z.number().min(KEY_WEIGHT_MIN).max(KEY_WEIGHT_MAX),
    })
    .partial()
    .default({})
    .describe(
      'For this key alone: `requests_per_minute`, `pages_under_way`, `pages_per_day`, `cost_per_day` in USD, `requests_per_day`, `browser_seconds_per_day`, and `weight`, its share of workers.',
    ),
});

/** `/keys`: with admin scope. The key itself is in the answer of the POST, and never again. */
export const keysRoutes: RoutePlugin = (app, { store, access, now }) => {
  app.get('/keys', async ({ caller }) => {
    requireScope(caller, 'admin');
    return { keys: (await store.keys.list()).map(shownKey) };
  });

  app.post('/keys', async ({ caller, body }, reply) => {
    requireScope(caller, 'admin');
    const { name, scope, limits: given } = parseAs(newKeySchema, body);
    const limits = {
      ...(given.requests_per_minute === undefined ? {} : { requestsPerMinute: given.requests_per_minute }),
      ...(given.pages_under_way === undefined ? {} : { pagesUnderWay: given.pages_under_way }),
      ...(given.pages_per_day === undefined ? {} : { pagesPerDay: given.pages_per_day }),
      ...(given.cost_per_day === undefined ? {} : { costPerDay: given.cost_per_day }),
      ...(given.requests_per_day === undefined ? {} : { requestsPerDay: given.requests_per_day }),
      ...(given.browser_seconds_per_day === undefined
        ? {}
        : { browserSecondsPerDay: given.browser_seconds_per_day }),
      ...(given.weight === undefined ? {} : { weight: given.weight }),
    };
    const made = await createKey(store.keys, { name, scope, limits }, now());
    if (!made) throw new Problem('conflict', 'another key in use has this name');
    return reply.code(201).send({ key: made.key, ...shownKey(made.stored) });
  });

  app.delete<{ Params: { id: string } }>('/keys/:id', async ({ caller, params }) => {
    requireScope(caller, 'admin');
    const revoked = await store.keys.revoke(params.id, now());
    access.forget();
    if (!revoked) throw new Problem('not-found', 'no such key');
    return shownKey(revoked);
  });
};

function shownKey({ id, name, scope, limits, createdAt, revokedAt }: ApiKey): object {
  return {
    id,
    name,
    scope,
    limits: {
      requests_per_minute: limits.requestsPerMinute,
      pages_under_way: limits.pagesUnderWay,
      pages_per_day: limits.pagesPerDay,
      cost_per_day: limits.costPerDay,
      requests_per_day: limits.requestsPerDay,
      browser_seconds_per_day: limits.browserSecondsPerDay,
      weight: limits.weight,
    },
    created_at: new Date(createdAt).toISOString(),
    revoked_at: revokedAt === null ? null : new Date(revokedAt).toISOString(),
  };
}
