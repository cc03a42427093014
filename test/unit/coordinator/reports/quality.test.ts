import { describe, expect, test } from 'vitest';
import { judgeQuality } from '../../../../src/coordinator/reports/quality.ts';
import type { QualityRow } from '../../../../src/core/model.ts';

function rowOf(change: Partial<QualityRow> = {}): QualityRow {
  return {
    pass: 1,
    route: 'product',
    records: 100,
    invalid: 0,
    filled: { title: 100, price: 100 },
    ...change,
  };
}

function judge(now: Partial<QualityRow>, before: Partial<QualityRow> | null = null) {
  return judgeQuality([rowOf(now)], before ? [rowOf(before)] : [])[0]!;
}

describe('the score', () => {
  test('is the mean fill rate of the fields times the share of valid pages', () => {
    expect(judge({}).score).toBe(100);
    expect(judge({ filled: { title: 100, price: 50 } })).toMatchObject({
      score: 75,
      fields: { title: 1, price: 0.5 },
    });
    expect(judge({ records: 50, invalid: 50, filled: { title: 50, price: 25 } })).toMatchObject({
      score: 38,
      fields: { title: 1, price: 0.5 },
    });
  });

  test('is 0 when every page is refused, and 100 when records have no fields', () => {
    expect(judge({ records: 0, invalid: 7, filled: {} }).score).toBe(0);
    expect(judge({ records: 3, filled: {} }).score).toBe(100);
    expect(judge({ records: 0, invalid: 0, filled: {} }).score).toBe(100);
  });

  test('routes come by name', () => {
    const rows = ['b', 'a', 'c'].map((route) => rowOf({ route }));
    expect(judgeQuality(rows, []).map(({ route }) => route)).toEqual(['a', 'b', 'c']);
  });

  test('a field may be called like a member of every object', () => {
    const { fields } = judge({ filled: JSON.parse('{"__proto__": 100, "toString": 50}') });
    expect(Object.entries(fields)).toEqual([
      ['__proto__', 1],
      ['toString', 0.5],
    ]);
    expect(judge({ filled: {} }, { filled: { constructor: 100 } }).drops).toHaveLength(1);
  });
});

describe('a drop', () => {
  test('is told when pages lost all their fields, so that no record tells of it', () => {
    const lost = { field: 'price', before: 1, now: 0 };
    expect(judge({ records: 0, blank: 100, filled: {} }, {}).drops).toContainEqual(lost);
    expect(judge({ records: 0, blank: 100, filled: {} }, {}).score).toBe(0);
    const half = judge({ records: 50, blank: 50, filled: { title: 50, price: 50 } }, { blank: 5 });
    expect(half.drops.map(({ field, now }) => [field, now])).toEqual([
      ['title', 0.5],
      ['price', 0.5],
    ]);
    expect(judge({ records: 0, blank: 19, filled: {} }, {}).drops).toEqual([]);
  });

  test('is not told of a route that takes all kinds of pages', () => {
    const filled = { title: 30, price: 30 };
    expect(judge({ records: 30, blank: 400, filled }, { blank: 100 }).drops).toEqual([]);
  });

  const filledTo = (price: number) => ({ filled: { title: 100, price } });

  test('is told from ten points on', () => {
    expect(judge(filledTo(80), filledTo(90)).drops).toEqual([{ field: 'price', before: 0.9, now: 0.8 }]);
    expect(judge(filledTo(81), filledTo(90)).drops).toEqual([]);
    expect(judge(filledTo(90), filledTo(80)).drops).toEqual([]);
  });

  test('of a field that no record has any more counts for the score too', () => {
    expect(judge({ filled: { title: 100 } }, {})).toMatchObject({
      score: 50,
      fields: { title: 1, price: 0 },
      drops: [{ field: 'price', before: 1, now: 0 }],
    });
  });

  test('is told of five to nineteen records from half on, where both sides have about as many', () => {
    const few = (records: number, price: number) => ({ records, filled: { title: records, price } });
    expect(judge(few(12, 0), few(12, 12)).drops).toEqual([{ field: 'price', before: 1, now: 0 }]);
    expect(judge(few(12, 6), few(12, 12)).drops).toHaveLength(1);
    expect(judge(few(12, 7), few(12, 12)).drops).toEqual([]);
    expect(judge(few(5, 0), few(10, 10)).drops).toHaveLength(1);
    expect(judge(few(5, 0), few(11, 11)).drops).toEqual([]);
    expect(judge(few(4, 0), few(4, 4)).drops).toEqual([]);
    expect(judge({ records: 0, invalid: 12, filled: {} }, few(12, 12)).drops).toContainEqual({
      ...{ field: null, before: 1, now: 0 },
    });
  });

  test('needs twenty records on both sides for less', () => {
    const few = (records: number, price: number) => ({ records, filled: { title: records, price } });
    expect(judge(few(19, 0), few(100, 100)).drops).toEqual([]);
    expect(judge(few(100, 0), few(19, 19)).drops).toEqual([]);
    expect(judge(few(20, 0), few(20, 20)).drops).toHaveLength(1);
  });

  test('compares a route with itself only', () => {
    expect(judge(filledTo(0), { route: 'other' }).drops).toEqual([]);
  });

  test('of pages that pass their checks is told, also when no record is left to compare', () => {
    expect(judge({ records: 0, invalid: 100, filled: {} }, {}).drops).toEqual([
      { field: null, before: 1, now: 0 },
    ]);
    expect(judge({ records: 0, invalid: 19, filled: {} }, {}).drops).toEqual([]);
  });
});
