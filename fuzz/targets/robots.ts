import { parseRobots, productToken, ROBOTS_STEPS_MAX } from '../../src/core/robots/robots.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * robots.txt against a reading of the standard that is as plain as can be: every rule is tried on every path, with
 * wildcards as a table. Paths to try stand in comments: `# try /path`.
 */

const PRODUCT = 'seinebot';
const PIECES = [
  '/',
  'a',
  'b',
  'ab',
  '*',
  '**',
  '$',
  '.html',
  '/index.htm',
  '?q=',
  '%7e',
  '%7E',
  '~',
  'é',
  '%C3%A9',
  '%2F',
  ' ',
  '=',
  '%',
];
const NAMES = [
  'user-agent',
  'User-Agent',
  'useragent',
  'allow',
  'Allow',
  'disallow',
  'Disallow',
  'dissalow',
  'disallow-x',
  'sitemap',
  'Sitemap',
  'crawl-delay',
  'Request-rate',
  'noindex',
  'constructor',
  '__proto__',
  '',
];
const PRODUCTS = [
  '*',
  'seinebot',
  'SeineBot',
  'seinebot/2.0',
  'seinebot-news',
  'other',
  '',
  '* x',
  '*x',
  'seinebot other',
];
const ODD = ['\uFEFF', '\0', '\u2028', '\t', ':', '#', '\r', '\v', '\u00a0', ': ', ' : ', 'x'.repeat(3_000)];
const PATHS = [
  '/',
  '/a',
  '/ab',
  '/a/b',
  '/b.html',
  '/a/index.html',
  '/~',
  '/%7E',
  '/%C3%A9',
  '/?q=a',
  '/aab',
  '/robots.txt',
];

function pattern(random: Random): string {
  return (random.oneIn(5) ? '' : '/') + random.text(0, 6, () => random.pick(PIECES));
}

function line(random: Random): string {
  if (random.oneIn(12)) return random.text(0, 6, () => random.pick([...PIECES, ...ODD]));
  const name = random.pick(NAMES);
  const lower = name.toLowerCase();
  const value = lower.startsWith('user')
    ? random.pick(PRODUCTS)
    : lower.startsWith('crawl')
      ? random.pick(['1', '0.5', '.5', '-1', '1e9', 'x', '999999999999', '5s', ''])
      : lower.startsWith('request')
        ? random.pick(['1/5', '1/5s', '1/2m', '3/1h 0600-0845', '0/0', '1/', 'x', '999999/1'])
        : lower.startsWith('site')
          ? random.pick(['https://a.example/s.xml', '/s.xml', ''])
          : pattern(random);
  const separator = random.pick([': ', ': ', ': ', ':', ' : ', ' ', '']);
  return `${random.oneIn(8) ? ' ' : ''}${name}${separator}${value}${random.oneIn(10) ? ' # note' : ''}`;
}

