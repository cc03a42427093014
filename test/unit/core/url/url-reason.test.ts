import { expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { normalizeUrl, whyUnusable } from '../../../../src/core/url/url.ts';
import { specOf } from '../../../support/fixtures.ts';

const long = (length: number) => `https://a.example/${'x'.repeat(length - 18)}`;

test.each([
  ['', 'no URL'],
  ['  ', 'no URL'],
  ['foo', 'not an http(s) URL: "foo"'],
  ['ftp://a.example/', 'not an http(s) URL: "ftp://a.example/"'],
  ['javascript:alert(1)', 'not an http(s) URL: "javascript:alert(1)"'],
  ['a.example/page?x=1', 'http:// or https:// is missing: "a.example/page?x=1"'],
  ['www.a.example', 'http:// or https:// is missing: "www.a.example"'],
  ['http://', 'not a valid URL: "http://"'],
  ['https://a b/', 'not a valid URL: "https://a b/"'],
])('%j: %s', (raw, reason) => {
  expect(normalizeUrl(raw, null, specOf().url)).toBeNull();
  expect(whyUnusable(raw)).toBe(reason);
});

test.each([
  ['a little', long(2_049), 2_049],
  ['by its escapes only', `https://a.example/${'ü'.repeat(1_000)}`, 6_018],
  ['by megabytes', long(3_000_000), 3_000_000],
])('a URL that is too long, %s', (_, raw, length) => {
  expect(normalizeUrl(raw, null, specOf().url)).toBeNull();
  const reason = whyUnusable(raw);
  expect(reason).toMatch(
    `the URL has ${length} characters, the limit is ${LIMITS.urlLengthMax}: "https://a.e`,
  );
  expect(reason.length).toBeLessThan(300);
});
