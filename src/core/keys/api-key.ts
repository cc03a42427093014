import { hash } from 'node:crypto';

/**
 * API keys. A key is `seine_`, 32 random bytes in base64url, and a checksum of six characters. It is shown once; the store
 * has its SHA-256 alone, which is enough for 256 random bits (slow hashes are for passwords).
 */

/** Each includes the ones before it. */
export const SCOPES = ['read', 'write', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

/** What a key may use. Null: no limit. */
export interface KeyLimits {
  requestsPerMinute: number | null;
  /** Pages that are accepted and not finished. */
  pagesUnderWay: number | null;
  /** Pages accepted within a day of UTC. */
  pagesPerDay: number | null;
  /** What jobs may cost within a day of UTC, in US dollars. */
  costPerDay: number | null;
  /** Requests that jobs may send within a day of UTC, retries and robots.txt included. */
  requestsPerDay: number | null;
  /** Seconds of pages in a browser within a day of UTC. */
  browserSecondsPerDay: number | null;
  /** Twice the weight is twice the share of the workers, as long as other keys want them too. */
  weight: number;
}

/** A weight beyond these would leave the other keys next to nothing, or this one. */
export const KEY_WEIGHT_MIN = 0.01;
export const KEY_WEIGHT_MAX = 100;

/** Enough for a program that waits for its results, too little to keep a server busy with nothing else. */
export const KEY_LIMITS_DEFAULT: KeyLimits = {
  requestsPerMinute: 600,
  pagesUnderWay: null,
  pagesPerDay: null,
  costPerDay: null,
  requestsPerDay: null,
  browserSecondsPerDay: null,
  weight: 1,
};

const PREFIX = 'seine_';
export const KEY_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
/** The first key may come from another tool, such as `openssl rand -hex 32`. */
const FOREIGN_LENGTH_MIN = 32;
const FOREIGN_LENGTH_MAX = 256;

export function makeApiKey(random: Uint8Array): string {
  if (random.length !== KEY_BYTES) throw new Error(`a key needs ${KEY_BYTES} random bytes`);
  const secret = Buffer.from(random).toString('base64url');
  return `${PREFIX}${secret}${checksumOf(secret)}`;
}

/** Tells a key from a typing error, without a look into the store. */
export function isApiKey(text: string): boolean {
  if (!text.startsWith(PREFIX)) return isForeignKey(text);
  const secret = text.slice(PREFIX.length, PREFIX.length + SECRET_LENGTH);
  const isWhole = text.length === PREFIX.length + SECRET_LENGTH + CHECKSUM_LENGTH;
  return isWhole && /^[\w-]+$/.test(secret) && text.endsWith(checksumOf(secret));
}

function isForeignKey(text: string): boolean {
  return (
    text.length >= FOREIGN_LENGTH_MIN && text.length <= FOREIGN_LENGTH_MAX && /^[\x21-\x7e]+$/.test(text)
  );
}

export function hashOfKey(key: string): string {
  return hash('sha256', key);
}

function checksumOf(secret: string): string {
  return hash('sha256', `${PREFIX}${secret}`, 'base64url').slice(0, CHECKSUM_LENGTH);
}

export function scopesOf(scope: Scope): ReadonlySet<Scope> {
  return new Set(SCOPES.slice(0, SCOPES.indexOf(scope) + 1));
}

/** Hides keys in whatever people read. */
export function hideApiKeys(text: string): string {
  return text.includes(PREFIX) ? text.replace(/\bseine_[\w-]{20,}/g, `${PREFIX}***`) : text;
}
