import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';

/** A catalogue of 40 pages with 20 items each, whose request log is the judge. */

const PAGES = 40;
const PER_PAGE = 20;
const ITEMS = PAGES * PER_PAGE;
const BATCH = 10;

const folder = temporaryFolder();
const log: string[] = [];
let server: Server;
let origin: string;

function listing(number: number): string {
  const first = (number - 1) * PER_PAGE;
  const items = Array.from({ length: PER_PAGE }, (_, index) => first + index + 1);
  const next = number < PAGES ? `<a class="next" href="/catalogue?page=${number + 1}">Next</a>` : '';
  return `<h1>Catalogue</h1><p class="total">${first + 1}–${first + PER_PAGE} of ${ITEMS} items</p>
<ul>${items.map((item) => `<li><a href="/item/${item}">Item ${item}</a></li>`).join('')}</ul>${next}`;
}

function answer(url: URL): string | null {
  const item = /^\/item\/(\d+)$/.exec(url.pathname)?.[1];
  if (item !== undefined)
    return `<h1>Item ${item}</h1><p class="price">€${item}.00</p><a href="/item/1">more</a>`;
  const number = Number(url.searchParams.get('page') ?? '1');
  if (url.pathname === '/catalogue' && number >= 1 && number <= PAGES) return listing(number);
  return null;
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = request.url ?? '';
    if (path !== '/robots.txt') log.push(path);
    const html = answer(new URL(path, 'http://127.0.0.1'));
    response.writeHead(html === null ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(html === null ? '' : `<!doctype html><title>Shop</title>${html}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  log.length = 0;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

interface Choice {
  name: string;
  paginate: object;
  itemPriority?: number;
  limits?: object;
}

async function run({ name, paginate, itemPriority = 0, limits = {} }: Choice) {
  const path = join(folder.path, `${name}.json`);
  const job = {
    name,
    sources: `${origin}/catalogue`,
    routes: [
      { name: 'item', match: '/item/*', select: { title: 'h1', price: '.price' } },
      { name: 'listing', match: '/catalogue', paginate },
    ],
    follow: [{ from: 'listing', match: '/item/*', route: 'item', priority: itemPriority }],
    limits,
    politeness: { rate: 'max', parallel: 2 },
    batchSize: BATCH,
    allowPrivate: true,
  };
  writeFileSync(path, JSON.stringify(job));
  const dir = join(folder.path, name);
  const result = await seine(['run', path, '--dir', dir, '--json'], { env: { SEINE_WORKERS: '1' } });
  expect(result.code, result.stderr).toBe(0);
  return { summary: lastJson(result), dir };
}

const LISTINGS = Array.from({ length: PAGES }, (_, index) =>
  index === 0 ? '/catalogue' : `/catalogue?page=${index + 1}`,
);
const EVERYTHING = [...LISTINGS, ...Array.from({ length: ITEMS }, (_, index) => `/item/${index + 1}`)].sort();

const byCount = { url: '?page={page}', count: { css: '.total', perPage: PER_PAGE } };

describe('a catalogue', () => {
  test('by its count: every listing and every item exactly once, and a record of each item', async () => {
    const { summary, dir } = await run({ name: 'count', paginate: byCount });
    expect(summary).toMatchObject({ state: 'done', done: PAGES + ITEMS, dead: 0, records: ITEMS });
    expect(log.toSorted()).toEqual(EVERYTHING);
    const tasks = await seine(['export', '--what', 'tasks', '--dir', dir]);
    const rows = jsonLines<{ url: string; route: string; depth: number }>(tasks.stdout);
    const listings = rows.filter(({ url }) => url.includes('/catalogue?'));
    expect(new Set(listings.map(({ route }) => route))).toEqual(new Set(['listing']));
  });

  test('by next-links: the same', async () => {
    await run({ name: 'next', paginate: { next: 'a.next' } });
    expect(log.toSorted()).toEqual(EVERYTHING);
  });

  test('by next-links, up to the most pages', async () => {
    await run({ name: 'few', paginate: { next: 'a.next', max: 3 } });
    expect(log.filter((path) => path.startsWith('/catalogue'))).toEqual(LISTINGS.slice(0, 3));
    expect(log).toHaveLength(3 + 3 * PER_PAGE);
  });

  test('its further pages are as deep as the first, so that the depth limit is about items', async () => {
    await run({ name: 'depth', paginate: byCount, limits: { depth: 1 } });
    expect(log.toSorted()).toEqual(EVERYTHING);
  });

  test('items before further listings, or the other way round, as the job says', async () => {
    const places = () => log.flatMap((path, place) => (path.startsWith('/catalogue') ? [place] : []));
    await run({ name: 'items-first', paginate: byCount, itemPriority: 10 });
    expect(log.toSorted()).toEqual(EVERYTHING);
    const itemsFirst = places();
    log.length = 0;
    await run({ name: 'listings-first', paginate: { ...byCount, priority: 20 }, itemPriority: 10 });
    const listingsFirst = places();
    // Two batches may be on their way when their first listings bring items.
    const inFlight = 2 * BATCH;
    expect(listingsFirst.at(-1)).toBeLessThan(PAGES + inFlight);
    expect(itemsFirst.at(-1)).toBeGreaterThan(ITEMS / 2);
    // Items that are known and not asked for yet, whenever a listing is asked for.
    const waiting = itemsFirst.map((place, listings) => listings * PER_PAGE - (place - listings));
    expect(Math.max(...waiting)).toBeLessThanOrEqual(inFlight * PER_PAGE);
  });
});
