import { execFile } from 'node:child_process';
import type net from 'node:net';
import { setTimeout } from 'node:timers/promises';
import tls from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { codeOf, PAGE, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import {
  afterThis,
  fetchFrom,
  lookupOf,
  openFetcher,
  openOrigin,
} from '../../../support/fetch/http-fetcher-setup.ts';
import {
  drips,
  openRawOrigin,
  reply,
  sends,
  sendsThenEnds,
  TEST_CERT,
} from '../../../support/servers/raw-origin.ts';

describe('connections', () => {
  test('are kept and used again', async () => {
    const origin = await openOrigin({ '/': sends(reply('200 OK', [], 'hello')) });
    const fetcher = openFetcher();
    for (let count = 0; count < 10; count += 1) responseOf(await fetcher.fetch(requestOf(origin.url)));
    expect(origin.accepted()).toBe(1);
  });

  test('that the server closes when the next request comes do not fail it', async () => {
    for (const closing of [
      (socket: net.Socket) => socket.end(),
      (socket: net.Socket) => socket.resetAndDestroy(),
    ]) {
      const origin = await openOrigin({
        '/': (socket, { nth }) =>
          void (nth === 1 ? socket.write(reply('200 OK', [], 'hello')) : closing(socket)),
      });
      const fetcher = openFetcher();
      let sent = 0;
      const onSent = () => {
        sent += 1;
        return true;
      };
      responseOf(await fetcher.fetch(requestOf(origin.url, { onSent })));
      expect(responseOf(await fetcher.fetch(requestOf(origin.url, { onSent }))).body.toString()).toBe(
        'hello',
      );
      // Three requests were on the wire, and each counts.
      expect([sent, origin.requests.length, origin.accepted()]).toEqual([3, 3, 2]);
    }
  });

  test('that fail fresh, or after the first byte, are not tried again', async () => {
    const origin = await openOrigin({
      '/': (socket) => void socket.end(),
      '/reset': (socket) => void socket.resetAndDestroy(),
      '/page': sends(reply('200 OK', [], 'hello')),
      '/half': sendsThenEnds('HTTP/1.1 200 OK\r\nContent-'),
    });
    const fetcher = openFetcher();
    expect(codeOf(await fetcher.fetch(requestOf(`${origin.url}/`)))).toBe('reset');
    expect(codeOf(await fetcher.fetch(requestOf(`${origin.url}/reset`)))).toBe('reset');
    responseOf(await fetcher.fetch(requestOf(`${origin.url}/page`)));
    expect(codeOf(await fetcher.fetch(requestOf(`${origin.url}/half`)))).toBe('reset');
    expect(origin.requests.length).toBe(4);
  });

  test('shrink in number when the limit shrinks', async () => {
    const origin = await openOrigin({ '/': sends(reply('200 OK', [], 'hello')) });
    const fetcher = openFetcher();
    await Promise.all(Array.from({ length: 8 }, () => fetcher.fetch(requestOf(origin.url, { parallel: 8 }))));
    expect(origin.open()).toBe(8);
    responseOf(await fetcher.fetch(requestOf(origin.url, { parallel: 2 })));
    await expect.poll(() => origin.open()).toBe(2);
  });

  test('that are refused fail with connect, and nothing counts as sent', async () => {
    const closed = await openRawOrigin({});
    await closed.close();
    let sent = 0;
    const onSent = () => {
      sent += 1;
      return true;
    };
    const result = await openFetcher().fetch(requestOf(closed.url, { onSent }));
    expect(codeOf(result)).toBe('connect');
    expect(sent).toBe(0);
  });

  test('headers that drip are ended by the headers timeout', async () => {
    const handler = drips('HTTP/1.1 200 OK\r\n', 'X-A: b\r\n', 20);
    expect(codeOf(await fetchFrom(handler, { timeouts: { headersMs: 200 } }))).toBe('headers-timeout');
  });

  test('a caller may lose patience while it waits for headers, and not later', async () => {
    const origin = await openOrigin({
      '/silent': () => {},
      '/slow-body': (socket) => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na');
        globalThis.setTimeout(() => socket.write('b'), 300);
      },
    });
    const fetcher = openFetcher();
    const silent = fetcher.fetch(requestOf(`${origin.url}/silent`, { headersMs: () => 100 }));
    // Once the head is there, patience is of no account.
    let patienceMs = Number.POSITIVE_INFINITY;
    const sinkFor = () => {
      patienceMs = 1;
      return null;
    };
    const slow = fetcher.fetch(
      requestOf(`${origin.url}/slow-body`, { headersMs: () => patienceMs, sinkFor }),
    );
    expect(codeOf(await silent)).toBe('headers-timeout');
    expect(await slow).toMatchObject({ kind: 'response', status: 200 });
  });

  test('no timeout comes early, whenever its request began', async () => {
    const origin = await openOrigin({ '/': () => {} });
    const fetcher = openFetcher();
    const request = requestOf(origin.url, { parallel: 20, timeouts: { headersMs: 100 } });
    const took = Array.from({ length: 15 }, async (_, index) => {
      await setTimeout(index * 7);
      const startedAt = performance.now();
      expect(codeOf(await fetcher.fetch(request))).toBe('headers-timeout');
      return performance.now() - startedAt;
    });
    expect(Math.min(...(await Promise.all(took)))).toBeGreaterThanOrEqual(99);
  });

  test('headers given by the caller go out, and ask for codings unless they do', async () => {
    const origin = await openOrigin({ '/': sends(reply('200 OK', [], 'hello')) });
    const fetcher = openFetcher();
    await fetcher.fetch(requestOf(`${origin.url}/?a=1#x`, { headers: { 'X-Mine': 'yes' } }));
    await fetcher.fetch(requestOf(origin.url, { headers: { 'Accept-Encoding': 'br' } }));
    const [first, second] = origin.requests.map((request) => request.head.split('\r\n'));
    expect(first![0]).toBe('GET /?a=1 HTTP/1.1');
    expect(first).toContain('X-Mine: yes');
    expect(first).toContain('accept-encoding: gzip, br, zstd, deflate');
    expect(second!.filter((line) => /^accept-encoding/i.test(line))).toEqual(['Accept-Encoding: br']);
  });

  test('requests that cannot be made fail without a throw', async () => {
    const fetcher = openFetcher();
    for (const url of ['file:///etc/passwd', 'data:,x', 'not a url']) {
      expect(codeOf(await fetcher.fetch(requestOf(url)))).toBe('internal');
    }
    const bad = requestOf('http://127.0.0.1/', { headers: { 'x-a': 'b\r\nevil: 1' } });
    expect(codeOf(await fetcher.fetch(bad))).toBe('internal');
  });
});

