import type { Impit, ImpitResponse } from 'impit';
import type { EmulatedBrowser } from '../../core/identity/browser-profile.ts';
import { LIMITS } from '../../core/limits.ts';
import { BoundedMap } from '../../core/lru.ts';
import { parseProxy } from '../../core/proxies/proxy.ts';
import { type AddressGuard, makeAddressGuard } from '../../core/url/address-guard.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { BodySink, Fetcher, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { BodyBuffer } from '../body/body-buffer.ts';
import { decodedBytesMax, parseContentEncoding } from '../body/content-coding.ts';
import { Stopwatch } from '../body/stopwatch.ts';
import { checkRequest, failure } from '../network/check-request.ts';
import { literalOf, privateAddress } from '../network/dial.ts';
import { DnsCache, type Lookup } from '../network/dns-cache.ts';
import { KeyedSemaphore } from '../network/keyed-semaphore.ts';
import { dialProxyOf } from '../network/proxy-dial.ts';
import { GuardedTunnel } from './guarded-tunnel.ts';

interface ImpersonateFetcherOptions {
  clock: Clock;
  isPublicAddress: (ip: string) => boolean;
  /** No private address is dialled, whatever a request says. */
  forbidsPrivate?: boolean;
  /** Replaces the system resolver, in tests. */
  lookup?: Lookup;
}

/** Headers that the library adds for its browser; those that a request does not have are taken away again. */
const ADDED = [
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'upgrade-insecure-requests',
  'sec-fetch-site',
  'sec-fetch-mode',
  'sec-fetch-user',
  'sec-fetch-dest',
  'accept-language',
  'priority',
  'te',
];
/** Connections of the least recently used browser, proxy and rule are given up beyond this. */
const CLIENTS_MAX = 64;
const DEFAULT_BROWSER: EmulatedBrowser = 'chrome151';

interface Client {
  impit: Impit;
  ticket: string;
}

/**
 * Fetches with `impit`, whose TLS and HTTP/2 are those of a browser. It decodes bodies itself, so the bytes as they were
 * sent are unknown, but for how many came through the tunnel: the decoded body is counted instead, and the headers that describe the coding are left out. Names of headers are
 * in lower case, and equal ones are one line.
 */
export async function openImpersonateFetcher(options: ImpersonateFetcherOptions): Promise<Fetcher> {
  const { Impit: Library } = await import('impit');
  const names = new DnsCache(options.clock, options.lookup);
  const guard = makeAddressGuard(options.isPublicAddress, options.forbidsPrivate ?? false);
  return new ImpersonateFetcher(Library, names, await GuardedTunnel.open(names), guard);
}

