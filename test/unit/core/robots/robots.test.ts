import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import {
  CRAWL_DELAY_MS_MAX,
  decodeRobots,
  delayOf,
  parseRobots,
  productToken,
  ROBOTS_RULES_MAX,
  ROBOTS_STEPS_MAX,
} from '../../../../src/core/robots/robots.ts';
import { cpuNow } from '../../../support/cpu-time.ts';

interface RobotsCase {
  fact: string;
  rules: string[];
  /** URLs by the product that asks for them. */
  allow?: Record<string, string[]>;
  deny?: Record<string, string[]>;
}

const CASES: RobotsCase[] = JSON.parse(
  readFileSync(new URL('../../../fixtures/robots-cases.json', import.meta.url), 'utf8'),
);

describe('as Google reads robots.txt', () => {
  test.each(CASES)('$fact', ({ rules, allow = {}, deny = {} }) => {
    const text = rules.map((line) => `${line}\n`).join('');
    const allowed = (asked: Record<string, string[]>) =>
      Object.entries(asked).flatMap(([product, urls]) =>
        urls.map((url) => ({ product, url, allowed: parseRobots(text, product).allows(url) })),
      );
    expect(allowed(allow).filter((each) => !each.allowed)).toEqual([]);
    expect(allowed(deny).filter((each) => each.allowed)).toEqual([]);
    expect(allowed(allow).length + allowed(deny).length).toBeGreaterThan(0);
  });

  // Google cuts a line after 16,664 bytes: what is left of a rule is the rule.
  const LINE_BYTES = 2_083 * 8;

  test('a closed path that is too long closes no other', () => {
    const long = 'e'.repeat(LINE_BYTES - 'disallow: /rock/'.length + 1);
    const text = `user-agent: GullBot\ndisallow: /rock/${long}/egg\n`;
    const rules = parseRobots(text, 'GullBot');
    expect(rules.allows('http://sea.example/reef')).toBe(true);
    expect(rules.allows(`http://sea.example/rock/${long}/fish`)).toBe(false);
  });

  test('an open path that is too long is open from where it is cut', () => {
    const [one, two] = ['e', 'f'].map((letter) => letter.repeat(LINE_BYTES - 'allow: /rock/'.length + 1));
    const text = `user-agent: GullBot\ndisallow: /\nallow: /rock/${one}/egg\nallow: /rock/${two}/egg\n`;
    const rules = parseRobots(text, 'GullBot');
    expect(rules.allows('http://sea.example/')).toBe(false);
    for (const long of [one, two]) {
      expect(rules.allows(`http://sea.example/rock/${long}/egg`)).toBe(true);
      expect(rules.allows(`http://sea.example/rock/${long}/fish`)).toBe(true);
    }
  });
});

const allows = (text: string, path: string, product = 'Seine') =>
  parseRobots(text, product).allows(`https://h.example${path}`);

describe('groups', () => {
  test('a group that names us beats *, in any order and case, and several are merged', () => {
    const text =
      'user-agent: seine\ndisallow: /a\n\nuser-agent: *\ndisallow: /\n\nUser-Agent: SEINE/2.0\ndisallow: /b';
    expect(allows(text, '/a')).toBe(false);
    expect(allows(text, '/b')).toBe(false);
    expect(allows(text, '/c')).toBe(true);
    expect(allows(text, '/c', 'Other')).toBe(false);
  });

  test('an empty group of ours allows everything', () => {
    expect(allows('user-agent: *\ndisallow: /\n\nuser-agent: seine\n', '/a')).toBe(true);
    expect(allows('user-agent: *\ndisallow: /\n\nuser-agent: seine\ndisallow:\n', '/a')).toBe(true);
  });

  test('a longer name is another product', () => {
    expect(allows('user-agent: seiner\ndisallow: /', '/')).toBe(true);
    expect(allows('user-agent: sein\ndisallow: /', '/')).toBe(true);
    expect(allows('user-agent: *bot\ndisallow: /', '/')).toBe(true);
  });

  test('rules before any user agent, and without a product, are for nobody', () => {
    expect(allows('disallow: /\n', '/')).toBe(true);
    expect(allows('user-agent: \ndisallow: /\n', '/', '')).toBe(true);
  });

  test('unknown lines and sitemaps do not end a group', () => {
    const text =
      'user-agent: seine\ncrawl-delay: 2\nsitemap: https://h.example/s.xml\nuser-agent: other\nfoo: bar\ndisallow: /';
    expect(allows(text, '/')).toBe(false);
    expect(allows(text, '/', 'other')).toBe(false);
  });
});

