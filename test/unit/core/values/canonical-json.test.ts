import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../../src/core/values/canonical-json.ts';

/** The same data with the fields of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, shuffled(inner)]),
  );
}

describe('canonical JSON', () => {
  test('has the fields of every object in order', () => {
    expect(canonicalJson({ b: 1, a: { d: [{ z: 1, y: 2 }], c: null } })).toBe(
      '{"a":{"c":null,"d":[{"y":2,"z":1}]},"b":1}',
    );
  });

  test('is the same for equal data, and JSON of that data', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).toBe(text);
        expect(canonicalJson(JSON.parse(JSON.stringify(value)))).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('keeps what differs apart', () => {
    const different = [{}, [], null, '', 'null', 0, { a: null }, { a: 'null' }, [1, 2], [2, 1], { 1: 2 }];
    expect(new Set(different.map(canonicalJson)).size).toBe(different.length);
  });

  test('takes values as JSON does, and names as they are', () => {
    const odd = JSON.parse('{"b": 1, "__proto__": {"y": 1, "x": 2}, "10": 1, "9": 2}') as object;
    expect(canonicalJson(odd)).toContain('"__proto__":{"x":2,"y":1}');
    expect(canonicalJson(odd)).toBe(canonicalJson(shuffled(odd)));
    const date = new Date(0);
    expect(canonicalJson({ when: date, none: undefined, nan: Number.NaN, list: [undefined] })).toBe(
      '{"list":[null],"nan":null,"when":"1970-01-01T00:00:00.000Z"}',
    );
    expect(canonicalJson(undefined)).toBe('null');
  });
});
