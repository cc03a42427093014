import { LIMITS } from '../limits.ts';

/** What the parts of batches and reports look like, for those who check what another machine sent. */

/** Whatever is said for people, and headers of a page. Longer texts are damage. */
const TEXT_LENGTH_MAX = 1024 * 1024;
/** Names, types, ids. */
export const NAME_LENGTH_MAX = 4_096;
const LIST_LENGTH_MAX = 1_000_000;
/** After the year 2286, or before 1970, no clock is right. */
const TIME_MAX = 1e13;

class ShapeProblem extends Error {}

export function demand(condition: boolean, what: string): asserts condition {
  if (!condition) throw new ShapeProblem(what);
}

/** What a check demands in vain; null when it has all that it demands. */
export function problemOf(check: () => void): string | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof ShapeProblem) return error.message;
    throw error;
  }
}

export type Fields = Record<string, unknown>;

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value <= TIME_MAX;
export const isText = (value: unknown, max = TEXT_LENGTH_MAX): value is string =>
  typeof value === 'string' && value.length <= max;
export const isTextOrNull = (value: unknown) => value === null || isText(value);
export const isNameOrNull = (value: unknown) => value === null || isText(value, NAME_LENGTH_MAX);
export const isList = (value: unknown, max = LIST_LENGTH_MAX): value is unknown[] =>
  Array.isArray(value) && value.length <= max;
export const isStatus = (value: unknown) => isCount(value) && value <= 999;
const HEX = /^[0-9a-f]+$/;
export const isHex = (value: unknown, length: number) =>
  typeof value === 'string' && value.length === length && HEX.test(value);

export function isHttpUrl(text: unknown): boolean {
  if (!isText(text, LIMITS.urlLengthMax)) return false;
  const { protocol, hostname } = URL.parse(text) ?? {};
  return (protocol === 'http:' || protocol === 'https:') && hostname !== '';
}

/** Cookies of an origin and identity. */
export function checkJar(jar: unknown): void {
  demand(isObject(jar) && isNameOrNull(jar.identity) && isList(jar.cookies), 'a cookie jar');
  demand(isText(jar.origin, NAME_LENGTH_MAX), 'the origin of cookies');
  for (const cookie of jar.cookies) {
    demand(isObject(cookie), 'a cookie');
    for (const text of [cookie.name, cookie.value, cookie.domain, cookie.path])
      demand(isText(text, LIMITS.cookieJarBytes), 'a cookie');
    demand(cookie.expiresAt === null || Number.isFinite(cookie.expiresAt), 'the end of a cookie');
    demand(typeof cookie.secure === 'boolean' && typeof cookie.hostOnly === 'boolean', 'a cookie');
  }
}
