import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { SkippingClock } from '../../support/coordinator/skipping-clock.ts';

/** Many hosts, which are addresses of one server: when it is closed, none of them can be reached. */
class Web {
  #server: Server | null = null;
  port = 0;
  pages = 0;
  onPage: () => void = () => {};

  async open(): Promise<void> {
    const server = createServer(({ url: path = '' }, response) => {
      if (path === '/robots.txt') return void response.writeHead(404).end();
      this.pages++;
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${path}</title><p>words</p>`);
      this.onPage();
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.port, '0.0.0.0', resolve));
    this.port = (server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  urls(hosts: number, pages: number, port = this.port): string[] {
    return Array.from({ length: hosts }, (_, host) =>
      Array.from({ length: pages }, (__, page) => `http://127.1.0.${host + 1}:${port}/${page}`),
    ).flat();
  }
}

let web = new Web();
afterEach(async () => {
  await web.close();
  web = new Web();
});

const politeness = { rate: 50, parallel: 2, adaptive: false };
const MINUTE = 60_000;

/** Crawls while the clock leaps over everything that is only waited for. */
async function crawlOverOutage(
  sources: string[],
  {
    backAfterMs,
    stepMs = 1_000,
    robots = true,
    baseMs = 1_000,
  }: { backAfterMs: number | null; stepMs?: number; robots?: boolean; baseMs?: number },
) {
  let goneAt: number | null = null;
  let isBack = backAfterMs === null;
  const messages: string[] = [];
  const clock = new SkippingClock(stepMs, () => {
    if (goneAt === null) return false;
    if (!isBack && clock.now() >= goneAt + backAfterMs!) {
      isBack = true;
      void web.open();
    }
    return true;
  });
  const note = (message: string) => {
    messages.push(message);
    goneAt = message.includes('the network seems to be gone') ? clock.now() : null;
  };
  const startedAt = clock.now();
  const result = await crawl(
    {
      sources,
      politeness: { ...politeness, robots },
      allowPrivate: true,
      retry: { attempts: 2, baseMs },
    },
    { clock, through: clock.watch, logger: { info: note, warn: note, error: note } },
  );
  clock.stop();
  return { ...result, messages, tookMs: clock.now() - startedAt };
}

const saysOutage = (messages: string[]) =>
  messages.filter((text) => text.includes('seems to be gone')).length;

test('when hosts that worked cannot be reached any more, tasks wait, and the run goes on by itself', async () => {
  await web.open();
  const sources = web.urls(8, 10);
  web.onPage = () => {
    if (web.pages === 25) void web.close();
  };
  const { state, counters, messages } = await crawlOverOutage(sources, {
    backAfterMs: 20 * MINUTE,
    stepMs: 5_000,
  });
  expect([state, counters.done, counters.dead]).toEqual(['done', 80, 0]);
  expect(saysOutage(messages)).toBeGreaterThanOrEqual(1);
  expect(messages.at(-1)).toBe('hosts can be reached again');
});

test.each([
  ['their robots.txt is asked for first', true],
  ['pages are asked for at once', false],
])('many hosts that cannot be reached from the start wait for the network, where %s', async (_, robots) => {
  await web.open();
  const sources = web.urls(100, 2);
  await web.close();
  // No host is asked a second time before enough of them were asked once, also where that takes seconds.
  const outage = { backAfterMs: MINUTE, robots, baseMs: MINUTE / 4 };
  const { state, counters, messages } = await crawlOverOutage(sources, outage);
  expect([state, counters.done, counters.dead]).toEqual(['done', 200, 0]);
  expect(saysOutage(messages)).toBeGreaterThanOrEqual(1);
});

test('a list of dead hosts ends', async () => {
  await web.open();
  const sources = web.urls(30, 2);
  await web.close();
  const { state, counters, tookMs } = await crawlOverOutage(sources, { backAfterMs: null, stepMs: 5_000 });
  expect([state, counters.dead]).toEqual(['done', 60]);
  expect(tookMs).toBeGreaterThanOrEqual(5 * MINUTE);
  expect(tookMs).toBeLessThan(60 * MINUTE);
});

test('dead hosts beside others are given up at once, also when they are all that is left', async () => {
  await web.open();
  const dead = new Web();
  await dead.open();
  const deadUrls = dead.urls(60, 1);
  await dead.close();
  // Small leaps: with large ones, the work of a busy machine between two probes would count as minutes.
  const { state, counters, tookMs } = await crawlOverOutage([...web.urls(3, 5), ...deadUrls], {
    backAfterMs: null,
    stepMs: 20,
  });
  expect([state, counters.done, counters.dead]).toEqual(['done', 15, 60]);
  expect(tookMs).toBeLessThan(5 * MINUTE);
});
