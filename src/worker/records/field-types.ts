import { messageOf, SeineError } from '../../core/errors.ts';
import type { FieldSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { parseDate } from '../../core/values/parse-date.ts';
import { type Money, parseMoney, toMoney } from '../../core/values/parse-money.ts';
import { parseNumber } from '../../core/values/parse-number.ts';
import { VALUES_PER_FIELD_MAX } from '../page/tree-search.ts';
import type { FieldContext } from './extract.ts';
import type { FieldPlan } from './field-plan.ts';
import { type DataObject, type DataValue, parseJson } from './json-ld.ts';
import { compileRegex, type LinearRegex } from './linear-regex.ts';

type Typed = Pick<FieldSpec, 'type' | 'currency' | 'decimal' | 'dayFirst'>;

/** Turns a text into what the field is to be; null when it does not fit. `base()` is what URLs are relative to. */
type Convert = (text: string, page: Based) => unknown;

interface Based {
  base(): string;
}

/** Where the text comes from: an element shows it to people, an attribute and structured data are for machines. */
type Writing = 'shown' | 'attribute' | 'data';

/** Null when the text stays as it is. */
function converterOf({ type, ...hints }: Typed, writing: Writing): Convert | null {
  switch (type) {
    case 'number':
      return (text) => parseNumber(text, hints.decimal);
    case 'money':
      return (text) => parseMoney(text, { ...hints, structured: writing === 'data' });
    case 'date':
      return (text) => parseDate(text, hints);
    case 'url':
      return (text, page) => toUrl(text, page, writing);
    case 'json':
      return (text) => parseJson(text) ?? null;
    default:
      return null;
  }
}

function toUrl(text: string, page: Based, writing: Writing): string | null {
  const raw = text.trim();
  // Words that an element shows are no address, though a URL parser would make one of them.
  if (raw === '' || (writing === 'shown' && /\s/.test(raw))) return null;
  const url = URL.parse(raw, page.base());
  const isWeb = url !== null && (url.protocol === 'https:' || url.protocol === 'http:');
  return isWeb && url.href.length <= LIMITS.urlLengthMax ? url.href : null;
}

/** Whether a value of structured data is wanted as it is, an object for one type and a text for another. */
export function dataOf({ value, owner }: DataValue, { type, ...hints }: Typed): unknown {
  const plain = isObject(value) && Object.hasOwn(value, '@value') ? value['@value'] : value;
  switch (type) {
    case 'json':
      return plain;
    case 'money':
      return isObject(plain) ? moneyOfOffer(plain, hints) : toMoney(plain, currencyIn(owner), hints);
    case 'number':
      return typeof plain === 'number' ? plain : textOfData(plain, ['name']);
    case 'url':
      return textOfData(plain, ['url', 'contentUrl', '@id']);
    default:
      return textOfData(plain, ['name']);
  }
}

/** A text, or the first of these properties of an object that is one. */
export function textOfData(value: unknown, properties: readonly string[]): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (!isObject(value)) return null;
  const name = properties.find((property) => typeof value[property] === 'string');
  return name === undefined ? null : (value[name] as string);
}

function moneyOfOffer(offer: DataObject, hints: Omit<Typed, 'type'>): Money | null {
  const inside = [offer.priceSpecification].flat().find(isObject) ?? {};
  const price = offer.price ?? offer.lowPrice ?? inside.price ?? offer.value;
  return toMoney(price, currencyIn(offer) ?? currencyIn(inside), hints);
}

function currencyIn(offer: DataObject): unknown {
  return offer.priceCurrency ?? offer.currency;
}

function isObject(value: unknown): value is DataObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Takes a text through the pattern and the type of its field; null when it does not fit. */
export type Finish = (text: string, context: FieldContext) => unknown;

/** The regex of a field, or null. */
export async function patternOf({ spec, place }: FieldPlan): Promise<LinearRegex | null> {
  if (spec.regex === undefined) return null;
  return compileRegex(spec.regex).catch((error: unknown) => {
    throw new SeineError(`the regex of ${place} is ${messageOf(error)}`, {
      written: spec.regex!,
      cause: error,
    });
  });
}

/** Null when the text stays as it is. */
export function finishOf(
  { spec, attr, isMeta, origin }: FieldPlan,
  regex: LinearRegex | null,
): Finish | null {
  const isData = isMeta || origin.kind === 'data';
  const convert = converterOf(spec, isData ? 'data' : attr === undefined ? 'shown' : 'attribute');
  const typed: Finish | null = convert && ((text, context) => convert(text, context));
  if (regex === null) return typed;
  return (text, context) => {
    const part = regex.first(text);
    return part === null || typed === null ? part : typed(part, context);
  };
}

/** A pattern over the source of the page. */
export function sourceReader(plan: FieldPlan, regex: LinearRegex): (context: FieldContext) => unknown {
  const typed = finishOf(plan, null);
  if (!plan.spec.all) {
    return (context) => {
      const part = regex.first(context.page.text);
      return part === null || typed === null ? part : typed(part, context);
    };
  }
  return (context) => {
    const parts = regex.all(context.page.text);
    return typed === null ? parts : finishAll(parts, typed, context);
  };
}

/** In a list, what does not fit its type is left out. */
export function finishAll(texts: readonly string[], finish: Finish, context: FieldContext): unknown[] {
  return texts.map((text) => finish(text, context)).filter((value) => value !== null);
}

export function tooMany(place: string): Error {
  return new Error(`${place} has more than ${VALUES_PER_FIELD_MAX} values`);
}
