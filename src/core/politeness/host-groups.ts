import { isIPv4, isIPv6 } from 'node:net';
import { getDomain } from 'tldts';
import type { JobSpec } from '../job-schema/job.ts';
import { LruMap } from '../lru.ts';
import { embeddedV4Of } from '../url/address.ts';
import { ADDRESS_MARK, compileHostRules, SITE_MARK } from './host-limits.ts';

/** What the rate of a URL's host is counted by. */
export type HostGrouper = (host: string) => string;

const REMEMBERED_MAX = 10_000;

/**
 * The group of a host, given the one that it would share. A host that has a rule of its own, and not one that its group
 * has too, is counted by itself: its rule could not be kept otherwise.
 */
export function compileSharing({
  politeness,
}: Pick<JobSpec, 'politeness'>): (host: string, shared: string) => string {
  if (Object.keys(politeness.hosts).length === 0) return (_, shared) => shared;
  const ruleOf = compileHostRules(politeness.hosts);
  return (host, shared) => {
    const own = ruleOf(host);
    return own === null || own === ruleOf(shared) ? shared : host;
  };
}

/** By registrable domain. */
export function compileSites(spec: Pick<JobSpec, 'politeness'>): HostGrouper {
  const share = compileSharing(spec);
  const known = new LruMap<string>(REMEMBERED_MAX);
  return (host) => {
    let group = known.get(host);
    if (group === undefined) {
      group = share(host, siteGroup(host));
      known.set(host, group);
    }
    return group;
  };
}

/** What has no registrable domain is counted by itself. */
function siteGroup(host: string): string {
  const domain = getDomain(host, { allowPrivateDomains: true });
  return domain === null ? host : SITE_MARK + domain;
}

/** Names at several addresses are counted by the first of them in a fixed order: those with the same ones are together. */
export function addressGroup(addresses: readonly string[]): string | null {
  const plain = addresses.map(plainAddress).filter((address) => address !== null);
  const chosen = plain.filter((address) => isIPv4(address)).sort()[0] ?? plain.sort()[0];
  return chosen === undefined ? null : ADDRESS_MARK + chosen;
}

/** The host of a URL without its port, and of IPv6 without brackets. */
export function hostnameOf(host: string): string {
  return host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d+$/, '');
}

/** One spelling per address: IPv4 within IPv6 is IPv4. */
function plainAddress(address: string): string | null {
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return null;
  const lower = address.toLowerCase();
  return lower.startsWith('::ffff:') ? embeddedV4Of(lower) : lower;
}
