import { plainText } from './parse-number.ts';

/** Names of months in English, German, French, Spanish, Italian, Portuguese and Dutch, whole and as cut short. */

const NAMES = [
  'january jan januar jänner janvier janv enero ene gennaio gen janeiro januari',
  'february feb februar februar febr février févr fév febrero febbraio fevereiro fev februari',
  'march mar märz mrz mär mars marzo março maart mrt',
  'april apr avril avr abril abr aprile',
  'may mai mayo maggio mag maio mei',
  'june jun juni juin junio giugno giu junho',
  'july jul juli juillet juil julio luglio lug julho',
  'august aug août agosto ago augustus',
  'september sep sept septembre septiembre settembre set setembro',
  'october oct oktober okt octobre octubre ottobre ott outubro out',
  'november nov novembre noviembre novembro',
  'december dec dezember dez décembre déc diciembre dic dicembre dezembro',
];

const MONTHS = new Map<string, number>();
NAMES.forEach((names, index) => {
  for (const name of names.split(' ')) {
    MONTHS.set(name, index + 1);
    // Sites leave accents out.
    MONTHS.set(name.normalize('NFD').replace(/\p{M}/gu, ''), index + 1);
  }
});

/** 1 to 12, or null. */
function monthOf(name: string): number | null {
  return MONTHS.get(name.toLowerCase()) ?? null;
}

/**
 * Dates as sites write them, as ISO 8601: `2024-05-01`, with a time `2024-05-01T10:00:00`, and with a time and a zone
 * in UTC, `2024-05-01T08:00:00.000Z`. What could be two dates, like 01/02/2024, is none.
 */
interface DateHints {
  /** Whether 01/02/2024 is the first of February (true) or the second of January (false). */
  dayFirst?: boolean | undefined;
}

interface Day {
  year: number;
  month: number;
  /** Null when the text names a month only. */
  day: number | null;
}

interface Found extends Day {
  index: number;
  /** What follows the date: a time, perhaps. */
  rest: string;
}

type Groups = (string | undefined)[];

interface Form {
  pattern: RegExp;
  read(groups: Groups, hints: DateHints): Day | null;
}

const number = (text: string | undefined) => Number(text);

/** Two digits mean 1970 to 2069, as in e-mail. */
function yearOf(text: string): number {
  const year = Number(text);
  if (text.length > 2) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

const FORMS: Form[] = [
  {
    pattern: /(?<!\d)(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)/g,
    read: ([, year, , month, day]) => ({ year: number(year), month: number(month), day: number(day) }),
  },
  {
    pattern: /^(\d{4})-(\d{2})$/g,
    read: ([, year, month]) => ({ year: number(year), month: number(month), day: null }),
  },
  {
    pattern: /^(\d{4})(\d{2})(\d{2})(?=T\d|$)/g,
    read: ([, year, month, day]) => ({ year: number(year), month: number(month), day: number(day) }),
  },
  {
    pattern:
      /(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|[.º])?[ -](?:de |of )?(\p{L}{3,10})[.,]?[ -](?:de |del )?(\d{4}|\d{2})(?![\d:])/gu,
    read: ([, day, month, year]) => withMonth(yearOf(year!), month, number(day)),
  },
  {
    pattern: /(?<!\p{L})(\p{L}{3,10})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})(?!\d)/gu,
    read: ([, month, day, year]) => withMonth(number(year), month, number(day)),
  },
  {
    pattern: /(?<!\p{L})(\p{L}{3,10})[.,]? (?:de |del )?(\d{4})(?!\d)/gu,
    read: ([, month, year]) => withMonth(number(year), month, null),
  },
  {
    pattern: /(?<!\d)(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)/g,
    read: ([, first, mark, second, year], { dayFirst }) =>
      numericDay(number(first), number(second), number(year), mark === '.' ? true : dayFirst),
  },
];

/** `Sun Nov 6 08:49:37 1994` and `Wed May 1 10:00:00 UTC 2024`: the year comes last. */
const TIME_BEFORE_YEAR =
  /^\p{L}{3},? (\p{L}{3}) (\d{1,2}) (\d{2}:\d{2}:\d{2})(?: (\p{Lu}{3,4}|[+-]\d{4}))? (\d{4})$/u;

