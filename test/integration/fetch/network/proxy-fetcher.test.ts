import tls from 'node:tls';
import { describe, expect, test } from 'vitest';
import { codeOf, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { afterThis, lookupOf, openFetcher, openOrigin } from '../../../support/fetch/http-fetcher-setup.ts';
import {
  closedPort,
  type ProxyServer,
  type ProxyServerOptions,
  startProxy,
} from '../../../support/servers/proxy-servers.ts';
import { reply, sends, TEST_CERT, TEST_KEY } from '../../../support/servers/raw-origin.ts';

const hello = { '/': sends(reply('200 OK', [], 'hello')), '/again': sends(reply('200 OK', [], 'again')) };
const toLoopback = () => '127.0.0.1';

async function openProxy(options: ProxyServerOptions = {}): Promise<ProxyServer> {
  const proxy = await startProxy({ resolve: toLoopback, from: '127.0.0.7', ...options });
  afterThis(() => proxy.close());
  return proxy;
}

function trustTestCertificate(): void {
  const defaults = tls.getCACertificates('default');
  afterThis(() => tls.setDefaultCACertificates(defaults));
  tls.setDefaultCACertificates([...defaults, TEST_CERT]);
}

/** Nobody but the proxy may look up a name: this one gives no answers. */
const noNames = () => openFetcher({ lookup: lookupOf([]).lookup });
const through = (url: string) => ({ proxy: { id: 'p', url } });
const secret = { credentials: { username: 'us er', password: 'p@ss:w/rd%' } };
const secretText = 'us%20er:p%40ss%3Aw%2Frd%25';

describe.each(['http', 'socks5'] as const)('a proxy of kind %s', (kind) => {
  const schemeOf = (url: string) => (kind === 'socks5' ? url.replace('socks5', 'socks5h') : url);

  test('makes tunnels for http, which serve several requests', async () => {
    const origin = await openOrigin(hello);
    const proxy = await openProxy({ kind });
    const fetcher = noNames();
    // The proxy may be at a private address, where sites may not.
    const way = { ...through(schemeOf(proxy.url())), allowPrivate: false };
    for (const path of ['/', '/again', '/']) {
      const result = await fetcher.fetch(requestOf(`http://site.test:${origin.port}${path}`, way));
      expect(responseOf(result).body.toString()).toBe(path === '/' ? 'hello' : 'again');
    }
    expect(proxy.asked).toEqual([`site.test:${origin.port}`]);
    expect(origin.requests[0]!.head).not.toMatch(/proxy|127\.0\.0/i);
    expect(origin.accepted()).toBe(1);
  });

  test('makes tunnels for https, with the certificate of the site checked by name', async () => {
    trustTestCertificate();
    const origin = await openOrigin(hello, { secure: true });
    const proxy = await openProxy({ kind });
    const fetcher = noNames();
    const way = through(schemeOf(proxy.url()));
    expect(responseOf(await fetcher.fetch(requestOf(`https://site.test:${origin.port}/`, way))).status).toBe(
      200,
    );
    expect(codeOf(await fetcher.fetch(requestOf(`https://other.test:${origin.port}/`, way)))).toBe('tls');
  });

  test('gets its credentials, and only the right ones will do', async () => {
    const origin = await openOrigin(hello);
    const proxy = await openProxy({ kind, ...secret });
    const url = `http://site.test:${origin.port}/`;
    const fetcher = noNames();
    const fetch = (text?: string) => fetcher.fetch(requestOf(url, through(schemeOf(proxy.url(text)))));
    expect(responseOf(await fetch(secretText)).status).toBe(200);
    expect(codeOf(await fetch('us%20er:wrong'))).toBe('proxy');
    expect(codeOf(await fetch())).toBe('proxy');
    expect(origin.accepted()).toBe(1);
  });

  test.each(['closes', 'babbles'] as const)('that %s is the trouble, not the host', async (behaves) => {
    const origin = await openOrigin(hello);
    const proxy = await openProxy({ kind, behaves });
    const way = through(schemeOf(proxy.url()));
    expect(codeOf(await noNames().fetch(requestOf(`http://site.test:${origin.port}/`, way)))).toBe('proxy');
    expect(origin.accepted()).toBe(0);
  });

  test('that does not answer is given up in time', async () => {
    const proxy = await openProxy({ kind, behaves: 'silent' });
    const way = { ...through(schemeOf(proxy.url())), timeouts: { connectMs: 200 } };
    expect(codeOf(await noNames().fetch(requestOf('http://site.test/', way)))).toBe('proxy-tunnel');
  });

  test('that is not there is the trouble', async () => {
    const url = schemeOf(`${kind}://user:secret@127.0.0.1:${await closedPort()}`);
    const result = await noNames().fetch(requestOf('http://site.test/', through(url)));
    expect(codeOf(result)).toBe('proxy');
    expect(JSON.stringify(result)).not.toMatch(/secret|user/);
  });

  test('that cannot reach the host says so', async () => {
    const proxy = await openProxy({ kind });
    const way = through(schemeOf(proxy.url()));
    const port = await closedPort();
    expect(codeOf(await noNames().fetch(requestOf(`https://site.test:${port}/`, way)))).toBe('proxy-tunnel');
  });

  test.each([
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://169.254.169.254/',
    'http://localhost/',
    'http://printer/',
    'http://metadata.google.internal/',
    'http://nas.local/',
  ])('is not even asked for %s', async (url) => {
    const proxy = await openProxy({ kind });
    const fetcher = openFetcher({
      lookup: lookupOf([]).lookup,
      isPublicAddress: (ip) => !/^127|^169\.254|^::1$/.test(ip),
    });
    const result = await fetcher.fetch(
      requestOf(url, { ...through(schemeOf(proxy.url())), allowPrivate: false }),
    );
    expect(codeOf(result)).toBe('private-address');
    expect(proxy.asked).toEqual([]);
  });

  test('does not share connections with another, nor with none', async () => {
    const origin = await openOrigin(hello);
    const fetcher = openFetcher({ lookup: lookupOf(['127.0.0.1']).lookup });
    const [one, two] = [await openProxy({ kind }), await openProxy({ kind })];
    const url = `http://site.test:${origin.port}/`;
    for (const way of [through(schemeOf(one.url())), {}, through(schemeOf(two.url())), {}]) {
      expect(responseOf(await fetcher.fetch(requestOf(url, way))).status).toBe(200);
    }
    expect([one.asked.length, two.asked.length, origin.accepted()]).toEqual([1, 1, 3]);
  });
});

describe('http proxies', () => {
  test('credentials for a proxy stay with its requests, where others have the same headers', async () => {
    const origin = await openOrigin(hello);
    const proxy = await openProxy({ ...secret, refuses: () => 403 });
    const fetcher = openFetcher();
    const headers = { 'user-agent': 'test' };
    const way = through(proxy.url(secretText));
    const site = `http://site.test:${origin.port}`;
    const results = await Promise.all(
      ['/', '/again'].map((path) => fetcher.fetch(requestOf(site + path, { ...way, headers }))),
    );
    expect(results.map((result) => responseOf(result).status)).toEqual([200, 200]);
    expect(proxy.whole).toHaveLength(2);
    expect(responseOf(await fetcher.fetch(requestOf(`${origin.url}/`, { headers }))).status).toBe(200);
    expect(origin.requests.at(-1)!.head).not.toMatch(/proxy-authorization/i);
  });

  test('that make no tunnels for http get whole URLs, with their credentials', async () => {
    const origin = await openOrigin(hello);
    const proxy = await openProxy({ ...secret, refuses: () => 403 });
    const fetcher = noNames();
    const url = `http://site.test:${origin.port}`;
    const way = through(proxy.url(secretText));
    const results = await Promise.all(
      ['/', '/again', '/?q=1'].map((path) => fetcher.fetch(requestOf(url + path, way))),
    );
    expect(results.map((result) => responseOf(result).status)).toEqual([200, 200, 200]);
    expect(proxy.whole.sort()).toEqual([`${url}/`, `${url}/?q=1`, `${url}/again`]);
    expect(origin.requests).toHaveLength(3);
    for (const { head } of origin.requests) expect(head).not.toMatch(/proxy/i);
    const wrong = await noNames().fetch(requestOf(`${url}/`, through(proxy.url('us%20er:wrong'))));
    expect(codeOf(wrong)).toBe('proxy');
  });

  test('that make no tunnel for https are not asked in another way', async () => {
    const proxy = await openProxy({ refuses: () => 403 });
    const result = await noNames().fetch(requestOf('https://site.test/', through(proxy.url())));
    expect(codeOf(result)).toBe('proxy-tunnel');
    expect(proxy.whole).toEqual([]);
  });

  test('may be reached over TLS, for http and https', async () => {
    trustTestCertificate();
    const certificate = { key: TEST_KEY, cert: TEST_CERT };
    const proxy = await openProxy({ kind: 'https', certificate, ...secret });
    const fetcher = openFetcher({ lookup: lookupOf(['127.0.0.1']).lookup });
    const way = through(proxy.url(secretText).replace('127.0.0.1', 'site.test'));
    for (const secure of [false, true]) {
      const origin = await openOrigin(hello, { secure });
      const url = `http${secure ? 's' : ''}://site.test:${origin.port}/`;
      expect(responseOf(await fetcher.fetch(requestOf(url, way))).body.toString()).toBe('hello');
    }
  });
});

describe('socks5 without h', () => {
  test('has names looked up and checked here', async () => {
    const origin = await openOrigin(hello);
    const proxy = await openProxy({ kind: 'socks5' });
    const { asked, lookup } = lookupOf(['127.0.0.1'], ['10.0.0.1']);
    const fetcher = openFetcher({ lookup, isPublicAddress: (ip) => ip === '127.0.0.1' });
    const way = { ...through(proxy.url()), allowPrivate: false };
    expect(responseOf(await fetcher.fetch(requestOf(`http://site.test:${origin.port}/`, way))).status).toBe(
      200,
    );
    expect(proxy.asked).toEqual([`127.0.0.1:${origin.port}`]);
    expect(codeOf(await fetcher.fetch(requestOf('http://turncoat.test/', way)))).toBe('private-address');
    expect(asked).toEqual(['site.test', 'turncoat.test']);
    expect(proxy.asked.length).toBe(1);
  });
});
