import { execFile } from 'node:child_process';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../../src/client/client.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { provideProgram } from '../../support/servers/provide-program.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

let server: ApiServer;
let site: LinkedSite;
let receiver: Server;
const received: { headers: IncomingHttpHeaders; body: string }[] = [];
beforeAll(async () => {
  [site, server] = await Promise.all([startLinkedSite({ pages: 5 }), openApiServer()]);
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    received.push({ headers: request.headers, body: Buffer.concat(parts).toString() });
    response.end();
  }).listen(0, '127.0.0.1');
});
afterAll(async () => {
  await server.close();
  await site.close();
  receiver.close();
});

async function call(method: string, path: string, key: string | null, body?: unknown) {
  const headers = {
    ...(key === null ? {} : { 'x-api-key': key }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const text = body === undefined ? null : JSON.stringify(body);
  const answer = await fetch(`${server.url}/api/v1${path}`, { method, headers, body: text });
  const found = await answer.text();
  return { status: answer.status, headers: answer.headers, body: found === '' ? null : JSON.parse(found) };
}

test('keys are made with admin scope, and each sees only its own webhooks', async () => {
  const admin = (await call('POST', '/keys', null, { name: 'admin', scope: 'admin' })).body;
  expect(admin).toMatchObject({
    key: expect.stringMatching(/^seine_/),
    limits: { requests_per_minute: 600 },
  });
  const limits = { requests_per_minute: 20 };
  const make = (name: string, scope: string) => call('POST', '/keys', admin.key, { name, scope, limits });
  const [ci, other, reader] = await Promise.all([
    make('ci', 'write'),
    make('other', 'write'),
    make('eye', 'read'),
  ]);
  expect(ci.status).toBe(201);
  expect((await make('ci', 'write')).body.code).toBe('conflict');
  expect((await call('GET', '/keys', ci.body.key)).body.code).toBe('forbidden');
  expect((await call('GET', '/keys', null)).status).toBe(401);
  const listed = await call('GET', '/keys', admin.key);
  expect(listed.body.keys).toHaveLength(4);
  expect(JSON.stringify(listed.body)).not.toContain('seine_');

  const made = await call('POST', '/webhooks', ci.body.key, {
    url: 'https://a.example/',
    events: ['page.failed'],
  });
  expect(made.status).toBe(201);
  expect(made.headers.get('ratelimit-policy')).toBe('"default";q=20;w=60');
  expect(made.headers.get('ratelimit')).toMatch(/^"default";r=1\d;t=\d+$/);
  expect(made.body).toMatchObject({ enabled: true, secret: expect.stringMatching(/^whsec_/) });
  const path = `/webhooks/${made.body.id}`;
  const shown = await call('GET', path, ci.body.key);
  expect(shown.body).not.toHaveProperty('secret');
  expect((await call('GET', path, other.body.key)).status).toBe(404);
  expect((await call('GET', '/webhooks', other.body.key)).body).toEqual({ webhooks: [] });
  expect((await call('GET', '/webhooks', admin.key)).body.webhooks).toHaveLength(1);
  expect((await call('POST', '/webhooks', reader.body.key, { url: 'https://a.example/' })).body.code).toBe(
    'forbidden',
  );
  const changed = await call('PATCH', path, ci.body.key, { enabled: false, metadata: { a: 1 } });
  expect(changed.body).toMatchObject({ enabled: false, metadata: { a: 1 }, events: ['page.failed'] });
  expect((await call('POST', `${path}/rotate`, ci.body.key)).body.secret).not.toBe(made.body.secret);
  expect((await call('GET', `${path}/deliveries`, ci.body.key)).body).toEqual({
    deliveries: [],
    next_cursor: null,
  });
  expect((await call('POST', `${path}/deliveries/1/redeliver`, ci.body.key)).status).toBe(404);
  const { secret } = (await call('GET', '/webhooks/secret', ci.body.key)).body;
  expect((await call('GET', '/webhooks/secret', ci.body.key)).body.secret).toBe(secret);
  expect((await call('POST', '/webhooks/secret/rotate', ci.body.key)).body.secret).not.toBe(secret);
  expect((await call('DELETE', path, ci.body.key)).status).toBe(204);
  expect((await call('GET', path, ci.body.key)).status).toBe(404);

  for (let sent = 0; sent < 20; sent++) await call('GET', '/webhooks', other.body.key);
  const limited = await call('GET', '/webhooks', other.body.key);
  expect([limited.status, limited.body.code, limited.headers.has('retry-after')]).toEqual([
    429,
    'rate-limited',
    true,
  ]);
  expect((await call('DELETE', `/keys/${other.body.id}`, admin.key)).body.revoked_at).not.toBeNull();
  expect((await call('GET', '/webhooks', other.body.key)).status).toBe(401);
  expect(server.log.join('\n')).not.toContain('seine_');
});

test('a batch calls back once it is finished, and each key sees its own jobs and has its own limits', async () => {
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  const makeKey = async (name: string) => {
    const limits = { pages_per_day: 4 };
    const body = JSON.stringify({ name, scope: 'write', limits });
    const answer = await fetch(`${server.url}/api/v1/keys`, { method: 'POST', headers, body });
    return ((await answer.json()) as { key: string }).key;
  };
  const [mine, theirs] = [await makeKey('mine'), await makeKey('theirs')];
  const callback = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/done`;
  const urls = [1, 2, 3].map((index) => site.url.replace(/\/$/, '') + pathOf(index));
  const made = await call('POST', '/batch', mine, { urls, callback_url: callback });
  expect([made.status, made.body.accepted]).toEqual([202, 3]);
  await expect.poll(() => received.length).toBe(1);
  const { secret } = (await call('GET', '/webhooks/secret', mine)).body;
  const { headers: given, body } = received[0]!;
  expect(new Webhook(secret).verify(body, given as Record<string, string>)).toMatchObject({
    type: 'job.completed',
    data: { job_id: made.body.batch_id, status: 'completed', counts: { accepted: 3, succeeded: 3 } },
  });
  const path = `/jobs/${made.body.batch_id}`;
  expect((await call('GET', path, mine)).body.status).toBe('completed');
  expect((await call('GET', path, theirs)).status).toBe(404);
  expect((await call('GET', '/jobs', theirs)).body.jobs).toEqual([]);
  const refused = await call('POST', '/batch', mine, { urls });
  expect([refused.status, refused.body.detail]).toEqual([
    429,
    'the key may use 4 pages per day, which this would exceed',
  ]);
  const lines = { 'x-api-key': mine, 'content-type': 'application/x-ndjson' };
  const streamed = await fetch(`${server.url}/api/v1/batch`, {
    method: 'POST',
    headers: lines,
    body: `${urls.join('\n')}\n`,
  });
  expect(streamed.status).toBe(429);
  expect((await call('POST', '/batch', theirs, { urls })).status).toBe(202);
});

test('the client scrapes, waits for batches, and reads rows page after page', async () => {
  const client = connect({ url: `${server.url}/`, key: server.token });
  const page = (index: number) => site.url.replace(/\/$/, '') + pathOf(index);
  const fast = { rate: 'max', robots: false, select: { title: 'h1' } } as const;
  const scraped = await client.scrape(page(1), { ...fast, formats: ['html'] });
  expect(scraped).toMatchObject({ status: 'completed', result: { html: site.bodyOf(1) } });
  const { batch_id: id } = await client.batch([page(1), { url: page(2), meta: { n: 2 } }, page(3)], fast);
  expect((await client.finished(id)).status).toBe('completed');
  const metas: unknown[] = [];
  for await (const { meta } of client.results(id, { status: 'succeeded' })) metas.push(meta);
  expect(metas).toEqual([null, { n: 2 }, null]);
  const records = [];
  for await (const { data } of client.records(id)) records.push(data);
  expect(records).toHaveLength(3);
  await expect(client.job('job_99999')).rejects.toMatchObject({ status: 404, code: 'not-found' });
});

test.each([
  ['/webhooks', { url: 'nowhere' }, 'not an http or https URL'],
  ['/webhooks', { url: 'https://a.example/', events: ['x'] }, 'events.0'],
  ['/webhooks', { url: 'https://a.example/', secret: 'x' }, 'secret'],
  ['/keys', { name: '' }, 'name'],
  ['/keys', { name: 'x', scope: 'all' }, 'scope'],
  ['/keys', { name: 'x', limits: { requests_per_day: 1.5 } }, 'limits.requests_per_day'],
])('POST %s %j is a problem that names the field', async (path, body, message) => {
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain(message);
});

test('the client follows what a job does, and goes on after a break', async () => {
  const { key } = (await call('POST', '/keys', server.token, { name: 'events', scope: 'admin' })).body;
  let breaks = 0;
  /** Ends the first stream after its first attempt. */
  const breaking: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (!String(url).endsWith('/events') || breaks++ > 0) return answer;
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    let text = '';
    while (!/event: attempt\n.*\n\n/.test(text))
      text += decoder.decode((await reader.read()).value, { stream: true });
    await reader.cancel();
    const [first] = /^[\s\S]*?event: attempt\n.*\n\n/.exec(text)!;
    return new Response(first, { headers: answer.headers });
  };
  const client = connect({ url: server.url, key, fetch: breaking });
  const urls = [1, 2, 3].map((index) => site.url.replace(/\/$/, '') + pathOf(index));
  const { batch_id: id } = await client.batch(urls, { robots: false, rate: 'max' });
  const seen: string[] = [];
  for await (const event of client.events(id))
    seen.push(event.type === 'attempt' ? event.data.url : event.type);
  expect(seen.slice(0, -1).sort()).toEqual(urls);
  expect(seen.at(-1)).toBe('end');
  expect(breaks).toBe(2);
  const attempts: string[] = [];
  for await (const { url } of client.attempts(id, { q: pathOf(2) })) attempts.push(url);
  expect(attempts).toEqual([urls[1]]);
  await expect(client.events('job_999').next()).rejects.toMatchObject({ code: 'not-found' });
});

test.each([
  ['curl', 'sh', 'examples/api.sh'],
  ['python3', 'python3', 'examples/api.py'],
])('the example with %s', async (program, command, file) => {
  await provideProgram(program, { package: program });
  const { key } = (await call('POST', '/keys', server.token, { name: file, scope: 'write' })).body;
  const urls = [3, 4].map((index) => site.url.replace(/\/$/, '') + pathOf(index));
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const env = { ...process.env, SEINE_KEY: key };
  const { stdout } = await promisify(execFile)(command, [file, server.url, ...urls], { cwd: root, env });
  const rows = stdout.split('\n').filter((line) => line.includes('succeeded'));
  for (const url of urls) expect(rows.filter((line) => line.includes(url))).not.toEqual([]);
});

test('what is stored of a page, its events, and what all jobs share are not shown to other keys', async () => {
  const make = async (name: string) => {
    const answer = await fetch(`${server.url}/api/v1/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name, scope: 'write' }),
    });
    return ((await answer.json()) as { key: string }).key;
  };
  const [owner, other] = [await make('stored-owner'), await make('stored-other')];
  const url = site.url.replace(/\/$/, '') + pathOf(4);
  const scraped = await call('POST', '/scrape', owner, { url });
  expect(scraped.body.status).toBe('completed');
  const asked = `/pages?url=${encodeURIComponent(url)}`;
  const own = await fetch(`${server.url}/api/v1${asked}`, { headers: { 'x-api-key': owner } });
  expect([own.status, await own.text()]).toEqual([200, site.bodyOf(4)]);
  const paths = [asked, `${asked}&job=${scraped.body.job_id}`, `/jobs/${scraped.body.job_id}/events`];
  for (const path of paths) expect([path, (await call('GET', path, other)).status]).toEqual([path, 404]);
  for (const path of ['/hosts', '/workers', '/proxies'])
    expect((await call('GET', path, owner)).body.code).toBe('forbidden');
  expect((await call('GET', '/proxies', server.token)).body).toEqual({ pools: [], proxies: [] });
  const { slots, urls, oldest_ready_seconds: age } = (await call('GET', '/pressure', owner)).body;
  expect(slots.total).toBe(slots.busy + slots.free);
  expect(slots.total).toBeGreaterThan(0);
  // Its only page is fetched, and those of other keys are not told of.
  expect([urls, age]).toEqual([{ pending: 0, running: 0 }, 0]);
});

