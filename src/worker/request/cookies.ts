import type { CookieJar } from 'tough-cookie';
import type { OriginCookies, WireCookie } from '../../core/batch/batch.ts';
import { LIMITS } from '../../core/limits.ts';
import { originOf } from '../../core/url/url-shape.ts';

/** As in browsers: longer cookies are ignored. */
export const COOKIE_BYTES = 4_096;

type Library = typeof import('tough-cookie');

/**
 * The cookies of a batch, by origin and identity: what one identity was given, no other sends, and nothing leaves the
 * scheme, host and port that it came from. They come with the batch and go back with its reports.
 */
export class BatchCookies {
  readonly #library: Library;
  readonly #jars = new Map<string, Jar>();

  constructor(library: Library, known: readonly OriginCookies[]) {
    this.#library = library;
    for (const { origin, identity, cookies } of known) {
      const jar = this.#open(origin, identity);
      for (const cookie of cookies) jar.put(cookie);
      jar.changed = false;
    }
  }

  headerFor(url: string, identity: string | null): string | null {
    return this.#jars.get(keyOf(originOf(url), identity))?.headerFor(url) ?? null;
  }

  /** Takes the cookies of a response, whatever its status. */
  take(url: string, identity: string | null, rawHeaders: readonly string[]): void {
    let jar: Jar | null = null;
    let taken = 0;
    for (let at = 0; at + 1 < rawHeaders.length && taken < LIMITS.cookiesPerJar; at += 2) {
      if (rawHeaders[at]!.length !== 10 || rawHeaders[at]!.toLowerCase() !== 'set-cookie') continue;
      jar ??= this.#open(originOf(url), identity);
      jar.set(rawHeaders[at + 1]!, url);
      taken++;
    }
  }

  /** What changed since the last call. */
  takeChanges(): OriginCookies[] {
    const changed = [...this.#jars.values()].filter((jar) => jar.changed);
    return changed.map((jar) => jar.takeAll());
  }

  #open(origin: string, identity: string | null): Jar {
    const key = keyOf(origin, identity);
    let jar = this.#jars.get(key);
    if (!jar) {
      jar = new Jar(this.#library, origin, identity);
      this.#jars.set(key, jar);
    }
    return jar;
  }
}

/** Loaded for jobs that keep cookies only. */
export async function openBatchCookies(known: readonly OriginCookies[]): Promise<BatchCookies> {
  return new BatchCookies(await import('tough-cookie'), known);
}

class Jar {
  changed = false;
  readonly #library: Library;
  readonly #origin: string;
  readonly #identity: string | null;
  readonly #jar: CookieJar;

  constructor(library: Library, origin: string, identity: string | null) {
    this.#library = library;
    this.#origin = origin;
    this.#identity = identity;
    this.#jar = new library.CookieJar(undefined, { looseMode: true, prefixSecurity: 'silent' });
  }

  headerFor(url: string): string | null {
    const header = this.#jar.getCookieStringSync(url);
    return header === '' ? null : header;
  }

  /** What a site sends may be anything: what is no cookie for it is left out. */
  set(header: string, url: string): void {
    if (header.length > COOKIE_BYTES) return;
    try {
      if (this.#jar.setCookieSync(header, url, { ignoreError: true })) this.changed = true;
    } catch {
      // Not a cookie for this site.
    }
  }

  put(cookie: WireCookie): void {
    const { name, value, path, secure, hostOnly, expiresAt } = cookie;
    const expires = expiresAt === null ? ('Infinity' as const) : new Date(expiresAt);
    const domain = hostOnly ? null : cookie.domain;
    try {
      const made = new this.#library.Cookie({ key: name, value, domain, path, secure, expires });
      this.#jar.setCookieSync(made, `${this.#origin}${cookie.path}`, { ignoreError: true });
    } catch {
      // One that was good when it was stored; better none than a batch that fails.
    }
  }

  takeAll(): OriginCookies {
    this.changed = false;
    const cookies: WireCookie[] = [];
    let bytes = 0;
    // The newest are the likeliest to matter.
    const all = this.#jar.getCookiesSync(`${this.#origin}/`, { allPaths: true });
    for (const cookie of all.toSorted((a, b) => b.creationIndex - a.creationIndex)) {
      bytes += cookie.key.length + cookie.value.length;
      if (cookies.length >= LIMITS.cookiesPerJar || bytes > LIMITS.cookieJarBytes) break;
      cookies.push({
        name: cookie.key,
        value: cookie.value,
        domain: cookie.domain ?? '',
        path: cookie.path ?? '/',
        expiresAt: finiteOrNull(cookie.expiryTime()),
        secure: cookie.secure,
        hostOnly: cookie.hostOnly ?? true,
      });
    }
    return { origin: this.#origin, identity: this.#identity, cookies: cookies.reverse() };
  }
}

function finiteOrNull(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

function keyOf(origin: string, identity: string | null): string {
  return `${origin} ${identity ?? ''}`;
}
