import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import zlib from 'node:zlib';
import { openHttpFetcher } from '../../src/fetch/http/http-fetcher.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * Replies of a server, byte by byte, which then closes the connection. Each ends in a response or in a failure with a
 * plain sentence. A request with a cookie is read strictly: its response is the one that `node:http` reads. One without may be
 * read a second time, leniently: then a response is at most what was sent.
 */

const BODY = Buffer.from('<p>hello</p>');
const STATUS = [
  '200 OK',
  '404 Not Found',
  '301 Moved',
  '204 No Content',
  '304 Not Modified',
  '200',
  '200  x',
  '999 y',
  '100 Continue',
  '99 z',
  '2000 OK',
];
const HEADERS = [
  'Content-Type: text/html',
  'X-Two: a',
  'x-two: b\xe9',
  'Set-Cookie: a=b',
  '__proto__: x',
  'constructor: x',
  'Location: /x',
  'X-Empty:',
  'Connection: close',
  'Content-Encoding: identity',
  'X-Odd: \x01',
  ' folded: x',
  'No colon',
  ': empty',
  'X Y: z',
  `X-Long: ${'x'.repeat(20_000)}`,
];
const PIECES = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  'Content-Length: 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  '5\r\nhello\r\n',
  '0\r\n\r\n',
  'ffffffff\r\n',
  'HTTP/1.1 200 OK\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\n\r\n',
  ': ',
  ';x=y',
];

function chunked(random: Random, body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const size = 1 + random.below(body.length - at);
    parts.push(
      Buffer.from(`${size.toString(16)}${random.oneIn(6) ? ';x=y' : ''}\r\n`),
      body.subarray(at, at + size),
      Buffer.from('\r\n'),
    );
    at += size;
  }
  return Buffer.concat([...parts, Buffer.from(random.oneIn(6) ? '0\r\nX-Trailer: t\r\n\r\n' : '0\r\n\r\n')]);
}

function reply(random: Random): Buffer {
  const headers = random.list(0, 4, () =>
    random.pick(HEADERS.slice(0, random.oneIn(8) ? HEADERS.length : 10)),
  );
  let body: Buffer = random.oneIn(6) ? Buffer.alloc(random.below(5_000), 'x') : BODY;
  const coding = random.pick([null, null, 'gzip', 'deflate', 'br', 'zstd', 'gzip, br', 'other']);
  if (coding !== null) headers.push(`Content-Encoding: ${coding}`);
  for (const name of coding?.split(', ') ?? [])
    body =
      name === 'gzip'
        ? zlib.gzipSync(body)
        : name === 'deflate'
          ? zlib.deflateSync(body)
          : name === 'br'
            ? zlib.brotliCompressSync(body)
            : name === 'zstd'
              ? zlib.zstdCompressSync(body)
              : body;
  if (random.oneIn(3)) {
    headers.push('Transfer-Encoding: chunked');
    body = chunked(random, body);
  } else if (!random.oneIn(4))
    headers.push(
      `Content-Length: ${random.oneIn(8) ? random.pick(['0', '5', '-1', '1e1', '99999', '18446744073709551616']) : body.length}`,
    );
  const interim = random.oneIn(10) ? 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' : '';
  const head = `${interim}HTTP/${random.pick(['1.1', '1.1', '1.1', '1.0', '2.0'])} ${random.pick(STATUS)}\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

interface Read {
  status: number;
  headers: string[];
  body: string;
}

export async function openHttpTarget(): Promise<Target> {
  let bytes: Buffer = Buffer.alloc(0);
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    // The request comes in one piece: it is small.
    socket.once('data', () => socket.end(bytes));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
  const fetcher = openHttpFetcher({
    clock: { now: () => performance.timeOrigin + performance.now() },
    isPublicAddress: () => true,
  });
  return {
    generate(random) {
      const whole = reply(random);
      return random.oneIn(3) ? whole : mutate(whole, random, PIECES, 2);
    },
    async check(input) {
      bytes = input;
      const fetched = async (headers: Record<string, string>) => {
        const result = await fetcher.fetch({
          url,
          headers: { 'user-agent': 'Seine-Test/1.0', ...headers },
          bodyBytesMax: 1024 * 1024,
          parallel: 1,
          allowPrivate: true,
          signal: new AbortController().signal,
          onSent: () => true,
          timeouts: { connectMs: 20_000, headersMs: 20_000, bodyMs: 20_000, taskMs: 25_000 },
        });
        if (result.kind === 'failure') {
          must(
            /^[a-zA-Z][\x20-\x7e]{5,199}$/.test(result.detail),
            `the failure says ${JSON.stringify(result.detail)}`,
          );
          must(!/time/.test(result.code), `it ends with ${result.code}`);
        }
        must(result.kind !== 'aborted', 'it is aborted');
        return result;
      };
      const lenient = await fetched({});
      if (lenient.kind === 'response')
        must(lenient.wireBody.length < input.length, 'the response is longer than what was sent');
      const result = await fetched({ cookie: 'a=b' });
      const other = await readWithNode(url);
      if (result.kind === 'response') {
        // A lone return at the end of a line is forgiven by one of them.
        if (other === null && /\r(?!\n)/.test(input.toString('latin1'))) return;
        must(other !== null, `Node refuses what is taken for a response with status ${result.status}`);
        mustEqual(
          { status: result.status, headers: result.rawHeaders, body: result.wireBody.toString('latin1') },
          other,
          'response',
        );
      } else if (other !== null) {
        // What the parsers agree on may be refused for its body.
        const isOurs = ['bad-encoding', 'too-large', 'truncated'].includes(result.code);
        must(
          isOurs || isRefused(other),
          `${result.code} (${result.detail}) for what Node reads with status ${other.status}`,
        );
      }
    },
    async close() {
      await fetcher.close();
      server.close();
    },
  };
}

/** What only we refuse: many bytes of headers, a status that no server means, and a switch of protocols unasked. */
function isRefused({ headers, status }: Read): boolean {
  return headers.join('').length > 16_000 || status < 100 || status === 101;
}

function readWithNode(url: string): Promise<Read | null> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const take = (response: http.IncomingMessage | undefined) => {
      if (!response?.complete) resolve(null);
      else
        resolve({
          status: response.statusCode!,
          headers: response.rawHeaders,
          body: Buffer.concat(parts).toString('latin1'),
        });
    };
    let seen: http.IncomingMessage | undefined;
    const request = http.get(url, { agent: false, maxHeaderSize: 80 * 1024 }, (response) => {
      seen = response;
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => take(response));
      response.on('close', () => take(response));
    });
    // What follows a whole response is an error too, which changes nothing about the response.
    request.on('error', () => setImmediate(take, seen));
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      resolve(null);
    });
  });
}
