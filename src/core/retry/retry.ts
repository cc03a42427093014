/** A longer pause than this would freeze the host for the rest of the run. */
export const RETRY_AFTER_MS_MAX = 300_000;

/** Retry: when a task is tried again. Whether it is at all is decided in `core/giving-up/`. */

/** Milliseconds that a Retry-After header asks for, from seconds or a date; null when it says nothing usable. */
export function parseRetryAfter(header: string | null, now: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d{1,12}$/.test(text)) return Math.min(Number(text) * 1_000, RETRY_AFTER_MS_MAX);
  if (!/[a-z]/i.test(text)) return null;
  const at = Date.parse(text);
  if (Number.isNaN(at)) return null;
  return Math.min(Math.max(at - now, 0), RETRY_AFTER_MS_MAX);
}

/** Exponential, with jitter over the upper half: retries of many tasks do not come back together. */
export function backoffMs(
  attempt: number,
  policy: { baseMs: number; maxMs: number },
  random: number,
): number {
  const full = Math.min(policy.baseMs * 2 ** (attempt - 1), policy.maxMs);
  return full / 2 + (full / 2) * random;
}