describe('TLS', () => {
  test('failures are told apart from others', async () => {
    const fetcher = openFetcher();
    const plain = await openOrigin(
      {},
      { onConnection: (socket) => void socket.write('HTTP/1.1 400 Bad\r\n\r\n') },
    );
    expect(codeOf(await fetcher.fetch(requestOf(plain.url.replace('http', 'https'))))).toBe('tls');
    const signedByItself = await openOrigin({}, { secure: true });
    expect(codeOf(await fetcher.fetch(requestOf(signedByItself.url)))).toBe('tls');
    const resets = await openOrigin(
      {},
      { onConnection: (socket) => void socket.once('data', () => socket.resetAndDestroy()) },
    );
    expect(codeOf(await fetcher.fetch(requestOf(resets.url.replace('http', 'https'))))).toBe('reset');
  });

  test('a handshake that stalls is ended by the connect timeout', async () => {
    const silent = await openOrigin({}, { onConnection: () => {} });
    const request = requestOf(silent.url.replace('http', 'https'), { timeouts: { connectMs: 150 } });
    expect(codeOf(await openFetcher().fetch(request))).toBe('connect-timeout');
    await expect.poll(() => silent.open()).toBe(0);
  });

  test('works by name with a certificate that is trusted, and not with another name', async () => {
    const defaults = tls.getCACertificates('default');
    afterThis(() => tls.setDefaultCACertificates(defaults));
    tls.setDefaultCACertificates([...defaults, TEST_CERT]);
    const origin = await openOrigin({ '/': sends(reply('200 OK', [], PAGE)) }, { secure: true });
    const fetcher = openFetcher({ lookup: lookupOf(['127.0.0.1']).lookup });
    const url = `https://site.test:${origin.port}/`;
    expect(responseOf(await fetcher.fetch(requestOf(url))).body.toString()).toBe(PAGE);
    expect(responseOf(await fetcher.fetch(requestOf(url))).body.toString()).toBe(PAGE);
    expect(origin.accepted()).toBe(1);
    expect(codeOf(await fetcher.fetch(requestOf(`https://other.test:${origin.port}/`)))).toBe('tls');
  });
});

test('nothing keeps the process alive after close, nor while idle', async () => {
  const origin = await openOrigin({ '/': sends(reply('200 OK', [], 'hello')) });
  const script = `
    import { openHttpFetcher } from './src/fetch/http/http-fetcher.ts';
    const fetcher = openHttpFetcher({ clock: { now: Date.now }, isPublicAddress: () => true });
    const result = await fetcher.fetch({ url: process.argv[1], headers: {}, bodyBytesMax: 1e6, parallel: 2, allowPrivate: true,
      timeouts: { connectMs: 1e4, headersMs: 1e4, bodyMs: 1e4, taskMs: 1e4 }, signal: new AbortController().signal, onSent: () => true });
    if (process.argv[2] === 'close') await fetcher.close();
    console.log(result.kind);`;
  for (const ending of ['close', 'idle']) {
    const args = ['--input-type=module-typescript', '--eval', script, origin.url, ending];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
    expect(stdout).toBe('response\n');
  }
});
