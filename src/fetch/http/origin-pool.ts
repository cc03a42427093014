import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import symbols from 'undici/lib/core/symbols.js';
import Client from 'undici/lib/dispatcher/client.js';
import { LIMITS } from '../../core/limits.ts';
import type { AddressCheck } from '../../core/url/address-guard.ts';
import type { FetchRequest } from '../../ports/fetcher.ts';
import { Dial, type DialCallback, type DialTarget } from '../network/dial.ts';
import type { DnsCache } from '../network/dns-cache.ts';
import { credentialsOf, NoTunnelError } from '../network/proxy-connect.ts';
import { type DialProxy, ProxyDial } from '../network/proxy-dial.ts';
import type { Exchange } from './exchange.ts';

/**
 * The connections to one origin. undici's own Pool is left out: at saturation it makes an AsyncResource for
 * each request, and it cannot say whether a request went out on a used connection.
 */

/** Servers usually close idle connections after 5 s (Node, Apache) or more; being first avoids the race. */
const IDLE_MS = 4_000;

interface Parser {
  ptr: number;
  llhttp?: { llhttp_get_http_minor(ptr: number): number };
}

/** One connection, or none while it is idle for long; carries one exchange at a time. */
export class Slot {
  readonly pool: OriginPool;
  readonly client: Client;
  exchange: Exchange | null = null;
  socket: Socket | null = null;
  dial: Dial | ProxyDial | null = null;
  /** Responses on the present socket. */
  served = 0;
  /** Bytes that had come on it before the present exchange. */
  #receivedBefore = 0;

  constructor(pool: OriginPool) {
    this.pool = pool;
    this.client = new Client(pool.origin, {
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      // A server that says it waits 5 s is left a second before that.
      keepAliveTimeoutThreshold: 1_000,
      maxHeaderSize: LIMITS.headerBytesMax,
      // The fetcher's sweep does all timing: one timer for everything, exact to 100 ms instead of 1 s.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (_options, callback) => this.#connect(callback),
    });
    // undici reports a throwing handler this way; without a listener that would end the process.
    (this.client as EventEmitter).on('error', () =>
      this.exchange?.fail('internal', 'the response could not be handled'),
    );
  }

  /** Bytes that came since the present exchange began, of whatever kind. */
  get received(): number {
    return this.socket === null ? 0 : this.socket.bytesRead - this.#receivedBefore;
  }

  /** undici does not hand the version on; its parser knows it. */
  get isHttp10(): boolean {
    const parser = (this.socket as Record<symbol, Parser | null> | null)?.[symbols.kParser];
    return parser?.llhttp?.llhttp_get_http_minor(parser.ptr) === 0;
  }

  begin(exchange: Exchange): void {
    this.exchange = exchange;
    this.#receivedBefore = this.socket?.bytesRead ?? 0;
  }

  destroy(): Promise<void> {
    this.dial?.cancel();
    return this.client.destroy();
  }

  #connect(callback: (...args: [null, Socket] | [Error, null]) => void): void {
    const { pool } = this;
    this.served = 0;
    this.exchange?.dialling();
    const dialled: DialCallback = (error, socket) => {
      this.dial = null;
      this.socket = socket;
      if (socket === null) {
        callback(error as Error, null);
        return;
      }
      this.#receivedBefore = socket.bytesRead;
      socket.on('session', (session: Buffer) => {
        pool.target.tlsSession = session;
      });
      callback(null, socket);
    };
    this.dial =
      pool.proxy === null
        ? new Dial(pool.target, pool.names, dialled)
        : new ProxyDial(pool.target, pool.proxy, pool.names, dialled);
  }
}

export class OriginPool {
  readonly origin: string;
  readonly target: DialTarget;
  readonly names: DnsCache;
  /** What all its connections go through. */
  readonly proxy: DialProxy | null;
  lastUsedAt = 0;
  #busy = 0;
  /** Last in, first out: the warmest connection is used, the others may go idle and close. */
  #idle: Slot[] = [];
  #queue: Exchange[] = [];

  constructor(url: URL, isAllowed: AddressCheck, names: DnsCache, proxy: DialProxy | null = null) {
    const secure = url.protocol === 'https:';
    this.origin = url.origin;
    this.names = names;
    this.proxy = proxy;
    const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
    this.target = { hostname: url.hostname, port, secure, isAllowed, tlsSession: undefined };
  }

  get isIdle(): boolean {
    return this.#busy === 0 && this.#queue.length === 0;
  }

  run(exchange: Exchange): void {
    const slot = this.#take(exchange.request);
    if (slot === null) this.#queue.push(exchange);
    else this.#start(slot, exchange);
  }

  /** The slot's exchange is over and its connection, if still open, is clean. */
  release(slot: Slot): void {
    this.#busy -= 1;
    slot.exchange = null;
    this.#idle.push(slot);
    this.#next();
  }

  /** As `release`, but the connection is in doubt or in the middle of something. */
  discard(slot: Slot): void {
    this.#busy -= 1;
    slot.exchange = null;
    void slot.destroy();
    this.#next();
  }

  /** Once more on a connection of its own: the one it had was closed by the server while it lay idle. */
  retry(stale: Slot, exchange: Exchange): void {
    stale.exchange = null;
    void stale.destroy();
    this.#start(new Slot(this), exchange);
  }

  /** Once more with its whole URL, for a proxy that makes no tunnel; false where that is not the trouble. */
  retryWhole(slot: Slot, exchange: Exchange, error: Error): boolean {
    const isWhole = !exchange.options.path.startsWith('/');
    if (!(error instanceof NoTunnelError) || this.proxy === null || this.target.secure || isWhole)
      return false;
    this.proxy.wantsWholeUrls = true;
    this.retry(slot, exchange);
    return true;
  }

  forget(exchange: Exchange): void {
    const at = this.#queue.indexOf(exchange);
    if (at !== -1) this.#queue.splice(at, 1);
  }

  /** For pools without work: exchanges end through the fetcher first. */
  async close(): Promise<void> {
    const slots = this.#idle;
    this.#idle = [];
    await Promise.all(slots.map((slot) => slot.destroy()));
  }

  #next(): void {
    for (let exchange = this.#queue[0]; exchange !== undefined; exchange = this.#queue[0]) {
      const slot = this.#take(exchange.request);
      if (slot === null) return;
      this.#queue.shift();
      this.#start(slot, exchange);
    }
  }

  #take(request: FetchRequest): Slot | null {
    const parallel = Math.max(1, request.parallel);
    while (this.#idle.length > 0 && this.#busy + this.#idle.length > parallel)
      void this.#idle.shift()!.destroy();
    if (this.#busy >= parallel) return null;
    this.#busy += 1;
    return this.#idle.pop() ?? new Slot(this);
  }

  #start(slot: Slot, exchange: Exchange): void {
    slot.begin(exchange);
    exchange.slot = slot;
    if (this.proxy?.wantsWholeUrls) this.#askWhole(this.proxy, exchange.options);
    // undici only reads the list.
    slot.client.dispatch(exchange.options as Dispatcher.DispatchOptions, exchange);
  }
  #askWhole(proxy: DialProxy, options: Exchange['options']): void {
    if (!options.path.startsWith('/')) return;
    options.path = this.origin + options.path;
    const credentials = credentialsOf(proxy.address);
    // Other requests share the list, and may go elsewhere.
    if (credentials !== null) options.headers = [...options.headers, 'proxy-authorization', credentials];
  }
}
