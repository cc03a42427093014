import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { ROTATION_MS, WEBHOOK_EVENTS, WEBHOOK_EVENTS_DEFAULT } from '../../core/webhooks/webhook.ts';
import type { WebhookDelivery, WebhookEndpoint, WebhookStore } from '../../ports/store/webhook-store.ts';
import { checkWebhook, freshSecret } from '../webhooks/attach-webhook.ts';
import type { Caller, RoutePlugin } from './requests/access.ts';
import { isAdmin, requireScope } from './requests/callers.ts';
import { parseAs } from './requests/options.ts';
import { Problem } from './requests/problems.ts';

export const endpointSchema = z.strictObject({
  url: z.string().describe('Where messages are sent: http or https.'),
  events: z
    .array(z.enum(WEBHOOK_EVENTS))
    .min(1)
    .default([...WEBHOOK_EVENTS_DEFAULT])
    .describe(`Of what it is told; without it, of ${WEBHOOK_EVENTS_DEFAULT.join(' and ')}.`),
  metadata: z.unknown().optional().describe('Sent back with each message: at most 4,000 bytes as JSON.'),
});
export const endpointChangeSchema = endpointSchema.partial().extend({ enabled: z.boolean().optional() });
export const deliveriesQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  cursor: z.coerce.number().int().positive().optional(),
});
const ENDPOINTS_MAX = 1_000;

type OfEndpoint = { Params: { id: string } };
type OfDelivery = { Params: { id: string; delivery: string } };

/** `/webhooks`: endpoints with their log. A key has its own; callbacks of its jobs are found by their id in the log. */
export const webhooksRoutes: RoutePlugin = (app, context) => {
  endpointRoutes(app, context);
  secretRoutes(app, context);
  deliveryRoutes(app, context);
};

const endpointRoutes: RoutePlugin = (app, { store, now }) => {
  const { webhooks } = store;

  app.get('/webhooks', async ({ caller }) => {
    requireScope(caller, 'read');
    const filter = isAdmin(caller) ? {} : { owner: caller.keyId };
    return { webhooks: (await webhooks.list({ ...filter, limit: ENDPOINTS_MAX })).map(shown) };
  });

  app.post('/webhooks', async ({ caller, body }, reply) => {
    requireScope(caller, 'write');
    const checked = checkWebhook(parseAs(endpointSchema, body));
    const secret = freshSecret();
    const id = `wh_${randomBytes(12).toString('base64url')}`;
    await webhooks.create({ id, owner: caller.keyId, jobId: null, createdAt: now(), ...checked }, secret);
    return reply.code(201).send({ ...shown((await webhooks.get(id))!), secret });
  });

  app.get<OfEndpoint>('/webhooks/:id', async ({ caller, params }) => {
    requireScope(caller, 'read');
    return shown(await find(webhooks, caller, params.id));
  });

  app.patch<OfEndpoint>('/webhooks/:id', async ({ caller, params, body }) => {
    requireScope(caller, 'write');
    const before = await find(webhooks, caller, params.id);
    const change = parseAs(endpointChangeSchema, body);
    const { url = before.url, metadata = before.metadata, enabled } = change;
    const events = typeof body === 'object' && body !== null && 'events' in body ? change.events : undefined;
    await webhooks.update(params.id, checkWebhook({ url, metadata, events: events ?? before.events }));
    if (enabled !== undefined)
      await webhooks.disable(params.id, enabled ? null : 'switched off by a request', now());
    return shown((await webhooks.get(params.id))!);
  });

  app.delete<OfEndpoint>('/webhooks/:id', async ({ caller, params }, reply) => {
    requireScope(caller, 'write');
    await find(webhooks, caller, params.id);
    await webhooks.remove(params.id);
    return reply.code(204).send();
  });
};

const secretRoutes: RoutePlugin = (app, { store, now }) => {
  const { webhooks } = store;

  // What signs callbacks of jobs.
  app.get('/webhooks/secret', async ({ caller }) => {
    requireScope(caller, 'write');
    return { secret: (await webhooks.ownerSecret(caller.keyId, freshSecret())).secret };
  });

  app.post('/webhooks/secret/rotate', async ({ caller }) => {
    requireScope(caller, 'write');
    await webhooks.rotateOwner(caller.keyId, freshSecret(), now() + ROTATION_MS);
    return { secret: (await webhooks.ownerSecret(caller.keyId, freshSecret())).secret };
  });

  app.post<OfEndpoint>('/webhooks/:id/rotate', async ({ caller, params }) => {
    requireScope(caller, 'write');
    const { jobId } = await find(webhooks, caller, params.id);
    if (jobId !== null) throw new Problem('conflict', 'a callback is signed by the secret of its owner');
    const secret = freshSecret();
    await webhooks.rotate(params.id, secret, now() + ROTATION_MS);
    return { secret };
  });
};

const deliveryRoutes: RoutePlugin = (app, { store, now }) => {
  const { webhooks } = store;

  app.get<OfEndpoint>('/webhooks/:id/deliveries', async ({ caller, params, query }) => {
    requireScope(caller, 'read');
    await find(webhooks, caller, params.id);
    const { limit, cursor = null } = parseAs(deliveriesQuery, query);
    const found = await webhooks.deliveries(params.id, { before: cursor, limit });
    const next = found.length < limit ? null : String(found.at(-1)!.id);
    return { deliveries: found.map(shownDelivery), next_cursor: next };
  });

  app.post<OfDelivery>('/webhooks/:id/deliveries/:delivery/redeliver', async ({ caller, params }, reply) => {
    requireScope(caller, 'write');
    await find(webhooks, caller, params.id);
    const delivery = /^\d{1,15}$/.test(params.delivery)
      ? await webhooks.delivery(Number(params.delivery))
      : null;
    if (delivery?.endpointId !== params.id) throw new Problem('not-found', 'no such delivery');
    await webhooks.redeliver(delivery.id, now());
    return reply.code(202).send(shownDelivery((await webhooks.delivery(delivery.id))!));
  });
};

/** Of this caller; those of others are not there. */
async function find(webhooks: WebhookStore, caller: Caller, id: string): Promise<WebhookEndpoint> {
  const endpoint = await webhooks.get(id);
  if (!endpoint || !(isAdmin(caller) || endpoint.owner === caller.keyId))
    throw new Problem('not-found', 'no such webhook');
  return endpoint;
}

const time = (at: number | null) => (at === null ? null : new Date(at).toISOString());

function shown(endpoint: WebhookEndpoint): object {
  const { id, jobId, url, events, metadata, createdAt, disabledAt, disabledReason } = endpoint;
  return {
    id,
    job_id: jobId === null ? null : `job_${jobId}`,
    url,
    events,
    metadata,
    enabled: disabledAt === null,
    disabled_at: time(disabledAt),
    disabled_reason: disabledReason,
    created_at: time(createdAt),
  };
}

function shownDelivery(delivery: WebhookDelivery): object {
  const { id, messageId, type, jobId, body, createdAt, state, tries, nextAt } = delivery;
  return {
    id: String(id),
    webhook_id: messageId,
    type,
    job_id: jobId === null ? null : `job_${jobId}`,
    state,
    created_at: time(createdAt),
    next_at: time(nextAt),
    tries: tries.map(({ at, status, error, durationMs }) => ({
      at: time(at),
      http_status: status,
      error,
      duration_ms: durationMs,
    })),
    body: JSON.parse(body),
  };
}
