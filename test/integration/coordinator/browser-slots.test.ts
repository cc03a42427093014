import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openHttpFetcher } from '../../../src/fetch/http/http-fetcher.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { realClock } from '../../support/real-clock.ts';

/** Where few workers have a browser, the others do not wait for them. */

const PAGES = 12;
const PLAIN = Array.from({ length: PAGES }, (_, index) => `/plain/${index}`);
const SHOWN = Array.from({ length: PAGES }, (_, index) => `/shown/${index}`);
const asked = new Set<string>();
const server = createServer((request, response) => {
  const path = request.url ?? '';
  asked.add(path);
  response.setHeader('content-type', 'text/html');
  const links = path === '/' ? [...SHOWN, ...PLAIN] : [];
  response.end(`<title>${path}</title>${links.map((link) => `<a href="${link}">${link}</a>`).join('')}`);
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

test.each(['max', 50] as const)(
  'without a browser the other pages of the host go on, at rate %s',
  async (rate) => {
    asked.clear();
    const slots = { all: 4, browser: 0 };
    let out = 0;
    let outMax = 0;
    /** Batches for a browser would wait until one is there, as in a queue. */
    const queue = (inline: Dispatcher): Dispatcher => ({
      ...inline,
      slots: slots.all,
      slotsFor: (kind) => (kind === 'browser' ? slots.browser : slots.all),
      async dispatch(batch, onPart) {
        if (batch.needs === 'http') return inline.dispatch(batch, onPart);
        outMax = Math.max(outMax, ++out);
        if (slots.browser === 0) return new Promise(() => {});
        return inline.dispatch(batch, onPart).finally(() => out--);
      },
    });
    // What it makes of a page does not matter here.
    const browser = openHttpFetcher({ clock: realClock, isPublicAddress: () => false });
    const crawled = crawl(
      {
        sources: `${origin}/`,
        routes: [{ name: 'shown', match: '/shown/*', fetcher: 'browser' }, { name: 'plain' }],
        follow: [{ match: '/shown/*', route: 'shown' }, { match: '/plain/*' }],
        politeness: { rate, parallel: 16, adaptive: false },
        allowPrivate: true,
        batchSize: 2,
      },
      { through: queue, fetcherOf: async () => browser },
    );
    const plainAsked = () => PLAIN.filter((path) => asked.has(path)).length;
    await expect.poll(plainAsked).toBe(PAGES);
    expect(outMax).toBe(0);
    slots.browser = 2;
    const { state, counters } = await crawled;
    await browser.close();
    expect(state).toBe('done');
    expect(counters).toMatchObject({ done: 1 + 2 * PAGES, dead: 0 });
    expect(outMax).toBeLessThanOrEqual(2);
  },
);
