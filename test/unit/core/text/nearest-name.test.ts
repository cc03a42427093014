import { expect, test } from 'vitest';
import { suggestion } from '../../../../src/core/text/nearest-name.ts';

test.each([
  ['trunkated', ['truncated', 'timeout'], '; did you mean truncated?'],
  ['timeout', ['headers-timeout', 'reset'], '; did you mean headers-timeout?'],
  [
    'timeout',
    ['connect-timeout', 'headers-timeout', 'body-timeout', 'reset'],
    '; did you mean connect-timeout, headers-timeout or body-timeout?',
  ],
  ['something', ['reset', 'truncated'], ''],
])('%s among %j', (word, known, text) => {
  expect(suggestion(word, known)).toBe(text);
});
