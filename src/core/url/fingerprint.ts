/**
 * Keys of the exact dedupe index: 53 bits, so a plain number in JavaScript and a rowid in SQLite.
 * The upper 21 bits come from the host, the lower 32 from the whole URL: URLs of a host lie side
 * by side in the index, so a crawl touches the pages of its active hosts and not the whole tree.
 * A key only finds candidates: equality is always checked on the string. The seed differs by job,
 * so that a site cannot prepare collisions.
 */
export function fingerprint(url: string, host: string, seed: number): number {
  return (hash32(host, seed) >>> 11) * 0x1_0000_0000 + hash32(url, ~seed);
}

function hash32(text: string, seed: number): number {
  let hash = seed ^ 0x9e3779b9;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x5bd1e995);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
