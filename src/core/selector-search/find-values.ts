import { parseDate } from '../values/parse-date.ts';
import { type Money, parseMoney } from '../values/parse-money.ts';
import { parseNumber } from '../values/parse-number.ts';
import type { ElementFacts, PageFacts } from './page-facts.ts';

/** Where on a page a value is that somebody gave as an example, or that a former page had. */

export type ValueType = 'text' | 'number' | 'money' | 'date' | 'url';

/** Exactly one of `element` and `data` is there. */
export interface Place {
  element: number | null;
  /** Of the element, instead of its text. */
  attr: string | null;
  /** Path into JSON-LD. */
  data: string | null;
  type: ValueType;
}

export type Example = string | number | Money;

const ATTRIBUTES = /^(?:content|datetime|value|title|alt|href|src|aria-label|data-[\w-]+)$/;
const SILENT = new Set(['script', 'style', 'noscript', 'template']);

/** Places that have the value, by the first of these types that fits any. */
export function findValue(page: PageFacts, value: Example, types = typesOf(value)): Place[] {
  for (const type of types) {
    const places = findAs(page, value, type);
    if (places.length > 0) return places;
  }
  return [];
}

/** As a text first, unless it is none; what else it may be, where no text is the same. */
export function typesOf(value: Example): ValueType[] {
  if (typeof value === 'number') return ['number'];
  if (typeof value === 'object') return ['money'];
  return [
    'text',
    ...(/^https?:\/\//i.test(value) ? ['url' as const] : []),
    ...(parseMoney(value)?.currency != null ? ['money' as const] : []),
    ...(Number.isFinite(Number(value)) && value.trim() !== '' ? ['number' as const] : []),
    ...(parseDate(value) === null ? [] : ['date' as const]),
  ];
}

function findAs(page: PageFacts, value: Example, type: ValueType): Place[] {
  const fits = fitting(value, type, page.url);
  const places: Place[] = [];
  for (const { path, text } of page.data)
    if (fits(text)) places.push({ element: null, attr: null, data: path, type });
  page.elements.forEach((element, index) => {
    for (const attr of sourcesOf(element, fits)) places.push({ element: index, attr, data: null, type });
  });
  return places;
}

/** Null stands for the text. */
function sourcesOf(
  { tag, text, attributes }: ElementFacts,
  fits: (text: string) => boolean,
): (string | null)[] {
  if (SILENT.has(tag)) return [];
  const found: (string | null)[] = text !== null && text !== '' && fits(text) ? [null] : [];
  for (const [name, value] of attributes) if (ATTRIBUTES.test(name) && fits(value)) found.push(name);
  return found;
}

function fitting(value: Example, type: ValueType, base: string): (text: string) => boolean {
  switch (type) {
    case 'text': {
      const wanted = folded(String(value));
      return (text) => folded(text) === wanted;
    }
    case 'url': {
      const wanted = URL.parse(String(value), base)?.href ?? null;
      return (text) =>
        wanted !== null && !/\s/.test(text.trim()) && URL.parse(text.trim(), base)?.href === wanted;
    }
    case 'number': {
      const wanted = Number(value);
      return (text) => parseNumber(text) === wanted;
    }
    case 'money': {
      const wanted = typeof value === 'object' ? value : parseMoney(String(value));
      const hints = wanted?.currency ? { currency: wanted.currency } : {};
      return (text) => isSameMoney(wanted, parseMoney(text, hints));
    }
    case 'date': {
      const wanted = parseDate(String(value)) ?? String(value);
      return (text) => parseDate(text) === wanted;
    }
  }
}

/** Whether a value that was read is the one that was known. */
export function isSameValue(known: Example, found: unknown): boolean {
  if (typeof known === 'number') return found === known;
  if (typeof known === 'object') return isMoney(found) && isSameMoney(known, found);
  if (typeof found === 'number') return found === Number(known);
  if (isMoney(found)) return isSameMoney(parseMoney(known), found);
  if (typeof found !== 'string') return false;
  return folded(found) === folded(known) || found === parseDate(known) || found === URL.parse(known)?.href;
}

function isMoney(value: unknown): value is Money {
  return typeof value === 'object' && value !== null && 'amount' in value && 'currency' in value;
}

function isSameMoney(one: Money | null, other: Money | null): boolean {
  return one !== null && one.amount === other?.amount && one.currency === other.currency;
}

function folded(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
