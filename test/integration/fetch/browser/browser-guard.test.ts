import { createHash } from 'node:crypto';
import http from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browser as browserSchema } from '../../../../src/core/job-schema/browser.ts';
import { type BrowserFetcher, openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { FilterProxy } from '../../../../src/fetch/browser/proxy/filter-proxy.ts';
import { DnsCache } from '../../../../src/fetch/network/dns-cache.ts';
import { codeOf, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { clock } from '../../../support/fetch/http-fetcher-setup.ts';
import { CANARY_ADDRESS, type Canary, openCanary, waysToAsk } from '../../../support/servers/canary.ts';
import { startProxy } from '../../../support/servers/proxy-servers.ts';
import {
  openRawOrigin,
  type RawHandler,
  type RawOrigin,
  reply,
  sends,
} from '../../../support/servers/raw-origin.ts';

/** Nothing that the browser does reaches an address that it may not: a canary sits there and counts. */

const LATIN1_SCRIPT = Buffer.from('var \xfc = 1', 'latin1');
let canary: Canary;
let origin: RawOrigin;
let fetcher: BrowserFetcher;
let page = '';
const render = browserSchema.parse({ actions: [{ waitMs: 400 }] });

beforeAll(async () => {
  canary = await openCanary();
  const inside = `http://${CANARY_ADDRESS}:${canary.port}/redirected`;
  origin = await openRawOrigin({
    '/page': (socket) => void socket.write(reply('200 OK', ['Content-Type: text/html'], page)),
    '/socket': greetsSocket,
    '/public.js': sends(
      reply('200 OK', ['Content-Type: text/javascript; charset=iso-8859-1', 'X-Of: the site'], LATIN1_SCRIPT),
    ),
    '/redirects-in': sends(reply('302 Found', [`Location: ${inside}`])),
  });
  fetcher = await openBrowserFetcher({
    clock,
    isPublicAddress: (ip) => ip === '127.0.0.1',
    lookup: (name, _options, callback) => {
      const address = name === 'site.example' ? '127.0.0.1' : CANARY_ADDRESS;
      callback(null, [{ address, family: 4 }]);
    },
    browser: { path: 'bundled' },
  });
});
afterAll(async () => {
  await fetcher.close();
  await origin.close();
  await canary.close();
});

/** A server that shakes hands and sends two frames. */
const greetsSocket: RawHandler = (socket, { head }) => {
  const key = /sec-websocket-key: (\S+)/i.exec(head)?.[1] ?? '';
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write(`${[...lines, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`);
  for (const text of ['{"price":1}', 'last'])
    socket.write(`\x81${String.fromCharCode(text.length)}${text}`, 'latin1');
};

const visit = (body: string, allowPrivate: boolean) => {
  page = `<!doctype html><body>${body}`;
  const url = `http://site.example:${origin.port}/page`;
  return fetcher.fetch(requestOf(url, { allowPrivate, render, timeouts: { taskMs: 20_000 } }));
};
const insides = () => [`http://${CANARY_ADDRESS}:${canary.port}`, `http://inside.example:${canary.port}`];

describe('a page at a public address', () => {
  test('brings what it loads, where that is wanted, but nothing that was refused', async () => {
    const [inside] = insides();
    page = `<!doctype html><body><script src=/public.js></script><script src=/public.js?2></script>
      <img src=${inside}/refused.png><img src=/redirects-in><script>fetch('/socket', { method: 'POST' })</script>`;
    const request = requestOf(`http://site.example:${origin.port}/page`, {
      ...{ allowPrivate: false, render, timeouts: { taskMs: 20_000 } },
      headers: { 'X-Job': 'own' },
    });
    const { rendered } = responseOf(await fetcher.fetch({ ...request, wantsResources: true }));
    const found = rendered!.resources!;
    const paths = found.map(({ url }) => url.replace(/^http:\/\/site\.example:\d+/, '')).sort();
    expect(paths).toEqual(['/public.js', '/public.js?2', '/redirects-in']);
    const script = found.find(({ url }) => url.endsWith('/public.js'))!;
    expect([script.status, script.body.toString()]).toEqual([200, 'var ü = 1']);
    expect(script.rawHeaders).toEqual(
      expect.arrayContaining(['text/javascript; charset=utf-8', 'X-Of', 'the site']),
    );
    expect(script.requestHeaders.map((word) => word.toLowerCase())).toContain('user-agent');
    const moved = found.find(({ url }) => url.endsWith('/redirects-in'))!;
    expect([moved.status, moved.body.length]).toEqual([302, 0]);
    expect(responseOf(await fetcher.fetch(request)).rendered!.resources).toBeUndefined();
    expect(canary.hits()).toBe(0);
  });

  test('reaches no private one, by any way there is, by number or by name', async () => {
    for (const inside of insides()) {
      // Those that leave the page go alone: nothing after them would run.
      const { stays, leaves } = waysToAsk(inside);
      for (const body of [stays.join('\n'), ...leaves]) {
        expect(responseOf(await visit(body, false)).status).toBe(200);
        expect(canary.hits()).toBe(0);
      }
    }
  });

  test('does reach it where that is permitted, so the ways are real', async () => {
    const { stays } = waysToAsk(insides()[0]!);
    for (let tries = 0; tries < 5 && !canary.paths().includes('/worker'); tries++)
      await visit(stays.join('\n'), true);
    const paths = new Set(canary.paths());
    for (const path of [
      '/img',
      '/script',
      '/iframe',
      '/css',
      '/fetch',
      '/events',
      '/socket',
      '/prefetch',
      '/worker',
    ])
      expect(paths).toContain(path);
  });
});

describe('the page itself', () => {
  test.each([
    () => `http://${CANARY_ADDRESS}:${canary.port}/`,
    () => `http://2130706434:${canary.port}/`,
    () => `http://0177.0.0.2:${canary.port}/`,
    () => `http://[::ffff:127.0.0.2]:${canary.port}/`,
    () => `https://inside.example:${canary.port}/`,
  ])('is not asked for at a private address (%#)', async (urlOf) => {
    const before = canary.hits();
    let sent = 0;
    const onSent = () => ++sent > 0;
    expect(codeOf(await fetcher.fetch(requestOf(urlOf(), { allowPrivate: false, onSent })))).toBe(
      'private-address',
    );
    expect([canary.hits() - before, sent]).toEqual([0, 0]);
  });

  test('is not followed to one: the redirect is the answer', async () => {
    const before = canary.hits();
    const url = `http://site.example:${origin.port}/redirects-in`;
    const response = responseOf(await fetcher.fetch(requestOf(url, { allowPrivate: false })));
    expect([response.status, canary.hits() - before]).toEqual([302, 0]);
  });

  test.each(['file:///etc/passwd', 'data:text/html,hi', 'chrome://version', 'javascript:1'])(
    'is http or https: not %s',
    async (url) => {
      expect(codeOf(await fetcher.fetch(requestOf(url)))).toBe('internal');
    },
  );
});

describe('a proxy of the job', () => {
  test.each(['http', 'socks5'] as const)('carries everything, by %s', async (kind) => {
    const proxy = await startProxy({
      kind,
      resolve: () => '127.0.0.1',
      credentials: { username: 'u', password: 'p' },
    });
    page = '<img src=/picture>';
    const request = requestOf(`http://site.example:${origin.port}/page`, {
      allowPrivate: false,
      proxy: { id: 'one', url: proxy.url('u:p') },
      timeouts: { taskMs: 20_000 },
    });
    expect(responseOf(await fetcher.fetch(request)).body.toString()).toContain('<img src="/picture">');
    const place = kind === 'http' ? 'site.example' : '127.0.0.1';
    expect(new Set(proxy.asked)).toEqual(new Set([`${place}:${origin.port}`]));
    const refused = { ...request, proxy: { id: 'two', url: proxy.url('u:wrong') } };
    expect(codeOf(await fetcher.fetch(refused))).toBe('proxy');
    await proxy.close();
  });
});

test('advertisers are not connected to, where the job blocks them', async () => {
  page = `<img src="http://ad.doubleclick.net:${canary.port}/ad">`;
  const url = `http://site.example:${origin.port}/page`;
  for (const block of [['ads'], []]) {
    const before = canary.hits();
    const spec = browserSchema.parse({ block });
    responseOf(await fetcher.fetch(requestOf(url, { render: spec, timeouts: { taskMs: 20_000 } })));
    expect(canary.hits() > before).toBe(block.length === 0);
  }
});

test('frames of WebSockets are kept, up to a number', async () => {
  page = `<script>new WebSocket('ws://' + location.host + '/socket').onmessage = ({ data }) => {
    if (data === 'last') document.body.innerHTML = '<p>done</p>';
  }</script>`;
  const render = browserSchema.parse({
    actions: [{ waitFor: 'p' }],
    capture: [
      { name: 'all', url: '/socket', of: 'frames' },
      { name: 'first', url: '**/socket', of: 'frames', max: 1 },
      { name: 'other', url: '/elsewhere', of: 'frames' },
      { name: 'named', url: 'ws://*/socket', of: 'frames', max: 1 },
      { name: 'secure', url: 'wss://*/socket', of: 'frames' },
    ],
  });
  const url = `http://site.example:${origin.port}/page`;
  const request = requestOf(url, { allowPrivate: false, render, timeouts: { taskMs: 20_000 } });
  const { captured } = responseOf(await fetcher.fetch(request)).rendered!;
  expect(captured).toEqual({
    all: [{ price: 1 }, 'last'],
    first: [{ price: 1 }],
    other: [],
    named: [{ price: 1 }],
    secure: [],
  });
});

test('a certificate that nobody vouches for is refused', async () => {
  const secure = await openRawOrigin({}, { secure: true });
  expect(codeOf(await fetcher.fetch(requestOf(`https://site.example:${secure.port}/`)))).toBe('tls');
  expect(secure.requests).toEqual([]);
  await secure.close();
});

test('the proxy on the loopback address serves nobody without a ticket', async () => {
  const proxy = await FilterProxy.open(new DnsCache(clock));
  const ticket = proxy.issue({ isAllowed: null, proxy: null, isBlocked: null });
  const statusFor = (authorization: string | null) =>
    new Promise<number | undefined>((resolve) => {
      const headers = authorization === null ? {} : { 'proxy-authorization': authorization };
      http.get(proxy.url, { path: `${origin.url}/page`, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
  const { username, password } = proxy.credentialsOf(ticket);
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  expect(await statusFor(null)).toBe(407);
  expect(await statusFor(basic(`${username}:guess`))).toBe(407);
  expect(await statusFor(basic(`${username}:${password}`))).toBe(200);
  proxy.revoke(ticket);
  expect(await statusFor(basic(`${username}:${password}`))).toBe(407);
  await proxy.close();
});
