import { describe, expect, test } from 'vitest';
import type { FollowRule } from '../../../../src/core/job-schema/job.ts';
import { compileFollow, isWithin, mayRedirect, ruleFor } from '../../../../src/core/url/scope.ts';

const rulesOf = (...rules: Partial<FollowRule>[]) =>
  rules.map((rule) => compileFollow({ within: 'host', priority: 0, ...rule }));
const hostOf = (url: string) => new URL(url).host;
const ask = (rules: ReturnType<typeof rulesOf>, url: string, pageHost = 'shop.example') =>
  ruleFor(rules, url, hostOf(url), pageHost);

describe('within', () => {
  test.each([
    ['host', 'shop.example', 'shop.example', true],
    ['host', 'www.shop.example', 'shop.example', false],
    ['host', 'shop.example:8080', 'shop.example', false],
    ['site', 'www.shop.example', 'shop.example', true],
    ['site', 'a.shop.example', 'b.shop.example', true],
    ['site', 'other.example', 'shop.example', false],
    ['site', 'evilshop.example', 'shop.example', false],
    ['site', 'shop.example.evil.com', 'shop.example', false],
    ['site', 'a.co.uk', 'b.co.uk', false],
    ['site', 'x.a.co.uk', 'a.co.uk', true],
    ['site', 'a.github.io', 'b.github.io', false],
    ['site', '127.0.0.1:81', '127.0.0.1:80', true],
    ['site', '127.0.0.2', '127.0.0.1', false],
    ['any', 'other.example', 'shop.example', true],
  ] as const)('%s: %s from a page of %s: %s', (scope, host, pageHost, expected) => {
    expect(isWithin(scope, host, pageHost)).toBe(expected);
  });
});

describe('follow rules', () => {
  test('the first rule that takes a link decides', () => {
    const rules = rulesOf(
      { match: ['/product/*'], route: 'product', priority: 5 },
      { within: 'any', route: 'rest' },
    );
    expect(ask(rules, 'https://shop.example/product/1')).toMatchObject({ route: 'product', priority: 5 });
    expect(ask(rules, 'https://shop.example/about')).toMatchObject({ route: 'rest' });
    expect(ask(rules, 'https://other.example/product/1')).toMatchObject({ route: 'rest' });
  });

  test('`not` takes out what `match` let in', () => {
    const rules = rulesOf({ match: ['/**'], not: ['/cart/**', '/login'] });
    expect(ask(rules, 'https://shop.example/x')).not.toBeNull();
    expect(ask(rules, 'https://shop.example/cart/1')).toBeNull();
    expect(ask(rules, 'https://shop.example/login')).toBeNull();
  });

  test('no rules, no links', () => {
    expect(ask([], 'https://shop.example/')).toBeNull();
  });
});

describe('redirects', () => {
  const to = (url: string) => ({ url, host: hostOf(url) });

  test('a source may lead anywhere', () => {
    expect(mayRedirect([], { host: 'a.example', depth: 0 }, to('https://b.example/'))).toBe(true);
  });

  test('a followed link may lead to its own host with or without www, or where a link may lead', () => {
    const rules = rulesOf({ match: ['/ok/*'] });
    const from = { host: 'a.example', depth: 1 };
    expect(mayRedirect(rules, from, to('https://www.a.example/'))).toBe(true);
    expect(mayRedirect(rules, from, to('http://a.example/elsewhere'))).toBe(true);
    expect(mayRedirect(rules, from, to('https://b.example/ok/1'))).toBe(false);
    expect(mayRedirect(rulesOf({ within: 'any' }), from, to('https://b.example/'))).toBe(true);
    expect(mayRedirect(rulesOf({ within: 'site' }), from, to('https://shop.a.example/'))).toBe(true);
    expect(mayRedirect([], from, to('https://b.example/'))).toBe(false);
  });
});
