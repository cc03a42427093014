import { getOwn } from '../values/own-property.ts';
/** Dates of sitemaps and feeds: W3C datetime in any precision, RFC 822, and what people write instead. */

/** A date means a stretch of time: `2024-05` is a month long. Epoch milliseconds, both ends within it. */
export interface Period {
  from: number;
  until: number;
}

const DATE_LENGTH_MAX = 64;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const W3C =
  /^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[Tt ] ?(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)? ?([Zz]|[+-]\d{2}(?::?\d{2})?)?)?)?)?$/;
const RFC822 =
  /^(?:[a-z]{3,9},? )?(\d{1,2})[ -]([a-z]{3})[a-z]{0,6}\.?[ -](\d{4}|\d{2})(?: (\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([a-z]{1,5}|[+-]\d{2}:?\d{2}))?)?$/i;

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const ZONES: Record<string, string> = {
  est: '-0500',
  edt: '-0400',
  cst: '-0600',
  cdt: '-0500',
  mst: '-0700',
  mdt: '-0600',
  pst: '-0800',
  pdt: '-0700',
};

/** Null when the text is no date. Without a zone it is UTC. */
export function parseDate(text: string): Period | null {
  if (text.length > DATE_LENGTH_MAX) return null;
  const plain = text.trim();
  return parseW3c(plain) ?? parseRfc822(plain);
}

function parseW3c(text: string): Period | null {
  const found = W3C.exec(text);
  if (found === null) return null;
  const [, year, month, day, hour, minute, second, fraction, zone] = found;
  if (month === undefined) return stretch(utc(Number(year), 1, 1), utc(Number(year) + 1, 1, 1));
  if (day === undefined) {
    const next = Number(month) === 12 ? utc(Number(year) + 1, 1, 1) : utc(Number(year), Number(month) + 1, 1);
    return stretch(utc(Number(year), Number(month), 1), next);
  }
  const start = utc(Number(year), Number(month), Number(day));
  if (hour === undefined) return start === null ? null : stretch(start, start + DAY_MS);
  return moment(start, { hour, minute, second, fraction, zone });
}

function parseRfc822(text: string): Period | null {
  const found = RFC822.exec(text);
  if (found === null) return null;
  const [, day, month, year, hour, minute, second, zone] = found;
  // RFC 2822: two digits below 50 are of this century.
  const full = year!.length === 4 ? Number(year) : Number(year) + (Number(year) < 50 ? 2_000 : 1_900);
  const start = utc(full, MONTHS.indexOf(month!.toLowerCase()) + 1, Number(day));
  if (hour === undefined) return start === null ? null : stretch(start, start + DAY_MS);
  return moment(start, {
    hour,
    minute,
    second,
    fraction: undefined,
    zone: getOwn(ZONES, zone?.toLowerCase() ?? '') ?? zone,
  });
}

type Part = string | undefined;

function moment(
  start: number | null,
  time: { hour: Part; minute: Part; second: Part; fraction: Part; zone: Part },
): Period | null {
  const [hour, minute, second] = [Number(time.hour), Number(time.minute), Number(time.second ?? 0)];
  // A leap second is the last one of its minute.
  if (start === null || hour > 24 || minute > 59 || second > 60) return null;
  const milliseconds = time.fraction === undefined ? 0 : Math.floor(Number(`0.${time.fraction}`) * 1_000);
  const at =
    start +
    (hour * 60 + minute - offsetMinutes(time.zone)) * MINUTE_MS +
    Math.min(second, 59) * 1_000 +
    milliseconds;
  const lengthMs = time.second === undefined ? MINUTE_MS : time.fraction === undefined ? 1_000 : 1;
  return stretch(at, at + lengthMs);
}

/** East of Greenwich; 0 for unknown zones. */
function offsetMinutes(zone: Part): number {
  if (zone === undefined || zone === 'Z') return 0;
  const offset = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone);
  if (offset === null) return 0;
  return (offset[1] === '-' ? -1 : 1) * (Number(offset[2]) * 60 + Number(offset[3] ?? 0));
}

/** Null for a day that no calendar has. */
function utc(year: number, month: number, day: number): number | null {
  if (month < 1 || month > 12 || day < 1) return null;
  const at = Date.UTC(year, month - 1, day);
  return year >= 1_000 && new Date(at).getUTCDate() === day ? at : null;
}

function stretch(from: number | null, next: number | null): Period | null {
  return from === null || next === null ? null : { from, until: next - 1 };
}

/**
 * The latest moment at which a page so dated may have changed: a page that was visited at ten and is dated of the
 * same day may be new by noon. Dates that are yet to come are mistakes and say nothing.
 */
export function modifiedBy(period: Period | null, now: number): number | undefined {
  if (period === null || period.from > now + DAY_MS) return undefined;
  return Math.min(period.until, now);
}
