import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import type { Scope } from '../../../src/core/keys/api-key.ts';
import { OPERATIONS } from '../../../src/server/api/openapi.ts';
import { openReadOnlyServer } from '../../../src/server/read-only-server.ts';
import { ordinaryUser } from '../../support/ordinary-user.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';

/** Whoever attacks here has a key, or can connect, and wants what is not theirs. */

const HTML = '<!doctype html><title>Mine</title><h1>Mine</h1><script>alert(1)</script>';
let site: Server;
/** Paths that were requested. */
const asked: string[] = [];
let place: string;

beforeAll(async () => {
  site = createServer(({ url = '' }, response) => {
    asked.push(url);
    const type = url.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8';
    response.setHeader('content-type', url === '/robots.txt' ? 'text/plain' : type);
    response.end(url === '/robots.txt' ? '' : url.endsWith('.js') ? 'alert(1)' : HTML);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  place = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
});

afterAll(() => {
  site.closeAllConnections();
  site.close();
});

interface Answer {
  status: number;
  headers: Headers;
  text: string;
  body: ReturnType<typeof JSON.parse>;
}

async function send(
  server: { url: string },
  method: string,
  path: string,
  { key, body, headers = {} }: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const answer = await fetch(server.url + path, {
    method,
    headers: {
      ...(key === undefined ? {} : { 'x-api-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json') ?? false;
  const isOne = isJson && !answer.headers.get('content-type')?.includes('ndjson');
  return { status: answer.status, headers: answer.headers, text, body: isOne ? JSON.parse(text) : null };
}

async function makeKey(server: ApiServer, name: string, scope: Scope, limits = {}): Promise<string> {
  const headers = { authorization: `Bearer ${server.token}` };
  const made = await send(server, 'POST', '/api/v1/keys', { body: { name, scope, limits }, headers });
  expect(made.status).toBe(201);
  return made.body.key;
}

async function ended(server: ApiServer, id: string, key: string): Promise<Answer> {
  let answer: Answer;
  do answer = await send(server, 'GET', `/api/v1/jobs/${id}?wait=10`, { key });
  while (answer.body.status === 'queued' || answer.body.status === 'running');
  return answer;
}

describe('with the key of another', () => {
  let server: ApiServer;
  let mine: string;
  let other: string;
  let job: string;
  let hook: string;
  let sha256: string;

  beforeAll(async () => {
    server = await openApiServer();
    [mine, other] = [await makeKey(server, 'mine', 'write'), await makeKey(server, 'other', 'write')];
    const url = `${place}/page`;
    const batch = await send(server, 'POST', '/api/v1/batch', {
      key: mine,
      body: { urls: [url, `${place}/app.js`], select: { title: 'h1' } },
    });
    job = batch.body.batch_id;
    const made = await send(server, 'POST', '/api/v1/webhooks', {
      key: mine,
      body: { url: `${place}/hook` },
    });
    hook = made.body.id;
    await ended(server, job, mine);
    const rows = await send(server, 'GET', `/api/v1/jobs/${job}/results`, { key: mine });
    sha256 = rows.body.results[0].sha256;
  });
  afterAll(() => server.close());

  test('every call of the API that names a job, a page or a webhook finds nothing', async () => {
    const query = `?url=${encodeURIComponent(`${place}/page`)}&key=x`;
    const found: string[] = [];
    for (const { method, path, scope, query: wanted, body } of OPERATIONS) {
      if (!path.includes('{') && !path.startsWith('/pages')) continue;
      const real = path
        .replace('/jobs/{id}', `/jobs/${job}`)
        .replace('/webhooks/{id}', `/webhooks/${hook}`)
        .replace('{delivery}', '1')
        .replace('{sha256}', sha256)
        .replace('{key}', 'media/00/x.png')
        .replace('{id}', 'x');
      const names = Object.keys(wanted?.shape ?? {});
      const asked = new URLSearchParams(
        [...new URLSearchParams(query)].filter(([name]) => names.includes(name)),
      );
      const answer = await send(server, method.toUpperCase(), `/api/v1${real}?${asked}`, {
        key: other,
        ...(body ? { body: {} } : {}),
      });
      if (answer.status !== (scope === 'admin' ? 403 : 404))
        found.push(`${method} ${real}: ${answer.status}`);
    }
    expect(found).toEqual([]);
  });

  test('its lists have none of it, and the words of Firecrawl and MCP lead to nothing either', async () => {
    for (const [path, name] of [
      ['/jobs', 'jobs'],
      ['/webhooks', 'webhooks'],
    ])
      expect((await send(server, 'GET', `/api/v1${path}`, { key: other })).body[name!]).toEqual([]);
    for (const path of [`/v2/batch/scrape/${job}`, `/v2/crawl/${job}`, `/v2/batch/scrape/${job}/errors`])
      expect((await send(server, 'GET', path, { key: other })).status).toBe(404);
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
    const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' };
    for (const key of [other, mine]) {
      const params = { name: 'job_status', arguments: { job_id: job } };
      const answer = await send(server, 'POST', '/mcp', { key, body: { ...call, params }, headers });
      expect(answer.text.includes('not-found'), answer.text).toBe(key === other);
    }
    expect((await send(server, 'GET', '/metrics', { key: other })).text).not.toContain('batch-');
    const appended = { urls: [`${place}/more`], append_to: job };
    expect((await send(server, 'POST', '/api/v1/batch', { key: other, body: appended })).status).toBe(404);
  });

  test('SQL in filters and cursors is text', async () => {
    for (const text of ["' OR 1=1 --", '%', '_', "x'; DROP TABLE jobs; --", '\\', '*', '"']) {
      const q = encodeURIComponent(text);
      for (const name of ['q', 'host', 'code']) {
        const { status, body } = await send(server, 'GET', `/api/v1/jobs/${job}/results?${name}=${q}`, {
          key: mine,
        });
        expect([status, body.results]).toEqual([200, []]);
      }
      for (const list of ['jobs', `jobs/${job}/results`, `jobs/${job}/attempts`])
        expect((await send(server, 'GET', `/api/v1/${list}?cursor=${q}`, { key: mine })).status).toBe(400);
    }
    expect((await send(server, 'GET', `/api/v1/jobs/${job}`, { key: mine })).body.counts.total).toBe(2);
  });

  test('paths that lead out of their folder lead nowhere', async () => {
    const url = encodeURIComponent(`${place}/page`);
    for (const path of [
      `/api/v1/shots/..%2f..%2fserver.json?url=${url}`,
      `/api/v1/shots/../../server.json?url=${url}`,
      `/api/v1/media/..%2f..%2fserver.json?url=${url}`,
      '/assets/..%2f..%2fpackage.json',
      '/assets/%2e%2e/%2e%2e/package.json',
      `/api/v1/jobs/..%2f..%2fkeys`,
    ])
      expect([400, 404]).toContain((await send(server, 'GET', path, { key: mine })).status);
  });

  test('names of JavaScript itself are names like any other', async () => {
    const meta = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2, "toString": 3}');
    const select = JSON.parse('{"__proto__": "h1", "constructor": "h1"}');
    const batch = await send(server, 'POST', '/api/v1/batch', {
      key: mine,
      body: { urls: [{ url: `${place}/names`, meta }], select },
    });
    // Whether such fields are taken or refused, nothing may break.
    expect([202, 400]).toContain(batch.status);
    const plain = await send(server, 'POST', '/api/v1/batch', {
      key: mine,
      body: { urls: [{ url: `${place}/names`, meta }] },
    });
    await ended(server, plain.body.batch_id, mine);
    const rows = await send(server, 'GET', `/api/v1/jobs/${plain.body.batch_id}/results`, { key: mine });
    expect(rows.body.results[0]).toMatchObject({
      status: 'succeeded',
      meta: { constructor: 2, toString: 3 },
    });
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
    expect((await send(server, 'GET', '/healthz')).status).toBe(200);
  });

  test('stored bytes are shown as nothing that could act here, and are those that were fetched', async () => {
    const stored = (path: string) =>
      send(server, 'GET', `/api/v1/pages?inline=1&url=${encodeURIComponent(place + path)}`, { key: mine });
    const page = await stored('/page');
    expect(page.text).toBe(HTML);
    expect(page.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/);
    const script = await stored('/app.js');
    // The dashboard runs scripts of its own origin.
    expect(script.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const folder = join(server.dir, 'warc');
    for (const name of (await readdir(folder, { recursive: true })).filter((each) => each.endsWith('.gz'))) {
      const path = join(folder, name);
      const { gunzipSync, gzipSync } = await import('node:zlib');
      const text = gunzipSync(await readFile(path))
        .toString('latin1')
        .replaceAll('<h1>Mine', '<h1>Evil');
      await writeFile(path, gzipSync(Buffer.from(text, 'latin1')));
    }
    expect((await stored('/page')).text).not.toContain('Evil');
    const rows = await send(server, 'GET', `/api/v1/jobs/${job}/results?formats=html,markdown`, {
      key: mine,
    });
    expect(rows.text).not.toContain('Evil');
  });
});

describe('requests that lead to this machine', () => {
  let server: ApiServer;
  let key: string;
  let port: number;

  beforeAll(async () => {
    server = await openApiServer({ allowPrivate: false });
    key = await makeKey(server, 'tenant', 'write');
    port = Number(new URL(place).port);
    asked.length = 0;
  });
  afterAll(() => server.close());

  const post = (path: string, body: unknown) => send(server, 'POST', path, { key, body });

  test('reach nothing, whatever names the place', async () => {
    const far = 'http://192.0.2.1/';
    const proxy = { pools: { p: { from: { list: [`http://127.0.0.1:${port}`] } } }, default: 'p' };
    const named = { pools: { p: { from: { list: [`http://localhost:${port}`] } } }, default: 'p' };
    const api = { url: `${place}/api?u={url}` };
    const batchApi = { batch: { submit: `${place}/submit` } };
    const routes = [{ name: 'page', fetcher: 'api' }];
    const quick = {
      retry: { attempts: 1, baseMs: 1, maxMs: 1 },
      timeouts: { connectMs: 200 },
      politeness: { robots: true },
    };
    const jobs: object[] = [
      { sources: `${place}/source` },
      { sources: { file: `${place}/list.csv` } },
      { sources: `${place}/table.parquet` },
      { sources: { sitemap: `${place}/sitemap.xml` } },
      { sources: `sitemap:${place}` },
      { sources: `http://localhost:${port}/name` },
      { sources: { file: `http://localhost:${port}/list.csv` } },
      { sources: far, proxies: proxy },
      { sources: far, proxies: named },
      { sources: far, api, routes },
      { sources: far, api: batchApi, routes },
    ];
    const hook = await post('/api/v1/webhooks', {
      url: `${place}/hook`,
      events: ['job.completed', 'job.failed'],
    });
    const ids: string[] = [];
    for (const [index, job] of jobs.entries()) {
      const made = await post('/api/v1/jobs', { name: `j${index}`, ...quick, ...job });
      expect(made.status, made.text).toBe(202);
      ids.push(made.body.job_id);
    }
    const hooked = { urls: [`${place}/hooked`], callback_url: `${place}/callback` };
    const batch = await post('/api/v1/batch', hooked);
    ids.push(batch.body.batch_id);
    const scraped = await post('/api/v1/scrape', { url: `${place}/scrape` });
    expect(scraped.body.error.code).toBe('private-address');
    await post('/v2/scrape', { url: `${place}/firecrawl` });
    await post('/v2/map', { url: place, timeout: 1_000 });
    await Promise.all(ids.map((id) => send(server, 'POST', `/api/v1/jobs/${id}/stop`, { key })));
    for (const id of ids) await ended(server, id, key);
    const log = () => send(server, 'GET', `/api/v1/webhooks/${hook.body.id}/deliveries`, { key });
    await expect
      .poll(async () => (await log()).text, { timeout: 20_000 })
      .toContain('no address that may be called');
    expect(asked).toEqual([]);
  });

  test('secrets, files, SQL and S3 of the operator are not for jobs of the API', async () => {
    const urls = 'https://shop.example/';
    const api = (ref: object) => ({
      sources: urls,
      api: { url: 'https://evil.example/{key}?{url}', key: ref },
    });
    const pool = (from: object) => ({ sources: urls, proxies: { pools: { p: { from } } } });
    const refused: object[] = [
      ...[{ env: 'HOME' }, { file: '/etc/passwd' }, { secret: 'token' }].flatMap((ref) => [
        api(ref),
        pool(ref),
        pool({ list: ['http://192.0.2.1:80'], credentials: ref }),
        { sources: urls, identity: { secretHeaders: { 'https://evil.example': { 'x-a': ref } } } },
        { sources: urls, login: { state: ref } },
      ]),
      { sources: '/etc/passwd' },
      { sources: { file: '/etc/passwd', format: 'txt' } },
      { sources: { file: 'file:///etc/passwd' } },
      { sources: { sitemap: '/etc/passwd.xml' } },
      { sources: 'sitemap:/etc/passwd.xml' },
      { sources: 's3://bucket/list.csv' },
      { sources: { sitemap: 's3://bucket/map.xml' } },
      { sources: { query: 'SELECT url FROM seine_tasks' } },
      { sources: urls, allowPrivate: true },
      { sources: urls, privateServices: true },
      { sources: urls, sink: { table: 'jobs' } },
      { sources: urls, notify: { url: 'http://127.0.0.1/' } },
    ];
    for (const job of refused)
      for (const path of ['/api/v1/jobs', '/api/v1/forecast']) {
        const { status, text } = await post(path, path.endsWith('forecast') ? { job, sample: 0 } : job);
        expect([400, 403], `${path} ${JSON.stringify(job)} ${text}`).toContain(status);
        expect(text).not.toMatch(/root:|202 /);
      }
  });

  test('what a body may be is bounded before anyone reads it', async () => {
    const large = JSON.stringify({ key: 'x'.repeat(100_000) });
    for (const path of ['/login', '/nothing', '/internal/jobs/1', '/healthz']) {
      const { status } = await send(server, 'POST', path, { body: large });
      expect([413, 404, 405], path).toContain(status);
    }
    expect((await send(server, 'POST', '/login', { body: large })).status).toBe(413);
    const reader = await makeKey(server, 'reader', 'read');
    expect((await send(server, 'POST', '/api/v1/batch', { key: reader, body: large })).status).toBe(403);
    const deep = `{"url": ${'['.repeat(100)}${']'.repeat(100)}}`;
    expect((await post('/api/v1/scrape', deep)).status).toBe(400);
    const meta = { a: 'x'.repeat(20_000) };
    expect((await post('/api/v1/scrape', { url: 'https://shop.example/', meta })).status).toBe(400);
    const rows = await post('/api/v1/batch', { urls: [{ url: 'https://shop.example/', meta }] });
    expect([rows.status, rows.body.rejected[0].reason]).toEqual([
      422,
      'meta: longer than 16,384 characters as JSON',
    ]);
    const select = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`f${at}`, `.field-${at}`]));
    expect(
      (await post('/api/v1/jobs', { sources: 'https://shop.example/', routes: [{ name: 'a', select }] }))
        .status,
    ).toBe(413);
  });

  test('answers to nonsense have no path, no SQL and no stack of the server', async () => {
    const answers: string[] = [];
    for (const body of ['{', '[]', '"x"', 'null', '{"sources": 7}', '{"url": "\\u0000"}', '{"__proto__": 1}'])
      for (const path of [
        '/api/v1/jobs',
        '/api/v1/scrape',
        '/api/v1/batch',
        '/v2/crawl',
        '/api/v1/forecast',
        '/mcp',
      ])
        answers.push((await post(path, body)).text);
    for (const path of [
      '/api/v1/jobs/%00',
      '/api/v1/jobs/job_99',
      '/api/v1/pages?url=%00',
      '/api/v1/media/%ff',
    ])
      answers.push((await send(server, 'GET', path, { key })).text);
    for (const text of answers) {
      expect(text).not.toContain(server.dir);
      expect(text).not.toMatch(/node_modules|\bSELECT\b|\n\s+at /);
    }
  });

  test('a key in a wrong place is in no answer and in no line of the log', async () => {
    const secret = await makeKey(server, 'secret', 'write');
    const texts = [
      (await send(server, 'GET', `/api/v1/jobs/${secret}`, { key })).text,
      (await send(server, 'GET', `/api/v1/jobs?${secret}=1`, { key })).text,
      (await post('/api/v1/scrape', { url: `https://x.example/${secret}`, [secret]: 1 })).text,
    ];
    expect(texts.every((text) => text.length > 0)).toBe(true);
    expect(server.log.join('\n')).not.toContain(secret);
    // Who changed what is there, by the name of the key alone.
    expect(server.log.join('\n')).toMatch(/^key_[\w-]+ changed something: POST \/api\/v1\/batch$/m);
  });
});

describe('limits of a key', () => {
  let server: ApiServer;
  beforeAll(async () => {
    server = await openApiServer();
  });
  afterAll(() => server.close());

  test('hold for a line without an end, for pages again, and for sitemaps', async () => {
    const key = await makeKey(server, 'few', 'write', { pages_per_day: 3 });
    const lines = (body: string) =>
      send(server, 'POST', '/api/v1/batch', {
        key,
        body,
        headers: { 'content-type': 'application/x-ndjson' },
      });
    const first = await lines(`"${place}/one"`);
    expect(first.status).toBe(202);
    const id = first.body.batch_id;
    await ended(server, id, key);
    const refresh = () => send(server, 'POST', `/api/v1/jobs/${id}/refresh`, { key });
    expect((await refresh()).status).toBe(200);
    await ended(server, id, key);
    expect((await refresh()).status).toBe(200);
    await ended(server, id, key);
    for (const answer of [
      await refresh(),
      await lines(`"${place}/two"`),
      await send(server, 'POST', '/v2/map', { key, body: { url: place } }),
      await send(server, 'POST', `/api/v1/jobs/${id}/retry`, { key, body: {} }),
    ])
      expect(answer.status, answer.text).toBe(429);
  });

  test('a stream ends when its key is revoked, and one key cannot take all streams', async () => {
    const key = await makeKey(server, 'watcher', 'read');
    const made = await send(server, 'GET', '/api/v1/keys', {
      headers: { authorization: `Bearer ${server.token}` },
    });
    const { id } = made.body.keys.find(({ name }: { name: string }) => name === 'watcher');
    const stream = await fetch(`${server.url}/api/v1/snapshots`, { headers: { 'x-api-key': key } });
    const reader = stream.body!.getReader();
    await reader.read();
    await send(server, 'DELETE', `/api/v1/keys/${id}`, {
      headers: { authorization: `Bearer ${server.token}` },
    });
    let isEnd = false;
    while (!isEnd) isEnd = (await reader.read()).done;
    expect(isEnd).toBe(true);
    const greedy = await makeKey(server, 'greedy', 'read');
    const open: AbortController[] = [];
    // An answer that is let go is collected some time, and its stream ends with it.
    const answers: Response[] = [];
    let status = 200;
    while (status === 200 && open.length < 200) {
      const stop = new AbortController();
      open.push(stop);
      const answer = await fetch(`${server.url}/api/v1/snapshots`, {
        headers: { 'x-api-key': greedy },
        signal: stop.signal,
      });
      answers.push(answer);
      status = answer.status;
      if (status !== 200) await answer.text();
    }
    expect(status).toBe(429);
    const fair = await makeKey(server, 'fair', 'read');
    const stop = new AbortController();
    const answer = await fetch(`${server.url}/api/v1/snapshots`, {
      headers: { 'x-api-key': fair },
      signal: stop.signal,
    });
    expect(answer.status).toBe(200);
    for (const each of [...open, stop]) each.abort();
    expect(answers).toHaveLength(open.length);
  });
});

describe('without any key', () => {
  let server: ApiServer;
  beforeAll(async () => {
    server = await openApiServer();
  });
  afterAll(() => server.close());

  test('whoever comes through a proxy is not taken for the user of this machine', async () => {
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'])
      expect((await send(server, 'GET', '/api/v1/jobs', { headers: { [name]: '203.0.113.9' } })).status).toBe(
        401,
      );
    expect((await send(server, 'GET', '/api/v1/jobs')).status).toBe(200);
  });

  test('other users of this machine are refused, but for numbers', async () => {
    const user = ordinaryUser();
    const program = `fetch(process.argv[1]).then(({ status }) => console.log(status))`;
    for (const [path, status] of [
      ['/api/v1/jobs', 401],
      ['/', 200],
      ['/metrics', 200],
    ] as const) {
      const child = spawn(process.execPath, ['-e', program, server.url + path], { uid: user, cwd: '/' });
      const [said] = await once(child.stdout, 'data');
      expect([path, Number(said)]).toEqual([path, user === process.getuid!() ? 200 : status]);
    }
  });

  test('forms and scripts of other sites are refused, in every way that a browser sends them', async () => {
    const port = Number(new URL(server.url).port);
    const statusOf = (headers: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const sent = request(
          { port, host: '127.0.0.1', path: '/api/v1/scrape', method: 'POST', headers },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode!);
          },
        );
        sent.on('error', reject);
        sent.end('{"url": "https://shop.example/"}');
      });
    const own = { host: `127.0.0.1:${port}` };
    for (const headers of [
      { ...own, origin: 'https://evil.example', 'content-type': 'application/json' },
      { ...own, origin: 'null', 'content-type': 'application/json' },
      { ...own, origin: `http://127.0.0.1:${port + 1}`, 'content-type': 'application/json' },
      { ...own, 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
      { ...own, 'sec-fetch-site': 'same-site', 'content-type': 'application/json' },
      // A name of theirs that leads here.
      { host: `evil.example:${port}`, 'content-type': 'application/json' },
      { host: `127.0.0.1.evil.example:${port}`, 'content-type': 'application/json' },
      { host: `localhost.:${port}`, 'content-type': 'application/json' },
    ])
      expect(await statusOf(headers), JSON.stringify(headers)).toBe(403);
    expect(await statusOf({ ...own, 'content-type': 'text/plain' })).toBe(415);
    expect(await statusOf({ ...own, 'content-type': 'application/x-www-form-urlencoded' })).toBe(415);
  });

  test('a server that shows a folder changes nothing, whatever the request calls itself', async () => {
    const logger = { info() {}, warn() {}, error() {} };
    const settings = { dir: server.dir, sync: 'normal' as const, workers: 1, jobEnvironment: {}, logger };
    const folder = await openFolder(settings, { create: false });
    const shown = await openReadOnlyServer(folder, { listen: { host: '127.0.0.1', port: 0 }, settings });
    try {
      const calls = OPERATIONS.filter(({ method }) => method !== 'get');
      for (const { method, path } of calls) {
        if (path === '/jobs') continue;
        const real = `/api/v1${path.replaceAll(/\{\w+\}/g, '1')}?dry_run=1`;
        const { status, body } = await send(shown, method.toUpperCase(), real, { body: {} });
        expect([real, status, body?.code]).toEqual([real, 403, 'read-only']);
      }
      expect((await send(shown, 'POST', '/v2/scrape?dry_run', { body: {} })).status).toBe(403);
    } finally {
      await shown.close();
      await folder.close();
    }
  });
});
