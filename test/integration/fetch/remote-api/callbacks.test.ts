import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  API_ANSWER_BYTES_MAX,
  type CallbackReceiver,
  openCallbackReceiver,
} from '../../../../src/fetch/remote-api/callback-receiver.ts';
import { openRemoteApiFetcher } from '../../../../src/fetch/remote-api/remote-api-fetcher.ts';
import type { CallbackSettings, Fetcher } from '../../../../src/ports/fetcher.ts';
import { codeOf, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import { specOf } from '../../../support/fixtures.ts';
import { openScrapingApi, type ScrapingApi } from '../../../support/servers/scraping-api.ts';

const KEY = 'key';
const LOCAL: CallbackSettings = { host: '127.0.0.1', port: 0, url: 'http://127.0.0.1:{port}/in/' };
const URLS = Array.from({ length: 3 }, (_, index) => `https://shop.example/${index}`);
const PAGES = URLS.map((url) => `<title>${url}</title>`);
let api: ScrapingApi;
let fetcher: Fetcher;

beforeEach(async () => {
  api = await openScrapingApi(KEY);
  fetcher = openRemoteApiFetcher({ clock, isPublicAddress, apiCallbacks: LOCAL });
});
afterEach(async () => {
  await fetcher.close();
  await api.close();
});

function get(change: object = {}, timeouts = {}) {
  const batch = {
    submit: `${api.url}/lists`,
    body: { urls: '{urls}', callback: '{callback}' },
    jobs: 'job',
    gatherMs: 50,
    pollMs: 10,
    callbackPollMs: 60_000,
    ...change,
  };
  const { api: spec } = specOf({ api: { headers: { 'X-Key': '{key}' }, batch } as never });
  return Promise.all(
    URLS.map((url) => fetcher.fetch(requestOf(url, { timeouts, api: { spec: spec!, key: KEY } }))),
  );
}
const bodiesOf = async (results: ReturnType<typeof get>) =>
  (await results).map((result) => responseOf(result).body.toString());

describe('an API that sends pages by itself', () => {
  test.each([false, true])(
    'is not asked for them, whether it sends them before its answer: %s',
    async (early) => {
      api.calls = (id, results) => ({ early, body: { id, status: 'finished', results } });
      expect(await bodiesOf(get())).toEqual(PAGES);
      expect(api.polls).toBe(0);
      expect(api.lists[0]?.callback).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/in\/[\w-]{32}$/);
      await expect.poll(() => api.called).toEqual([204]);
      // The URL was for this list alone.
      const late = await fetch(api.lists[0]!.callback!, { method: 'POST', body: '{}' });
      expect(late.status).toBe(404);
    },
  );

  test('may only say that they are there: then they are asked for at once', async () => {
    api.calls = (id) => ({ body: { id, status: 'finished' } });
    expect(await bodiesOf(get({ callbackPollMs: 300 }))).toEqual(PAGES);
    expect(api.polls).toBe(2);
  });

  test.each([
    ['nothing', null],
    ['another id', () => ({ body: { id: 'other', status: 'finished', results: [] } })],
    ['nonsense', () => ({ body: 'hello' })],
  ])('that sends %s is asked', async (_, calls) => {
    api.calls = calls as ScrapingApi['calls'];
    expect(await bodiesOf(get({ callbackPollMs: 100 }))).toEqual(PAGES);
    expect(api.polls).toBe(2);
    expect(api.called.every((status) => status === 404 || status === 204)).toBe(true);
  });

  test('may fail by it, and its pages are as limited as others', async () => {
    api.calls = (id) => ({ body: { id, status: 'failed' } });
    expect((await get()).map(codeOf)).toEqual(['api', 'api', 'api']);
  });

  test('need not say where its jobs are', async () => {
    api.calls = (id, results) => ({ body: { id, status: 'finished', results } });
    expect(await bodiesOf(get({ statusUrl: 'nowhere' }))).toEqual(PAGES);
    api.calls = null;
    const never = await get({ statusUrl: 'nowhere' }, { taskMs: 200 });
    expect(never.map(codeOf)).toEqual(['api', 'api', 'api']);
  });

  test('is asked by a worker that cannot listen, without a word of callbacks', async () => {
    await fetcher.close();
    const warnings: string[] = [];
    const note = (text: string) => void warnings.push(text);
    for (const apiCallbacks of [undefined, { ...LOCAL, host: '192.0.2.1', port: 80 }]) {
      fetcher = openRemoteApiFetcher({
        clock,
        isPublicAddress,
        apiCallbacks,
        logger: { info: note, warn: note, error: note },
      });
      expect(await bodiesOf(get())).toEqual(PAGES);
      expect(api.lists.at(-1)).toEqual({ urls: URLS });
      await fetcher.close();
    }
    expect(warnings).toEqual([expect.stringContaining('cannot listen at 192.0.2.1:80')]);
  });
});

describe('the place where a worker listens', () => {
  let receiver: CallbackReceiver;
  let seen: unknown[];
  let url: string;
  beforeEach(async () => {
    seen = [];
    receiver = await openCallbackReceiver(LOCAL);
    url = receiver.expect((value) => seen.push(value) > 0).url;
  });
  afterEach(() => receiver.close());
  const post = async (to: string, body: string, more: RequestInit = {}) =>
    (await fetch(to, { method: 'POST', body, ...more })).status;

  test('takes what is expected, and nothing else', async () => {
    const guess = `${url.slice(0, -1)}${url.endsWith('A') ? 'B' : 'A'}`;
    expect(await post(guess, '{}')).toBe(404);
    expect(await post(new URL('/', url).href, '{}')).toBe(404);
    expect((await fetch(url)).status).toBe(405);
    expect(await post(url, '{"half":')).toBe(400);
    expect(seen).toEqual([]);
    expect(await post(`${url}?x=1`, '{"a":1}')).toBe(204);
    expect(seen).toEqual([{ a: 1 }]);
  });

  test('reads no more than an answer may have', async () => {
    const piece = Buffer.alloc(1024 * 1024, 32);
    let sent = 0;
    const endless = new ReadableStream({
      async pull(controller) {
        // Lets the answer in: whoever sends does not stop pulling when nobody listens any more.
        await new Promise((resolve) => setImmediate(resolve));
        if (sent > API_ANSWER_BYTES_MAX * 2) return controller.close();
        sent += piece.length;
        controller.enqueue(piece);
      },
    });
    const status = fetch(url, { method: 'POST', body: endless, duplex: 'half' } as RequestInit).then(
      (answer) => answer.status,
      () => 413,
    );
    expect(await status).toBe(413);
    expect(sent).toBeLessThan(API_ANSWER_BYTES_MAX * 1.5);
  });

  test('takes the next port when its own is taken', async () => {
    const { port } = new URL(url);
    const second = await openCallbackReceiver({ ...LOCAL, port: Number(port) });
    const other = second.expect(() => true).url;
    expect(Number(new URL(other).port)).toBeGreaterThan(Number(port));
    expect(await post(other, '{}')).toBe(204);
    await second.close();
  });
});