test('jobs of a key send together no more requests than it has a day, and say why they stop', async () => {
  const slow = await startLinkedSite({ pages: 20 });
  const limits = { requests_per_day: 12 };
  const made = await call('POST', '/keys', server.token, { name: 'thrifty', scope: 'admin', limits });
  expect(made.body.limits).toMatchObject({ requests_per_day: 12, browser_seconds_per_day: null });
  const { key } = made.body;
  const politeness = { rate: 'max', robots: false, adaptive: false };
  // Each on a host of its own, so that only the key keeps one from the other.
  const start = async (name: string, address: string) => {
    const sources = Array.from(
      { length: 8 },
      (_, page) => `http://${address}:${slow.port}${pathOf(page + 1)}`,
    );
    const job = { name, sources, politeness, batchSize: 8, allowPrivate: true };
    return (await call('POST', '/jobs', key, job)).body.job_id as string;
  };
  const countsOf = async (id: string) => (await call('GET', `/jobs/${id}`, key)).body.counts;
  slow.hold();
  const first = await start('first', '127.0.0.1');
  await expect.poll(async () => (await countsOf(first)).running).toBe(8);
  const second = await start('second', '127.0.0.2');
  await expect.poll(async () => (await countsOf(second)).running).toBeGreaterThan(0);
  expect((await countsOf(second)).running).toBeLessThanOrEqual(4);
  slow.release();
  const ended = await call('GET', `/jobs/${second}?wait=60`, key);
  expect(ended.body).toMatchObject({
    status: 'stopped',
    reason: 'limit of 12 requests per day of the API key reached',
    counts: { succeeded: 4 },
  });
  expect((await call('GET', `/jobs/${first}?wait=60`, key)).body).toMatchObject({ status: 'completed' });
  expect(slow.log).toHaveLength(12);
  expect((await call('GET', `/jobs/${second}/explain`, key)).body.limiting).toBe('budget');
  const refused = await call('POST', `/jobs/${second}/resume`, key);
  expect([refused.status, refused.body.detail]).toEqual([
    429,
    'the key may use 12 requests per day, which this would exceed',
  ]);
  expect(slow.log).toHaveLength(12);
  await slow.close();
});

