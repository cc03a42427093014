/** Names that every object has, that mean something else, or that a database refuses. */
export const HOSTILE_NAMES = [
  'constructor',
  '__proto__',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '__defineGetter__',
  '',
  ' ',
  'length',
  '0',
  'a\0b',
  '\ud800',
  'n'.repeat(100_000),
] as const;

/** As `JSON.parse` makes it: each name is a property of its own. */
export function objectWith<T>(value: T, names: readonly string[] = HOSTILE_NAMES): Record<string, T> {
  return Object.fromEntries(names.map((name) => [name, value]));
}
