import { expect, test } from 'vitest';
import { withSince } from '../../../../src/core/text/since.ts';

test.each([
  [0, '0 s'],
  [12_400, '12 s'],
  [119_000, '119 s'],
  [120_000, '2 min'],
  [7_100_000, '118 min'],
  [7_200_000, '2 h'],
  [172_700_000, '2 days'],
  [260_000_000, '3 days'],
])('a reason that has lasted for %d ms says so', (ms, text) => {
  expect(withSince('waiting for Redis at redis:6379', ms)).toBe(
    `waiting for Redis at redis:6379 since ${text}`,
  );
});

test('what to do about it stays at the end', () => {
  expect(withSince('no live workers at Redis redis:6379: start some', 12_000)).toBe(
    'no live workers at Redis redis:6379 since 12 s: start some',
  );
});
