/** Longer texts are no numbers, amounts or dates; a pattern or a closer selector finds those inside. */
export const TYPED_TEXT_MAX = 1_000;

/** Numbers as people write them: `1,234.5`, `1.234,5`, `1 234,5`, `1'234.5`, `12,34,567`, with text around. */

export type DecimalMark = '.' | ',';

/** A number in a text. `value` is plain decimal text without a sign, or null when its marks make no sense. */
export interface NumberToken {
  start: number;
  end: number;
  value: string | null;
}

/** What a single mark before exactly three digits is: `1.234` and `1,234` do not say. */
interface NumberRules {
  /** The decimal mark, when it is known; the other one groups digits. */
  decimal?: DecimalMark | undefined;
  /** Whether the dot of `1.234` groups, when the decimal mark is not known. A comma always does. */
  dotGroups: boolean;
}

const DIGITS_OF_OTHERS = /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19\u066b\u066c]/g;
/** Where the digits of Arabic, Persian, Devanagari and full-width begin. */
const ZEROS = [0x660, 0x6f0, 0x966, 0xff10];
const CANDIDATE = /\d+(?:[.,'’ ]\d+)*/g;
const MACHINE = /^[-+]?\d+(?:\.\d+)?e[-+]?\d+$/i;
const MINUS = '-−–';

/** The first number of a text, or null. Magnitudes (`1.2k`) are not multiplied out. */
export function parseNumber(text: string, decimal?: DecimalMark): number | null {
  const plain = plainText(text);
  if (plain === null) return null;
  if (MACHINE.test(plain)) return finite(Number(plain));
  const [token] = findNumbers(plain, { decimal, dotGroups: false });
  if (!token || token.value === null) return null;
  const value = Number(token.value);
  return finite(isNegative(plain, token.start) ? 0 - value : value);
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** Trimmed, white space as single spaces, digits and marks in ASCII; null for what is too long to be a value. */
export function plainText(text: string): string | null {
  if (text.length > TYPED_TEXT_MAX) return null;
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(DIGITS_OF_OTHERS, (char) => {
      if (char === '\u066b') return '.';
      if (char === '\u066c') return ',';
      const code = char.charCodeAt(0);
      return String(code - ZEROS.findLast((zero) => zero <= code)!);
    });
}

/** Every number of a text that `plainText` has prepared. */
export function findNumbers(plain: string, rules: NumberRules): NumberToken[] {
  const tokens: NumberToken[] = [];
  CANDIDATE.lastIndex = 0;
  for (let match = CANDIDATE.exec(plain); match !== null; match = CANDIDATE.exec(plain)) {
    const whole = match[0].slice(0, groupedLength(match[0]));
    const start = match.index;
    const end = start + whole.length;
    // What follows a gap that groups nothing is another number.
    CANDIDATE.lastIndex = end;
    const digits = whole.replace(/[ '’]/g, '');
    tokens.push({
      start,
      end,
      value: isFraction(plain, start) ? fractionOf(digits) : decimalOf(digits, rules),
    });
  }
  return tokens;
}

/** How much of a candidate is one number: spaces and apostrophes only group threes, before any other mark. */
function groupedLength(candidate: string): number {
  const grouped = /^\d{1,3}(?: \d{3}(?!\d))+(?:[.,]\d+)*|^\d{1,3}(?:['’]\d{3}(?!\d))+(?:[.,]\d+)*/.exec(
    candidate,
  );
  return (grouped ?? /^\d+(?:[.,]\d+)*/.exec(candidate)!)[0].length;
}

/** `.5` and `,5`, but not the number in `No.5`. */
function isFraction(plain: string, start: number): boolean {
  const mark = plain[start - 1];
  return (mark === '.' || mark === ',') && /^(?:|[^\p{L}\d.,])$/u.test(plain[start - 2] ?? '');
}

/** `.75,333` has no meaning. */
function fractionOf(digits: string): string | null {
  return /^\d+$/.test(digits) ? `0.${digits}` : null;
}

function decimalOf(digits: string, { decimal, dotGroups }: NumberRules): string | null {
  const dots = digits.split('.').length - 1;
  const commas = digits.split(',').length - 1;
  if (dots === 0 && commas === 0) return digits;
  if (decimal !== undefined) return withDecimal(digits, decimal);
  if (dots > 0 && commas > 0)
    return withDecimal(digits, digits.lastIndexOf('.') > digits.lastIndexOf(',') ? '.' : ',');
  const mark = dots > 0 ? '.' : ',';
  if (dots + commas > 1) return withDecimal(digits, mark === '.' ? ',' : '.');
  const groups = /^[1-9]\d{0,2}[.,]\d{3}$/.test(digits) && (mark === ',' || dotGroups);
  return groups ? digits.replace(mark, '') : digits.replace(',', '.');
}

const WHOLE = /^\d{1,3}(?:,\d{2,3})*,\d{3}$|^\d+$/;

function withDecimal(digits: string, decimal: DecimalMark): string | null {
  const [whole = '', fraction, ...more] = digits.split(decimal);
  if (more.length > 0 || !WHOLE.test(whole.replaceAll('.', ','))) return null;
  const plain = whole.replace(/[.,]/g, '');
  if (fraction === undefined) return plain;
  return /^\d+$/.test(fraction) ? `${plain}.${fraction}` : null;
}

/** A minus right before `start`; a hyphen after a word or number is none. */
export function isNegative(plain: string, start: number): boolean {
  return start > 0 && MINUS.includes(plain[start - 1]!) && !/[\p{L}\d]/u.test(plain[start - 2] ?? '');
}
