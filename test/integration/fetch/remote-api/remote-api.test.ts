import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApiSpec } from '../../../../src/core/job-schema/remote-api.ts';
import { openRemoteApiFetcher } from '../../../../src/fetch/remote-api/remote-api-fetcher.ts';
import type { Fetcher, FetchResult } from '../../../../src/ports/fetcher.ts';
import { codeOf, type RequestDraft, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import { specOf } from '../../../support/fixtures.ts';
import { openScrapingApi, type ScrapingApi } from '../../../support/servers/scraping-api.ts';

const KEY = 'k&y=1/secret';
let api: ScrapingApi;
let fetcher: Fetcher;
beforeEach(async () => {
  api = await openScrapingApi(KEY);
  fetcher = openRemoteApiFetcher({ clock, isPublicAddress });
});
afterEach(async () => {
  await fetcher.close();
  await api.close();
});

/** As a job says it, with the defaults filled in. */
const specFrom = (input: object) => specOf({ api: input as never }).api!;
const getSpec = (change: object = {}) =>
  specFrom({
    url: `${api.url}/get?key={key}&url={url}`,
    statusHeader: 'X-Site-Status',
    costHeader: 'x-cost',
    ...change,
  });
const batchSpec = (change: object = {}) =>
  specFrom({
    headers: { 'X-Key': '{key}' },
    batch: { submit: `${api.url}/lists`, jobs: 'job', gatherMs: 50, pollMs: 20, ...change },
  });

function get(
  url: string,
  spec: ApiSpec,
  draft: RequestDraft = {},
  key: string | null = KEY,
): Promise<FetchResult> {
  return fetcher.fetch(requestOf(url, { ...draft, api: { spec, key } }));
}

const PAGE = 'https://shop.example/item?a=1&b=%20#x';

describe('an API that answers at once', () => {
  test('gets the whole URL and the key, and what it costs is told', async () => {
    const response = responseOf(await get(PAGE, getSpec()));
    expect(api.fetched).toEqual([PAGE]);
    expect(response.body.toString()).toBe(`<title>${PAGE}</title>`);
    expect([response.status, response.cost]).toEqual([200, 5]);
    expect(responseOf(await get(PAGE, getSpec({ costHeader: undefined, cost: 3 }))).cost).toBe(3);
  });

  test("gives the site's own status", async () => {
    api.answer = () => ({ status: 404, body: 'gone' });
    expect(responseOf(await get(PAGE, getSpec())).status).toBe(404);
  });

  test.each([401, 402, 403, 429, 500, 503])(
    'fails as the API when it answers %d by itself',
    async (status) => {
      api.refuses = status;
      expect(codeOf(await get(PAGE, getSpec()))).toBe('api');
      expect(codeOf(await get(PAGE, getSpec({ statusHeader: undefined })))).toBe('api');
    },
  );

  test("takes what is no word of its own for the site's, where nothing else is told", async () => {
    api.refuses = 404;
    expect(responseOf(await get(PAGE, getSpec({ statusHeader: undefined }))).status).toBe(404);
    api.refuses = 403;
    expect(responseOf(await get(PAGE, getSpec({ statusHeader: undefined, errors: [429] }))).status).toBe(403);
  });

  test("that is away, or has the wrong key, is not the site's fault, and its key is not told", async () => {
    const wrong = await get(PAGE, getSpec(), {}, 'another-key');
    expect(codeOf(wrong)).toBe('api');
    await api.close();
    const away = await get(PAGE, getSpec());
    expect(codeOf(away)).toBe('api');
    expect(JSON.stringify([wrong, away])).not.toMatch(/another-key|secret/);
    api = await openScrapingApi(KEY);
  });

  test('gives bodies to a sink, of successes only', async () => {
    const pieces: Buffer[] = [];
    const sinkFor = () => ({ write: (piece: Buffer) => void pieces.push(piece) });
    expect(responseOf(await get(PAGE, getSpec(), { sinkFor })).body.length).toBe(0);
    api.answer = () => ({ status: 404, body: 'gone' });
    expect(responseOf(await get(PAGE, getSpec(), { sinkFor })).body.toString()).toBe('gone');
    expect(Buffer.concat(pieces).toString()).toBe(`<title>${PAGE}</title>`);
  });

  test('sends nothing when the turn is over', async () => {
    expect((await get(PAGE, getSpec(), { onSent: () => false })).kind).toBe('aborted');
    expect(api.fetched).toEqual([]);
  });
});

describe('an API that takes lists', () => {
  test('gets URLs together, and is asked until the pages are there', async () => {
    const urls = Array.from({ length: 7 }, (_, index) => `https://shop.example/${index}`);
    const results = await Promise.all(urls.map((url) => get(url, batchSpec({ size: 5 }))));
    expect(results.map((result) => responseOf(result).body.toString())).toEqual(
      urls.map((url) => `<title>${url}</title>`),
    );
    expect(results.map((result) => responseOf(result).cost)).toEqual(Array(7).fill(2));
    expect(api.lists.map(({ urls: list }) => list.length)).toEqual([5, 2]);
    expect(api.polls).toBe(4);
    // The text went through JSON, so it is UTF-8 whatever the site said.
    expect(responseOf(results[0]!).rawHeaders).toEqual(['content-type', 'text/html; charset=utf-8']);
  });

  test('may take the key in the body, and have jobs at a URL of a known form', async () => {
    const spec = batchSpec({
      body: { key: '{key}', urls: '{urls}', render: true },
      poll: `${api.url}/jobs/{id}`,
    });
    expect(responseOf(await get(PAGE, spec)).status).toBe(200);
    expect(api.lists).toEqual([{ key: KEY, urls: [PAGE], render: true }]);
  });

  test.each([
    ['a status', () => (api.refuses = 500)],
    ['too little', () => (api.answer = () => ({ status: 200, body: undefined as never }))],
    ['nonsense', () => (api.answer = () => ({ status: 9_999, body: 'x' }))],
  ])('that answers with %s fails as the API', async (_, arrange) => {
    arrange();
    expect(codeOf(await get(PAGE, batchSpec()))).toBe('api');
  });

  test('does not get the key at another place that its answer names', async () => {
    let asked = 0;
    const trap = createServer((_, response) => {
      asked++;
      response.end('{}');
    }).listen(0, '127.0.0.1');
    const port = () => (trap.address() as AddressInfo).port;
    await expect.poll(() => trap.listening).toBe(true);
    const lying = createServer((_, response) =>
      response.end(JSON.stringify({ job: { statusUrl: `http://127.0.0.1:${port()}/jobs/1` } })),
    ).listen(0, '127.0.0.1');
    await expect.poll(() => lying.listening).toBe(true);
    const submit = `http://127.0.0.1:${(lying.address() as AddressInfo).port}/lists`;
    expect(codeOf(await get(PAGE, batchSpec({ submit })))).toBe('api');
    expect(asked).toBe(0);
    trap.close();
    lying.close();
  });

  test('that never ends is given up with the task, and nothing waits after an abort or a close', async () => {
    const slow = batchSpec({ pollMs: 60_000 });
    expect(codeOf(await get(PAGE, slow, { timeouts: { taskMs: 100 } }))).toBe('api');
    const stop = new AbortController();
    const aborted = get(PAGE, slow, { signal: stop.signal });
    stop.abort();
    expect((await aborted).kind).toBe('aborted');
    const closed = get(PAGE, slow);
    await fetcher.close();
    expect((await closed).kind).toBe('aborted');
  });
});

describe('either', () => {
  test.each([
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://localhost/',
    'http://intranet/',
    'http://db.internal/',
  ])('is not asked for %s', async (url) => {
    for (const spec of [getSpec(), batchSpec()])
      expect(codeOf(await get(url, spec, { allowPrivate: false }))).toBe('private-address');
    expect([api.fetched, api.lists]).toEqual([[], []]);
  });

  test('is not asked through a proxy, and never instead without', async () => {
    const proxy = { id: 'p', url: 'http://127.0.0.1:1' };
    expect(codeOf(await get(PAGE, getSpec(), { proxy }))).toBe('proxy');
    expect(api.fetched).toEqual([]);
  });
});
