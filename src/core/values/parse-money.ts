import { currencyOf, hasThreeDecimals, isCurrency, markAfter, markBefore } from './currencies.ts';
import { type DecimalMark, findNumbers, isNegative, type NumberToken, plainText } from './parse-number.ts';

export interface Money {
  amount: number;
  /** ISO 4217; null when neither the text nor the job says. */
  currency: string | null;
}

interface MoneyHints {
  /** The currency when the text names none, or has a sign that several share. */
  currency?: string | undefined;
  decimal?: DecimalMark | undefined;
  /** From data for machines, where the dot of `1.234` is a decimal mark. */
  structured?: boolean;
}

/** A double shows so many digits again as they were. */
const DIGITS_MAX = 15;
const MAGNITUDE = /^ ?(?:k|K|m|M|B|bn|Mio|Mrd|mln|mld|thousand|million|billion)(?![\p{L}\d])/u;
const NOTHING_AFTER_COMMA = /^[.,][-–—]+/;

interface Amount {
  token: NumberToken;
  mark: string | null;
  sign: number;
}

/** The first amount with a currency beside it; without any currency, the first number. */
export function parseMoney(text: string, hints: MoneyHints = {}): Money | null {
  const folded = plainText(text);
  if (folded === null) return null;
  const plain = joinCents(folded, hints.decimal);
  const usual = hints.currency ?? null;
  // Which mark is decimal may depend on the currency, so numbers are read again once it is known.
  const guess = findNumbers(plain, { decimal: hints.decimal, dotGroups: !hints.structured });
  const place = placeOfAmount(plain, guess);
  if (place === -1) return null;
  const amount = amountAt(plain, guess[place]!);
  const currency = currencyOf(amount.mark, usual);
  const tokens = hasThreeDecimals(currency)
    ? findNumbers(plain, { decimal: hints.decimal, dotGroups: false })
    : guess;
  const token = tokens[place]!;
  if (token.value === null || MAGNITUDE.test(plain.slice(token.end))) return null;
  return moneyOf(token.value + centsAfterSign(plain, amount, tokens[place + 1]), amount.sign, currency);
}

/** What structured data says: a price by itself, and a code beside it. */
export function toMoney(price: unknown, code: unknown, hints: MoneyHints = {}): Money | null {
  const named = typeof code === 'string' ? code.trim().toUpperCase() : '';
  const currency = isCurrency(named) ? named : undefined;
  if (typeof price === 'number') {
    return Number.isFinite(price) ? { amount: price, currency: currency ?? hints.currency ?? null } : null;
  }
  if (typeof price !== 'string') return null;
  const money = parseMoney(price, { ...hints, currency: currency ?? hints.currency, structured: true });
  return money && { ...money, currency: currency ?? money.currency };
}

const GAP_BEFORE_CENTS = /(\d[\d.,'’]*(?: \d{3})*)([.,]) (\d{2})(?!\d)/;

/**
 * `118, 99 TL` and `$119. 95`, as templates leave them: one amount, when nothing but its currency is around it or a colon
 * before it. With words around, as in `size 38, 45 €` and `$5. 10 left`, they are two numbers.
 */
function joinCents(plain: string, decimal: DecimalMark | undefined): string {
  const match = GAP_BEFORE_CENTS.exec(plain);
  if (match === null || (decimal !== undefined && match[2] !== decimal)) return plain;
  const before = plain.slice(0, match.index).trimEnd();
  const end = match.index + match[0].length;
  const after = plain.slice(end).trimStart();
  const isMarked = markBefore(before, before.length) !== null;
  if (!isMarked && !/^$|^[-−–]$|:$/.test(before)) return plain;
  const mark = markAfter(after, 0);
  if (after !== '' && mark === null) return plain;
  return isMarked || mark !== null
    ? `${plain.slice(0, match.index)}${match[1]}${match[2]}${match[3]}${plain.slice(end)}`
    : plain;
}

function placeOfAmount(plain: string, tokens: NumberToken[]): number {
  const marked = tokens.findIndex((token) => amountAt(plain, token).mark !== null);
  return marked === -1 && tokens.length > 0 ? 0 : marked;
}

function amountAt(plain: string, token: NumberToken): Amount {
  let start = token.start;
  let sign = isNegative(plain, start) ? -1 : 1;
  if (sign === -1) start--;
  if (plain[start - 1] === ' ') start--;
  // `Fr.` and `Rs.` have a dot of their own.
  const dotted = plain[start - 1] === '.' ? markBefore(plain, start - 1) : null;
  const before = dotted ?? markBefore(plain, start);
  if (before !== null) {
    if (isNegative(plain, start - before.length - (dotted === null ? 0 : 1))) sign = -1;
    return { token, mark: before, sign };
  }
  let end = token.end + (NOTHING_AFTER_COMMA.exec(plain.slice(token.end))?.[0].length ?? 0);
  if (plain[end] === ' ') end++;
  return { token, mark: markAfter(plain, end), sign };
}

/** `12€50`: the sign in the place of the decimal mark. */
function centsAfterSign(plain: string, { token, mark }: Amount, next: NumberToken | undefined): string {
  if (mark === null || next === undefined || token.value!.includes('.')) return '';
  const isBetween = plain.slice(token.end, next.start) === mark && next.end - next.start === 2;
  return isBetween ? `.${plain.slice(next.start, next.end)}` : '';
}

function moneyOf(value: string, sign: number, currency: string | null): Money | null {
  const digits = value.replace('.', '').replace(/^0+/, '');
  if (digits.length > DIGITS_MAX) return null;
  return { amount: sign === -1 ? 0 - Number(value) : Number(value), currency };
}
