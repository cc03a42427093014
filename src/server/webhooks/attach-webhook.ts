import { createHash, randomBytes } from 'node:crypto';
import { SeineError } from '../../core/errors.ts';
import { suggestion } from '../../core/text/nearest-name.ts';
import {
  METADATA_BYTES_MAX,
  makeWebhookSecret,
  WEBHOOK_EVENTS,
  WEBHOOK_EVENTS_DEFAULT,
  WEBHOOK_SECRET_BYTES,
  type WebhookEvent,
} from '../../core/webhooks/webhook.ts';
import type { WebhookStore } from '../../ports/store/webhook-store.ts';
import type { WebhookPort } from '../api/requests/access.ts';

const URL_LENGTH_MAX = 2_048;

export const freshSecret = () => makeWebhookSecret(randomBytes(WEBHOOK_SECRET_BYTES));

/** Checks what a caller gives. The address is checked when it is called: a name may lead elsewhere by then. */
export function checkWebhook(hook: { url: string; events?: readonly string[]; metadata?: unknown }): {
  url: string;
  events: readonly WebhookEvent[];
  metadata: unknown;
} {
  const url = URL.parse(hook.url);
  if (!url || !/^https?:$/.test(url.protocol) || hook.url.length > URL_LENGTH_MAX)
    throw new SeineError('the URL of a webhook is not an http or https URL of at most 2,048 characters');
  if (url.username !== '' || url.password !== '')
    throw new SeineError('the URL of a webhook contains credentials', {
      hint: 'check the signature of messages instead',
    });
  const events = hook.events ?? WEBHOOK_EVENTS_DEFAULT;
  const wrong = events.find((event) => !(WEBHOOK_EVENTS as readonly string[]).includes(event));
  if (wrong !== undefined)
    throw new SeineError(`webhooks have no event '${wrong}'${suggestion(wrong, WEBHOOK_EVENTS)}`);
  if (events.length === 0) throw new SeineError('a webhook needs at least one event');
  const metadata = hook.metadata ?? null;
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX)
    throw new SeineError('the metadata of a webhook is larger than 4,000 bytes as JSON');
  return { url: url.href, events: [...new Set(events)] as WebhookEvent[], metadata };
}

/** Callbacks of jobs: signed by the secret of their owner. */
export function makeWebhookPort(webhooks: WebhookStore, now: () => number): WebhookPort {
  return {
    check: (hook) => void checkWebhook(hook),
    async attach(jobId, hook, caller) {
      const checked = checkWebhook(hook);
      await webhooks.ownerSecret(caller.keyId, freshSecret());
      // The same callback of a request that is repeated is one.
      const digest = createHash('sha256')
        .update(JSON.stringify([jobId, checked]))
        .digest('base64url');
      const endpoint = { id: `cb_${digest.slice(0, 24)}`, owner: caller.keyId, jobId, createdAt: now() };
      await webhooks.create({ ...endpoint, ...checked }, null);
    },
  };
}
