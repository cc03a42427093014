import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeContactSheet } from '../../../src/coordinator/reports/contact-sheet.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { AttemptRow, RecordRow, ShotRow } from '../../../src/core/model.ts';
import { parseRecord } from '../../../src/core/warc/warc-reader.ts';
import type { FetchRequest, FetchResult } from '../../../src/ports/fetcher.ts';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { readPage } from '../../../src/worker/storage/read-page.ts';
import { openScriptRenderer, PNG } from '../../support/browser/script-renderer.ts';
import { type Crawled, crawl } from '../../support/coordinator/crawl-setup.ts';
import { collect } from '../../support/fixtures.ts';

/** Everything above the browser itself: what is asked of it, what is learned, and what is kept. */

const PRODUCTS = 48;
let shop: ShopSite;
let plain: ShopSite;

beforeAll(async () => {
  const options = { products: PRODUCTS, delayScale: 0 };
  plain = await startShopSite(options);
  shop = await startShopSite({ ...options, isScripted: true });
});

afterAll(async () => {
  await shop.close();
  await plain.close();
});

const shopJob = (site: ShopSite, fetcher?: 'auto' | 'browser'): Partial<JobInput> => ({
  sources: site.url,
  routes: [
    {
      name: 'product',
      match: '/product/*',
      fetcher,
      select: { title: { css: 'h1', required: true }, price: '.product .price', sku: '.sku' },
    },
    { name: 'listing', match: ['/', '/category/*'], fetcher },
  ],
  follow: [
    { match: '/product/*', route: 'product' },
    { match: '/category/*', route: 'listing' },
  ],
  allowPrivate: true,
});

interface Whole extends Crawled {
  records: RecordRow[];
  attempts: AttemptRow[];
  shots: ShotRow[];
}

async function crawlWhole(
  input: Partial<JobInput>,
  renderer = openScriptRenderer(),
  look: NonNullable<Parameters<typeof crawl>[1]>['inspect'] = async () => {},
): Promise<Whole> {
  const rows = { records: [] as RecordRow[], attempts: [] as AttemptRow[], shots: [] as ShotRow[] };
  const crawled = await crawl(input, {
    fetcherOf: async () => renderer,
    async inspect(place) {
      const { store, job } = place;
      rows.records = await collect(store.views.records(job.id));
      rows.attempts = await collect(store.views.attempts(job.id));
      rows.shots = await collect(store.views.shots(job.id));
      await look(place);
    },
  });
  return { ...crawled, ...rows };
}

const dataByPath = (records: RecordRow[]) =>
  new Map(records.map(({ url, data }) => [new URL(url).pathname, data]));

describe('a shop that is nothing without scripts', () => {
  test('gives auto the records of its plain twin, and learns what needs the browser', async () => {
    const wanted = await crawlWhole(shopJob(plain));
    const renderer = openScriptRenderer();
    const { records, attempts, counters } = await crawlWhole(shopJob(shop, 'auto'), renderer);
    expect(records).toHaveLength(PRODUCTS);
    expect(dataByPath(records)).toEqual(dataByPath(wanted.records));
    expect(counters.done).toBe(wanted.counters.done);
    const shells = attempts.filter(({ failureCode }) => failureCode === 'script-only');
    expect(shells.length).toBeGreaterThan(0);
    expect(shells.length).toBeLessThan(attempts.length / 4);
    expect(new Set(shells.map(({ outcome }) => outcome))).toEqual(new Set(['deferred']));
    expect(renderer.prepared).toBeGreaterThan(0);
  });

  test('goes to no browser where pages can be read as they are', async () => {
    const renderer = openScriptRenderer();
    const { records } = await crawlWhole(shopJob(plain, 'auto'), renderer);
    expect(records).toHaveLength(PRODUCTS);
    expect(renderer.asked).toEqual([]);
    expect(renderer.prepared).toBe(0);
  });
});

const one = (browser: object, more: object = {}): Partial<JobInput> => ({
  sources: `${shop.url}product/none`,
  routes: [{ name: 'page', browser, ...more }],
  politeness: { robots: false, rate: 'max' },
  allowPrivate: true,
});

const rendered = (
  html: string,
  more: Partial<Extract<FetchResult, { kind: 'response' }>> = {},
): FetchResult => {
  const body = Buffer.from(html);
  return {
    kind: 'response',
    status: 200,
    statusText: 'OK',
    rawHeaders: ['Content-Type', 'text/html; charset=iso-8859-1', 'Content-Encoding', 'br', 'X-Own', '1'],
    body,
    wireBody: body,
    wireBytes: 10,
    rendered: { shots: [], captured: {} },
    ...more,
  };
};

