import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { failureKind } from '../../../../src/core/failures.ts';
import { type BrowserFetcher, openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { codeOf, type RequestDraft, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { groupOf, listProcesses, renderersOf } from '../../../support/browser/browser-processes.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import { openRawOrigin, type RawOrigin, reply, sends } from '../../../support/servers/raw-origin.ts';

/** Pages that wedge, and browsers that die: each ends in time, and the next page has a browser that works. */

const html = (body: string) => sends(reply('200 OK', ['Content-Type: text/html'], body));
const CHILD = fileURLToPath(new URL('../../../support/browser/browser-child.ts', import.meta.url));
const GONE = { timeout: 60_000, interval: 50 };

let origin: RawOrigin;
let fetcher: BrowserFetcher;
beforeAll(async () => {
  origin = await openRawOrigin({
    '/page': html('<h1>page</h1>'),
    '/loops': html('<script>while (true);</script>'),
    '/loops-later': html('<h1>page</h1><script>onload = () => { while (true); }</script>'),
    '/writes': html('<script>while (true) document.write("<p>more")</script>'),
    '/asks': html('<script>for (;;) { alert(1); confirm(2); }</script>'),
    '/opens': html('<h1>page</h1><script>setInterval(() => window.open("/page"), 5)</script>'),
    '/clings': html(
      '<h1>page</h1><script>onbeforeunload = (event) => { event.preventDefault(); return "stay" }</script>',
    ),
    '/reloads': html('<h1>page</h1><script>location.reload()</script>'),
    '/waits': () => {},
  });
  fetcher = await openBrowserFetcher({ clock, isPublicAddress, browser: { path: 'bundled', pages: 4 } });
  await fetcher.prepare();
});
afterAll(async () => {
  await fetcher.close();
  await origin.close();
});

const get = (path: string, draft: RequestDraft = {}) =>
  fetcher.fetch(requestOf(origin.url + path, { timeouts: { taskMs: 20_000 }, ...draft }));
const worksAgain = async () =>
  expect(responseOf(await get('/page')).body.toString()).toContain('<h1>page</h1>');

describe('a page that', () => {
  test.each(['/loops', '/loops-later', '/writes'])(
    '%s ends by its deadline, and others go on',
    async (path) => {
      const startedAt = performance.now();
      const [result] = await Promise.all([get(path, { timeouts: { taskMs: 1_500 } }), worksAgain()]);
      expect(codeOf(result)).toBe('task-timeout');
      expect(performance.now() - startedAt).toBeLessThan(60_000);
      await worksAgain();
    },
  );

  test.each(['/opens', '/clings', '/reloads'])('%s is taken as it is', async (path) => {
    const [pid] = fetcher.pids();
    expect(responseOf(await get(path)).body.toString()).toContain('<h1>page</h1>');
    await worksAgain();
    expect(fetcher.pids()).toEqual([pid]);
  });

  test('/asks without end ends by its deadline', async () => {
    expect(codeOf(await get('/asks', { timeouts: { taskMs: 1_500 } }))).toBe('task-timeout');
    await worksAgain();
  });
});

describe('when it is killed', () => {
  test('the renderer takes its page with it, and nothing else', async () => {
    const [pid] = fetcher.pids();
    const before = new Set(renderersOf(pid!));
    const waiting = get('/loops', { headers: { 'user-agent': 'another' } });
    await expect.poll(() => origin.requests.at(-1)?.path, GONE).toBe('/loops');
    for (const renderer of renderersOf(pid!)) if (!before.has(renderer)) process.kill(renderer, 'SIGKILL');
    const code = codeOf(await waiting);
    expect([code, failureKind(code as 'browser').retry]).toEqual(['browser', 'transient']);
    await worksAgain();
    expect(fetcher.pids()).toEqual([pid]);
  });

  test('the browser is replaced, and leaves neither processes nor files', async () => {
    const [pid] = fetcher.pids();
    const folder = /--user-data-dir=(\S+?)\/profile/.exec(groupOf(pid!)[0]!.command)![1]!;
    expect(existsSync(folder)).toBe(true);
    const waiting = get('/waits');
    await expect.poll(() => origin.requests.at(-1)?.path, GONE).toBe('/waits');
    process.kill(pid!, 'SIGKILL');
    expect(codeOf(await waiting)).toBe('browser');
    // What begins before its end was noticed may fail with it, and is tried again by whoever asks.
    await expect.poll(async () => (await get('/page')).kind, GONE).toBe('response');
    await worksAgain();
    expect(fetcher.pids()).not.toContain(pid);
    await expect.poll(() => groupOf(pid!), GONE).toEqual([]);
    await expect.poll(() => existsSync(folder), GONE).toBe(false);
  });

  test('the worker, its browser ends too', async () => {
    const child = spawn(process.execPath, [CHILD], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [bytes] = (await once(child.stdout, 'data')) as [Buffer];
    const pid = Number(bytes.toString());
    const folder = /--user-data-dir=(\S+?)\/profile/.exec(groupOf(pid)[0]!.command)![1]!;
    // A browser that does not react must go, too.
    process.kill(pid, 'SIGSTOP');
    child.kill('SIGKILL');
    await expect.poll(() => groupOf(pid), GONE).toEqual([]);
    await expect
      .poll(() => listProcesses().filter(({ command }) => command.includes(folder)), GONE)
      .toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  test('the thread, its browser ends too', async () => {
    const worker = new Worker(CHILD, { stdout: true });
    const [bytes] = (await once(worker.stdout, 'data')) as [Buffer];
    const pid = Number(bytes.toString());
    expect(groupOf(pid).length).toBeGreaterThan(1);
    await worker.terminate();
    await expect.poll(() => groupOf(pid).filter(({ state }) => state !== 'Z'), GONE).toEqual([]);
  });
});

test('a browser is replaced after so many pages, without losing one', async () => {
  const aging = await openBrowserFetcher({
    clock,
    isPublicAddress,
    browser: { path: 'bundled', pages: 2 },
    lifeLimits: { pages: 4, ageMs: 60_000, memoryBytes: 4 * 1024 ** 3 },
  });
  const seen = new Set<number>();
  const pages = Array.from({ length: 10 }, async () => {
    const response = responseOf(
      await aging.fetch(requestOf(`${origin.url}/page`, { timeouts: { taskMs: 20_000 } })),
    );
    for (const pid of aging.pids()) seen.add(pid);
    return response.status;
  });
  expect(await Promise.all(pages)).toEqual(Array(10).fill(200));
  expect(seen.size).toBeGreaterThanOrEqual(2);
  await expect.poll(() => aging.pids().length, GONE).toBe(1);
  await aging.close();
  for (const pid of seen) await expect.poll(() => groupOf(pid), GONE).toEqual([]);
});

test('each page open at once has one renderer, and nothing else has one', async () => {
  // Whatever browser the machine has: a whole one would have more for its own windows.
  const own = await openBrowserFetcher({ clock, isPublicAddress, browser: { pages: 2 } });
  try {
    for (let round = 0; round < 2; round++) {
      const pages = [1, 2].map((page) => own.fetch(requestOf(`${origin.url}/page?${page}`, { parallel: 2 })));
      for (const result of await Promise.all(pages)) expect(responseOf(result).status).toBe(200);
    }
    expect(renderersOf(own.pids()[0]!).length).toBeLessThanOrEqual(2);
  } finally {
    await own.close();
  }
});

test('a browser that cannot be started says so and what to do', async () => {
  const lost = await openBrowserFetcher({ clock, isPublicAddress, browser: { path: '/no/such/chromium' } });
  const result = await lost.fetch(requestOf(`${origin.url}/page`));
  expect(codeOf(result)).toBe('browser');
  expect(result).toMatchObject({ detail: expect.stringMatching(/Chromium of SEINE_BROWSER does not exist/) });
  await lost.close();
});
