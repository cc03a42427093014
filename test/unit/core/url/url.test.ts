import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import {
  isTrapUrl,
  normalizeUrl,
  sameSiteHost,
  siteOf,
  templateOf,
  type UrlOptions,
} from '../../../../src/core/url/url.ts';
import { SEGMENT_REPEATS_MAX } from '../../../../src/core/url/url-shape.ts';

const PLAIN: UrlOptions = { stripTracking: false, sortQuery: false, trailingSlash: 'keep' };
const DEFAULTS: UrlOptions = { ...PLAIN, stripTracking: true };

const normal = (raw: string, base: string | null = null, options: UrlOptions = DEFAULTS) =>
  normalizeUrl(raw, base, options)?.url ?? null;

describe('normalizeUrl', () => {
  test.each([
    ['http://Example.COM', 'http://example.com/'],
    ['HTTPS://example.com:443/a', 'https://example.com/a'],
    ['http://example.com:443/a', 'http://example.com:443/a'],
    ['http://user:secret@example.com/a', 'http://example.com/a'],
    ['http://example.com@example.com/a', 'http://example.com/a'],
    ['http://example.com:80@example.com/a', 'http://example.com/a'],
    ['http://example.com/a#b?c', 'http://example.com/a'],
    ['http://example.com/a?#b', 'http://example.com/a'],
    ['http://example.com/a/./b/../c', 'http://example.com/a/c'],
    ['http://example.com/a/%2e%2E/c', 'http://example.com/c'],
    ['http://example.com/%7euser/%c3%a4', 'http://example.com/~user/%C3%A4'],
    ['http://example.com/ä b', 'http://example.com/%C3%A4%20b'],
    ['http://example.com/%%36%36', 'http://example.com/%%366'],
    ['http://example.com/a?x=%7e&y=%c3', 'http://example.com/a?x=%7e&y=%c3'],
    ['  http://example.com/a\n', 'http://example.com/a'],
    ['http://example.com/a\\b', 'http://example.com/a/b'],
    ['http://0x7f.1/', 'http://127.0.0.1/'],
    ['http://[::0001]:8080/', 'http://[::1]:8080/'],
    ['http://bücher.example/', 'http://xn--bcher-kva.example/'],
    ['http://www.example.com//a//', 'http://www.example.com//a//'],
    ["http://example.com/it's?it's", "http://example.com/it's?it%27s"],
  ])('%s', (raw, expected) => {
    expect(normal(raw)).toBe(expected);
  });

  test.each([
    ['/x', 'http://h.example/x'],
    ['x', 'http://h.example/a/x'],
    ['x:y', null],
    ['./x', 'http://h.example/a/x'],
    ['../x', 'http://h.example/x'],
    ['.x', 'http://h.example/a/.x'],
    ['?q=1', 'http://h.example/a/b?q=1'],
    ['', 'http://h.example/a/b?c=d'],
    ['#top', 'http://h.example/a/b?c=d'],
    ['//other.example/x', 'http://other.example/x'],
    ['///other.example/x', 'http://other.example/x'],
    ['/\\other.example/x', 'http://other.example/x'],
    ['/x/../y', 'http://h.example/y'],
    ['/x?', 'http://h.example/x'],
    ['x/y?a=/../b', 'http://h.example/a/x/y?a=/../b'],
    ['http:x', 'http://h.example/a/x'],
    ['HTTP://h.example/X', 'http://h.example/X'],
    ['javascript:void(0)', null],
    ['mailto:a@h.example', null],
  ])('%s on a page', (raw, expected) => {
    expect(normal(raw, 'http://h.example/a/b?c=d')).toBe(expected);
  });

  test('a base with credentials or escapes', () => {
    expect(normal('x', 'http://u:p@h.example/%7ea/b')).toBe('http://h.example/~a/x');
    expect(normal('/x', 'http://u:p@h.example/%7ea/b')).toBe('http://h.example/x');
  });

  test('an unusable base leaves absolute links', () => {
    expect(normal('/x', 'nonsense')).toBeNull();
    expect(normal('http://h.example/x', 'nonsense')).toBe('http://h.example/x');
    expect(normal('/x', 'about:blank')).toBeNull();
  });

  test.each([
    '',
    '/',
    'example.com/a',
    'ftp://example.com/',
    'file:///etc/passwd',
    'http://',
    'http:///',
    'http://a b/',
    'http://%00/',
  ])('null for %j', (raw) => {
    expect(normal(raw)).toBeNull();
  });

  test('too long is null, also when it only becomes so', () => {
    const fit = `http://h.example/${'a'.repeat(LIMITS.urlLengthMax - 17)}`;
    expect(normal(fit)).toBe(fit);
    expect(normal(`${fit}a`)).toBeNull();
    expect(normal(`http://h.example/${'ä'.repeat(LIMITS.urlLengthMax / 4)}`)).toBeNull();
    expect(normal(`${fit}#${'a'.repeat(1_000)}`)).toBe(fit);
  });

  test('host carries the port', () => {
    expect(normalizeUrl('http://h.example:8080/a', null, DEFAULTS)?.host).toBe('h.example:8080');
    expect(normalizeUrl('/a', 'http://h.example:80/b', DEFAULTS)?.host).toBe('h.example');
  });

  test.each([
    ['utm_source=x', ''],
    ['a=1&utm_source=x&utm_medium=y&b=%7e', '?a=1&b=%7e'],
    ['gclid=1&b=2&a=1&fbclid', '?b=2&a=1'],
    ['xutm_source=1&gclidx=2&my_ga=3', '?xutm_source=1&gclidx=2&my_ga=3'],
    ['q=utm_source=x&_ga=1', '?q=utm_source=x'],
    ['a=1&&b', '?a=1&&b'],
    ['mc_cid=1&mc_eid=2&igshid=3&_gl=4&msclkid=5&dclid=6&yclid=7', ''],
  ])('tracking parameters in %s', (query, expected) => {
    expect(normal(`http://h.example/?${query}`)).toBe(`http://h.example/${expected}`);
    expect(normal(`http://h.example/?${query}`, null, PLAIN)).toBe(`http://h.example/?${query}`);
  });

  test('sorts by name and keeps the order of equal names', () => {
    const sorted = { ...PLAIN, sortQuery: true };
    expect(normal('http://h.example/?b=1&a=2&b=0&a&', null, sorted)).toBe('http://h.example/?a=2&a&b=1&b=0');
  });

  test('strips trailing slashes, never the root', () => {
    const strip: UrlOptions = { ...PLAIN, trailingSlash: 'strip' };
    expect(normal('http://h.example/a/?b=/', null, strip)).toBe('http://h.example/a?b=/');
    expect(normal('http://h.example/a//', null, strip)).toBe('http://h.example/a');
    expect(normal('http://h.example/', null, strip)).toBe('http://h.example/');
    expect(normal('/', 'http://h.example/a', strip)).toBe('http://h.example/');
  });
});

