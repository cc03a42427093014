import { describe, expect, test } from 'vitest';
import { modifiedBy, parseDate } from '../../../../src/core/sitemap/dates.ts';

const from = (text: string) => {
  const at = parseDate(text)?.from;
  return at === undefined ? null : new Date(at).toISOString();
};
const lengthOf = (text: string) => {
  const { from: start, until } = parseDate(text)!;
  return until - start + 1;
};
const DAY = 86_400_000;

describe('dates', () => {
  test.each([
    ['2004', '2004-01-01T00:00:00.000Z'],
    ['2004-12', '2004-12-01T00:00:00.000Z'],
    ['2004-12-23', '2004-12-23T00:00:00.000Z'],
    ['2004-12-23T18:00Z', '2004-12-23T18:00:00.000Z'],
    ['2004-12-23T18:00:15+00:00', '2004-12-23T18:00:15.000Z'],
    ['2004-12-23T18:00:15.25-05:30', '2004-12-23T23:30:15.250Z'],
    ['2004-12-23T18:00:15+0130', '2004-12-23T16:30:15.000Z'],
    ['2004-12-23T18:00:15+02', '2004-12-23T16:00:15.000Z'],
    ['2004-12-23 18:00:15', '2004-12-23T18:00:15.000Z'],
    ['2004-12-23t18:00:60z', '2004-12-23T18:00:59.000Z'],
    ['  2004-12-23\n', '2004-12-23T00:00:00.000Z'],
    ['Sun, 06 Sep 2009 16:20:00 +0000', '2009-09-06T16:20:00.000Z'],
    ['Sun, 6 September 2009 16:20 EST', '2009-09-06T21:20:00.000Z'],
    ['06 Sep 09 16:20:00 GMT', '2009-09-06T16:20:00.000Z'],
    ['06 Sep 99 16:20:00 Z', '1999-09-06T16:20:00.000Z'],
    ['Mon, 06 Sep 2010 00:01:00 -0730', '2010-09-06T07:31:00.000Z'],
    ['06-Sep-2010', '2010-09-06T00:00:00.000Z'],
  ])('%s', (text, expected) => {
    expect(from(text)).toBe(expected);
  });

  test.each([
    '',
    'yesterday',
    '2004-13',
    '2004-02-30',
    '2004-00-10',
    '04-12-23',
    '2004-12-23T25:00Z',
    '2004-12-23T10:61Z',
    '32 Jan 2004',
    '10 Foo 2004',
    '0000-01-01',
    '20041223',
    `2004${' '.repeat(100)}`,
  ])('%j is none', (text) => {
    expect(parseDate(text)).toBeNull();
  });

  test('are as long as their precision', () => {
    expect(lengthOf('2004')).toBe(366 * DAY);
    expect(lengthOf('2004-12')).toBe(31 * DAY);
    expect(lengthOf('2004-02')).toBe(29 * DAY);
    expect(lengthOf('2004-12-23')).toBe(DAY);
    expect(lengthOf('2004-12-23T10:00Z')).toBe(60_000);
    expect(lengthOf('2004-12-23T10:00:00Z')).toBe(1_000);
    expect(lengthOf('2004-12-23T10:00:00.5Z')).toBe(1);
  });
});

describe('a page may have changed', () => {
  const now = Date.UTC(2024, 4, 10, 12);

  test('until the end of the day it is dated with', () => {
    expect(modifiedBy(parseDate('2024-05-01'), now)).toBe(Date.UTC(2024, 4, 2) - 1);
  });

  test('until now, when the day is not over', () => {
    expect(modifiedBy(parseDate('2024-05-10'), now)).toBe(now);
    expect(modifiedBy(parseDate('2024'), now)).toBe(now);
  });

  test('at no known time, when the date is missing or yet to come', () => {
    expect(modifiedBy(null, now)).toBeUndefined();
    expect(modifiedBy(parseDate('2099-01-01'), now)).toBeUndefined();
  });
});
