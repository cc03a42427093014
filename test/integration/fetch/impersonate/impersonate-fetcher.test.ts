import { createServer } from 'node:net';
import zlib from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openImpersonateFetcher } from '../../../../src/fetch/impersonate/impersonate-fetcher.ts';
import type { Fetcher } from '../../../../src/ports/fetcher.ts';
import { codeOf, requestOf, responseOf, runFetcherContract } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress, lookupOf } from '../../../support/fetch/http-fetcher-setup.ts';
import { openRawOrigin, type RawOrigin, reply, sends } from '../../../support/servers/raw-origin.ts';

/** The contract opens a fetcher without waiting. */
function openLazily(): Fetcher {
  const opening = openImpersonateFetcher({ clock, isPublicAddress });
  return {
    fetch: async (request) => (await opening).fetch(request),
    close: async () => (await opening).close(),
  };
}

runFetcherContract('the impersonating fetcher', openLazily, { rawHead: false, rawBody: false });

describe('what it cannot do', () => {
  let origin: RawOrigin;
  let fetcher: Fetcher | null = null;
  const twice = zlib.brotliCompressSync(zlib.gzipSync('a page'));
  beforeAll(async () => {
    origin = await openRawOrigin({
      '/page': sends(reply('200 Fine', ['Content-Type: text/html', 'X-Two: a', 'x-two: b'], 'a page')),
      '/gzip': sends(reply('200 OK', ['Content-Encoding: gzip'], zlib.gzipSync('a page'))),
      '/twice': sends(reply('200 OK', ['Content-Encoding: gzip, br'], twice)),
    });
  });
  afterAll(() => origin.close());
  afterEach(() => fetcher?.close());

  const open = async (lookup?: Parameters<typeof openImpersonateFetcher>[0]['lookup']) => {
    fetcher = await openImpersonateFetcher({ clock, isPublicAddress, ...(lookup ? { lookup } : {}) });
    return fetcher;
  };

  test('is to give the head as it was sent: names are small, equal ones are one, the reason is the usual', async () => {
    const response = responseOf(await (await open()).fetch(requestOf(`${origin.url}/page`)));
    expect(response.statusText).toBe('OK');
    expect(response.rawHeaders).toEqual(['content-type', 'text/html', 'x-two', 'a, b']);
  });

  test('is to keep coded bytes: the body stands for them, and no header speaks of a coding', async () => {
    const response = responseOf(await (await open()).fetch(requestOf(`${origin.url}/gzip`)));
    expect(response.body.toString()).toBe('a page');
    expect(response.wireBody).toBe(response.body);
    expect(response.rawHeaders).toEqual([]);
  });

  test('is to undo several codings: they fail, and are never taken for a page', async () => {
    expect(codeOf(await (await open()).fetch(requestOf(`${origin.url}/twice`)))).toBe('bad-encoding');
  });
});

describe('the address guard', () => {
  let origin: RawOrigin;
  let fetcher: Fetcher;
  beforeAll(async () => {
    origin = await openRawOrigin({ '/': sends(reply('200 OK', [], 'inside')) });
  });
  afterAll(() => origin.close());
  afterEach(() => fetcher.close());

  test('resolves names itself, and dials what it has checked', async () => {
    const { lookup, asked } = lookupOf(['127.0.0.1']);
    fetcher = await openImpersonateFetcher({ clock, isPublicAddress: () => true, lookup });
    const url = `http://shop.example:${origin.port}/`;
    const request = requestOf(url, { allowPrivate: false });
    expect(responseOf(await fetcher.fetch(request)).body.toString()).toBe('inside');
    expect(asked).toEqual(['shop.example']);
  });

  test('is not to be got round by a name that changes its address', async () => {
    let now = 1_000_000;
    const { lookup } = lookupOf(['93.184.216.34'], ['127.0.0.1']);
    const before = origin.accepted();
    // The first answer passes the check, and is stale when the connection is made.
    const rebinding = { now: () => (now += 120_000) };
    fetcher = await openImpersonateFetcher({ clock: rebinding, isPublicAddress, lookup });
    const url = `http://shop.example:${origin.port}/`;
    expect(codeOf(await fetcher.fetch(requestOf(url, { allowPrivate: false })))).toBe('private-address');
    expect(origin.accepted()).toBe(before);
  });

  test('names what does not resolve, and what refuses', async () => {
    const { lookup } = lookupOf([]);
    fetcher = await openImpersonateFetcher({ clock, isPublicAddress, lookup });
    expect(codeOf(await fetcher.fetch(requestOf('http://nowhere.example/')))).toBe('dns');
    expect(codeOf(await fetcher.fetch(requestOf('http://127.0.0.1:1/')))).toBe('connect');
  });
});

test('says hello in TLS as a browser does, and not as Node', async () => {
  const hellos: Buffer[] = [];
  const alert = Buffer.from([0x15, 3, 1, 0, 2, 2, 40]);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      hellos.push(bytes);
      socket.end(alert);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const fetcher = await openImpersonateFetcher({ clock, isPublicAddress });
  expect(codeOf(await fetcher.fetch(requestOf(`https://127.0.0.1:${port}/`, { emulate: 'chrome151' })))).toBe(
    'tls',
  );
  await fetcher.close();
  await new Promise((resolve) => server.close(resolve));
  // Chrome offers a made-up cipher first (GREASE, RFC 8701), and HTTP/2 before HTTP/1.1.
  const [hello] = hellos;
  const ciphersAt = 5 + 4 + 2 + 32 + 1 + hello![43]! + 2;
  const first = hello!.readUInt16BE(ciphersAt);
  expect(first & 0x0f0f).toBe(0x0a0a);
  expect(hello!.includes('\x02h2\x08http/1.1')).toBe(true);
});
