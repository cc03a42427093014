import { describe, expect, test } from 'vitest';
import { SeineError } from '../../../../src/core/errors.ts';
import { VALUES_PER_FIELD_MAX } from '../../../../src/worker/page/tree-search.ts';
import { compileRegex, REGEX_TEXT_MAX } from '../../../../src/worker/records/linear-regex.ts';
import { cpuMsOf } from '../../../support/cpu-time.ts';

describe('patterns in linear time', () => {
  test('the first group, or the whole match', async () => {
    expect((await compileRegex('a(\\d)(\\d)')).first('xa12')).toBe('1');
    expect((await compileRegex('a\\d+')).first('xa12')).toBe('a12');
    expect((await compileRegex('a(b)?')).first('ac')).toBeNull();
    expect((await compileRegex('a')).first('b')).toBeNull();
    expect((await compileRegex('(\\w)=')).all('a=1, b=2')).toEqual(['a', 'b']);
    expect((await compileRegex('x*')).all('axa')).toEqual(['', 'x', '', '']);
    expect((await compileRegex('^a$')).test('a')).toBe(true);
    expect((await compileRegex('é+')).first('caféé')).toBe('éé');
  });

  // A backtracking engine needs more than the age of the universe for the first three.
  test.each([
    ['(a+)+$', `${'a'.repeat(100_000)}b`],
    ['(x+x+)+y', 'x'.repeat(100_000)],
    ['^(\\w+\\s?)*$', `${'word '.repeat(20_000)}!`],
    ['(.*)(.*)(.*)(.*)=', 'a'.repeat(30_000)],
  ])('%s on a text made for it', async (pattern, text) => {
    const regex = await compileRegex(pattern);
    expect(await cpuMsOf(() => regex.first(text))).toBeLessThan(5_000);
  });

  test.each(['(', '[a', 'a**', '(?=a)', '(?<!a)b', '(a)\\1', 'a{100000}'])(
    '%s is refused',
    async (pattern) => {
      await expect(compileRegex(pattern)).rejects.toThrow(SeineError);
    },
  );

  test('too many matches are refused, and so are many in a long text, since each may look to its end', async () => {
    const regex = await compileRegex('a');
    expect(regex.all('a'.repeat(VALUES_PER_FIELD_MAX))).toHaveLength(VALUES_PER_FIELD_MAX);
    expect(() => regex.all('a'.repeat(VALUES_PER_FIELD_MAX + 1))).toThrow('matches too often');
    const sparse = `a${'b'.repeat(9_999)}`;
    expect(regex.all(sparse.repeat(50))).toHaveLength(50);
    expect(() => regex.all(sparse.repeat(200))).toThrow('matches too often');
  });

  test('a text has an end where patterns are concerned', async () => {
    const regex = await compileRegex('b');
    expect(regex.first(`${'a'.repeat(REGEX_TEXT_MAX)}b`)).toBeNull();
    expect(regex.first(`${'a'.repeat(REGEX_TEXT_MAX - 1)}b`)).toBe('b');
  });
});
