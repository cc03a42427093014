import { SeineError } from '../../core/errors.ts';
import type { Context } from '../context.ts';

/** Options of `seine lambda`, checked. */

export function numberOption(
  context: Context,
  name: string,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  const text = context.parsed.values[name];
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new SeineError(`--${name} is a number from ${min} to ${max}, not '${text}'`);
}

/** Of the API: letters, digits, hyphens and underscores. */
export function functionName(context: Context): string {
  const name = context.parsed.values.name ?? 'seine';
  if (/^[\w-]{1,64}$/.test(name)) return name;
  throw new SeineError(`'${name}' cannot be the name of a function`, {
    hint: 'up to 64 letters, digits, - and _',
  });
}

export function sizeOptions(context: Context): { memoryMb: number; timeoutSeconds: number } {
  return {
    memoryMb: numberOption(context, 'memory', { min: 128, max: 10_240, otherwise: 1_024 }),
    timeoutSeconds: numberOption(context, 'timeout', { min: 1, max: 900, otherwise: 120 }),
  };
}

/** `--env NAME=value`; the value is never shown. */
export function variableOptions(context: Context): Record<string, string> {
  return Object.fromEntries(
    (context.parsed.lists.env ?? []).map((pair) => {
      const [, name, value] = /^([A-Za-z]\w*)=([\s\S]*)$/.exec(pair) ?? [];
      if (name === undefined) throw new SeineError('--env is NAME=value');
      return [name, value!];
    }),
  );
}
