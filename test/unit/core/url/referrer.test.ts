import { describe, expect, test } from 'vitest';
import { fetchSite, refererFor, tellsReferrers } from '../../../../src/core/url/referrer.ts';
import { specOf } from '../../../support/fixtures.ts';

describe('where a request comes from', () => {
  test.each([
    ['https://shop.example/list?p=2', 'https://shop.example/item/1', 'https://shop.example/list?p=2'],
    ['https://shop.example/list?p=2', 'https://img.shop.example/1.png', 'https://shop.example/'],
    ['https://shop.example/list', 'https://other.example/', 'https://shop.example/'],
    ['https://shop.example/list', 'http://shop.example/item', null],
    ['http://shop.example/list', 'https://shop.example/item', 'http://shop.example/'],
    ['https://shop.example:444/list', 'https://shop.example/item', 'https://shop.example:444/'],
  ])('from %s to %s a browser tells %s', (from, to, told) => {
    expect(refererFor(from, to)).toBe(told);
  });

  test.each([
    [null, 'none'],
    ['https://a.shop.example/x', 'same-origin'],
    ['https://shop.example/', 'same-site'],
    ['http://a.shop.example/', 'cross-site'],
    ['https://other.example/', 'cross-site'],
  ])('coming from %s is %s', (referer, site) => {
    expect(fetchSite(referer, 'https://a.shop.example/y')).toBe(site);
  });

  test('is remembered by jobs that may look like a browser, and by no other', () => {
    expect(tellsReferrers(specOf())).toBe(false);
    expect(tellsReferrers(specOf({ routes: [{ name: 'a', escalate: ['proxy', 'browser'] }] }))).toBe(false);
    expect(tellsReferrers(specOf({ identity: { mode: 'browser' } }))).toBe(true);
    expect(tellsReferrers(specOf({ routes: [{ name: 'a', escalate: ['identity'] }] }))).toBe(true);
    expect(tellsReferrers(specOf({ routes: [{ name: 'a', fetcher: 'impersonate' }] }))).toBe(true);
  });
});
