import { LruMap } from '../../core/lru.ts';
import type { LinkOrigin } from '../native-links/native-links.ts';

/** Origins whose links a worker remembers. */
export const ORIGINS_REMEMBERED_MAX = 10_000;

/** Over all jobs of the worker, which remember their links in one place. */
let lastId = 0;

/**
 * Which links this worker has reported in this epoch, as they stand in pages, by origin: it gives the names under which
 * native/links.ts remembers them. Most links of a site repeat on every page, and one look there replaces parsing and checking
 * a URL. Exact in what it knows, bounded in size: the older half is forgotten at a time.
 */
export class LinkMemory {
  readonly epoch: string;
  /** An epoch is a random name, so a site cannot prepare collisions. */
  readonly #seed: number;
  readonly #origins = new LruMap<LinkOrigin>(ORIGINS_REMEMBERED_MAX);

  constructor(epoch = '') {
    this.epoch = epoch;
    let seed = 0;
    for (let at = 0; at < epoch.length; at++) seed = Math.imul(seed ^ epoch.charCodeAt(at), 0x9e3779b1);
    this.#seed = seed ^ (seed >>> 15);
  }

  /** Ids are never given twice, so a forgotten origin cannot inherit another's links. */
  of(origin: string): LinkOrigin {
    let known = this.#origins.get(origin);
    if (known === undefined) {
      lastId += 1;
      known = { id: lastId, seed: this.#seed ^ lastId };
      this.#origins.set(origin, known);
    }
    return known;
  }
}
