import { expect, test } from 'vitest';
import type { RouteQuality } from '../../../src/coordinator/reports/run-view.ts';
import { qualityLines } from '../../../src/tui/quality.ts';
import { paintLine } from '../../../src/tui/text.ts';

function linesOf(change: Partial<RouteQuality>, routes = 1): string[] {
  const quality = {
    route: 'product',
    score: 90,
    records: 1_200,
    invalid: 0,
    fields: {},
    drops: [],
    ...change,
  };
  return qualityLines(Array.from({ length: routes }, () => quality)).map((line) => paintLine(line, false));
}

test('the score, what is missing most, and pages that were refused', () => {
  const fields = { title: 1, price: 0.714, brand: 0.2, size: 0.99, color: 0.5, text: 0.98 };
  expect(linesOf({ fields, invalid: 3 })).toEqual([
    '  quality    product 90 of 100   1,200 records · 3 pages failed validation · brand 20 % · color 50 % · price 71 % · text 98 %',
  ]);
});

test('what got worse has a line of its own, up to six', () => {
  const drops = Array.from({ length: 8 }, (_, n) => ({
    field: n === 0 ? null : `f${n}`,
    before: 1,
    now: 0.5,
  }));
  const lines = linesOf({ drops });
  expect(lines).toHaveLength(8);
  expect(lines[1]).toBe('             valid pages dropped from 100 % to 50 %');
  expect(lines[2]).toBe('             f1 dropped from 100 % to 50 %');
  expect(lines[7]).toBe('             … and 2 more fields dropped');
});

test('many routes are cut, and names of fields do not control the terminal', () => {
  expect(linesOf({}, 12)).toHaveLength(11);
  expect(linesOf({}, 12).at(-1)).toBe('  … and 2 more routes');
  expect(linesOf({ fields: { 'a\u001b[2Jb\n': 0.5 } })[0]).not.toMatch(/[\u001b\n]/);
});

test('figures of an earlier pass say so, and no figures say nothing', () => {
  const quality = { route: 'product', score: 90, records: 3, invalid: 0, fields: {}, drops: [] };
  const lines = qualityLines([quality], 2).map((line) => paintLine(line, false));
  expect(lines.at(-1)).toBe('             from pass 2; no new records since');
  expect(qualityLines([], 2)).toEqual([]);
});