describe('normalizeUrl always', () => {
  const piece = fc.constantFrom(
    'a',
    'B',
    '1',
    '/',
    '//',
    '.',
    '..',
    '%',
    '%2e',
    '%7E',
    '%c3',
    '%2',
    '?',
    '&',
    '=',
    '#',
    ':',
    '@',
    '\\',
  );
  const more = fc.constantFrom(
    'utm_source=x',
    'gclid',
    ' ',
    "'",
    '"',
    '|',
    '^',
    '{',
    'ä',
    'ツ',
    '+',
    ';',
    '~',
    '-',
    '_',
    '[',
    '<',
    '\n',
  );
  const tail = fc.array(fc.oneof(piece, more), { maxLength: 14, size: 'max' }).map((parts) => parts.join(''));
  const start = fc.constantFrom(
    '',
    '/',
    'x',
    'http://h.example/',
    'http://h.example',
    'https://h.example:8080/',
    'http://u@h.example/',
    '//',
  );
  const options = fc.record({
    stripTracking: fc.boolean(),
    sortQuery: fc.boolean(),
    trailingSlash: fc.constantFrom('keep' as const, 'strip' as const),
  });
  const base = fc.constantFrom(
    null,
    'http://h.example/a/b?c',
    'https://h.example:8080/',
    'http://u:p@h.example/%7e/b',
  );
  const runs = { numRuns: 3_000 };

  test('gives what it gave, given what it gave', () => {
    fc.assert(
      fc.property(start, tail, base, options, (head, rest, from, chosen) => {
        const once = normalizeUrl(head + rest, from, chosen);
        if (once === null) return;
        expect(normalizeUrl(once.url, null, chosen)).toEqual(once);
        expect(new URL(once.url).href).toBe(once.url);
        expect(new URL(once.url).host).toBe(once.host);
      }),
      runs,
    );
  });

  test('agrees with the parser, however it was found', () => {
    // A space in front is nothing to the parser, but keeps the quick way from being taken.
    fc.assert(
      fc.property(start, tail, base, options, (head, rest, from, chosen) => {
        expect(normalizeUrl(head + rest, from, chosen)).toEqual(
          normalizeUrl(` ${head}${rest}`, from, chosen),
        );
      }),
      runs,
    );
  });

  test('means the page that WHATWG means', () => {
    fc.assert(
      fc.property(start, tail, base, (head, rest, from) => {
        const parsed = URL.parse(head + rest, from ?? undefined);
        const found = normalizeUrl(head + rest, from, PLAIN);
        if (parsed === null || !parsed.protocol.startsWith('http')) {
          expect(found).toBeNull();
          return;
        }
        const url = new URL(found!.url);
        expect(url.origin).toBe(parsed.origin);
        expect(url.search).toBe(parsed.search);
        expect(unescape(url.pathname)).toBe(unescape(parsed.pathname));
      }),
      runs,
    );
  });
});

