import type { AddressLog } from '../servers/address-log.ts';
import { closedPort } from '../servers/proxy-servers.ts';
import { openProxy } from './proxied-run.ts';

interface MixedProxies {
  /** Those that the site takes. */
  good: string[];
  /** Ten: three dead, two banned by the site, and the good ones. */
  all: string[];
  /** The two that are to be banned. */
  banned: string[];
  /** From which requests may come. */
  addresses: string[];
}

/** Closed with the other things of a proxied run. */
export async function openMixedProxies(): Promise<MixedProxies> {
  const addresses = [11, 12, 13, 14, 15, 16, 17].map((last) => `127.0.0.${last}`);
  const working = await Promise.all(addresses.map((from) => openProxy({ from })));
  const dead = [
    `http://127.0.0.1:${await closedPort()}`,
    (await openProxy({ behaves: 'closes' })).url(),
    (await openProxy({ credentials: { username: 'u', password: 'other' } })).url('u:wrong'),
  ];
  const urls = working.map((proxy) => proxy.url());
  return { good: urls.slice(2), all: [...dead, ...urls], banned: addresses.slice(0, 2), addresses };
}

/** Pages that a site served with a success, for each second between the first and the last. */
export function throughputOf({ requests, banned }: AddressLog): number {
  const good = requests.filter(({ address, path }) => !banned.has(address) && path !== '/robots.txt');
  return ((good.length - 1) * 1_000) / (good.at(-1)!.at - good[0]!.at);
}
