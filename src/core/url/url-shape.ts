import { getDomain } from 'tldts';

/** A path that repeats one segment this often is a relative-link trap. */
export const SEGMENT_REPEATS_MAX = 4;

/** What a URL looks like: its template, whether it smells of a trap, and the site of its host. */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_LENGTH = 36;
const HEX_LENGTH_MIN = 8;
const MIXED_LENGTH_MIN = 16;

const isDigit = (code: number) => code >= 48 && code <= 57;
const isLetter = (code: number) => (code | 32) >= 97 && (code | 32) <= 122;
const isHexLetter = (code: number) => (code | 32) >= 97 && (code | 32) <= 102;

/** Numbers and ids between `start` and `end` made equal, word by word; a word has letters and digits only. */
function shapeOf(url: string, start: number, end: number): string {
  let shape = '';
  let copied = start;
  let at = start;
  while (at < end) {
    const wordStart = at;
    let digits = 0;
    let isHex = true;
    for (; at < end; at++) {
      const code = url.charCodeAt(at);
      if (isDigit(code)) digits++;
      else if (!isLetter(code)) break;
      else if (!isHexLetter(code)) isHex = false;
    }
    const length = at - wordStart;
    if (
      length === HEX_LENGTH_MIN &&
      isHex &&
      UUID.test(url.slice(wordStart, Math.min(wordStart + UUID_LENGTH, end)))
    ) {
      at = wordStart + UUID_LENGTH;
      shape += `${url.slice(copied, wordStart)}{id}`;
      copied = at;
    } else if (digits > 0) {
      shape += url.slice(copied, wordStart);
      if (digits === length) shape += '{n}';
      else if (length >= (isHex ? HEX_LENGTH_MIN : MIXED_LENGTH_MIN)) shape += '{id}';
      else shape += url.slice(wordStart, at).replace(/[0-9]+/g, '{n}');
      copied = at;
    }
    at++;
  }
  return shape + url.slice(copied, end);
}

/**
 * The shape of a URL, for budgets per template: host and path with numbers and ids made equal (a date is numbers), and
 * the names of the query's parameters. `https://a.example/p/12/red-7?b=1&a=2` gives `a.example/p/{n}/red-{n}?a&b`.
 */
export function templateOf(url: string): string {
  const hostAt = url.indexOf('://') + 3;
  const slashAt = url.indexOf('/', hostAt);
  if (slashAt === -1) return url.slice(hostAt);
  const queryAt = url.indexOf('?', slashAt);
  const place = url.slice(hostAt, slashAt) + shapeOf(url, slashAt, queryAt === -1 ? url.length : queryAt);
  return queryAt === -1 ? place : `${place}?${queryNames(url, queryAt + 1)}`;
}

/** Sorted, each once. */
function queryNames(url: string, start: number): string {
  const names: string[] = [];
  for (let at = start; at <= url.length; ) {
    const next = url.indexOf('&', at);
    const end = next === -1 ? url.length : next;
    const equalsAt = url.indexOf('=', at);
    names.push(shapeOf(url, at, equalsAt === -1 || equalsAt > end ? end : equalsAt));
    at = end + 1;
  }
  if (names.length === 1) return names[0]!;
  names.sort();
  return names.filter((name, i) => i === 0 || name !== names[i - 1]).join('&');
}

/** Scheme, host and port of a normalised URL, without a parser: pages are asked for theirs several times each. */
export function originOf(url: string): string {
  return url.slice(0, url.indexOf('/', url.indexOf('://') + 3));
}

/** Host and port of an origin, as `URL.host` has them. */
export function hostOfOrigin(origin: string): string {
  return origin.slice(origin.indexOf('://') + 3);
}

/** Whether the path repeats one segment, as relative links gone wrong do. */
export function isTrapUrl(url: string): boolean {
  const start = url.indexOf('/', url.indexOf('://') + 3);
  if (start === -1) return false;
  const queryAt = url.indexOf('?', start);
  const end = queryAt === -1 ? url.length : queryAt;
  let slashes = 0;
  for (let at = start; at !== -1 && at < end; at = url.indexOf('/', at + 1)) slashes++;
  if (slashes <= SEGMENT_REPEATS_MAX) return false;
  const counts = new Map<string, number>();
  for (const segment of url.slice(start + 1, end).split('/')) {
    const count = (counts.get(segment) ?? 0) + 1;
    if (count > SEGMENT_REPEATS_MAX) return true;
    counts.set(segment, count);
  }
  return false;
}

function withoutPort(host: string): string {
  const colonAt = host.lastIndexOf(':');
  // The colons of a bare or bracketed IPv6 address are no port.
  if (colonAt === -1 || host.endsWith(']') || (host.indexOf(':') !== colonAt && !host.startsWith('[')))
    return host;
  return host.slice(0, colonAt);
}

/** The registrable domain of a host, as browsers draw the line; addresses and bare names stand for themselves. */
export function siteOf(host: string): string {
  const name = withoutPort(host);
  return getDomain(name, { allowPrivateDomains: true }) ?? name;
}

/** Whether two hosts are the same but for a leading `www.`. */
export function sameSiteHost(a: string, b: string): boolean {
  return a === b || a === `www.${b}` || b === `www.${a}`;
}
