import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { Readable } from 'node:stream';
import zlib from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BEHAVIOURS, CASES, caseOf, pathsOf } from '../../../src/sites/hostile/behaviours.ts';
import { createIssuer, createSelfSigned } from '../../../src/sites/hostile/certificates.ts';
import { BROTLI_BOMB } from '../../../src/sites/hostile/codings.ts';
import { type HostileWeb, startHostileWeb } from '../../../src/sites/hostile/hostile-web.ts';

let web: HostileWeb;
beforeAll(async () => {
  web = await startHostileWeb();
});
afterAll(() => web.close());

async function connect(): Promise<net.Socket> {
  const { hostname, port } = new URL(web.url);
  const socket = net.connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

describe('the hostile web', () => {
  test('has fifty behaviours, each at paths of its own', () => {
    expect(BEHAVIOURS.map(({ number }) => number)).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
    expect(new Set(CASES.map(({ base }) => base)).size).toBe(CASES.length);
    for (const each of CASES) for (const path of pathsOf(each)) expect(caseOf(path)).toEqual(each);
  });

  test('lists them all on its start page, and what is not there is not found', async () => {
    const page = await (await fetch(`${web.url}/`)).text();
    for (const each of CASES) for (const path of pathsOf(each)) expect(page).toContain(`href="${path}"`);
    expect((await fetch(`${web.url}/51-nothing`)).status).toBe(404);
    expect((await fetch(`${web.url}/7-truncated-gzip-2`)).status).toBe(404);
    expect(await (await fetch(`${web.url}/robots.txt`)).text()).toContain('Allow: /');
  });

  test('counts requests by path', async () => {
    const before = web.requests();
    for (let count = 1; count <= 3; count++) {
      await (await fetch(`${web.url}/28-latin-1-header?${count}`)).text();
      expect(web.count('/28-latin-1-header')).toBe(count);
    }
    expect(web.requests() - before).toBe(3);
  });

  test('has bombs as large as it says', async () => {
    let bytes = 0;
    const stream = Readable.from([BROTLI_BOMB]).pipe(zlib.createBrotliDecompress());
    for await (const piece of stream) bytes += (piece as Buffer).length;
    expect([BROTLI_BOMB.length, bytes]).toEqual([203, 256 * 1024 * 1024]);
  });

  test('lets nobody send it a head without end', async () => {
    const socket = await connect();
    const closed = once(socket, 'close');
    socket.write(`GET / HTTP/1.1\r\nX: ${'a'.repeat(80 * 1024)}`);
    await closed;
  });

  test('ends with all its connections, whatever they are doing', async () => {
    const other = await startHostileWeb();
    const { port } = new URL(other.url);
    const sockets = ['/29-silent', '/20-infinite-body', '/18-header-drip', '/19-body-drip'].map((path) => {
      const socket = net.connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      return socket;
    });
    await expect.poll(() => other.requests()).toBe(sockets.length);
    const closed = Promise.all(sockets.map((socket) => once(socket.resume(), 'close')));
    await other.close();
    await closed;
    expect(other.open()).toBe(0);
    await expect(fetch(other.url)).rejects.toThrow();
  });

  test('opens no port when one of them is taken', async () => {
    const port = Number(new URL(web.url).port);
    await expect(startHostileWeb({ port })).rejects.toThrow('EADDRINUSE');
  });
});

describe('certificates', () => {
  const now = new Date('2026-03-01T12:00:00Z');
  const issuer = createIssuer('Test Authority', now);
  const authority = new X509Certificate(issuer.cert);

  test('are signed by their authority, for their names and times', () => {
    const notAfter = new Date('2060-01-01T00:00:00Z');
    const { cert } = issuer.issue({ names: ['127.0.0.1', 'a.example'], notBefore: now, notAfter });
    const leaf = new X509Certificate(cert);
    expect(leaf.checkIssued(authority)).toBe(true);
    expect(leaf.verify(authority.publicKey)).toBe(true);
    expect([leaf.ca, authority.ca]).toEqual([false, true]);
    expect([leaf.validFromDate, leaf.validToDate]).toEqual([now, notAfter]);
    expect([leaf.checkIP('127.0.0.1'), leaf.checkHost('a.example')]).toEqual(['127.0.0.1', 'a.example']);
    expect([leaf.checkIP('127.0.0.2'), leaf.checkHost('b.example')]).toEqual([undefined, undefined]);
  });

  test('that sign themselves are signed by nobody else', () => {
    // Names of all lengths: the end of the text must be right wherever its last line ends.
    for (let length = 1; length <= 60; length++) {
      const own = new X509Certificate(createSelfSigned([`${'a'.repeat(length)}.example`], now).cert);
      expect(own.verify(own.publicKey)).toBe(true);
      expect(own.verify(authority.publicKey)).toBe(false);
    }
  });
});
