import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const LOCAL_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export function isLoopback(address: string | undefined): boolean {
  return LOOPBACK.test(address ?? '');
}

/**
 * Whether a request without a key can be of the machine's user: a page in a browser could send one too, under a name that
 * leads here (`Host`) or across origins (`Origin`, `Sec-Fetch-Site`).
 */
export function isOwnPage({ host, origin, ...headers }: IncomingHttpHeaders): boolean {
  if (host === undefined || !LOCAL_HOST.test(host)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin.toLowerCase() === `http://${host.toLowerCase()}`;
}

/** The key of a person who logged in to the dashboard. */
export const KEY_COOKIE = 'seine_key';

export function keyInCookie({ cookie = '' }: IncomingHttpHeaders): string | null {
  const [, value] = new RegExp(`(?:^|; *)${KEY_COOKIE}=([^;]*)`).exec(cookie) ?? [];
  try {
    return value === undefined || value === '' ? null : decodeURIComponent(value);
  } catch {
    return null;
  }
}

/** Whether a request with a cookie can be of a page of this server. A proxy before it may speak TLS. */
export function isSameOrigin({ host, origin, ...headers }: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || URL.parse(origin)?.host === host?.toLowerCase();
}

export function hasToken({ authorization }: IncomingHttpHeaders, token: string): boolean {
  const given = Buffer.from(authorization ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
