import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { mergedData, RecordDiff } from '../../../src/reparse/record-diff.ts';

describe('the difference of records', () => {
  test('is counted by record and by field, with samples', () => {
    const diff = new RecordDiff();
    expect(diff.add('u1', { a: 1, b: 'x', c: null }, { a: 1, b: 'y', d: [1] })).toBe(true);
    expect(diff.add('u2', { a: 1 }, { a: 1, z: null })).toBe(false);
    expect(diff.add('u3', { b: 'x' }, { b: null })).toBe(true);
    expect(diff.records).toEqual({ same: 1, changed: 2, new: 0, gone: 0 });
    expect(diff.fields).toEqual([
      {
        field: 'b',
        added: 0,
        removed: 1,
        changed: 1,
        samples: [
          { url: 'u1', before: 'x', after: 'y' },
          { url: 'u3', before: 'x', after: null },
        ],
      },
      { field: 'd', added: 1, removed: 0, changed: 0, samples: [{ url: 'u1', before: null, after: [1] }] },
    ]);
  });

  test('new and gone records have all their fields added and removed', () => {
    const diff = new RecordDiff();
    diff.add('u', null, { a: 1 });
    diff.add('u', { a: 2 }, null);
    expect(diff.add('u', null, {})).toBe(true);
    expect(diff.records).toEqual({ same: 0, changed: 0, new: 2, gone: 1 });
    expect(diff.fields).toMatchObject([{ field: 'a', added: 1, removed: 1, changed: 0 }]);
  });

  test('the order of properties says nothing, that of lists does', () => {
    const diff = new RecordDiff();
    expect(diff.add('u', { a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 } })).toBe(false);
    expect(diff.add('u', { a: [1, 2] }, { a: [2, 1] })).toBe(true);
  });

  test('three samples are enough, and the number of fields is bounded', () => {
    const diff = new RecordDiff();
    for (let n = 0; n < LIMITS.tableFieldsMax + 50; n++)
      diff.add(`u${n}`, { a: n }, { a: n + 1, [`f${n}`]: 1 });
    expect(diff.fields).toHaveLength(LIMITS.tableFieldsMax);
    expect(diff.fields[0]).toMatchObject({ field: 'a', changed: LIMITS.tableFieldsMax + 50 });
    expect(diff.fields[0]!.samples).toHaveLength(3);
  });

  test('a field may be called like a member of every object', () => {
    const diff = new RecordDiff();
    diff.add('u', {}, JSON.parse('{"__proto__": 1, "toString": 2}'));
    expect(diff.fields.map(({ field, added }) => [field, added])).toEqual([
      ['__proto__', 1],
      ['toString', 1],
    ]);
  });
});

test('merging adds and replaces values; what is missing takes nothing away', () => {
  expect(mergedData({ a: 1, b: 2 }, { b: 3, c: 4, a: null })).toEqual({ a: 1, b: 3, c: 4 });
});
