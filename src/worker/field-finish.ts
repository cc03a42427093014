import { messageOf, SeineError } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import type { FieldPlan } from './field-plan.ts';
import { converterOf } from './field-types.ts';
import { compileRegex, type LinearRegex } from './linear-regex.ts';
import type { Reading } from './reading.ts';

/** Takes a text through the pattern and the type of its field; null when it does not fit. */
export type Finish = (text: string, reading: Reading) => unknown;

/** The regex of a field, or null. */
export async function patternOf({ spec, place }: FieldPlan): Promise<LinearRegex | null> {
  if (spec.regex === undefined) return null;
  return compileRegex(spec.regex).catch((error: unknown) => {
    throw new SeineError(`the regex of ${place} is ${messageOf(error)}`, { cause: error });
  });
}

/** Null when the text stays as it is. */
export function finishOf(
  { spec, attr, isMeta, origin }: FieldPlan,
  regex: LinearRegex | null,
): Finish | null {
  const isData = isMeta || origin.kind === 'data';
  const convert = converterOf(spec, isData ? 'data' : attr === undefined ? 'shown' : 'attribute');
  const typed: Finish | null = convert && ((text, reading) => convert(text, reading));
  if (regex === null) return typed;
  return (text, reading) => {
    const part = regex.first(text);
    return part === null || typed === null ? part : typed(part, reading);
  };
}

/** A pattern over the source of the page. */
export function sourceReader(plan: FieldPlan, regex: LinearRegex): (reading: Reading) => unknown {
  const typed = finishOf(plan, null);
  if (!plan.spec.all) {
    return (reading) => {
      const part = regex.first(reading.page.text);
      return part === null || typed === null ? part : typed(part, reading);
    };
  }
  return (reading) => {
    const parts = regex.all(reading.page.text);
    return typed === null ? parts : finishAll(parts, typed, reading);
  };
}

/** In a list, what does not fit its type is left out. */
export function finishAll(texts: readonly string[], finish: Finish, reading: Reading): unknown[] {
  return texts.map((text) => finish(text, reading)).filter((value) => value !== null);
}

export function tooMany(place: string): Error {
  return new Error(`${place} has more than ${LIMITS.valuesPerFieldMax} values`);
}
