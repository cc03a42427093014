import { BoundedMap, BoundedSet } from '../../core/lru.ts';
import type { FetchRequest } from '../../ports/fetcher.ts';

/** Origins, and URLs that are hopeless, that are remembered in one worker. */
const ENTRIES_MAX = 1_000;
/** So many responses in a row that keep the rules, and the strict reading is used again. */
const CLEAN_MAX = 8;

/**
 * Which origins break the rules of HTTP in ways that browsers put up with. Their responses are read leniently at once, on
 * a connection each, which saves the strict attempt.
 */
export class LenientHosts {
  /** With the number of their last responses that kept the rules. */
  readonly #origins = new BoundedMap<string, number>(ENTRIES_MAX);
  /** Pages that the lenient reading could not read either: a second request for them is for nothing. */
  readonly #hopeless = new BoundedSet<string>(ENTRIES_MAX);

  has(origin: string): boolean {
    return this.#origins.size > 0 && this.#origins.has(origin);
  }

  isHopeless(url: string): boolean {
    return this.#hopeless.has(url);
  }

  /** The strict reading refused a response. */
  add(origin: string): void {
    this.#origins.set(origin, 0);
  }

  /** What came of a lenient reading. */
  note(origin: string, url: string, read: { isReadable: boolean; isOdd: boolean }): void {
    if (!read.isReadable) this.#hopeless.add(url);
    const clean = read.isOdd ? 0 : (this.#origins.get(origin) ?? 0) + 1;
    if (clean >= CLEAN_MAX) this.#origins.delete(origin);
    else this.#origins.set(origin, clean);
  }
}

const CREDENTIALS = new Set(['cookie', 'authorization', 'proxy-authorization']);

/** What responses are smuggled for: the answer to such a request is read strictly, or not at all. */
export function hasCredentials({ headers, hasSecrets }: FetchRequest): boolean {
  if (hasSecrets) return true;
  for (const name in headers) if (CREDENTIALS.has(name.toLowerCase())) return true;
  return false;
}
