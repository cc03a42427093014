import type { PoolSpec } from '../job-schema/proxies.ts';
import { fingerprint } from '../url/fingerprint.ts';
import { fillProxy, type ListedProxy, proxyUrl } from './proxy.ts';

/** A pool with its list, as read when the run started. Holds secrets: lives in memory only. */
export interface ProxyPool {
  name: string;
  spec: PoolSpec;
  proxies: ListedProxy[];
  /** Those of other countries as well, which rows of sources may name. Absent: there are no others. */
  all?: ListedProxy[];
}

/** The pool as a page uses it that names a country. */
export function poolIn(pool: ProxyPool, country: string): ProxyPool {
  const { all = pool.proxies, spec } = pool;
  return { ...pool, spec: { ...spec, country }, proxies: proxiesIn(all, country) };
}

/** A proxy that is marked with no country may have any. */
export function proxiesIn(proxies: readonly ListedProxy[], country: string | undefined): ListedProxy[] {
  const wanted = country?.toUpperCase();
  return proxies.filter((proxy) => !wanted || proxy.country === null || proxy.country === wanted);
}

const ROTATE_BY_TYPE: Record<PoolSpec['type'], NonNullable<PoolSpec['rotate']>> = {
  datacenter: 'request',
  isp: 'request',
  residential: 600,
  mobile: 600,
};

export interface Asker {
  host: string;
  identity: string | null;
  /** Instead of that of the pool. */
  country?: string | undefined;
}

/**
 * What an asker is known by while it keeps its proxy; null when each request chooses anew. Hosts change their proxies at
 * different times, so that not all of them change at once.
 */
export function stayOf(pool: ProxyPool, asker: Asker, now: number): string | null {
  const { rotate = ROTATE_BY_TYPE[pool.spec.type], sticky } = pool.spec;
  if (sticky) return `${asker.host} ${asker.identity ?? ''}`;
  if (rotate === 'request') return null;
  if (rotate === 'never') return asker.host;
  const phase = shareOf(asker.host, pool.name);
  return `${asker.host} ${Math.floor(now / (rotate * 1_000) + phase)}`;
}

/**
 * The order in which a key prefers proxies: the same everywhere and always, without anything to remember. When one is
 * taken out, only its keys move, each to another. (Rendezvous hashing.)
 */
export function preferenceOf<T extends { id: string }>(key: string, proxies: readonly T[]): T[] {
  return proxies
    .map((proxy) => ({ proxy, rank: shareOf(key, proxy.id) }))
    .sort((a, b) => b.rank - a.rank)
    .map(({ proxy }) => proxy);
}

/** In [0, 1), evenly. */
function shareOf(key: string, salt: string): number {
  return (fingerprint(`${key}\n${salt}`, '', 0x7077) % 0x1_0000_0000) / 0x1_0000_0000;
}

/** As workers get it. `key` names the lasting connection of providers that have such. */
export function batchProxyOf(pool: ProxyPool, proxy: ListedProxy, key: string): { id: string; url: string } {
  const filled = fillProxy(proxy, {
    country: pool.spec.country ?? null,
    connection: Math.floor(shareOf(key, proxy.id) * 0x1_0000_0000).toString(36),
  });
  return { id: proxy.id, url: proxyUrl(filled) };
}