describe('lines', () => {
  test.each(['\n', '\r\n', '\r', '\n\n\r\n'])('end in %j', (end) => {
    expect(allows(['user-agent: *', 'disallow: /a', ''].join(end), '/a')).toBe(false);
  });

  test.each([
    ['disallow: /a # comment', false],
    ['DISALLOW :/a', false],
    ['disallow /a', false],
    ['disallow /a b', true],
    ['dissallow: /a', false],
    ['dissalow: /a', false],
    ['disalow: /a', false],
    ['diasllow: /a', false],
    ['disallaw: /a', false],
    ['disalllow: /a', true],
    ['# disallow: /a', true],
    ['disallow: a', true],
    [': /a', true],
  ])('%s', (line, allowed) => {
    expect(allows(`user-agent: *\n${line}`, '/a')).toBe(allowed);
  });

  test.each([
    'useragent: *',
    'user agent: *',
    'user-agent *',
    '\uFEFFuser-agent: *',
    'user-agent: * # all',
    'user-agent: * x',
  ])('%j', (line) => {
    expect(allows(`${line}\ndisallow: /a`, '/a')).toBe(false);
  });

  test('the rest of a file that is too long is ignored', () => {
    const filler = `# ${'x'.repeat(LIMITS.robotsBytesMax)}\n`;
    expect(allows(`user-agent: *\ndisallow: /a\n${filler}disallow: /b`, '/a')).toBe(false);
    expect(allows(`user-agent: *\ndisallow: /a\n${filler}disallow: /b`, '/b')).toBe(true);
  });
});

