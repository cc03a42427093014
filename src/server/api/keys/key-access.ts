import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { dailyBudgetOf, exhaustedOfKey } from '../../../core/budget/budget.ts';
import { hashOfKey, isApiKey, type KeyLimits, scopesOf } from '../../../core/keys/api-key.ts';
import {
  fullBucket,
  type RateDecision,
  type TokenBucket,
  takeToken,
} from '../../../core/keys/token-bucket.ts';
import { LruMap } from '../../../core/lru.ts';
import type { ApiKey, KeyStore } from '../../../ports/store/key-store.ts';
import type { AccessControl, Caller, PagesRefused } from '../requests/access.ts';
import { isForwarded, isLoopback, keyInCookie } from './local-access.ts';

/** A key that was revoked by another process is refused after this long. */
const KNOWN_MS = 2_000;
const KEYS_REMEMBERED = 10_000;
const DAY_MS = 86_400_000;

const OPERATOR: Caller = { keyId: null, scopes: scopesOf('admin') };
const UNLIMITED: RateDecision = { allowed: true, limit: Infinity, remaining: Infinity, resetSeconds: 0 };

interface KeyAccessOptions {
  keys: Pick<KeyStore, 'byHash' | 'hasSome' | 'pagesUnderWay' | 'usage' | 'use'>;
  /** Of commands on this machine that can read the folder. */
  token: string;
  now(): number;
}

/** Who sent a request, what it may do, and how much of it. Keys are compared as hashes, in constant time. */
export class KeyAccess implements AccessControl {
  readonly #options: KeyAccessOptions;
  #known = new LruMap<{ key: ApiKey; until: number }>(KEYS_REMEMBERED);
  readonly #limits = new LruMap<ApiKey>(KEYS_REMEMBERED);
  readonly #buckets = new LruMap<TokenBucket>(KEYS_REMEMBERED);
  #hasSomeUntil = 0;

  constructor(options: KeyAccessOptions) {
    this.#options = options;
  }

  async authenticate(headers: IncomingHttpHeaders, remoteAddress: string): Promise<Caller | null> {
    const isLocal = isLoopback(remoteAddress);
    const given = givenKey(headers);
    if (given !== null) {
      if (isLocal && isEqual(given, this.#options.token)) return OPERATOR;
      return this.#callerOf(given);
    }
    const kept = keyInCookie(headers);
    const known = kept === null ? null : await this.#callerOf(kept);
    if (known) return { ...known, isByCookie: true };
    const isUnlocked = isLocal && !isForwarded(headers) && !(await this.#hasKeys());
    return isUnlocked ? { ...OPERATOR, isByAddress: true } : null;
  }

  async #callerOf(given: string): Promise<Caller | null> {
    const key = isApiKey(given) ? await this.#find(hashOfKey(given)) : null;
    return key && { keyId: key.id, scopes: scopesOf(key.scope) };
  }

  async isKnown({ keyId }: Caller): Promise<boolean> {
    if (keyId === null) return true;
    const key = this.#limits.get(keyId);
    return key !== undefined && (await this.#find(key.hash)) !== null;
  }

  take(caller: Caller, now: number): RateDecision {
    const limit = caller.keyId === null ? null : this.#limits.get(caller.keyId)?.limits.requestsPerMinute;
    if (caller.keyId === null || limit == null) return UNLIMITED;
    return takeToken(
      this.#buckets.getOr(caller.keyId, () => fullBucket(limit, now)),
      limit,
      now,
    );
  }

  async admit(caller: Caller, used: { pages: number; cost?: number }): Promise<PagesRefused | null> {
    const limits = caller.keyId === null ? null : this.#limits.get(caller.keyId)?.limits;
    if (caller.keyId === null || !limits) return null;
    const { keys } = this.#options;
    const now = this.#options.now();
    if (limits.pagesUnderWay !== null) {
      const underWay = await keys.pagesUnderWay(caller.keyId);
      if (underWay + used.pages > limits.pagesUnderWay)
        return {
          detail: `the key may have ${limits.pagesUnderWay} pages under way, and has ${underWay}`,
          retryAfterSeconds: null,
        };
    }
    const max = { pages: limits.pagesPerDay, cost: limits.costPerDay };
    const day = Math.floor(now / DAY_MS);
    if (
      !(await this.#isUsedUp(caller.keyId, day, limits, used.pages)) &&
      (await keys.use(caller.keyId, day, { pages: used.pages, cost: used.cost ?? 0 }, max))
    )
      return null;
    return {
      detail: `the key may use ${shownLimits(limits)} per day, which this would exceed`,
      retryAfterSeconds: Math.ceil(((day + 1) * DAY_MS - now) / 1_000),
    };
  }

  /** Whether nothing is left of the day. Each page is one request at least. */
  async #isUsedUp(keyId: string, day: number, limits: KeyLimits, pages: number): Promise<boolean> {
    const budget = dailyBudgetOf(limits);
    const asksForPages = pages === 0 && limits.pagesPerDay !== null;
    if (budget === null && !asksForPages) return false;
    const used = await this.#options.keys.usage(keyId, day);
    if (asksForPages && used.pages >= limits.pagesPerDay!) return true;
    const { requests, cost: dollars, browserSeconds } = used;
    return budget !== null && exhaustedOfKey(budget, { requests, dollars, browserSeconds }) !== null;
  }

  forget(): void {
    this.#hasSomeUntil = 0;
    this.#known = new LruMap(KEYS_REMEMBERED);
  }

  async #find(hash: string): Promise<ApiKey | null> {
    const now = this.#options.now();
    const known = this.#known.get(hash);
    const isFresh = known !== undefined && known.until > now;
    const key = isFresh ? known.key : await this.#options.keys.byHash(hash);
    if (!key || !isEqual(key.hash, hash)) return null;
    if (!isFresh) this.#known.set(hash, { key, until: now + KNOWN_MS });
    this.#limits.set(key.id, key);
    return key;
  }

  /** That there are none is asked each time: the first key closes the door at once. */
  async #hasKeys(): Promise<boolean> {
    const now = this.#options.now();
    if (now < this.#hasSomeUntil) return true;
    const hasSome = await this.#options.keys.hasSome();
    if (hasSome) this.#hasSomeUntil = now + KNOWN_MS;
    return hasSome;
  }
}

function shownLimits(limits: KeyLimits): string {
  const shown = [
    ...(limits.pagesPerDay === null ? [] : [`${limits.pagesPerDay} pages`]),
    ...(limits.requestsPerDay === null ? [] : [`${limits.requestsPerDay} requests`]),
    ...(limits.browserSecondsPerDay === null ? [] : [`${limits.browserSecondsPerDay} browser seconds`]),
    ...(limits.costPerDay === null ? [] : [`${limits.costPerDay} USD`]),
  ];
  return [shown.slice(0, -1).join(', '), ...shown.slice(-1)].filter((part) => part !== '').join(' and ');
}

export function givenKey(headers: IncomingHttpHeaders): string | null {
  const key = headers['x-api-key'];
  if (typeof key === 'string') return key;
  const [, bearer] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  // Something that is no key is a wrong key.
  return bearer ?? (headers.authorization === undefined ? null : '');
}

function isEqual(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
