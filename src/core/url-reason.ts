import { LIMITS } from './limits.ts';

const SHOWN_LENGTH = 120;
const WEB = /^\s*https?:\/\//i;
/** `shop.example/a`: people leave the scheme out, as browsers do. */
const WITHOUT_SCHEME = /^\s*[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?([/?#]|\s*$)/i;

/** Why `normalizeUrl` has no use for a text, for people. */
export function whyUnusable(raw: string): string {
  if (raw.trim() === '') return 'no URL';
  const shown = JSON.stringify(raw.slice(0, SHOWN_LENGTH)) + (raw.length > SHOWN_LENGTH ? '…' : '');
  if (!WEB.test(raw))
    return WITHOUT_SCHEME.test(raw)
      ? `http:// or https:// is missing: ${shown}`
      : `not an http(s) URL: ${shown}`;
  // Escapes make what is not ASCII longer. Longer texts need not be parsed to be too long.
  const length = raw.length > 4 * LIMITS.urlLengthMax ? raw.length : (URL.parse(raw)?.href.length ?? 0);
  return length > LIMITS.urlLengthMax
    ? `the URL has ${length} characters, the limit is ${LIMITS.urlLengthMax}: ${shown}`
    : `not a valid URL: ${shown}`;
}