const TIME =
  /^[ ,T·|(–-]*(?:at |um |om |à |às |a las |alle |kl\.? ?)?(\d{1,2})(?:[:h](\d{2}))(?::(\d{2})(?:[.,](\d{1,9}))?)?(?: ?([ap])\.?m(?!\p{L})\.?)?(?: ?(?:GMT|UTC)?([+-]\d{2}(?::?\d{2})?)| ?(Z|UTC|GMT|UT|[ECMP][SD]T)(?!\p{L}))?/iu;
const COMPACT_TIME = /^T(\d{2})(\d{2})(\d{2})()()([+-]\d{2}:?\d{2})?(Z)?$/;

/** Hours west of Greenwich that e-mail has names for. */
const ZONES: Record<string, number> = { EDT: 4, EST: 5, CDT: 5, CST: 6, MDT: 6, MST: 7, PDT: 7, PST: 8 };

export function parseDate(text: string, hints: DateHints = {}): string | null {
  const plain = plainText(text);
  if (plain === null) return null;
  if (/^\d{10}$|^\d{13}$/.test(plain)) return ofEpoch(plain);
  const reordered = plain.replace(TIME_BEFORE_YEAR, (_, month, day, time, zone, year) =>
    `${month} ${day} ${year} ${time} ${zone ?? ''}`.trim(),
  );
  const found = findDay(reordered, hints);
  if (!found || !isDay(found)) return null;
  const { year, month, day, rest } = found;
  if (day === null) return isoDay(year, month, null);
  const time = TIME.exec(rest) ?? COMPACT_TIME.exec(rest);
  return time ? withTime(isoDay(year, month, day), time) : isoDay(year, month, day);
}

/** The date that comes first in the text. */
function findDay(text: string, hints: DateHints): Found | null {
  let first: Found | null = null;
  for (const { pattern, read } of FORMS) {
    for (const match of text.matchAll(pattern)) {
      if (first !== null && match.index >= first.index) break;
      const day = read(match, hints);
      if (day === null) continue;
      first = { ...day, index: match.index, rest: text.slice(match.index + match[0].length) };
      break;
    }
  }
  return first;
}

function withMonth(year: number, name: string | undefined, day: number | null): Day | null {
  const month = monthOf(name!);
  return month === null ? null : { year, month, day };
}

function numericDay(first: number, second: number, year: number, dayFirst?: boolean): Day | null {
  const isDayFirst = dayFirst ?? (first === second || first > 12 ? true : second > 12 ? false : undefined);
  if (isDayFirst === undefined) return null;
  return isDayFirst ? { year, month: second, day: first } : { year, month: first, day: second };
}

function isDay({ year, month, day }: Day): boolean {
  const date = new Date(Date.UTC(year, month - 1, day ?? 1));
  return year >= 1000 && date.getUTCMonth() === month - 1 && date.getUTCDate() === (day ?? 1);
}

function isoDay(year: number, month: number, day: number | null): string {
  const parts = [year, month, ...(day === null ? [] : [day])];
  return parts.map((part) => String(part).padStart(2, '0')).join('-');
}

function withTime(day: string, time: RegExpExecArray): string | null {
  const [, hourText, minuteText, secondText = '0', fraction = '', half, offset, zone] = time;
  let hour = Number(hourText);
  if (half && (hour < 1 || hour > 12)) return null;
  if (half) hour = (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0);
  const [minute, second] = [Number(minuteText), Number(secondText)];
  if (hour > 23 || minute > 59 || second > 59) return null;
  const local = `${day}T${[hour, minute, second].map((part) => String(part).padStart(2, '0')).join(':')}`;
  if (!offset && !zone) return local;
  const minutesEast = offset ? offsetOf(offset) : -60 * (ZONES[zone!.toUpperCase()] ?? 0);
  if (Math.abs(minutesEast) > 24 * 60) return null;
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0'));
  return new Date(Date.parse(`${local}Z`) + milliseconds - minutesEast * 60_000).toISOString();
}

function offsetOf(text: string): number {
  const digits = text.slice(1).replace(':', '').padEnd(4, '0');
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2));
  return text[0] === '-' ? -minutes : minutes;
}

/** Seconds or milliseconds since 1970, as attributes have them. */
function ofEpoch(digits: string): string {
  return new Date(Number(digits) * (digits.length === 10 ? 1_000 : 1)).toISOString();
}
