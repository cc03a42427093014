import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { crawl } from '../../support/coordinator/crawl-setup.ts';

/** A refused task with a level left goes on, though its failure is one that is not tried again by itself. */

const userAgents: string[] = [];
const server = createServer((request, response) => {
  if (request.url === '/robots.txt') {
    response.writeHead(404).end();
    return;
  }
  const userAgent = request.headers['user-agent'] ?? '';
  userAgents.push(userAgent);
  response.writeHead(userAgent.startsWith('Mozilla/') ? 200 : 403, { 'content-type': 'text/html' });
  response.end(`<title>page</title><p>${'words '.repeat(100)}</p>`);
});
let origin: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('a forbidden page is asked for again at the next level, and is no dead letter', async () => {
  const { state, counters } = await crawl({
    sources: `${origin}/page`,
    routes: [{ name: 'all', escalate: ['identity'] }],
    allowPrivate: true,
  });
  expect(state).toBe('done');
  expect(counters).toMatchObject({ done: 1, dead: 0 });
  expect(userAgents.map((userAgent) => userAgent.startsWith('Mozilla/'))).toEqual([false, true]);
});
