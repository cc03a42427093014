/**
 * JSON text that is the same for equal data, in whatever order its fields were set: what records are hashed over.
 * Data is taken as `JSON.stringify` takes it; arrays keep their order.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, sortFields) ?? 'null';
}

/** JSON.stringify asks this for every value, and then goes on inside what it returns. */
function sortFields(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const names = Object.keys(value);
  if (isSorted(names)) return value;
  return Object.fromEntries(names.sort().map((name) => [name, (value as Record<string, unknown>)[name]]));
}

function isSorted(names: readonly string[]): boolean {
  for (let index = 1; index < names.length; index++) if (names[index - 1]! > names[index]!) return false;
  return true;
}
