import { getEventListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import zlib from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Fetcher, FetchRequest, FetchResponse, FetchResult } from '../../src/ports/fetcher.ts';
import {
  drips,
  openRawOrigin,
  type RawOrigin,
  reply,
  sends,
  sendsThenEnds,
  sendsThenResets,
} from '../support/servers/raw-origin.ts';
import { runSinkContract, sinkHandlers } from './fetcher-sinks.ts';

/** What every Fetcher promises, whatever it is made of. `open` gets none but the defaults of the adapter. */

export const PAGE = `<html><body>${'<p>Grüße aus dem Netz. '.repeat(1_000)}</body></html>`;

export interface RequestDraft extends Partial<Omit<FetchRequest, 'timeouts'>> {
  timeouts?: Partial<FetchRequest['timeouts']>;
}

/** No test waits for them: a browser on a busy machine takes ten seconds for a small page. */
const PATIENT = { connectMs: 60_000, headersMs: 60_000, bodyMs: 60_000, taskMs: 90_000 };

export function requestOf(url: string, draft: RequestDraft = {}): FetchRequest {
  return {
    headers: { 'user-agent': 'Seine-Test/1.0' },
    bodyBytesMax: 1024 * 1024,
    parallel: 4,
    allowPrivate: true,
    signal: new AbortController().signal,
    onSent: () => true,
    ...draft,
    url,
    timeouts: { ...PATIENT, ...draft.timeouts },
  };
}

export function responseOf(result: FetchResult): FetchResponse {
  if (result.kind !== 'response') throw new Error(`no response: ${JSON.stringify(result)}`);
  return result;
}

export function codeOf(result: FetchResult): string {
  if (result.kind !== 'failure') return result.kind;
  // One clean sentence, whatever the site sent.
  expect(result.detail).toMatch(/^(?:[a-z]|TLS |Playwright |Chromium )[\x20-\x7e]{5,199}[^.]$/);
  return result.code;
}

/** Tells what ends from what waits for another timeout; a busy machine takes many seconds for what is at once. */
const ENDS_MS = 45_000;

/** Packs to a fiftieth of its size, or so. */
const PATTERN = Buffer.concat(
  Array.from({ length: 4_000 }, (_, n) => Buffer.from(String(Math.sin(n)).padEnd(600, 'x'))),
);

