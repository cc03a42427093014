import type { OriginCookies } from '../../core/batch/batch.ts';
import { addTry, type Score, WORKS } from '../../core/escalation/score.ts';
import { LIMITS } from '../../core/limits.ts';
import { fingerprint } from '../../core/url/fingerprint.ts';

/** Origins and identities whose cookies are kept. */
const COOKIE_JARS_MAX = 5_000;

/** Refusals in a row after which an identity is not used any more at its host. */
export const REFUSALS_MAX = 3;
/** Identities that a host sees at a time: some of one household, not a crowd. */
const ACTIVE_MAX = 3;

interface IdentityState {
  id: string;
  score?: Score;
  refusals: number;
}

export interface HostIdentities {
  active: IdentityState[];
  /** Identities that this host has seen so far. */
  made: number;
}

export function noIdentities(): HostIdentities {
  return { active: [], made: 0 };
}

/** The one that fares best at this host, or another than that. New ones are made as they are needed. */
export function pickIdentity(host: HostIdentities, name: string, other: boolean): string {
  const wanted = other ? 2 : 1;
  while (host.active.length < wanted) {
    host.made++;
    const id = `${fingerprint(name, 'identity', 0x1d).toString(36).slice(-7)}-${host.made}`;
    host.active.push({ id, refusals: 0 });
  }
  const ranked = host.active.toSorted((a, b) => rateOf(b) - rateOf(a));
  return ranked[wanted - 1]!.id;
}

/** One that has not been tried may be the best of all. */
function rateOf({ score }: IdentityState): number {
  return score?.rate ?? 1;
}

/** True when the identity is retired with this. */
export function noteIdentity(host: HostIdentities, id: string, success: boolean, now: number): boolean {
  const state = host.active.find((each) => each.id === id);
  if (!state) return false;
  state.score = addTry(state.score, success, now);
  state.refusals = success ? 0 : state.refusals + 1;
  const retired = state.refusals >= REFUSALS_MAX && state.score.rate < WORKS;
  if (retired) host.active = host.active.filter((each) => each !== state);
  if (host.active.length > ACTIVE_MAX) host.active.splice(ACTIVE_MAX);
  return retired;
}

/** Cookies by origin and identity, the longest unused forgotten first. Their values are never logged. */
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
