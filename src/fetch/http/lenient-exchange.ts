import type { Socket } from 'node:net';
import type { FailureCode } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';
import { BoundedMap, BoundedSet } from '../../core/lru.ts';
import type { BodySink, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { BodyBuffer } from '../body/body-buffer.ts';
import { ACCEPTED_CODINGS, decodeBody, parseContentEncoding } from '../body/content-coding.ts';
import type { Stopwatch } from '../body/stopwatch.ts';
import { failure } from '../network/check-request.ts';
import { codeOf, Dial, DialError, type DialTarget } from '../network/dial.ts';
import type { DnsCache } from '../network/dns-cache.ts';
import { credentialsOf, NO_ACCESS, NoTunnelError } from '../network/proxy-connect.ts';
import { type DialProxy, ProxyDial } from '../network/proxy-dial.ts';
import { type BodyPipe, openBodyPipe } from './body-pipe.ts';
import { isFloodOf } from './in-flight.ts';
import { type LenientHead, LenientParser, UnreadableResponse, valuesOf } from './lenient-parser.ts';

/** Where a lenient request goes: through the same checked dialling as the strict ones. */
interface LenientRoute {
  url: URL;
  target: DialTarget;
  proxy: DialProxy | null;
  names: DnsCache;
}

interface LenientResult {
  result: FetchResult;
  /** Whether the response broke rules that the strict reading keeps. */
  isOdd: boolean;
}

/** One request on a connection of its own, closed afterwards, whose response is read leniently. */
export async function exchangeLeniently(
  request: FetchRequest,
  route: LenientRoute,
  watch: Stopwatch,
): Promise<LenientResult> {
  let socket: Socket | null = null;
  try {
    socket = await dial(route, request.timeouts.connectMs, watch);
    if (watch.ending) return { result: watch.ending, isOdd: false };
    if (!request.onSent()) return { result: { kind: 'aborted' }, isOdd: false };
    return await new Reading(request, route, socket, watch).outcome;
  } catch (error) {
    const known = error instanceof DialError ? failure(error.failure, error.message) : null;
    return {
      result: watch.ending ?? known ?? failure('internal', 'the response could not be handled'),
      isOdd: false,
    };
  } finally {
    socket?.destroy();
  }
}

/** A proxy that makes no tunnels for plain http gets whole URLs, as in the strict reading. */
async function dial(route: LenientRoute, connectMs: number, watch: Stopwatch): Promise<Socket> {
  try {
    return await dialOnce(route, connectMs, watch);
  } catch (error) {
    const { proxy, target } = route;
    if (!(error instanceof NoTunnelError) || proxy === null || target.secure || proxy.wantsWholeUrls)
      throw error;
    proxy.wantsWholeUrls = true;
    return dialOnce(route, connectMs, watch);
  }
}

function dialOnce({ target, proxy, names }: LenientRoute, connectMs: number, watch: Stopwatch) {
  return new Promise<Socket>((resolve, reject) => {
    const done = (error: Error | null, socket: Socket | null) => {
      clearTimeout(timer);
      if (socket === null) reject(error ?? new DialError('connect', 'the connection failed'));
      else resolve(socket);
    };
    const dialled =
      proxy === null ? new Dial(target, names, done) : new ProxyDial(target, proxy, names, done);
    const stop = (code: FailureCode, detail: string) => {
      dialled.cancel();
      reject(new DialError(code, detail));
    };
    const timer = setTimeout(
      () => stop('connect-timeout', `no connection within ${connectMs} ms`),
      connectMs,
    );
    void watch.over.then(() => {
      clearTimeout(timer);
      stop('reset', 'the request was given up');
    });
  });
}

class Reading {
  readonly outcome: Promise<LenientResult>;
  readonly #request: FetchRequest;
  readonly #socket: Socket;
  readonly #watch: Stopwatch;
  readonly #parser: LenientParser;
  readonly #body = new BodyBuffer();
  readonly #bytesBefore: number;
  readonly #isWhole: boolean;
  readonly #requestHeaders: string[];
  #resolve!: (result: LenientResult) => void;
  #head: LenientHead | null = null;
  #codings: string[] | null = null;
  #pipe: BodyPipe | null = null;
  #bytesMax: number;
  #wireBytes = 0;
  #isOver = false;

  constructor(request: FetchRequest, { url, proxy }: LenientRoute, socket: Socket, watch: Stopwatch) {
    this.#request = request;
    this.#socket = socket;
    this.#watch = watch;
    this.#bytesMax = request.bodyBytesMax;
    this.#bytesBefore = socket.bytesRead;
    this.#isWhole = proxy?.wantsWholeUrls === true;
    const { promise, resolve } = Promise.withResolvers<LenientResult>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#parser = new LenientParser({
      onHead: (head) => this.#onHead(head),
      onBody: (chunk) => this.#onBody(chunk),
      onEnd: () => this.#onEnd(),
    });
    void watch.over.then(() => {
      if (watch.ending) this.#finish(watch.ending);
    });
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('end', () => this.#onClose(null));
    socket.on('error', (error) => this.#onClose(error));
    socket.on('close', () => this.#onClose(null));
    watch.start('headers-timeout', request.timeouts.headersMs);
    this.#requestHeaders = headersFor(request, url);
    socket.write(requestText(this.#requestHeaders, url, this.#isWhole ? proxy : null), 'latin1');
  }

  #onData(chunk: Buffer): void {
    try {
      this.#parser.push(chunk);
    } catch (error) {
      if (error instanceof UnreadableResponse) this.#fail('protocol', error.message);
      else this.#fail('internal', 'the response could not be handled');
      return;
    }
    if (isFloodOf(this.#socket.bytesRead - this.#bytesBefore, this.#wireBytes))
      this.#fail('protocol', 'the response is much larger than its headers and body');
  }

  #onHead(head: LenientHead): void {
    this.#head = head;
    this.#watch.start('body-timeout', this.#request.timeouts.bodyMs);
    if (head.status === 407 && this.#isWhole) {
      this.#fail('proxy', NO_ACCESS);
      return;
    }
    const transfer = valuesOf(head, 'transfer-encoding');
    if (transfer.some((coding) => !/^(?:chunked|identity|)$/i.test(coding))) {
      this.#fail('bad-encoding', 'unknown Transfer-Encoding');
      return;
    }
    const codings = valuesOf(head, 'content-encoding');
    this.#codings = parseContentEncoding(codings.length === 0 ? undefined : codings);
    if (this.#request.sinkFor !== undefined) this.#openPipe(head);
    const [length] = valuesOf(head, 'content-length');
    if (Number(length ?? 0) > this.#bytesMax && head.status !== 304)
      this.#fail('too-large', 'the Content-Length is over the size limit');
  }

  #onBody(chunk: Buffer): void {
    if (chunk.length === 0 || this.#isOver) return;
    this.#watch.start('body-timeout', this.#request.timeouts.bodyMs);
    this.#wireBytes += chunk.length;
    if (this.#wireBytes > this.#bytesMax) this.#fail('too-large', 'the body is over the size limit');
    else if (this.#pipe === null) this.#body.add(chunk);
    else this.#pipe.add(chunk);
  }

  #onEnd(): void {
    if (this.#isOver) return;
    this.#watch.pause();
    if (this.#pipe !== null) {
      this.#pipe.end();
      return;
    }
    void this.#respond(this.#body.take());
  }

  #onClose(error: Error | null): void {
    if (this.#isOver || this.#parser.isDone) return;
    if (error !== null) {
      const detail =
        this.#head === null
          ? `the connection broke (${codeOf(error)})`
          : 'the connection broke before the body was complete';
      this.#fail('reset', detail);
    } else if (!this.#parser.end()) {
      if (this.#head === null)
        this.#fail('reset', 'the connection closed before the response headers were complete');
      else this.#fail('truncated', 'the connection closed before the body was complete');
    }
  }

  async #respond(wireBody: Buffer): Promise<void> {
    const codings = this.#codings;
    const decoded =
      codings === null
        ? { ok: true as const, body: wireBody }
        : await decodeBody(wireBody, codings, this.#bytesMax);
    const { version, status, statusText, rawHeaders } = this.#head!;
    if (!decoded.ok) {
      this.#fail(decoded.code, decoded.detail);
      return;
    }
    this.#finish({
      kind: 'response',
      ...{ status, statusText, rawHeaders, wireBody, requestHeaders: this.#requestHeaders },
      body: decoded.body,
      wireBytes: this.#wireBytes,
      ...(version === '1.0' ? { httpVersion: version } : {}),
    });
  }

  #openPipe({ status, rawHeaders }: LenientHead): void {
    let sink: BodySink | null = null;
    try {
      sink = status < 300 ? this.#request.sinkFor!({ status, rawHeaders }) : null;
    } catch {
      this.#fail('internal', 'the body could not be stored');
      return;
    }
    if (sink === null) {
      this.#bytesMax = Math.min(this.#bytesMax, LIMITS.bodyBytesMax);
      return;
    }
    this.#pipe = openBodyPipe(sink, this.#codings, this.#bytesMax, {
      onFull: () => {
        this.#watch.pause();
        this.#socket.pause();
      },
      onRoom: () => {
        this.#watch.start('body-timeout', this.#request.timeouts.bodyMs);
        this.#socket.resume();
      },
      onDone: () => void this.#respondStored(),
      onFailure: (code, detail) => this.#fail(code, detail),
    });
  }

  #respondStored(): void {
    this.#codings = null;
    void this.#respond(Buffer.alloc(0));
  }

  #fail(code: FailureCode, detail: string): void {
    this.#finish(failure(code, detail, this.#wireBytes));
  }

  #finish(result: FetchResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pipe?.stop();
    this.#socket.destroy();
    this.#resolve({ result, isOdd: this.#parser.isOdd });
  }
}

/** Alternating name and value. */
function headersFor({ headers }: FetchRequest, url: URL): string[] {
  const list = ['Host', url.host];
  let hasCodings = false;
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (lower === 'host' || lower === 'connection' || /[\r\n\0]/.test(name + value)) continue;
    hasCodings ||= lower === 'accept-encoding';
    list.push(name, value);
  }
  if (!hasCodings) list.push('accept-encoding', ACCEPTED_CODINGS);
  return list;
}

function requestText(headers: readonly string[], url: URL, proxy: DialProxy | null): string {
  const path = url.pathname + url.search;
  const lines = [`GET ${proxy === null ? path : url.origin + path} HTTP/1.1`];
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  const credentials = proxy === null ? null : credentialsOf(proxy.address);
  if (credentials !== null) lines.push(`proxy-authorization: ${credentials}`);
  return `${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`;
}

/** Origins, and URLs that are hopeless, that are remembered in one worker. */
const ENTRIES_MAX = 1_000;
/** So many responses in a row that keep the rules, and the strict reading is used again. */
const CLEAN_MAX = 8;

/**
 * Which origins break the rules of HTTP in ways that browsers put up with. Their responses are read leniently at once, on
 * a connection each, which saves the strict attempt.
 */
export class LenientHosts {
  /** With the number of their last responses that kept the rules. */
  readonly #origins = new BoundedMap<string, number>(ENTRIES_MAX);
  /** Pages that the lenient reading could not read either: a second request for them is for nothing. */
  readonly #hopeless = new BoundedSet<string>(ENTRIES_MAX);

  has(origin: string): boolean {
    return this.#origins.size > 0 && this.#origins.has(origin);
  }

  isHopeless(url: string): boolean {
    return this.#hopeless.has(url);
  }

  /** The strict reading refused a response. */
  add(origin: string): void {
    this.#origins.set(origin, 0);
  }

  /** What came of a lenient reading. */
  note(origin: string, url: string, read: { isReadable: boolean; isOdd: boolean }): void {
    if (!read.isReadable) this.#hopeless.add(url);
    const clean = read.isOdd ? 0 : (this.#origins.get(origin) ?? 0) + 1;
    if (clean >= CLEAN_MAX) this.#origins.delete(origin);
    else this.#origins.set(origin, clean);
  }
}

const CREDENTIALS = new Set(['cookie', 'authorization', 'proxy-authorization']);

/** What responses are smuggled for: the answer to such a request is read strictly, or not at all. */
export function hasCredentials({ headers, hasSecrets }: FetchRequest): boolean {
  if (hasSecrets) return true;
  for (const name in headers) if (CREDENTIALS.has(name.toLowerCase())) return true;
  return false;
}
