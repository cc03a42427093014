import { SeineError } from '../../core/errors.ts';

const UNITS_MS: Record<string, number> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

const DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

/** `2026-01-31`, `2026-01-31T12:00:00Z`, or a length of time until now: `7d`, `12h`. Epoch milliseconds. */
export function parseSince(text: string, now: number): number {
  const [, count, unit] = /^(\d{1,9})([smhdw])$/.exec(text) ?? [];
  if (count !== undefined) return now - Number(count) * UNITS_MS[unit!]!;
  const at = DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new SeineError(`--since needs a date or a duration, got '${text}'`, {
    hint: 'for example 2026-01-31, 2026-01-31T12:00:00Z, 7d, 12h or 30m',
  });
}
