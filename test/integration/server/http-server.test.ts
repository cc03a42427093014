import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';

let server: ApiServer;

beforeAll(async () => {
  server = await openApiServer();
});

afterAll(() => server.close());

const get = (path: string, headers: Record<string, string> = {}) => fetch(server.url + path, { headers });

test('tells that it is healthy and ready, and nothing else without a route', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  }
  const wrong = await fetch(`${server.url}/healthz`, { method: 'POST' });
  expect(wrong.status).toBe(405);
  expect(wrong.headers.get('allow')).toBe('GET, HEAD');
  const answer = await get('/nothing');
  expect(answer.status).toBe(404);
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
  expect(await answer.json()).toMatchObject({ code: 'not-found', status: 404, type: '/docs#not-found' });
});

test('answers commands with the token of the folder alone', async () => {
  expect((await get('/internal/jobs/1')).status).toBe(404);
  expect((await get('/internal/jobs/1', { authorization: 'Bearer wrong' })).status).toBe(404);
  const { token } = server;
  expect((await get('/internal/jobs/1', { authorization: `Bearer ${token}` })).status).toBe(200);
});

test('answers what is not HTTP, and headers that never end, and goes on', async () => {
  for (const [text, status] of [
    ['nonsense\r\n\r\n', 400],
    [`GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
  ] as const) {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.write(text);
    const [chunk] = await once(socket, 'data');
    expect(String(chunk)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    socket.destroy();
  }
  expect((await get('/healthz')).status).toBe(200);
});

test('forgives an empty body of JSON and a slash at the end, and says when a key is wrong', async () => {
  const post = (path: string) => {
    const headers = { 'content-type': 'application/json' };
    return fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers });
  };
  // There is no such job; the empty body is no problem.
  expect(await (await post('/jobs/job_99/stop')).json()).toMatchObject({ detail: 'no such job' });
  expect(await (await post('/scrape')).json()).toMatchObject({
    code: 'bad-option',
    detail: 'the body is missing: send a JSON object',
  });
  expect((await get('/api/v1/jobs/')).status).toBe(200);
  expect((await get('/healthz/')).status).toBe(200);
  const wrong = await get('/api/v1/jobs', { 'x-api-key': 'seine_wrong' });
  expect(await wrong.json()).toMatchObject({
    code: 'unauthorized',
    detail: 'this server does not know the key, or it was revoked',
  });
});

test('refuses what web pages of others send without a key', async () => {
  const refused: Record<string, string>[] = [
    { host: 'evil.example' },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: 'null' },
  ];
  for (const headers of refused) expect(await statusOf('/api/v1/jobs', headers)).toBe(403);
  const own: Record<string, string>[] = [{}, { origin: server.url }];
  for (const headers of own) expect(await statusOf('/api/v1/jobs', headers)).not.toBe(403);
});

/** fetch lets nobody set `Host`. */
async function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  const sent = request(server.url + path, { headers });
  sent.end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  return answer.statusCode;
}
