import { parseProxy } from '../../core/proxies/proxy.ts';
import { type AddressGuard, makeAddressGuard } from '../../core/url/address-guard.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { checkRequest } from '../network/check-request.ts';
import { DnsCache, type Lookup } from '../network/dns-cache.ts';
import { dialProxyOf } from '../network/proxy-dial.ts';
import { Exchange } from './exchange.ts';
import { InFlight } from './in-flight.ts';
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
    return new Promise((resolve) => {
      const exchange = new Exchange(request, url.pathname + url.search, this.#inFlight, resolve);
      this.#inFlight.add(exchange);
      if (!this.#run(exchange, url)) this.#waiting.push({ exchange, url });
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting = [];
    this.#inFlight.close();
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.close()));
  }

  /** False when there is no room for one more origin. */
  #run(exchange: Exchange, url: URL): boolean {
    const { allowPrivate, proxy } = exchange.request;
    // A connection to a private address must never serve a request that may not have one.
    const place = allowPrivate ? `private ${url.origin}` : url.origin;
    const key = proxy === undefined ? place : `${proxy.url} ${place}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      if (this.#pools.size >= ORIGINS_PER_WORKER_MAX && !this.#evict()) return false;
      const through = proxy === undefined ? null : dialProxyOf(parseProxy(proxy.url)!, this.#guard.services);
      pool = new OriginPool(url, this.#guard.pages(allowPrivate), this.#names, through);
      this.#pools.set(key, pool);
    }
    this.#uses += 1;
    pool.lastUsedAt = this.#uses;
    exchange.pool = pool;
    pool.run(exchange);
    return true;
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