test('pages of whole jobs and crawls count against the pages that a key has a day', async () => {
  const admin = (await call('GET', '/keys', server.token)).body;
  expect(admin.keys.length).toBeGreaterThan(0);
  const limits = { pages_per_day: 3 };
  const { key } = (await call('POST', '/keys', server.token, { name: 'few', scope: 'admin', limits })).body;
  const politeness = { rate: 'max', robots: false, adaptive: false };
  const follow = [{ within: 'host' }];
  const job = { name: 'few', sources: [site.url], follow, politeness, batchSize: 1, allowPrivate: true };
  const made = await call('POST', '/jobs', key, job);
  expect(made.status).toBe(202);
  const ended = await call('GET', `/jobs/${made.body.job_id}?wait=60`, key);
  expect(ended.body).toMatchObject({
    status: 'stopped',
    reason: expect.stringContaining('3 pages of today'),
  });
  expect(ended.body.counts.succeeded).toBeGreaterThanOrEqual(3);
  for (const path of [`/jobs/${made.body.job_id}/resume`, '/jobs'])
    expect(await call('POST', path, key, path === '/jobs' ? job : undefined)).toMatchObject({
      status: 429,
      body: { code: 'rate-limited' },
    });
  const crawl = await fetch(`${server.url}/v2/crawl`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ url: site.url, sitemap: 'skip' }),
  });
  expect(crawl.status).toBe(429);
});