class ImpersonateFetcher implements Fetcher {
  readonly #library: typeof Impit;
  readonly #names: DnsCache;
  readonly #tunnel: GuardedTunnel;
  readonly #guard: AddressGuard;
  readonly #clients = new BoundedMap<string, Client>(CLIENTS_MAX, ({ ticket }) =>
    this.#tunnel.forget(ticket),
  );
  readonly #semaphore = new KeyedSemaphore();
  readonly #closing = new AbortController();

  constructor(library: typeof Impit, names: DnsCache, tunnel: GuardedTunnel, guard: AddressGuard) {
    this.#library = library;
    this.#names = names;
    this.#tunnel = tunnel;
    this.#guard = guard;
  }

  async fetch(request: FetchRequest): Promise<FetchResult> {
    const url = checkRequest(request);
    if (!(url instanceof URL)) return url;
    const watch = new Stopwatch(request, this.#closing.signal);
    const leave = await this.#semaphore.enter(url.origin, Math.max(1, request.parallel), watch.signal);
    try {
      return await this.#send(request, url, watch);
    } catch {
      return watch.ending ?? failure('internal', 'the response could not be handled');
    } finally {
      leave();
      watch.stop();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#clients.clear();
    await this.#tunnel.close();
  }

  async #send(request: FetchRequest, url: URL, watch: Stopwatch): Promise<FetchResult> {
    if (watch.ending) return watch.ending;
    if (!request.proxy && !(await this.#mayDial(url.hostname, request.allowPrivate)))
      return { kind: 'failure', code: 'private-address', detail: privateAddress().message, bytes: 0 };
    if (watch.ending) return watch.ending;
    if (!request.onSent()) return { kind: 'aborted' };
    const client = this.#clientFor(request);
    const since = performance.now();
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
    const host = literalOf(url.hostname) ?? url.hostname;
    const wireBytes = this.#tunnel.open(client.ticket, host, port, Math.max(1, request.parallel));
    // The library does not say when it is connected: the connection is made within the time for the headers.
    watch.start('headers-timeout', request.timeouts.headersMs);
    let response: ImpitResponse;
    try {
      response = await client.impit.fetch(request.url, {
        headers: headersOf(request),
        redirect: 'manual',
        signal: watch.signal,
      });
    } catch (error) {
      const refused = this.#tunnel.failureOf(client.ticket, host, port, since);
      if (watch.ending) return watch.ending;
      return refused ? failure(refused.failure, refused.message) : failureOf(error, 0);
    }
    return receive(request, response, watch, wireBytes);
  }

  /** Before anything leaves; the tunnel checks again what it dials. */
  #mayDial(hostname: string, allowPrivate: boolean): Promise<boolean> {
    const isAllowed = this.#guard.pages(allowPrivate);
    const literal = literalOf(hostname);
    if (isAllowed === null) return Promise.resolve(true);
    if (literal !== null) return Promise.resolve(isAllowed(literal));
    return new Promise((resolve) =>
      this.#names.resolve(hostname, (error, addresses) =>
        resolve(error !== null || addresses.some(({ address }) => isAllowed(address))),
      ),
    );
  }

  #clientFor({ emulate = DEFAULT_BROWSER, allowPrivate, privateServices, proxy }: FetchRequest): Client {
    const key = `${emulate} ${allowPrivate} ${privateServices !== false} ${proxy?.url ?? ''}`;
    let client = this.#clients.get(key);
    if (!client) {
      const { ticket, url } = this.#tunnel.ticketFor({
        isAllowed: this.#guard.pages(allowPrivate),
        proxy: proxy ? dialProxyOf(parseProxy(proxy.url)!, this.#guard.services(privateServices)) : null,
      });
      client = {
        ticket,
        impit: new this.#library({ browser: emulate, proxyUrl: url, followRedirects: false }),
      };
    }
    // Also when it was known: that makes it the most recently used.
    this.#clients.set(key, client);
    return client;
  }
}

/** An empty value takes a header away. */
function headersOf({ headers }: FetchRequest): [string, string][] {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const away = ADDED.filter((name) => !names.has(name)).map((name): [string, string] => [name, '']);
  return [...Object.entries(headers), ...away];
}