export function openRobotsTarget(): Target {
  return {
    generate(random) {
      const lines = random.list(0, 20, () => line(random));
      lines.push(...random.list(0, 4, () => `# try ${pattern(random)}`));
      const text = lines.join(random.pick(['\n', '\n', '\r\n', '\r']));
      const bytes = Buffer.from(random.oneIn(20) ? `\uFEFF${text}` : text);
      return random.oneIn(3)
        ? mutate(bytes, random, [...ODD, ...PIECES, '\nDisallow: /', '\nUser-agent: *\n'])
        : bytes;
    },
    check(input) {
      const text = input.toString('utf8');
      const rules = parseRobots(text, PRODUCT);
      const expected = readPlainly(text);
      mustEqual(rules.crawlDelayMs, expected.crawlDelayMs, 'crawl delay');
      mustEqual(rules.sitemaps, expected.sitemaps, 'sitemaps');
      must(
        rules.crawlDelayMs === null || (rules.crawlDelayMs > 0 && rules.crawlDelayMs <= 60_000),
        'crawl delay out of bounds',
      );
      must(Number.isFinite(rules.bytes) && rules.bytes >= 0, 'bytes are no number');
      const tried = [...text.matchAll(/# try (\S*)/g)].map(([, path]) => path!);
      for (const path of [...PATHS, ...tried]) {
        const url = URL.parse(path, 'https://a.example/');
        if (url === null || url.origin !== 'https://a.example') continue;
        const { allowed, steps } = rules.check(url.href);
        must(steps <= ROBOTS_STEPS_MAX, `${steps} steps`);
        // With a question mark that nothing follows.
        const shown = url.href
          .slice(url.origin.length)
          .split('#')[0]!
          .replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
        mustEqual(allowed, expected.allows(shown), `${shown} is allowed`);
      }
    },
  };
}

interface PlainRule {
  allow: boolean;
  pattern: string;
  priority: number;
}

function readPlainly(text: string) {
  const sitemaps: string[] = [];
  const groups: { products: string[]; rules: PlainRule[] }[] = [];
  const paces: { products: string[]; delays: number[] }[] = [];
  let isOpen = false;
  let isPaceOpen = false;
  for (const raw of text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)) {
    const content = raw.slice(0, 16_663).replace(/#.*$/s, '').trim();
    let at = content.indexOf(':');
    if (at === -1) {
      // A missing colon is forgiven between two words.
      at = content.search(/[ \t]/);
      if (at === -1 || /[ \t]/.test(content.slice(at).trim())) continue;
    }
    const name = content.slice(0, at).trim().toLowerCase();
    const value = content.slice(at + 1).trim();
    if (/^(user-agent|useragent|user agent)/.test(name)) {
      if (!isOpen) groups.push({ products: [], rules: [] });
      if (!isPaceOpen) paces.push({ products: [], delays: [] });
      isOpen = isPaceOpen = true;
      groups.at(-1)!.products.push(productOf(value));
      paces.at(-1)!.products.push(productOf(value));
    } else if (/^(allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw)/.test(name)) {
      isOpen = isPaceOpen = false;
      groups.at(-1)?.rules.push(...rulesOf(name.startsWith('allow'), value));
    } else if (/^(sitemap|site-map)/.test(name)) {
      if (value !== '' && !sitemaps.includes(value)) sitemaps.push(value);
    } else if (/^crawl-delay/.test(name)) {
      isPaceOpen = false;
      const delay = /^\d*\.?\d+/.test(value) ? Number.parseFloat(value) * 1_000 : 0;
      if (delay > 0) paces.at(-1)?.delays.push(delay);
    } else if (/^request-rate/.test(name)) {
      isPaceOpen = false;
    }
  }
  const isNamed = groups.some(({ products }) => products.includes('ours'));
  const isFor = ({ products }: { products: string[] }) =>
    isNamed ? products.includes('ours') : products.includes('all') && !products.includes('ours');
  const rules = groups.filter(isFor).flatMap((group) => group.rules);
  const delays = paces.filter(isFor).flatMap((pace) => pace.delays);
  return {
    sitemaps,
    crawlDelayMs: delays.length === 0 ? null : Math.min(60_000, Math.max(...delays)),
    allows(path: string): boolean {
      if (path === '/robots.txt') return true;
      const matching = rules.filter((rule) => matches(rule.pattern, path));
      const strongest = Math.max(...matching.map(({ priority }) => priority));
      const deciding = matching.filter(({ priority }) => priority === strongest);
      return deciding.length === 0 || deciding.some(({ allow }) => allow);
    },
  };
}

function productOf(value: string): string {
  if (/^\*(\s|$)/.test(value)) return 'all';
  return productToken(value).toLowerCase() === PRODUCT ? 'ours' : 'other';
}

function rulesOf(allow: boolean, value: string): PlainRule[] {
  const escaped = value
    .replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase())
    .replace(/[^\x00-\x7f]/gu, (letter) => encodeURIComponent(letter.toWellFormed()));
  if (escaped === '') return [];
  const rules = [{ allow, pattern: escaped, priority: escaped.length }];
  const folder = /^(.*\/)index\.htm[^/]*$/s.exec(escaped)?.[1];
  if (allow && folder !== undefined)
    rules.push({ allow, pattern: `${folder}$`, priority: folder.length + 1 });
  const decoded = escaped.replace(/%[0-9A-F]{2}/g, (code) => {
    const letter = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(letter) ? letter : code;
  });
  if (!allow && decoded !== escaped) rules.push({ allow, pattern: decoded, priority: escaped.length });
  return rules;
}

/** Which beginnings of the path the pattern so far can stand for. */
function matches(pattern: string, path: string): boolean {
  const anchored = pattern.endsWith('$');
  const wanted = anchored ? pattern.slice(0, -1) : pattern;
  let ends = new Set([0]);
  for (const letter of wanted) {
    const next = new Set<number>();
    if (letter === '*') for (let at = Math.min(...ends); at <= path.length; at++) next.add(at);
    else
      for (const at of ends) if (path.slice(at, at + letter.length) === letter) next.add(at + letter.length);
    ends = next;
    if (ends.size === 0) return false;
  }
  return !anchored || ends.has(path.length);
}