describe('patterns', () => {
  const rule = (pattern: string, path: string) => !allows(`user-agent: *\ndisallow: ${pattern}`, path);

  test.each([
    ['/a*b', '/axxb', true],
    ['/a*b', '/ab', true],
    ['/a*b$', '/abxb', true],
    ['/a*b$', '/abx', false],
    ['/*$', '/anything', true],
    ['/a$b', '/a$b', true],
    ['/a$', '/a', true],
    ['/a$', '/ab', false],
    ['/a**b', '/axb', true],
    ['*', '/', true],
    ['$', '/', false],
    ['/ab*ba$', '/aba', false],
    ['/a?b=*&c', '/a?b=1&c=2', true],
    ['/a.c', '/abc', false],
    ['/ä', '/%C3%A4', true],
    ['/%c3%a4', '/%C3%A4', true],
    ['/a', '/A', false],
    ['/?x', '/?x=1', true],
  ])('%s on %s', (pattern, path, matched) => {
    expect(rule(pattern, path)).toBe(matched);
  });

  test('in doubt about an escape that means nothing, stay out', () => {
    // Google would compare bytes and fetch /~me; our URLs never have %7E.
    expect(rule('/%7Eme', '/~me')).toBe(true);
    expect(rule('/%7Eme', '/%7eme')).toBe(true);
    expect(allows('user-agent: *\ndisallow: /\nallow: /%7Eme', '/~me')).toBe(false);
  });

  test('index.html stands for its folder, in allow only', () => {
    const text = 'user-agent: *\nallow: /a/index.html\ndisallow: /';
    expect(allows(text, '/a/')).toBe(true);
    expect(allows(text, '/a/b')).toBe(false);
    expect(allows(text, '/a')).toBe(false);
    expect(allows('user-agent: *\nallow: /\ndisallow: /a/index.html', '/a/')).toBe(true);
  });

  test('a wildcard means what it means', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', '/'), { maxLength: 12 })
      .map((chars) => `/${chars.join('')}`);
    const pattern = fc
      .array(fc.constantFrom('a', 'b', '/', '*', '*'), { maxLength: 8 })
      .map((chars) => `/${chars.join('')}`);
    fc.assert(
      fc.property(text, pattern, fc.constantFrom('', '$'), (path, start, end) => {
        const expected = new RegExp(`^${start.replaceAll('*', '.*')}${end}`).test(path);
        expect(rule(start + end, path)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  test('30 wildcards on a long URL take no time', () => {
    const rules = parseRobots(
      `user-agent: *\ndisallow: /${'*a'.repeat(30)}b\ndisallow: /${'a*'.repeat(30)}b$`,
      'Seine',
    );
    const url = `https://h.example/${'a'.repeat(2_000)}`;
    const started = cpuNow();
    for (let i = 0; i < 100; i++) expect(rules.allows(url)).toBe(true);
    // 0.03 ms when measured; a matcher that goes back would not end.
    expect((cpuNow() - started) / 100).toBeLessThan(5);
  });
});

describe('a file that is made to be expensive', () => {
  const URL_LONG = `https://h.example/${'a'.repeat(2_000)}`;
  const fileOf = (lines: Iterable<string>) => parseRobots(['user-agent: *', ...lines].join('\n'), 'seine');

  test('the same rule many times is one rule', () => {
    const rules = fileOf(Array.from({ length: 46_536 }, () => 'allow:*aab'));
    expect(rules.ruleCount).toBe(1);
    expect(rules.check(URL_LONG)).toEqual({ allowed: true, steps: expect.any(Number) });
    expect(rules.check(URL_LONG).steps).toBeLessThan(2_100);
  });

  test.each(['allow', 'disallow'])('a URL that takes too many steps is disallowed: %s', (key) => {
    const rules = fileOf(Array.from({ length: 20_000 }, (_, i) => `${key}:*aab${i}`));
    const { allowed, steps } = rules.check(URL_LONG);
    expect(allowed).toBe(false);
    expect(steps).toBeGreaterThan(ROBOTS_STEPS_MAX);
    // No more than one search beyond it.
    expect(steps).toBeLessThan(ROBOTS_STEPS_MAX + 3_000);
    expect(rules.allows('https://h.example/short')).toBe(true);
    expect(rules.allows('https://h.example/robots.txt')).toBe(true);
  });

  test('parts that nearly match everywhere are counted by their length', () => {
    const lines = Array.from(
      { length: 400 },
      (_, i) => `allow: *${'a'.repeat(1_000 - i)}b${'a'.repeat(200)}`,
    );
    expect(fileOf(lines).check(URL_LONG).allowed).toBe(false);
  });

  test('an honest file of 20,000 rules costs little', () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `disallow: /user/${i}/${i % 2 ? '*/edit' : ''}`);
    const rules = fileOf([...lines, 'disallow: /*?sort=', 'disallow: /*.pdf$']);
    const { allowed, steps } = rules.check('https://h.example/list/page-7.html?from=9');
    expect(allowed).toBe(true);
    expect(steps).toBeLessThan(300);
    expect(rules.allows('https://h.example/user/19999/a/edit')).toBe(false);
    expect(rules.allows('https://h.example/user/19998/a')).toBe(false);
    expect(rules.allows('https://h.example/list?sort=up')).toBe(false);
  });

  test('beyond the rules that are kept, allow opens nothing and disallow closes the site', () => {
    const full = Array.from({ length: ROBOTS_RULES_MAX }, (_, i) => `allow:/${i.toString(36)}`);
    expect(fileOf([...full, 'allow:/x/y']).ruleCount).toBe(ROBOTS_RULES_MAX);
    expect(fileOf([...full, 'allow:/x/y']).allows('https://h.example/-')).toBe(true);
    const closed = fileOf([...full, 'disallow:/-']);
    expect(closed.ruleCount).toBe(ROBOTS_RULES_MAX);
    for (const path of ['-', 'other']) expect(closed.allows(`https://h.example/${path}`)).toBe(false);
  });

  test('its size is told', () => {
    const many = fileOf(Array.from({ length: 30_000 }, (_, i) => `allow:*${i}`));
    expect(many.bytes).toBeGreaterThan(8_000_000);
    expect(fileOf(['disallow: /a']).bytes).toBeLessThan(1_000);
    const wildcards = '*'.repeat(16_000);
    expect(fileOf(Array.from({ length: 30 }, (_, i) => `allow:/${i}${wildcards}`)).bytes).toBeLessThan(
      1_100_000,
    );
  });

  test('among many rules the longest that matches decides', () => {
    const pattern = fc
      .array(fc.constantFrom('a', 'b', '/', '*', '$'), { maxLength: 6 })
      .map((chars) => `/${chars.join('')}`);
    const path = fc
      .array(fc.constantFrom('a', 'b', '/'), { maxLength: 8 })
      .map((chars) => `/${chars.join('')}`);
    const lines = fc.array(fc.tuple(fc.boolean(), pattern), { maxLength: 12 });
    fc.assert(
      fc.property(lines, path, (rules, asked) => {
        const text = rules.map(([allow, rule]) => `${allow ? 'allow' : 'disallow'}: ${rule}`);
        const matching = rules.filter(([, rule]) => regexOf(rule).test(asked));
        const longest = Math.max(...matching.map(([, rule]) => rule.length));
        const strongest = matching.filter(([, rule]) => rule.length === longest);
        const expected = strongest.length === 0 || strongest.some(([allow]) => allow);
        expect(fileOf(text).allows(`https://h.example${asked}`)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  const regexOf = (rule: string) => {
    const isAnchored = rule.endsWith('$');
    const body = (isAnchored ? rule.slice(0, -1) : rule).replaceAll('$', '\\$').replaceAll('*', '.*');
    return new RegExp(`^${body}${isAnchored ? '$' : ''}`);
  };
});

describe('other fields', () => {
  test('crawl delay, per group and capped', () => {
    const text =
      'user-agent: *\ncrawl-delay: 2.5\n\nuser-agent: other\ncrawl-delay: 1000000\ndisallow: /x\n\nuser-agent: third\ndisallow: /x';
    // The first group has no rules, so at Google the second name joins it; its delay is its own all the same.
    expect(parseRobots(text, 'seine').crawlDelayMs).toBe(2_500);
    expect(parseRobots(text, 'other').crawlDelayMs).toBe(CRAWL_DELAY_MS_MAX);
    expect(parseRobots(text, 'third').crawlDelayMs).toBeNull();
    expect(parseRobots('user-agent: *\ncrawl-delay: soon', 'seine').crawlDelayMs).toBeNull();
    expect(parseRobots('user-agent: *\ncrawl-delay: -1', 'seine').crawlDelayMs).toBeNull();
    expect(parseRobots('', 'seine').crawlDelayMs).toBeNull();
  });

  test.each([
    ['1/5', { requests: 1, seconds: 5 }],
    ['30/1m', { requests: 30, seconds: 60 }],
    ['1/10s 0600-0845', { requests: 1, seconds: 10 }],
    ['0/5', null],
    ['often', null],
  ])('request rate %s', (value, expected) => {
    expect(parseRobots(`user-agent: *\nrequest-rate: ${value}`, 'seine').requestRate).toEqual(expected);
  });

  test('sitemaps, whoever they stand beside, each once', () => {
    const text =
      'sitemap: https://h.example/a.xml\nuser-agent: x\nSITEMAP: /b.xml\nsite-map: https://h.example/a.xml\nsitemap:';
    expect(parseRobots(text, 'seine').sitemaps).toEqual(['https://h.example/a.xml', '/b.xml']);
  });

  test('ruleCount', () => {
    expect(parseRobots('user-agent: *\ndisallow: /a\nallow: /b\ndisallow:', 'seine').ruleCount).toBe(2);
  });

  test.each([
    ['Seine/1.0 (+https://h.example)', 'Seine'],
    ['my_bot-x', 'my_bot-x'],
    [' Foo Bar', 'Foo'],
    ['1bot', ''],
  ])('productToken of %s', (userAgent, token) => {
    expect(productToken(userAgent)).toBe(token);
  });

  test('any text is fine', () => {
    expect(allows('user-agent: *\ndisallow: /\ud800', '/%EF%BF%BD')).toBe(false);
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', maxLength: 200 }), fc.string(), (text, path) => {
        parseRobots(`user-agent: *\ndisallow: ${text}`, 'seine').allows(`https://h.example/${path}`);
      }),
    );
  });
});

describe('what the bytes of a file say', () => {
  const TEXT = 'user-agent: *\ndisallow: /rock\n';

  test.each<[string, Buffer]>([
    ['UTF-8', Buffer.from(TEXT)],
    ['UTF-8 with a mark', Buffer.from(`\ufeff${TEXT}`)],
    ['UTF-16, little endian', Buffer.from(`\ufeff${TEXT}`, 'utf16le')],
    ['UTF-16, big endian', Buffer.from(`\ufeff${TEXT}`, 'utf16le').swap16()],
  ])('%s is read', (_what, bytes) => {
    expect(parseRobots(decodeRobots(bytes), 'GullBot').allows('http://sea.example/rock')).toBe(false);
  });

  test('a file that is cut loses its last line, unless that is whole', () => {
    const max = LIMITS.robotsBytesMax;
    const filled = (end: string) => `user-agent: *\n${'#'.repeat(max - 14 - end.length - 1)}\n${end}`;
    const cut = filled('disallow: /');
    const rulesOf = (text: string) => parseRobots(decodeRobots(Buffer.from(text)), 'GullBot');
    expect(cut.length).toBe(max);
    expect(rulesOf(`${cut}rock\n`).allows('http://sea.example/sand')).toBe(true);
    expect(parseRobots(`${cut}rock\n`, 'GullBot').allows('http://sea.example/sand')).toBe(true);
    expect(rulesOf(cut).allows('http://sea.example/sand')).toBe(false);
    expect(rulesOf(`${filled('disallow: /\n')}allow: /\n`).allows('http://sea.example/sand')).toBe(false);
  });

  test.each([
    ['9000/1d', 9_600],
    ['1/10s', 10_000],
    ['60/1H', 60_000],
  ])('Request-rate: %s is a pause of %i ms', (rate, ms) => {
    expect(delayOf(parseRobots(`user-agent: *\nrequest-rate: ${rate}\n`, 'GullBot'))).toBe(ms);
  });
});
