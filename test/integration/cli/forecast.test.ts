import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Receipt } from '../../../src/core/cost/receipt.ts';
import type { Forecast } from '../../../src/core/forecast/forecast.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { seineHere } from '../../support/seine-in-process.ts';

/** Quote, run and receipt, as a person at a terminal gets them. */

const PAGES = 40;
const requested: string[] = [];
const server = createServer((request, response) => {
  requested.push(request.url!);
  if (request.url === '/robots.txt') response.end('User-agent: *\nDisallow: /p/0\n');
  else response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${request.url}</title>`);
});
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let list: string;
let host: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  list = join(folder.dir, 'pages.txt');
  const urls = Array.from({ length: PAGES }, (_, page) => `http://${host}/p/${page}`);
  // A row that repeats another one is no page of its own.
  await writeFile(list, `${[...urls, urls[1]].join('\n')}\n`);
  await writeFile(
    join(folder.dir, 'settings.json'),
    JSON.stringify({ workers: 1, prices: { egressGb: 1_000, machineHour: 0 } }),
  );
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await folder.remove();
});

const seine = (command: string, ...more: string[]) =>
  seineHere(
    command,
    ...more,
    '--dir',
    join(folder.dir, 'state'),
    '--config',
    join(folder.dir, 'settings.json'),
  );
// At a rate, so that the host decides how long it takes, and not whether it answers faster than a worker computes.
const OPTIONS = ['--rate', '100', '--allow-private', '--no-adaptive'];

test('a forecast comes before the run, is its quote, and stands on its receipt beside the bill', async () => {
  const first = await seine('forecast', list, ...OPTIONS, '--json');
  expect(first.stderr).toBe('');
  const forecast: Forecast = JSON.parse(first.stdout);
  expect(Object.keys(forecast)).toEqual([
    ...['requests', 'pages', 'seconds', 'bytes', 'dollars', 'criticalHost', 'sample'],
  ]);
  expect(forecast).toMatchObject({ pages: PAGES, criticalHost: host });
  // A quarter of a short list, and robots.txt. Allowed pages alone were requested.
  const sent = requested.length;
  expect(forecast.sample).toEqual({ from: 'sample', requests: sent, pages: sent - 1 });
  expect(sent).toBeGreaterThanOrEqual(10);
  expect(sent).toBeLessThanOrEqual(11);
  expect(requested).not.toContain('/p/0');
  expect(forecast.seconds.p90).toBeGreaterThanOrEqual(forecast.seconds.p50);
  expect(forecast.dollars.p50).toBeGreaterThan(0);
  expect(forecast.dollars.items.map(({ item }) => item)).toContain('egressGb');

  const again = await seine('forecast', list, ...OPTIONS, '--json');
  expect(JSON.parse(again.stdout)).toEqual(forecast);
  expect(requested).toHaveLength(sent);

  const ran = await seine('run', list, ...OPTIONS);
  expect(ran.stderr).toMatch(/^receipt: .* USD of .* USD quoted/m);
  const receipt: Receipt = JSON.parse((await seine('receipt', '--json')).stdout);
  expect(receipt).toMatchObject({ state: 'done', quote: forecast, addsUp: true });
  // The sample has read robots.txt already.
  expect(receipt.requests).toBe(PAGES - 1);
  expect(receipt.urls).toMatchObject({ accepted: PAGES, done: PAGES - 1, skipped: 1, dead: 0, waiting: 0 });
  expect(receipt.reasons).toEqual([{ state: 'skipped', code: 'robots', count: 1 }]);
  // 1,000 bytes for each request, at 1,000 dollars a GB.
  expect(receipt.bill.dollars).toBeCloseTo((PAGES - 1) * 0.001, 6);
  const text = (await seine('receipt')).stdout;
  expect(text).toContain(
    `accepted ${PAGES} = done ${PAGES - 1} + unchanged 0 + skipped 1 + dead 0 + waiting 0`,
  );

  // From now on the run itself is the evidence.
  const later: Forecast = JSON.parse((await seine('forecast', list, ...OPTIONS, '--json')).stdout);
  expect(later.sample).toMatchObject({ from: 'earlier runs', requests: PAGES - 1 });
  expect(later.dollars.p50 / receipt.bill.dollars).toBeCloseTo(1, 0);
});

test('a dry run has a forecast and sends nothing', async () => {
  const before = requested.length;
  const { stdout } = await seine('run', list, ...OPTIONS, '--name', 'other', '--dry-run');
  expect(stdout).toMatch(/^other would read\n/);
  expect(stdout).toContain('assuming what is usual');
  expect(stdout).toContain(`pages      ${PAGES}`);
  expect(requested).toHaveLength(before);
  const wrong = await seine('forecast', list, '--sample', 'many');
  expect(wrong.stderr).toContain('--sample needs a whole number');
});