interface UrlCase {
  fact: string;
  /** Other crawlers change more here; we keep to what browsers do. */
  whatwg?: true;
  /** What was given, and what becomes of it; null where it is refused. */
  pairs: [string, string | null][];
}

const CASES: UrlCase[] = JSON.parse(
  readFileSync(new URL('../../../fixtures/url-cases.json', import.meta.url), 'utf8'),
);

describe('one form for many spellings', () => {
  // Queries are sorted here, which is off by default.
  const sorted = { ...DEFAULTS, sortQuery: true };

  test.each(CASES)('$fact', ({ pairs }) => {
    expect(pairs.map(([given]) => [given, normal(given, null, sorted)])).toEqual(pairs);
  });

  test('every form is its own', () => {
    const forms = CASES.flatMap(({ pairs }) => pairs.map(([, form]) => form)).filter((form) => form !== null);
    expect(forms.map((form) => normal(form, null, sorted))).toEqual(forms);
  });
});

describe('templateOf', () => {
  test.each([
    ['https://a.example/', 'a.example/'],
    ['https://a.example:8080/p/12', 'a.example:8080/p/{n}'],
    ['https://a1.example/about-us', 'a1.example/about-us'],
    ['https://a.example/page-12/x7y', 'a.example/page-{n}/x{n}y'],
    ['https://a.example/2024/01/31/news', 'a.example/{n}/{n}/{n}/news'],
    ['https://a.example/2024-01-31', 'a.example/{n}-{n}-{n}'],
    ['https://a.example/u/550e8400-e29b-41d4-a716-446655440000/x', 'a.example/u/{id}/x'],
    ['https://a.example/u/abcdefab-abcd-abcd-abcd-abcdefabcdef.html', 'a.example/u/{id}.html'],
    ['https://a.example/img/9f86d081884c7d65.png', 'a.example/img/{id}.png'],
    ['https://a.example/deadbeef/facade', 'a.example/deadbeef/facade'],
    ['https://a.example/s;jsessionid=0A1B2C3D4E5F', 'a.example/s;jsessionid={id}'],
    ['https://a.example/t/xK9pQ2mL7vR4tW8y', 'a.example/t/{id}'],
    ['https://a.example/?b=1&a=2&b=3', 'a.example/?a&b'],
    ['https://a.example/x?f[3]=1&c', 'a.example/x?c&f[{n}]'],
    ['https://a.example/x?123', 'a.example/x?{n}'],
  ])('%s', (url, expected) => {
    expect(templateOf(url)).toBe(expected);
  });

  test('is the same for URLs that differ in numbers and values only', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.uuid(), fc.uuid(), (a, b, u, v) => {
        const url = (n: number, id: string) => `https://a.example/cat-${n}/${id}/${n}?page=${n}&sid=${id}`;
        expect(templateOf(url(a, u))).toBe(templateOf(url(b, v)));
      }),
    );
  });
});

describe('isTrapUrl', () => {
  test('a segment may repeat, but not without end', () => {
    const path = (count: number) => `https://a.example/${'x/y/'.repeat(count)}`;
    expect(isTrapUrl(path(SEGMENT_REPEATS_MAX))).toBe(false);
    expect(isTrapUrl(path(SEGMENT_REPEATS_MAX + 1))).toBe(true);
    expect(isTrapUrl('https://a.example/a/b/c/d/e/f/g/h/i')).toBe(false);
    expect(isTrapUrl('https://a.example/?q=x/x/x/x/x/x/x/x')).toBe(false);
    expect(isTrapUrl('https://a.example//////x')).toBe(true);
    expect(isTrapUrl('https://a.example')).toBe(false);
  });
});

describe('sites', () => {
  test.each([
    ['www.shop.example.co.uk', 'example.co.uk'],
    ['example.com:8080', 'example.com'],
    ['a.github.io', 'a.github.io'],
    ['github.io', 'github.io'],
    ['localhost:3000', 'localhost'],
    ['127.0.0.1:80', '127.0.0.1'],
    ['[::1]:8080', '[::1]'],
    ['[::1]', '[::1]'],
    ['intranet', 'intranet'],
  ])('siteOf %s', (host, site) => {
    expect(siteOf(host)).toBe(site);
  });

  test('sameSiteHost', () => {
    expect(sameSiteHost('a.example', 'a.example')).toBe(true);
    expect(sameSiteHost('www.a.example', 'a.example')).toBe(true);
    expect(sameSiteHost('a.example', 'www.a.example')).toBe(true);
    expect(sameSiteHost('a.example', 'b.a.example')).toBe(false);
    expect(sameSiteHost('www.a.example:81', 'a.example')).toBe(false);
  });
});
