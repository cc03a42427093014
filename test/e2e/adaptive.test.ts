import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jsonLines, seine, startSeine, temporaryFolder } from '../support/seine-process.ts';

const LIMIT = 5;
const CAP = 20;
/** By then the limit has been met from above a few times, and the pace keeps just below it. */
const SETTLED_MS = 40_000;
const WATCHED_MS = 20_000;

const folder = temporaryFolder();
const log: { at: number; refused: boolean }[] = [];
let server: Server;

/** Answers 429 to whatever is above its limit within a second. */
function answerWithin(limit: number) {
  let served: number[] = [];
  return () => {
    const at = performance.now();
    served = served.filter((time) => time > at - 1_000);
    const refused = served.length >= limit;
    if (!refused) served.push(at);
    log.push({ at, refused });
    return refused;
  };
}

beforeAll(async () => {
  const isRefused = answerWithin(LIMIT);
  server = createServer((request, response) => {
    if (request.url === '/robots.txt') response.writeHead(404).end();
    else response.writeHead(isRefused() ? 429 : 200, { 'content-type': 'text/html' }).end('<h1>page</h1>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

test('a host that refuses more than 5 requests a second is found out, and held within 20 % of that', async () => {
  log.length = 0;
  const { port } = server.address() as AddressInfo;
  const urls = Array.from({ length: 600 }, (_, index) => `http://127.0.0.1:${port}/page/${index}`);
  const list = join(folder.path, 'urls.txt');
  writeFileSync(list, urls.join('\n'));
  const dir = join(folder.path, `seine-${performance.now()}`);
  const run = startSeine(['run', list, '--rate', String(CAP), '--allow-private', '--dir', dir, '--json']);
  const end = new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const first = log[0]?.at;
      if (first === undefined || performance.now() < first + SETTLED_MS + WATCHED_MS) return;
      clearInterval(timer);
      resolve();
    }, 100);
  });
  await end;
  run.child.kill('SIGTERM');
  await run.finished;

  const settled = log.filter(({ at }) => at > log[0]!.at + SETTLED_MS);
  const refused = settled.filter((entry) => entry.refused).length;
  const rate = (settled.length - refused) / (WATCHED_MS / 1_000);
  console.log(
    JSON.stringify({ rate, refused, settled: settled.length, before: log.length - settled.length }),
  );
  expect(refused / settled.length).toBeLessThan(0.01);
  expect(rate).toBeGreaterThanOrEqual(LIMIT * 0.8);
  expect(rate).toBeLessThanOrEqual(LIMIT * 1.02);

  const [host] = jsonLines((await seine(['hosts', '--json', '--dir', dir])).stdout);
  expect(host).toMatchObject({ host: `127.0.0.1:${port}`, lastError: 'throttled: status 429' });
  expect(host?.limitedBy).toContain('adaptive rate: below');
}, 120_000);
