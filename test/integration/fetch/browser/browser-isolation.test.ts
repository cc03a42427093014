import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type BrowserFetcher, openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { type RequestDraft, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import {
  openRawOrigin,
  type RawHandler,
  type RawOrigin,
  reply,
} from '../../../support/servers/raw-origin.ts';

/** What a page leaves behind in the browser, and who finds it. */

const page = (body: string) => reply('200 OK', ['Content-Type: text/html'], body);
/** As trackers do: a name for the visitor, kept by the browser. */
const TRACKER = ['Content-Type: text/javascript', 'Cache-Control: max-age=3600', 'ETag: "visitor-1"'];

const tracked: (string | null)[] = [];
const sendsTracker: RawHandler = (socket, { head }) => {
  tracked.push(/^if-none-match: (.*)$/im.exec(head)?.[1] ?? null);
  socket.write(reply('200 OK', TRACKER, 'window.tracked = true;'));
};

let origin: RawOrigin;
let fetcher: BrowserFetcher;
/** The same server under another name: another site. */
let other: string;
beforeAll(async () => {
  origin = await openRawOrigin({
    '/marks': (socket) => socket.write(page(`<p>page</p><script>window.name = 'seen before'</script>`)),
    '/looks': (socket) =>
      socket.write(page('<p id=c></p><script>c.textContent = "[" + window.name + "]"</script>')),
    '/tracked': (socket) => socket.write(page(`<p>page</p><script src="${origin.url}/tracker.js"></script>`)),
    '/tracked-too': (socket) =>
      socket.write(page(`<p>page</p><script src="${origin.url}/tracker.js"></script>`)),
    '/tracker.js': sendsTracker,
  });
  other = origin.url.replace('127.0.0.1', 'localhost');
  // One page at a time: the next is in the same tab, unless that is refused.
  fetcher = await openBrowserFetcher({ clock, isPublicAddress, browser: { path: 'bundled', pages: 1 } });
});
afterAll(async () => {
  await fetcher.close();
  await origin.close();
});
beforeEach(() => {
  tracked.length = 0;
});

const get = async (url: string, draft: RequestDraft = {}) =>
  responseOf(await fetcher.fetch(requestOf(url, { timeouts: { taskMs: 20_000 }, ...draft }))).body.toString();

test('the name of a window is gone with its page, for other sites and for the same', async () => {
  await get(`${origin.url}/marks`);
  expect(await get(`${other}/looks`)).toContain('[]');
  await get(`${origin.url}/marks`);
  expect(await get(`${origin.url}/looks`)).toContain('[]');
});

test('what one site has left in the cache is not there for another', async () => {
  await get(`${origin.url}/tracked`);
  expect(tracked).toEqual([null]);
  await get(`${other}/tracked`);
  expect(tracked).toEqual([null, null]);
});

test('what one identity or job has left in the cache is not there for another, but for itself', async () => {
  const as = (visitor: string) => ({ visitor });
  await get(`${origin.url}/tracked`, as('job 1, identity a'));
  await get(`${origin.url}/tracked-too`, as('job 1, identity a'));
  expect(tracked).toEqual([null]);
  await get(`${origin.url}/tracked`, as('job 1, identity b'));
  await get(`${origin.url}/tracked`, as('job 2, identity b'));
  expect(tracked).toEqual([null, null, null]);
});
