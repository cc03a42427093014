import { expect, test } from 'vitest';
import { getSurt } from 'warcio';
import { sortKeyOf } from '../../../../src/core/warc/cdx.ts';

test.each([
  'https://www.shop.example/Product/1?b=2&a=1',
  'http://www2.a.b.example:8080/',
  'https://shop.example/?',
  'https://shop.example/a%20b?q=%C3%A9&q=1&Q=0',
  'http://127.0.0.1:4000/x',
  'urn:screenshot:https://shop.example/',
])('the key of %s is the one that warcio looks for', (url) => {
  expect(sortKeyOf(url)).toBe(getSurt(url));
});
