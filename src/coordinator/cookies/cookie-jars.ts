import type { OriginCookies } from '../../core/batch/batch.ts';
import { LIMITS } from '../../core/limits.ts';

/** Origins and identities whose cookies are kept. */
const COOKIE_JARS_MAX = 5_000;

/**
 * Cookies by origin and identity, for jobs that keep them (`identity.cookies`). They live in three places:
 *
 *   while        | where                        | moves on with
 *   -------------|------------------------------|-------------------------------------------------------------
 *   a batch runs | `worker/request/cookies.ts`  | the report: the jars that changed
 *   between      | here, in memory              | the next batch for the origin; `takeChanges`, every few seconds
 *   between runs | the store, with escalation   | `load` of the escalation policy, when the run begins
 *
 * The longest unused are forgotten first. Their values are never logged.
 */
export class CookieJars {
  readonly #jars = new Map<string, OriginCookies>();
  readonly #changed = new Set<string>();

  /** Those for the given origins and identities, each named once. */
  of(wanted: Iterable<{ origin: string; identity: string | null }>): OriginCookies[] {
    const found = new Map<string, OriginCookies>();
    for (const { origin, identity } of wanted) {
      const key = keyOf(origin, identity);
      const jar = this.#jars.get(key);
      if (jar) found.set(key, jar);
    }
    return [...found.values()];
  }

  take(jars: readonly OriginCookies[]): void {
    for (const jar of jars) {
      if (!isBounded(jar)) continue;
      const key = keyOf(jar.origin, jar.identity);
      this.#jars.delete(key);
      this.#jars.set(key, jar);
      this.#changed.add(key);
    }
    for (const key of this.#jars.keys()) {
      if (this.#jars.size <= COOKIE_JARS_MAX) break;
      this.#forget(key);
    }
  }

  /** A retired identity leaves no cookies behind. */
  drop(identity: string): void {
    for (const [key, jar] of this.#jars) if (jar.identity === identity) this.#forget(key);
  }

  /** Null stands for what is gone. */
  takeChanges(): { origin: string; identity: string; jar: OriginCookies | null }[] {
    const changes = [...this.#changed].map((key) => {
      const [origin = '', identity = ''] = key.split(' ');
      return { origin, identity, jar: this.#jars.get(key) ?? null };
    });
    this.#changed.clear();
    return changes;
  }

  #forget(key: string): void {
    this.#jars.delete(key);
    this.#changed.add(key);
  }
}

/** What a report says is not taken on trust: it goes into every later batch. */
function isBounded({ cookies }: OriginCookies): boolean {
  const bytes = cookies.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
  return cookies.length <= LIMITS.cookiesPerJar && bytes <= LIMITS.cookieJarBytes;
}

function keyOf(origin: string, identity: string | null): string {
  return `${origin} ${identity ?? ''}`;
}