const handlers = {
  '/page': sends(reply('200 Fine', ['Content-Type: text/html', 'X-Two: a', 'x-two: b\xe9'], PAGE)),
  '/empty': sends('HTTP/1.1 204 No Content\r\n\r\n'),
  '/moved': sends(reply('302 Found', ['Location: /page'], 'moved')),
  '/gone': sends(reply('410 Gone', [], 'gone')),
  '/gzip': sends(reply('200 OK', ['Content-Encoding: gzip'], zlib.gzipSync(PAGE))),
  '/gzip-cut': sends(reply('200 OK', ['Content-Encoding: gzip'], zlib.gzipSync(PAGE).subarray(0, -20))),
  '/gzip-lie': sends(reply('200 OK', ['Content-Encoding: gzip'], PAGE)),
  '/gzip-bomb': sends(
    reply('200 OK', ['Content-Encoding: gzip'], zlib.gzipSync(Buffer.alloc(8 * 1024 * 1024))),
  ),
  '/brotli-bomb': sends(
    reply('200 OK', ['Content-Encoding: br'], zlib.brotliCompressSync(Buffer.alloc(4 * 1024 * 1024))),
  ),
  '/brotli-bomb-until-close': sendsThenEnds(
    Buffer.concat([
      Buffer.from('HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n'),
      zlib.brotliCompressSync(Buffer.alloc(4 * 1024 * 1024)),
    ]),
  ),
  '/brotli-noise': sends(reply('200 OK', ['Content-Encoding: br'], zlib.brotliCompressSync(PATTERN))),
  '/large': sends(reply('200 OK', [], Buffer.alloc(2 * 1024 * 1024))),
  '/endless': drips('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(64 * 1024), 1),
  '/short': sendsThenEnds('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nhalf'),
  '/short-reset': sendsThenResets('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
  '/silent': () => {},
  '/stalls': sends('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nhalf'),
  '/drip': drips('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n', 'x', 20),
  '/nonsense': sendsThenEnds('\x16\x03\x01 what is this\r\n\r\n'),
  ...sinkHandlers,
};

/** What a fetcher that leaves HTTP to another library cannot promise; its own tests say what it does instead. */
interface Abilities {
  /** The head as it was sent: order, case and words. */
  rawHead: boolean;
  /** The body before it is decoded, and every way to code it. */
  rawBody: boolean;
  /** There for a browser: it makes a page of a body, forgives codings, and needs seconds where others need none. */
  browser?: true;
}

export function runFetcherContract(
  name: string,
  open: () => Fetcher,
  able: Abilities = { rawHead: true, rawBody: true },
): void {
  describe(`${name} as a Fetcher`, () => {
    let origin: RawOrigin;
    let fetcher: Fetcher;
    beforeAll(async () => {
      origin = await openRawOrigin(handlers);
    });
    afterAll(() => origin.close());
    beforeEach(() => {
      fetcher = open();
    });
    afterEach(() => fetcher.close());

    const get = (path: string, draft?: RequestDraft) => fetcher.fetch(requestOf(origin.url + path, draft));

    answers(get, able);
    failures(get, able);
    if (!able.browser) runSinkContract(get, able);
    endings(
      () => fetcher,
      () => origin,
      get,
      able,
    );
  });
}

type Get = (path: string, draft?: RequestDraft) => Promise<FetchResult>;

function answers(get: Get, able: Abilities): void {
  const testIf = (ability: boolean) => (ability ? test : () => {});
  testIf(able.rawHead)('gives status, headers in order and case, and the body', async () => {
    const response = responseOf(await get('/page'));
    expect(response).toMatchObject({ status: 200, statusText: 'Fine' });
    expect(response.rawHeaders.slice(0, 6)).toEqual([
      'Content-Type',
      'text/html',
      'X-Two',
      'a',
      'x-two',
      'b\xe9',
    ]);
    expect(response.body.toString()).toBe(PAGE);
    expect(response.body).toBe(response.wireBody);
  });

  test('gives other statuses as responses, and follows no redirect', async () => {
    expect(responseOf(await get('/moved')).status).toBe(302);
    expect(responseOf(await get('/gone'))).toMatchObject({ status: 410, body: Buffer.from('gone') });
    const empty = responseOf(await get('/empty'));
    expect([empty.status, empty.body.length]).toEqual([204, 0]);
  });

  testIf(able.rawBody)('undoes the coding and keeps the wire bytes', async () => {
    const response = responseOf(await get('/gzip'));
    expect(response.body.toString()).toBe(PAGE);
    expect(zlib.gunzipSync(response.wireBody).toString()).toBe(PAGE);
  });

  test('calls onSent once for each request that leaves', async () => {
    let sent = 0;
    const onSent = () => {
      sent += 1;
      return true;
    };
    for (let count = 1; count <= 3; count += 1) {
      await get('/page', { onSent });
      expect(sent).toBe(count);
    }
  });
}

const CODINGS: [path: string, code: string][] = [
  ['/gzip-cut', 'truncated'],
  ['/gzip-lie', 'bad-encoding'],
];

function failures(get: Get, able: Abilities): void {
  test.each([
    ['/short', 'truncated'],
    ['/short-reset', 'reset'],
    ...(able.browser ? [] : CODINGS),
    ['/gzip-bomb', 'too-large'],
    ['/large', 'too-large'],
    ['/endless', 'too-large'],
    ['/nonsense', 'protocol'],
  ])('%s fails with %s', async (path, code) => {
    expect(codeOf(await get(path))).toBe(code);
  });

  // A browser decodes by itself, within the bytes that a page may load.
  if (!able.browser) {
    test.each(['/brotli-bomb', '/brotli-bomb-until-close'])(
      '%s is left for what it grows to',
      async (path) => {
        // The same connection has brought more than that before.
        responseOf(await get('/large', { bodyBytesMax: 16 * 1024 * 1024 }));
        const result = await get(path, { bodyBytesMax: 16 * 1024 * 1024 });
        expect(codeOf(result)).toBe('too-large');
        const sink = { write() {} };
        const toSink = await get(path, { bodyBytesMax: 16 * 1024 * 1024, sinkFor: () => sink });
        expect(codeOf(toSink)).toBe('too-large');
      },
    );

    test('a large body that is well packed is a page', async () => {
      const response = responseOf(await get('/brotli-noise', { bodyBytesMax: 16 * 1024 * 1024 }));
      expect(response.body.equals(PATTERN)).toBe(true);
    });
  }

  test('says how many bytes of the body came before a failure', async () => {
    expect(await get('/short')).toMatchObject({ kind: 'failure', bytes: 4 });
  });

  test.each([
    ['/silent', 'headers-timeout', { headersMs: 150 }],
    ['/stalls', 'body-timeout', { bodyMs: 150 }],
    ['/drip', 'task-timeout', { taskMs: 250 }],
  ])('%s ends in time with %s', async (path, code, timeouts) => {
    const limitMs = Object.values(timeouts)[0]!;
    // In a turn of its own: a timer is early by what its turn has taken before it.
    await setImmediate();
    const startedAt = performance.now();
    expect(codeOf(await get(path, { timeouts }))).toBe(code);
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThanOrEqual(limitMs / 2);
    expect(tookMs).toBeLessThan(limitMs + ENDS_MS);
  });

  test('dials no private address unless it may', async () => {
    let sent = 0;
    const onSent = () => {
      sent += 1;
      return true;
    };
    const draft = { allowPrivate: false, onSent };
    expect(codeOf(await get('/page', draft))).toBe('private-address');
    expect(sent).toBe(0);
    // Not even over a connection that another request was allowed to make.
    expect(responseOf(await get('/page')).status).toBe(200);
    expect(codeOf(await get('/page', draft))).toBe('private-address');
  });
}

function endings(fetcher: () => Fetcher, origin: () => RawOrigin, get: Get, { browser }: Abilities): void {
  const many = browser ? 12 : 40;

  test('an abort ends all requests of its batch and no other', async () => {
    const batch = new AbortController();
    const { signal } = batch;
    const another = new AbortController();
    let isOtherOver = false;
    const before = origin().requests.length;
    const other = get('/stalls', { signal: another.signal, parallel: 8 }).finally(() => {
      isOtherOver = true;
    });
    const ended = Array.from({ length: 40 }, () => get('/silent', { signal, parallel: 8 }));
    // Requests, not connections: one may come over a connection of the test before.
    await expect.poll(() => origin().requests.length - before).toBe(8);
    const accepted = origin().accepted();
    batch.abort();
    for (const result of await Promise.all(ended)) expect(result).toEqual({ kind: 'aborted' });
    expect(await get('/page', { signal })).toEqual({ kind: 'aborted' });
    expect(isOtherOver).toBe(false);
    another.abort();
    expect(await other).toEqual({ kind: 'aborted' });
    // Those that waited for a connection have opened none on their way out.
    expect(origin().accepted()).toBe(accepted);
    expect(origin().requests.length - before).toBe(8);
  });

  test('leaves no listener on the signal, and never warns of too many', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on('warning', onWarning);
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: many }, () => get('/page', { signal })));
    await expect.poll(() => getEventListeners(signal, 'abort').length).toBe(0);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  test('opens no more connections to an origin than `parallel`', async () => {
    const crowded = await openRawOrigin(handlers);
    const url = `${crowded.url}/page`;
    const all = Array.from({ length: many }, () => fetcher().fetch(requestOf(url, { parallel: 3 })));
    for (const result of await Promise.all(all))
      expect(responseOf(result).body.length).toBeGreaterThan(20_000);
    expect(crowded.openMax()).toBeLessThanOrEqual(3);
    await crowded.close();
  });

  test('close ends what is under way and every connection', async () => {
    const pending = ['/silent', '/stalls', '/drip'].map((path) => get(path));
    pending.push(get('/silent', { parallel: 1 }));
    await get('/page');
    const startedAt = performance.now();
    await fetcher().close();
    expect(performance.now() - startedAt).toBeLessThan(ENDS_MS);
    for (const result of await Promise.all(pending)) expect(result).toEqual({ kind: 'aborted' });
    expect(await get('/page')).toEqual({ kind: 'aborted' });
    await expect.poll(() => origin().open()).toBe(0);
  });
}
