import zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { openHttpFetcher } from '../../../../src/fetch/http/http-fetcher.ts';
import {
  codeOf,
  PAGE,
  requestOf,
  responseOf,
  runFetcherContract,
} from '../../../contract/fetcher-contract.ts';
import {
  clock,
  fetchFrom,
  isPublicAddress,
  openFetcher,
  openOrigin,
} from '../../../support/fetch/http-fetcher-setup.ts';
import { drips, reply, sends, sendsThenEnds, sendsThenResets } from '../../../support/servers/raw-origin.ts';

runFetcherContract('the HTTP fetcher', () => openHttpFetcher({ clock, isPublicAddress }));

describe('bodies', () => {
  test('are complete when chunked, in any pieces', async () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    const chunks = [...'abcdefghij'].map((letter) => `5000\r\n${letter.repeat(0x5000)}\r\n`).join('');
    const response = responseOf(await fetchFrom(drips(head, `${chunks}0\r\n\r\n`, 1)));
    expect(response.body.length).toBe(10 * 0x5000);
    expect(response.body[0x5000]).toBe('b'.charCodeAt(0));
  });

  test('of several pieces are gathered in the memory that is lent for them, and blocks that became too small go back', async () => {
    const sizes = [40_000, 100_000, 200_000];
    const body = sizes.map((size, at) => String(at).repeat(size)).join('');
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    const chunks = sizes.map((size, at) =>
      Buffer.from(`${size.toString(16)}\r\n${String(at).repeat(size)}\r\n`),
    );
    const lent = new Set<ArrayBufferLike>();
    const bodyMemory = {
      take(bytes: number) {
        const block = Buffer.allocUnsafeSlow(bytes);
        lent.add(block.buffer);
        return block;
      },
      giveBack: ({ buffer }: Buffer) => void lent.delete(buffer),
    };
    const answer = Buffer.concat([Buffer.from(head), ...chunks, Buffer.from('0\r\n\r\n')]);
    const response = responseOf(await fetchFrom(sends(answer), { bodyMemory }));
    expect(response.body.toString() === body).toBe(true);
    // Compared by hand: a failure would print all of their bytes.
    expect([lent.size, lent.has(response.body.buffer)]).toEqual([1, true]);
  });

  test('white space after the value of a header is not part of it', async () => {
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked  \r\nX-One: a b \t\r\n\r\n';
    const response = responseOf(await fetchFrom(sends(`${head}5\r\nhello\r\n0\r\n\r\n`)));
    expect(response.body.toString()).toBe('hello');
    expect(response.rawHeaders).toEqual(['Transfer-Encoding', 'chunked', 'X-One', 'a b']);
    // The parser does not undo these chunks.
    const odd = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\t\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
    expect(codeOf(await fetchFrom(sendsThenEnds(odd)))).toBe('bad-encoding');
  });

  test('are complete when a FIN ends one without length', async () => {
    const response = responseOf(
      await fetchFrom(sendsThenEnds(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(70_000)}`)),
    );
    expect(response.body.length).toBe(70_000);
  });

  test('are never complete when a RST ends them', async () => {
    expect(codeOf(await fetchFrom(sendsThenResets('HTTP/1.1 200 OK\r\n\r\nhalf')))).toBe('reset');
    expect(codeOf(await fetchFrom(sendsThenResets('HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhalf')))).toBe(
      'reset',
    );
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n';
    expect(codeOf(await fetchFrom(sendsThenResets(chunked)))).toBe('reset');
  });

  test.each([
    ['a chunked body without its end', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
    [
      'the same with close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel',
    ],
    ['a short body with close', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhello'],
  ])('%s is truncated', async (_what, bytes) => {
    expect(codeOf(await fetchFrom(sendsThenEnds(bytes)))).toBe('truncated');
  });

  test('of 204 and 304 are empty, and what follows is not taken for the next response', async () => {
    const origin = await openOrigin({
      '/204': sends('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello'),
      '/304': sends('HTTP/1.1 304 Not Modified\r\nContent-Length: 99999999\r\n\r\n'),
      '/longer': sends(
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
      ),
      '/page': sends(reply('200 OK', [], PAGE)),
    });
    const fetcher = openFetcher();
    for (const path of ['/204', '/304', '/longer']) {
      const response = responseOf(await fetcher.fetch(requestOf(origin.url + path, { parallel: 1 })));
      expect(response.body.toString()).toBe(path === '/longer' ? 'ok' : '');
      const next = responseOf(await fetcher.fetch(requestOf(`${origin.url}/page`, { parallel: 1 })));
      expect(next.body.toString()).toBe(PAGE);
    }
  });

  test('large coded ones are decoded, and stacked ones too', async () => {
    const random = Buffer.from(
      Array.from({ length: 600_000 }, (_, index) => Math.imul(index, 2_654_435_761) >>> 13),
    );
    const wire = zlib.brotliCompressSync(zlib.gzipSync(random, { level: 1 }), {
      params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 },
    });
    const response = responseOf(
      await fetchFrom(sends(reply('200 OK', ['content-encoding: gzip, br'], wire))),
    );
    expect(response.body.equals(random)).toBe(true);
    expect(response.wireBody.equals(wire)).toBe(true);
  });

  test('a coding in transfer is refused, but for chunks', async () => {
    const gzip = zlib.gzipSync(PAGE).toString('latin1');
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n';
    expect(codeOf(await fetchFrom(sendsThenEnds(head + gzip)))).toBe('bad-encoding');
  });

  test('a length over the limit is refused before the body', async () => {
    const result = await fetchFrom(sends('HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n'));
    expect(result).toMatchObject({ kind: 'failure', code: 'too-large', bytes: 0 });
  });

  test('a million one-byte chunks cost little memory', async () => {
    const chunks = Buffer.concat(
      Array.from({ length: 1_000 }, () => Buffer.from('1\r\nx\r\n'.repeat(1_000))),
    );
    const head = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    const before = process.memoryUsage().rss;
    const result = await fetchFrom(sends(Buffer.concat([head, chunks, Buffer.from('0\r\n\r\n')])));
    expect(responseOf(result).body.length).toBe(1_000_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });
});

describe('responses that are not HTTP', () => {
  test.each([
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!'],
    ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello'],
    ['a bad chunk size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n'],
    ['HTTP/0.9', '<html>no status line at all</html>'],
    ['status 099', 'HTTP/1.1 099 Odd\r\nContent-Length: 5\r\n\r\nhello'],
    ['NUL in a header', 'HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 5\r\n\r\nhello'],
    ['a TLS alert', '\x15\x03\x01\x00\x02\x02\x28'],
    ['an upgrade nobody wants', 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
    ['64 KB of headers', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(LIMITS.headerBytesMax)}\r\n\r\n`],
    ['many headers', `HTTP/1.1 200 OK\r\n${`X-A: ${'a'.repeat(100)}\r\n`.repeat(700)}\r\n`],
    ['a flood of 1xx', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1_000)],
  ])('%s is protocol', async (_what, bytes) => {
    expect(codeOf(await fetchFrom(sends(bytes)))).toBe('protocol');
  });

  test('odd ones that can be read are responses', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
    expect(responseOf(await fetchFrom(sends(hints + reply('200 OK', [], 'hello')))).body.toString()).toBe(
      'hello',
    );
    expect(responseOf(await fetchFrom(sends(reply('999 Odd', [])))).status).toBe(999);
    const cookies = Array.from({ length: 500 }, (_, index) => `Set-Cookie: c${index}=1`);
    expect(responseOf(await fetchFrom(sends(reply('200 OK', cookies)))).rawHeaders.length).toBe(1_002);
  });
});
