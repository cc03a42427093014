import { parseProxy } from '../../core/proxies/proxy.ts';
import { type AddressGuard, makeAddressGuard } from '../../core/url/address-guard.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { Stopwatch } from '../body/stopwatch.ts';
import { checkRequest } from '../network/check-request.ts';
import { DnsCache, type Lookup } from '../network/dns-cache.ts';
import { KeyedSemaphore } from '../network/keyed-semaphore.ts';
import { dialProxyOf } from '../network/proxy-dial.ts';
import { Exchange } from './exchange.ts';
import { InFlight } from './in-flight.ts';
import { exchangeLeniently, hasCredentials, LenientHosts } from './lenient-exchange.ts';
import { OriginPool } from './origin-pool.ts';

/** Origins with open connections in one worker; the least recently used are closed. */
export const ORIGINS_PER_WORKER_MAX = 256;

export interface HttpFetcherOptions {
  clock: Clock;
  /** Decides which addresses are dialled for requests without `allowPrivate`. */
  isPublicAddress: (ip: string) => boolean;
  /** No private address is dialled, whatever a request says: neither for pages nor for proxies and APIs. */
  forbidsPrivate?: boolean;
  /** Replaces the system resolver, in tests. */
  lookup?: Lookup;
}

/** Fetches over HTTP/1.1 with undici; one set of connections per origin. */
export function openHttpFetcher(options: HttpFetcherOptions): Fetcher {
  return new HttpFetcher(options);
}

class HttpFetcher implements Fetcher {
  #guard: AddressGuard;
  #names: DnsCache;
  #pools = new Map<string, OriginPool>();
  /** Requests for origins that could not be admitted yet, because all admitted ones are busy. */
  #waiting: { exchange: Exchange; url: URL }[] = [];
  #inFlight: InFlight;
  readonly #lenientHosts = new LenientHosts();
  /** Lenient readings under way, by origin. */
  readonly #lenient = new KeyedSemaphore();
  readonly #closing = new AbortController();
  #uses = 0;
  #closed = false;

  constructor({ clock, isPublicAddress, forbidsPrivate = false, lookup }: HttpFetcherOptions) {
    this.#guard = makeAddressGuard(isPublicAddress, forbidsPrivate);
    this.#names = new DnsCache(clock, lookup);
    this.#inFlight = new InFlight(clock, () => {
      if (this.#waiting.length > 0) this.#admitWaiting();
    });
  }

  fetch(request: FetchRequest): Promise<FetchResult> {
    if (this.#closed || request.signal.aborted) return Promise.resolve({ kind: 'aborted' });
    const url = checkRequest(request);
    if (!(url instanceof URL)) return Promise.resolve(url);
    if (this.#lenientHosts.has(url.origin) && !hasCredentials(request))
      return this.#readLeniently(request, url);
    return new Promise((resolve) => {
      const exchange: Exchange = new Exchange(request, url.pathname + url.search, this.#inFlight, (result) =>
        resolve(exchange.isRefused ? this.#readAgain(exchange, url, result) : result),
      );
      this.#inFlight.add(exchange);
      if (!this.#run(exchange, url)) this.#waiting.push({ exchange, url });
    });
  }

  /** The strict parser refused a response that a browser may be able to read: one more request, when the host may get it. */
  async #readAgain({ request, hasStored }: Exchange, url: URL, refused: FetchResult): Promise<FetchResult> {
    if (hasCredentials(request) || this.#lenientHosts.isHopeless(request.url)) return refused;
    this.#lenientHosts.add(url.origin);
    if (hasStored || this.#closed || (request.nextTurn && !(await request.nextTurn()))) return refused;
    const result = await this.#readLeniently(request, url);
    // No time for a second request: the next attempt begins with it.
    return result.kind === 'aborted' ? refused : result;
  }

  async #readLeniently(request: FetchRequest, url: URL): Promise<FetchResult> {
    const watch = new Stopwatch(request, this.#closing.signal);
    const leave = await this.#lenient.enter(url.origin, Math.max(1, request.parallel), watch.signal);
    try {
      if (watch.ending) return watch.ending;
      const { target, proxy } = this.#pools.get(keyOf(request, url)) ?? this.#openPool(request, url);
      const route = { url, target, proxy, names: this.#names };
      const { result, isOdd } = await exchangeLeniently(request, route, watch);
      const isReadable = result.kind !== 'failure' || result.code !== 'protocol';
      if (result.kind === 'response' || !isReadable)
        this.#lenientHosts.note(url.origin, request.url, { isReadable, isOdd });
      return result;
    } finally {
      leave();
      watch.stop();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    this.#waiting = [];
    this.#inFlight.close();
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.close()));
  }

  /** False when there is no room for one more origin. */
  #run(exchange: Exchange, url: URL): boolean {
    const key = keyOf(exchange.request, url);
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      if (this.#pools.size >= ORIGINS_PER_WORKER_MAX && !this.#evict()) return false;
      pool = this.#openPool(exchange.request, url);
      this.#pools.set(key, pool);
    }
    this.#uses += 1;
    pool.lastUsedAt = this.#uses;
    exchange.pool = pool;
    pool.run(exchange);
    return true;
  }

  #openPool({ allowPrivate, privateServices, proxy }: FetchRequest, url: URL): OriginPool {
    const isAllowed = this.#guard.services(privateServices);
    const through = proxy === undefined ? null : dialProxyOf(parseProxy(proxy.url)!, isAllowed);
    return new OriginPool(url, this.#guard.pages(allowPrivate), this.#names, through);
  }

  /**
   * Closes the idle origin that was used the longest ago. A BoundedMap would close busy ones too, and would write to
   * the map at every request.
   */
  #evict(): boolean {
    let oldestKey: string | null = null;
    let oldestAt = Number.POSITIVE_INFINITY;
    for (const [key, pool] of this.#pools) {
      if (pool.lastUsedAt >= oldestAt || !pool.isIdle) continue;
      oldestAt = pool.lastUsedAt;
      oldestKey = key;
    }
    if (oldestKey === null) return false;
    void this.#pools.get(oldestKey)?.close();
    this.#pools.delete(oldestKey);
    return true;
  }

  #admitWaiting(): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (next.exchange.isDone || this.#run(next.exchange, next.url)) continue;
      this.#waiting.unshift(next);
      return;
    }
  }
}

function keyOf({ allowPrivate, privateServices, proxy }: FetchRequest, { origin }: URL): string {
  // A connection to a private address must never serve a request that may not have one.
  const place = allowPrivate ? `private ${origin}` : origin;
  if (proxy === undefined) return place;
  return privateServices === false ? `public ${proxy.url} ${place}` : `${proxy.url} ${place}`;
}
