import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Which addresses a crawler may dial: those of the public Internet, by the IANA special-purpose registries. */

const V4_REFUSED = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local, cloud metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays, withdrawn
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
  // Metadata services that live on public addresses.
  '168.63.129.16/32',
];

/** Within 2000::/3, the only part of IPv6 that is given out; all else is refused anyway. */
const V6_REFUSED = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '3fff::/20', // documentation
];

function listOf(family: 'ipv4' | 'ipv6', ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, prefix] = range.split('/');
    list.addSubnet(address!, Number(prefix), family);
  }
  return list;
}

const refusedV4 = listOf('ipv4', V4_REFUSED);
const refusedV6 = listOf('ipv6', V6_REFUSED);

/** The eight groups of an IPv6 address that `isIPv6` has accepted, without a zone. */
function groupsOf(ip: string): number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(ip);
  const pair = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16);
  const plain =
    dotted === null ? ip : `${dotted[1]}${pair(dotted[2]!, dotted[3]!)}:${pair(dotted[4]!, dotted[5]!)}`;
  const [left, right] = plain.split('::');
  const parse = (text: string | undefined) =>
    text ? text.split(':').map((group) => Number.parseInt(group, 16)) : [];
  const head = parse(left);
  const tail = parse(right);
  return right === undefined ? head : [...head, ...new Array(8 - head.length - tail.length).fill(0), ...tail];
}

const v4Of = (high: number, low: number) => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;

/** The IPv4 address that an IPv6 address leads to, when it is one of the transition forms. */
function embeddedV4(groups: number[]): string | null {
  const [a, b, c, d, e, f, g, h] = groups as [number, number, number, number, number, number, number, number];
  const isZero = a === 0 && b === 0 && c === 0 && d === 0;
  // ::ffff:a.b.c.d, ::ffff:0:a.b.c.d and ::a.b.c.d: mapped, translated, compatible.
  if (isZero && ((e === 0 && (f === 0xffff || f === 0)) || (e === 0xffff && f === 0))) return v4Of(g, h);
  // 64:ff9b::/96: NAT64.
  if (a === 0x64 && b === 0xff9b && c === 0 && d === 0 && e === 0 && f === 0) return v4Of(g, h);
  // 2002::/16: 6to4.
  return a === 0x2002 ? v4Of(b, c) : null;
}

/** The same for an address as written; null for those that are none of these forms. */
export function embeddedV4Of(ip: string): string | null {
  return isIPv6(ip) && !ip.includes('%') ? embeddedV4(groupsOf(ip)) : null;
}

/**
 * Whether an address may be dialled without permission. Transition addresses are judged by the IPv4 address within;
 * NAT64 with a prefix of its own (64:ff9b:1::/48) and Teredo are refused. What is no address is refused too.
 */
export function isPublicAddress(ip: string): boolean {
  if (isIPv4(ip)) return !refusedV4.check(ip, 'ipv4');
  const bare = ip.startsWith('[') && ip.endsWith(']') ? ip.slice(1, -1) : ip;
  // A zone names an interface of this machine.
  if (bare.includes('%') || !isIPv6(bare)) return false;
  const groups = groupsOf(bare);
  const v4 = embeddedV4(groups);
  if (v4 !== null) return !refusedV4.check(v4, 'ipv4');
  return groups[0]! >= 0x2000 && groups[0]! <= 0x3fff && !refusedV6.check(bare, 'ipv6');
}

const linkLocalV4 = listOf('ipv4', ['169.254.0.0/16', '168.63.129.16/32']);
/** The second is where a cloud has its metadata service. */
const linkLocalV6 = listOf('ipv6', ['fe80::/10', 'fd00:ec2::/32']);

/** Addresses of the machine's own link, where clouds have their metadata services. What is no address counts as one. */
export function isLinkLocalAddress(ip: string): boolean {
  if (isIPv4(ip)) return linkLocalV4.check(ip, 'ipv4');
  const bare = ip.startsWith('[') && ip.endsWith(']') ? ip.slice(1, -1) : ip;
  if (bare.includes('%') || !isIPv6(bare)) return true;
  const v4 = embeddedV4(groupsOf(bare));
  // ::1 looks like an embedded 0.0.0.1.
  if (v4 !== null) return linkLocalV4.check(v4, 'ipv4');
  return linkLocalV6.check(bare, 'ipv6');
}