async function receive(
  request: FetchRequest,
  response: ImpitResponse,
  watch: Stopwatch,
  wireBytes: () => number,
): Promise<FetchResult> {
  const rawHeaders: string[] = [];
  for (const [name, value] of response.headers) if (!OF_THE_WIRE.has(name)) rawHeaders.push(name, value);
  const { status, statusText } = response;
  // The library undoes one coding that it knows, and passes others on as they are.
  const codings = parseContentEncoding(response.headers.get('content-encoding') ?? undefined);
  if (codings !== null && !KNOWN_CODING.test(codings.join()))
    return failure('bad-encoding', 'the Content-Encoding is unknown, or there are several');
  let sink: BodySink | null = null;
  try {
    sink = status < 300 ? (request.sinkFor?.({ status, rawHeaders }) ?? null) : null;
  } catch {
    return failure('internal', 'the body could not be stored');
  }
  const memoryMax = request.sinkFor ? LIMITS.bodyBytesMax : request.bodyBytesMax;
  const bytesMax = sink === null ? Math.min(request.bodyBytesMax, memoryMax) : request.bodyBytesMax;
  const isCoded = codings !== null;
  const body = new BodyBuffer();
  let bytes = 0;
  const reader = response.body.getReader();
  const end = async (result: FetchResult) => {
    await reader.cancel().catch(() => {});
    return result;
  };
  while (true) {
    watch.start('body-timeout', request.timeouts.bodyMs);
    let piece: Awaited<ReturnType<typeof reader.read>>;
    try {
      piece = await reader.read();
    } catch (error) {
      return watch.ending ? withBytes(watch.ending, bytes) : failureOf(error, bytes);
    }
    if (watch.ending) return end(withBytes(watch.ending, bytes));
    if (piece.done) break;
    bytes += piece.value.length;
    if (bytes > bytesMax) return end(failure('too-large', 'the body is over the size limit', bytes));
    // At least what the body took on its way: other requests to the host may share the connection.
    if (isCoded && bytes > decodedBytesMax(wireBytes(), bytesMax))
      return end(failure('too-large', 'the decoded body is over the size or ratio limit', bytes));
    const chunk = Buffer.from(piece.value.buffer, piece.value.byteOffset, piece.value.byteLength);
    if (sink === null) {
      body.add(chunk);
      continue;
    }
    watch.pause();
    try {
      await Promise.race([sink.write(chunk), watch.over]);
    } catch {
      return end(failure('internal', 'the body could not be stored', bytes));
    }
    if (watch.ending) return end(withBytes(watch.ending, bytes));
  }
  const whole = body.take();
  return { kind: 'response', status, statusText, rawHeaders, wireBody: whole, body: whole, wireBytes: bytes };
}

const KNOWN_CODING = /^(?:gzip|x-gzip|br|zstd|deflate)$/;

/** They speak of bytes that were decoded on the way. */
const OF_THE_WIRE = new Set(['content-encoding', 'content-length', 'transfer-encoding']);

function failureOf(error: unknown, bytes: number): FetchResult {
  const code = codeOfImpitError(error);
  return failure(code, IMPIT_FAILURES[code], bytes);
}

function withBytes(result: FetchResult, bytes: number): FetchResult {
  return result.kind === 'failure' ? { ...result, bytes } : result;
}

/** What the library's errors mean. Its texts hold URLs and remote words: only ours are shown. */
const IMPIT_FAILURES = {
  connect: 'the connection failed',
  tls: 'the TLS handshake failed',
  reset: 'the connection broke before the response was complete',
  truncated: 'the body ended before it was complete',
  'bad-encoding': 'the Content-Encoding does not match the body',
  protocol: 'the response is not valid HTTP',
} as const;

type ImpitCode = keyof typeof IMPIT_FAILURES;

/** In this order: the first that an error speaks of. */
const ERROR_PATTERNS: readonly [RegExp, ImpitCode][] = [
  [/Incomplete(?:Body|Message)|UnexpectedEof|unexpected (?:eof|end of file)/i, 'truncated'],
  [/ConnectionReset|BrokenPipe|connection reset/i, 'reset'],
  [/InvalidCertificate|certificate|HandshakeFailure|tls|ssl|AlertReceived/i, 'tls'],
  [/InvalidData|Invalid gzip|corrupt|deflate|brotli|zstd|Decompress/i, 'bad-encoding'],
  [/Parse\(|InvalidHeader|Protocol|Http2|h2::/i, 'protocol'],
  [/SocksConnect|Connect/i, 'connect'],
];

function codeOfImpitError(error: unknown): ImpitCode {
  const text = error instanceof Error ? `${error.name} ${error.message}` : String(error);
  const code = ERROR_PATTERNS.find(([pattern]) => pattern.test(text))?.[1] ?? 'protocol';
  // Before the head nothing can be cut short: the connection broke.
  return code === 'truncated' && /SendRequest|IncompleteMessage/.test(text) ? 'reset' : code;
}
