import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { csvHeader, csvLine } from '../../src/cli/csv.ts';

describe('csv', () => {
  test('quotes only what needs it', () => {
    expect(csvHeader(['a', 'b c', 'd,e'])).toBe('a,b c,"d,e"\r\n');
    expect(csvLine(['a', 'b', 'c', 'd', 'e'], { a: 1, b: null, c: 'x "y"', d: 'p\nq', e: true })).toBe(
      '1,,"x ""y""","p\nq",true\r\n',
    );
  });

  test('columns are taken in their order; what is missing is empty; objects are JSON', () => {
    expect(csvLine(['b', 'a', 'z'], { a: { x: [1, 'y'] }, b: [] })).toBe('[],"{""x"":[1,""y""]}",\r\n');
    expect(csvLine(['n'], { n: 0 })).toBe('0\r\n');
  });

  test('whatever text goes in comes out of a standard reader', () => {
    const cell = fc.string({ unit: 'grapheme' }).filter((text) => !text.startsWith('\ufeff'));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 5 }), (rows) => {
        const text =
          csvHeader(['a', 'b', 'c']) +
          rows.map(([a, b, c]) => csvLine(['a', 'b', 'c'], { a, b, c })).join('');
        expect(parse(text, { record_delimiter: '\r\n' })).toEqual([['a', 'b', 'c'], ...rows]);
      }),
    );
  });

  test('the only column, when empty, is still a row', () => {
    expect(parse(csvHeader(['a']) + csvLine(['a'], { a: '' }) + csvLine(['a'], { a: 'x' }))).toHaveLength(3);
  });
});
