import { fingerprint } from '../../../core/url/fingerprint.ts';

/** Jobs with a seed from here on have keys that keep neighbours together; older jobs keep the keys they have. */
export const NEIGHBOUR_SEEDS = 0x8000_0000;

const GROUP_BITS = 9;
const HASH_BITS = 30;
/** Keys of neighbours have the same whole number of these. */
export const NEIGHBOUR_KEYS = 2 ** HASH_BITS;
const ZERO = 48;
const NINE = 57;

/**
 * Key of a URL in the dedupe index: 53 bits, so a plain number in JavaScript and a rowid in SQLite. It only finds
 * candidates: equality is always checked on the string. The seed differs by job, so that a site cannot prepare
 * collisions.
 *
 * The upper 14 bits come from the host, the next 9 from the URL without the end of its number, the rest from the whole
 * URL. So the URLs of a host lie side by side in the index, and within it those whose numbers follow each other: they
 * come together in lists, sitemaps and pages. 60 such links of a host with 50,000 URLs are looked up in two pages of the
 * index instead of 50.
 */
export function keyOf(url: string, seed: number): number {
  if (seed < NEIGHBOUR_SEEDS) return fingerprint(url, authorityOf(url), seed);
  const pathAt = pathStart(url);
  const [from, to] = longestNumber(url, pathAt);
  let host = seed;
  let group = ~seed;
  let whole = seed ^ 0x9e3779b9;
  for (let index = 0; index < url.length; index++) {
    const code = url.charCodeAt(index);
    whole = step(whole, code);
    if (index < pathAt) host = step(host, code);
    // Other numbers, and the last two digits of the longest, do not tell neighbours apart.
    else if (!isDigit(code) || (index >= from && index < to - 2)) group = step(group, code);
  }
  const place = (finish(host) >>> 18) * 2 ** GROUP_BITS + (finish(group) >>> (32 - GROUP_BITS));
  return place * 2 ** HASH_BITS + (finish(whole) >>> (32 - HASH_BITS));
}

function step(hash: number, code: number): number {
  const mixed = Math.imul(hash ^ code, 0x5bd1e995);
  return mixed ^ (mixed >>> 15);
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Where it begins and ends; the last one of several. */
function longestNumber(url: string, after: number): [number, number] {
  let from = after;
  let to = after;
  let start = -1;
  for (let index = after; index < url.length; index++) {
    if (!isDigit(url.charCodeAt(index))) start = -1;
    else {
      if (start < 0) start = index;
      if (index + 1 - start >= to - from) {
        from = start;
        to = index + 1;
      }
    }
  }
  return [from, to];
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** A normalised URL always has a path. */
function pathStart(url: string): number {
  return url.indexOf('/', url.indexOf('//') + 2);
}

/** Host and port. Not the host that rates are counted by, which a job may choose. */
function authorityOf(url: string): string {
  return url.slice(url.indexOf('//') + 2, pathStart(url));
}
