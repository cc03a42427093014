import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { csvLine } from '../../../../src/cli/export/formats.ts';

describe('csv', () => {
  test('quotes only what needs it', () => {
    expect(csvLine(['a', 'b c', 'd,e'])).toBe('a,b c,"d,e"\r\n');
    expect(csvLine([1, null, 'x "y"', 'p\nq', true, 0])).toBe('1,,"x ""y""","p\nq",true,0\r\n');
  });

  test('an empty text is told from nothing', () => {
    expect(csvLine([null, '', 'x'])).toBe(',"",x\r\n');
  });

  test('what a spreadsheet would take for a formula is left as it is', () => {
    expect(csvLine(['=1+1', '+1', '-1', '@x'])).toBe('=1+1,+1,-1,@x\r\n');
  });

  test('unless it is asked for: then a single quote comes before it', () => {
    expect(csvLine(['=1+1', '+1', '-1', '@x', '\tx', '\rx', 'a=1', '', null], true)).toBe(
      `'=1+1,'+1,'-1,'@x,'\tx,"'\rx",a=1,"",\r\n`,
    );
    expect(csvLine([-1, true], true)).toBe('-1,true\r\n');
    expect(csvLine(['=HYPERLINK("https://x.example")'], true)).toBe(
      `"'=HYPERLINK(""https://x.example"")"\r\n`,
    );
  });

  test('whatever text goes in comes out of a standard reader', () => {
    const cell = fc.string({ unit: 'grapheme' }).filter((text) => !text.startsWith('\ufeff'));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 5 }), (rows) => {
        const text = csvLine(['a', 'b', 'c']) + rows.map((row) => csvLine(row)).join('');
        expect(parse(text, { record_delimiter: '\r\n' })).toEqual([['a', 'b', 'c'], ...rows]);
      }),
    );
  });

  test('the only column, when empty, is still a row', () => {
    expect(parse(csvLine(['a']) + csvLine(['']) + csvLine(['x']))).toHaveLength(3);
  });
});
