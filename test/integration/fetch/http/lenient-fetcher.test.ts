import { describe, expect, test } from 'vitest';
import type { FetchRequest } from '../../../../src/ports/fetcher.ts';
import { codeOf, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { afterThis, openFetcher, openOrigin } from '../../../support/fetch/http-fetcher-setup.ts';
import { startProxy } from '../../../support/servers/proxy-servers.ts';
import { type RawHandler, reply, sends, sendsThenEnds } from '../../../support/servers/raw-origin.ts';

/** Responses that break the rules of HTTP, and that curl and browsers read all the same. */

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const LF_ONLY = sends('HTTP/1.1 200 OK\nContent-Length: 2\n\nok');

async function fetchAll(handler: RawHandler, drafts: Partial<FetchRequest>[] = [{}]) {
  const origin = await openOrigin({ '/': handler });
  const fetcher = openFetcher();
  const results = [];
  for (const draft of drafts) results.push(await fetcher.fetch(requestOf(`${origin.url}/`, draft)));
  return { results, origin };
}

describe('read as browsers read it', () => {
  test.each([
    ['white space after a length', `${OK}Content-Length: 2 \r\n\r\nok`, 1],
    ['equal lengths', `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`, 2],
    ['a length said twice in one header', `${OK}Content-Length: 2, 2\r\n\r\nok`, 2],
    [
      'a length beside chunks',
      `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
      2,
    ],
    ['100 Continue without having asked', `HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`, 2],
    ['bare line feeds', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', 2],
    ['a folded header', `${OK}X-Folded: a\r\n  b\r\nContent-Length: 2\r\n\r\nok`, 2],
    ['a bad name of a header', `${OK}X (odd): a\r\nno colon\r\nContent-Length: 2\r\n\r\nok`, 2],
    ['a space before a colon', `${OK}X-A : a\r\nContent-Length : 2\r\n\r\nok`, 2],
    ['white space after the size of a chunk', `${CHUNKED}2  \r\nok\r\n0\r\n\r\n`, 2],
    ['the coding `none`', `${OK}Content-Encoding: none\r\nContent-Length: 2\r\n\r\nok`, 1],
    ['the coding `utf-8`', `${OK}Content-Encoding: UTF-8\r\nContent-Length: 2\r\n\r\nok`, 1],
    ['the coding `8bit`', `${OK}Content-Encoding: 8bit\r\nContent-Length: 2\r\n\r\nok`, 1],
    ['an unknown coding of text', `${OK}Content-Encoding: rot13\r\nContent-Length: 2\r\n\r\nok`, 1],
  ])('%s', async (_what, bytes, requests) => {
    const { results, origin } = await fetchAll(sends(bytes));
    expect(responseOf(results[0]!).body.toString()).toBe('ok');
    expect(origin.requests).toHaveLength(requests);
    expect(origin.accepted()).toBe(requests);
  });

  test('the parts of a folded header are one value, and a header without a name is none', async () => {
    const bytes = `HTTP/1.0 200 Fine\r\nX-Folded: a\r\n\tb\r\nX (odd): c\r\n\r\nok`;
    const [result] = (await fetchAll(sendsThenEnds(bytes))).results;
    expect(responseOf(result!)).toMatchObject({
      statusText: 'Fine',
      httpVersion: '1.0',
      rawHeaders: ['X-Folded', 'a b'],
    });
  });

  test.each([
    ['two lengths that differ', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`, 'protocol'],
    ['two lengths that differ in one header', `${OK}Content-Length: 2, 3\r\n\r\nok`, 'protocol'],
    ['a negative length', `${OK}Content-Length: -2\r\n\r\nok`, 'protocol'],
    ['a chunk whose size is no number', `${CHUNKED}zz\r\nok\r\n0\r\n\r\n`, 'protocol'],
    ['no status line', 'just text\r\n\r\n', 'protocol'],
    ['a NUL in a header', `${OK}X: a\0b\r\nContent-Length: 2\r\n\r\nok`, 'protocol'],
    [
      'an unknown coding of bytes',
      `${OK}Content-Encoding: x\r\nContent-Length: 2\r\n\r\n\0\x01`,
      'bad-encoding',
    ],
    ['a body cut short behind bare line feeds', 'HTTP/1.1 200 OK\nContent-Length: 9\n\nok', 'truncated'],
    [
      'chunks cut short beside a length',
      `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`,
      'truncated',
    ],
  ])('%s stays a failure', async (_what, bytes, code) => {
    const { results } = await fetchAll(sendsThenEnds(bytes), [{}, {}]);
    expect(results.map(codeOf)).toEqual([code, code]);
  });
});

describe('the second reading', () => {
  test('is remembered for its host: further pages cost one request each', async () => {
    const { results, origin } = await fetchAll(LF_ONLY, [{}, {}, {}]);
    expect(results.map((result) => result.kind)).toEqual(['response', 'response', 'response']);
    expect(origin.requests).toHaveLength(4);
  });

  test('is forgotten when the host keeps the rules again', async () => {
    let count = 0;
    const handler: RawHandler = (socket, request) =>
      (++count <= 2 ? LF_ONLY : sends(reply('200 OK', [], 'ok')))(socket, request);
    const { origin } = await fetchAll(
      handler,
      Array.from({ length: 12 }, () => ({})),
    );
    // Two for the first page; then eight on connections of their own, and the last three share one.
    expect(origin.requests).toHaveLength(13);
    expect(origin.accepted()).toBe(11);
  });

  test('is not tried a second time for a page that it could not read', async () => {
    const { origin } = await fetchAll(sends(`${CHUNKED}zz\r\n`), [{}, {}, {}]);
    // The host is remembered, so that its pages are read leniently at once.
    expect(origin.requests).toHaveLength(4);
  });

  test.each<[string, Partial<FetchRequest>]>([
    ['cookies', { headers: { Cookie: 'a=1' } }],
    ['a password', { headers: { authorization: 'Basic x' } }],
    ['secret headers', { headers: { 'x-key': 'k' }, hasSecrets: true }],
  ])('never has %s', async (_what, draft) => {
    const { results, origin } = await fetchAll(LF_ONLY, [draft, {}, draft]);
    expect(results.map((result) => (result.kind === 'response' ? 'response' : codeOf(result)))).toEqual([
      'protocol',
      'response',
      'protocol',
    ]);
    expect(origin.requests.map(({ head }) => /^(?:cookie|authorization|x-key):/im.test(head))).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  test('is a request of its own, sent only when the host may get it', async () => {
    const said: string[] = [];
    const draft = (mayGo: boolean) => ({
      onSent: () => said.push('sent') > 0,
      nextTurn: async () => said.push('turn') > 0 && mayGo,
    });
    const { results, origin } = await fetchAll(LF_ONLY, [draft(false), draft(true)]);
    expect(codeOf(results[0]!)).toBe('protocol');
    expect(responseOf(results[1]!).body.toString()).toBe('ok');
    // The second page begins with the lenient reading.
    expect(said).toEqual(['sent', 'turn', 'sent']);
    expect(origin.requests).toHaveLength(2);
  });

  test('dials no address that the strict one may not', async () => {
    const origin = await openOrigin({ '/': LF_ONLY });
    const fetcher = openFetcher();
    await fetcher.fetch(requestOf(`${origin.url}/`));
    const result = await fetcher.fetch(requestOf(`${origin.url}/`, { allowPrivate: false }));
    expect(codeOf(result)).toBe('private-address');
    expect(origin.requests).toHaveLength(2);
  });

  test.each([[false], [true]])(
    'goes through the proxy of the strict one, without tunnels: %s',
    async (noTunnels) => {
      const proxy = await startProxy(noTunnels ? { refuses: () => 403 } : {});
      afterThis(() => proxy.close());
      const through = { proxy: { id: 'p', url: proxy.url() } };
      const { results, origin } = await fetchAll(LF_ONLY, [through, through]);
      expect(results.map((result) => responseOf(result).body.toString())).toEqual(['ok', 'ok']);
      expect(origin.requests).toHaveLength(3);
    },
  );

  test('stores a body piece by piece, and is held to its limit', async () => {
    const pieces: string[] = [];
    const sinkFor = () => ({ write: (piece: Buffer) => void pieces.push(piece.toString()) });
    const { results } = await fetchAll(LF_ONLY, [{}, { sinkFor }, { bodyBytesMax: 1 }]);
    expect(responseOf(results[1]!).wireBytes).toBe(2);
    expect(pieces.join('')).toBe('ok');
    expect(codeOf(results[2]!)).toBe('too-large');
  });
});

test('the version of HTTP is kept as it was served', async () => {
  const old = await fetchAll(sendsThenEnds('HTTP/1.0 200 OK\r\n\r\nok'));
  expect(responseOf(old.results[0]!).httpVersion).toBe('1.0');
  const usual = await fetchAll(sends(reply('200 OK', [], 'ok')));
  expect(responseOf(usual.results[0]!).httpVersion).toBeUndefined();
});
