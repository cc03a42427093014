import { expect, test } from 'vitest';
import { FLEET_KEY_LENGTH_MIN, parseFleetKeys } from '../../../../src/core/fleet-key/fleet-key.ts';

const KEY = 'k'.repeat(FLEET_KEY_LENGTH_MIN);
const OTHER = 'AbC+/-_='.repeat(6);

test.each([
  [KEY, [KEY]],
  [`${KEY}\n`, [KEY]],
  [`${KEY},${OTHER}`, [KEY, OTHER]],
  [`${OTHER}\r\n${KEY}\n`, [OTHER, KEY]],
  ['', null],
  [' , ', null],
  ['short', null],
  [`${KEY},short`, null],
  [`${KEY}!`, null],
  ['k'.repeat(257), null],
  [Array.from({ length: 4 }, () => KEY).join(','), null],
])('%j', (text, keys) => {
  expect(parseFleetKeys(text)).toEqual(keys);
});
