import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { WebhookEvent } from '../../../src/core/webhooks/webhook.ts';
import type { Store } from '../../../src/ports/store.ts';
import { checkWebhook, freshSecret, makeWebhookPort } from '../../../src/server/webhooks/attach-webhook.ts';
import { WebhookDeliverer } from '../../../src/server/webhooks/deliverer.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { createJob } from '../../support/fixtures.ts';

interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Answers by path: `/500`, `/410`, `/302`; everything else is accepted. */
let receiver: Server;
let origin: string;
let received: Received[] = [];
beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const path = request.url!;
    received.push({ path, headers: request.headers, body: Buffer.concat(parts).toString() });
    const status = Number(/^\/(\d+)/.exec(path)?.[1] ?? 204);
    response.writeHead(status, { location: '/redirected' }).end('x'.repeat(status === 204 ? 0 : 100));
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
});
afterAll(() => void receiver.close());

let warnings: string[] = [];
const logger = { info() {}, warn: (text: string) => void warnings.push(text), error() {} };
let store: Store;
let now: number;
let deliverer: WebhookDeliverer | null = null;
beforeEach(() => {
  store = openSqliteStore(':memory:');
  received = [];
  warnings = [];
  now = Date.now();
});
afterEach(async () => {
  await deliverer?.close();
  deliverer = null;
  await store.close();
});

const start = (allowPrivate = true) => {
  deliverer = new WebhookDeliverer({ webhooks: store.webhooks, logger, allowPrivate, now: () => now });
  deliverer.start();
};
const endpoint = async (id: string, url: string, events: WebhookEvent[] = ['job.completed']) => {
  const secret = freshSecret();
  const about = { id, owner: null, jobId: null, url, events, metadata: null, createdAt: now };
  await store.webhooks.create(about, secret);
  return secret;
};
const finishJob = async (name = 'shop') => {
  const job = await createJob(store, name);
  await store.jobs.finish(job.id, now);
  return job;
};
const deliveries = (id: string) => store.webhooks.deliveries(id, { before: null, limit: 10 });

describe('a message', () => {
  test('is accepted by the verifier of the standard, also with two signatures, and by no other secret', async () => {
    const secret = await endpoint('a', `${origin}/hook?x=1`);
    await finishJob();
    const rotated = freshSecret();
    await store.webhooks.rotate('a', rotated, now + 60_000);
    start();
    await expect.poll(() => received.length).toBe(1);
    const { headers, body, path } = received[0]!;
    expect(path).toBe('/hook?x=1');
    const given = headers as Record<string, string>;
    for (const known of [secret, rotated])
      expect(new Webhook(known).verify(body, given)).toMatchObject({ type: 'job.completed' });
    expect(() => new Webhook(freshSecret()).verify(body, given)).toThrow('No matching signature');
    expect(() => new Webhook(secret).verify(`${body} `, given)).toThrow('No matching signature');
    await expect.poll(async () => (await deliveries('a'))[0]!.state).toBe('delivered');
    expect((await deliveries('a'))[0]!.tries).toMatchObject([{ status: 204, error: null }]);
  });

  test('of a callback is signed by the secret of the owner, once for a request that is repeated', async () => {
    const job = await createJob(store, 'shop');
    const caller = { keyId: 'key_1', scopes: new Set<never>() };
    const port = makeWebhookPort(store.webhooks, () => now);
    const hook = { url: `${origin}/callback`, metadata: { order: 7 } };
    await port.attach(job.id, hook, caller);
    await port.attach(job.id, hook, caller);
    await store.jobs.finish(job.id, now);
    start();
    await expect.poll(() => received.length).toBe(1);
    const { secret } = await store.webhooks.ownerSecret('key_1', 'unused');
    const { headers, body } = received[0]!;
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
      data: { job: 'shop-1', metadata: { order: 7 } },
    });
  });

  test('that is refused comes again under its id on the schedule, and a redirect is a failure', async () => {
    await endpoint('refused', `${origin}/500`);
    await endpoint('redirected', `${origin}/302`);
    await finishJob();
    start();
    const triesOf = async (id: string) => (await deliveries(id))[0]!.tries.length;
    await expect.poll(() => triesOf('refused')).toBe(1);
    await expect.poll(() => triesOf('redirected')).toBe(1);
    const [{ nextAt } = { nextAt: 0 }] = await deliveries('refused');
    expect(nextAt! - now).toBeGreaterThanOrEqual(5_000);
    expect(nextAt! - now).toBeLessThanOrEqual(6_000);
    now = nextAt!;
    await expect.poll(() => triesOf('refused')).toBe(2);
    const refused = received.filter(({ path }) => path === '/500');
    expect(new Set(refused.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(received.some(({ path }) => path === '/redirected')).toBe(false);
    expect((await deliveries('redirected'))[0]!.tries[0]!.error).toBe('redirects are not followed');
  });

  test('that is answered with 410 switches the endpoint off', async () => {
    await endpoint('gone', `${origin}/410`);
    await finishJob();
    await finishJob('later');
    start();
    await expect.poll(async () => (await store.webhooks.get('gone'))?.disabledAt ?? null).not.toBeNull();
    expect((await store.webhooks.get('gone'))?.disabledReason).toBe('the endpoint answered 410 Gone');
    await finishJob('last');
    expect((await deliveries('gone')).length).toBeLessThanOrEqual(2);
  });

  test('is not sent to a private address unless that is allowed, and never to a link-local one', async () => {
    await endpoint('private', `${origin}/hook`);
    await endpoint('named', `http://localhost:${new URL(origin).port}/hook`);
    await finishJob();
    start(false);
    for (const id of ['private', 'named']) {
      await expect.poll(async () => (await deliveries(id))[0]!.tries.length).toBe(1);
      expect((await deliveries(id))[0]!.tries[0]!.error).toContain('has no address that may be called');
    }
    await deliverer!.close();
    expect(received).toEqual([]);
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/^a webhook is not delivered: .+ SEINE_WEBHOOKS_ALLOW_PRIVATE=true/);
    for (const [id, url] of [
      ['v4', 'http://169.254.169.254/latest'],
      ['v6', 'http://[fe80::1]/'],
      ['mapped', 'http://[::ffff:169.254.169.254]/'],
    ] as const)
      await endpoint(id, url);
    await finishJob('other');
    start(true);
    for (const id of ['v4', 'v6', 'mapped']) {
      await expect.poll(async () => (await deliveries(id))[0]!.tries.length).toBe(1);
      expect((await deliveries(id))[0]!.tries[0]!.error).toContain('has no address that may be called');
    }
  });
});

test.each([
  [{ url: 'ftp://a.example/' }, 'not an http or https URL'],
  [{ url: 'no url' }, 'not an http or https URL'],
  [{ url: 'https://user:word@a.example/' }, 'contains credentials'],
  [
    { url: 'https://a.example/', events: ['job.complete'] },
    "no event 'job.complete'; did you mean job.completed?",
  ],
  [{ url: 'https://a.example/', events: [] }, 'at least one event'],
  [{ url: 'https://a.example/', metadata: 'x'.repeat(4_000) }, 'larger than 4,000 bytes'],
])('an endpoint %j is refused', (hook, message) => {
  expect(() => checkWebhook(hook)).toThrow(message);
});