describe('what a browser brings', () => {
  test('pictures are blobs by their hash, records of the archive, and rows', async () => {
    const shots = [
      { kind: 'screenshot' as const, type: 'image/png' as const, bytes: PNG },
      { kind: 'pdf' as const, type: 'application/pdf' as const, bytes: Buffer.from('%PDF-1.7 x') },
    ];
    const page = rendered('<h1>Grüße</h1>', { rendered: { shots, captured: {} } });
    const job = one({ screenshot: true, pdf: true }, { select: { title: 'h1' } });
    const {
      tasks,
      shots: rows,
      records,
    } = await crawlWhole(
      job,
      openScriptRenderer(() => page),
      async ({ blobs, store, job }) => {
        const [task] = await collect(store.views.tasks(job.id));
        for (const { key } of task!.shots) expect(await blobs.has(key)).toBe(true);
        expect(await blobs.read(task!.shots[0]!.key)).toEqual(PNG);
        const stored = await readPage(blobs, task!.archive!);
        expect(stored.body.toString()).toBe('<h1>Grüße</h1>');
        expect(stored.headers).toContain('X-Own');
        const { key, offset, length } = task!.archive!;
        const rest = (await blobs.read(key))!.subarray(offset + length);
        const resource = parseRecord(
          gunzipSync(rest.subarray(0, rest.indexOf(Buffer.from([0x1f, 0x8b, 8]), 3))),
        );
        expect(resource.type).toBe('resource');
        expect(resource.url).toBe(`urn:screenshot:${task!.url}`);
        expect(resource.headers.get('content-type')).toBe('image/png');
        expect(resource.block).toEqual(PNG);
      },
    );
    expect(tasks[0]!.shots.map(({ kind, type, bytes }) => ({ kind, type, bytes }))).toEqual([
      { kind: 'screenshot', type: 'image/png', bytes: PNG.length },
      { kind: 'pdf', type: 'application/pdf', bytes: 10 },
    ]);
    expect(tasks[0]!.shots[0]!.key).toMatch(/^media\/..\/[0-9a-f]{64}\.png$/);
    expect(rows.map(({ kind, latest }) => [kind, latest])).toEqual([
      ['screenshot', true],
      ['pdf', true],
    ]);
    expect(records[0]!.data).toEqual({ title: 'Grüße' });
  });

  test('what it captured are fields of the record', async () => {
    const captured = { prices: [{ sku: 1, cents: 990 }], feed: [] };
    const page = rendered('<h1>Lamp</h1>', { rendered: { shots: [], captured } });
    const capture = [
      { name: 'prices', url: '**/prices' },
      { name: 'feed', url: '**/feed', of: 'frames' as const },
    ];
    const { records } = await crawlWhole(
      one({ capture }, { select: { title: 'h1' } }),
      openScriptRenderer(() => page),
    );
    expect(records[0]!.data).toEqual({ prices: [{ sku: 1, cents: 990 }], feed: [], title: 'Lamp' });
    const without = await crawlWhole(
      one({ capture }),
      openScriptRenderer(() => page),
    );
    expect(without.records[0]!.data).toEqual({ prices: [{ sku: 1, cents: 990 }], feed: [] });
  });

  test('what it saw of a failure is kept for people, as a picture and as text', async () => {
    const html = Buffer.from('<script>alert(1)</script>');
    const screenshot = { kind: 'screenshot' as const, type: 'image/png' as const, bytes: PNG };
    const failure: FetchResult = {
      kind: 'failure',
      code: 'task-timeout',
      detail: 'too slow',
      bytes: 0,
      snapshot: { html, screenshot },
    };
    const { tasks, shots } = await crawlWhole(
      one({}),
      openScriptRenderer(() => failure),
      async (place) => {
        const sheet = await writeContactSheet(place, place.job);
        expect(sheet).toMatchObject({ tiles: 1, pages: 1 });
        const written = (await place.blobs.read(`sheets/crawl-${place.job.run}/index.html`))!.toString();
        expect(written).toContain('task-timeout');
        expect(written).toContain('HTML as text');
      },
    );
    expect(tasks[0]).toMatchObject({ state: 'dead', failureCode: 'task-timeout' });
    expect(tasks[0]!.shots.map(({ kind, type }) => `${kind} ${type}`)).toEqual([
      'snapshot image/png',
      'snapshot-html text/plain',
    ]);
    expect(tasks[0]!.shots[1]!.key).toMatch(/\.txt$/);
    // Both attempts have theirs; the sheet shows the last.
    expect(shots.filter(({ latest }) => latest)).toHaveLength(2);
    expect(shots).toHaveLength(4);
  });

  test('pages that ask not to be archived leave no pictures', async () => {
    const shots = [{ kind: 'screenshot' as const, type: 'image/png' as const, bytes: PNG }];
    const page = rendered('<meta name="robots" content="noarchive"><h1>x</h1>', {
      rendered: { shots, captured: {} },
    });
    const job = one({ screenshot: true });
    const { tasks } = await crawlWhole(
      { ...job, politeness: { ...job.politeness, robotsTags: 'obey' } },
      openScriptRenderer(() => page),
      async ({ blobs }) => expect(await collect(blobs.list('media/'))).toEqual([]),
    );
    expect(tasks[0]).toMatchObject({ state: 'done', shots: [], archive: null });
  });
});

test('a rendered page that lacks its elements is an ordinary validation failure', async () => {
  const { tasks, attempts } = await crawlWhole(
    { ...one({}, { fetcher: 'auto', require: ['.gone'] }), sources: `${shop.url}about` },
    openScriptRenderer(),
  );
  expect(tasks[0]).toMatchObject({ state: 'dead', failureCode: 'validation', attempts: 2 });
  expect(attempts.map(({ outcome, failureCode, fetcher }) => `${outcome} ${failureCode} ${fetcher}`)).toEqual(
    ['deferred script-only http', 'failed validation browser', 'failed validation browser'],
  );
});

test('a browser gets the settings of the route, and no conditions', async () => {
  const renderer = openScriptRenderer(() => rendered('<h1>x</h1>'));
  await crawlWhole(one({ waitUntil: 'idle', block: ['ads'] }), renderer);
  const [request] = renderer.asked as [FetchRequest];
  expect(request.render).toMatchObject({ waitUntil: 'idle', block: ['ads'], actions: [], pdf: false });
  expect(request.loginState).toBeUndefined();
  expect(Object.keys(request.headers).map((name) => name.toLowerCase())).not.toContain('if-none-match');
});
