import { expect, test } from 'vitest';
import { duration } from '../../../web/format.ts';

test.each([
  [0, '0 s'],
  [0.02, '<1 s'],
  [0.99, '<1 s'],
  [1, '1 s'],
  [59.6, '1 min 0 s'],
  [194, '3 min 14 s'],
  [7_260, '2 h 1 min'],
  [90_000, '1 d 1 h'],
])('%f seconds read %s', (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});
