import { LIMITS } from '../limits.ts';

/** A longer delay would keep a host from being crawled at all. */
export const CRAWL_DELAY_MS_MAX = 60_000;

/**
 * robots.txt by RFC 9309, with the tolerance and the choices of Google's parser where the RFC leaves room.
 *
 * Origin    scheme, host and port: each has a robots.txt of its own.
 * Rules     what a file says to our product token: which paths are allowed, and how long to wait between requests.
 * Place     what an answer is kept under: the origin, or the URL of another file that a robots.txt redirects to.
 * Wanted    a file at another host, to which a robots.txt redirects. It is asked for there, under that host's permit, in a
 *           batch of the host that wants it (a piggybacked host).
 *
 * No page of an origin is fetched unless its robots.txt is known:
 *
 *   from                  | event                                      | to
 *   ----------------------|--------------------------------------------|----------------------------------------------
 *   unknown               | a task of the origin is leased             | asking: other tasks of the host wait
 *   asking                | text                                       | known, for a day
 *   asking                | 4xx                                        | known: everything is allowed
 *   asking                | redirect                                   | redirected elsewhere
 *   asking                | 5xx, 429, no response                      | unknown: asked again after a backoff
 *   asking                | the same, `retry.attempts` times           | unreachable
 *   asking                | a failure that a retry would only repeat   | unreachable
 *   asking                | the batch is lost, or deferred             | unknown
 *   redirected elsewhere  | the file there is known already            | known, as old as that file
 *   redirected elsewhere  | it is not                                  | asking, there
 *   redirected elsewhere  | a loop, or more than five redirects        | known: everything is allowed
 *   known                 | a day has passed                           | unknown
 *   unreachable           | the tasks of the host are given up (`core/giving-up/`); a later task asks again
 *
 * The coordinator's half is `coordinator/robots/`: `RobotsCache` keeps the states, `RobotsGate` holds tasks back.
 */
export interface RobotsRules {
  allows(url: string): boolean;
  crawlDelayMs: number | null;
  requestRate: { requests: number; seconds: number } | null;
  sitemaps: string[];
  /** Different ones, of the groups that apply. */
  ruleCount: number;
  /** The same as `allows`, with what it took to find out. */
  check(url: string): { allowed: boolean; steps: number };
  /** What the rules take in memory, about. */
  bytes: number;
}

type Key = 'user-agent' | 'allow' | 'disallow' | 'sitemap' | 'crawl-delay' | 'request-rate';

/** Beginnings of keys, in lower case, with the misspellings that Google accepts. */
const KEYS: [string, Key][] = [
  ...['user-agent', 'useragent', 'user agent'].map((name): [string, Key] => [name, 'user-agent']),
  ['allow', 'allow'],
  ...['disallow', 'dissallow', 'dissalow', 'disalow', 'diasllow', 'disallaw'].map((name): [string, Key] => [
    name,
    'disallow',
  ]),
  ...['sitemap', 'site-map'].map((name): [string, Key] => [name, 'sitemap']),
  ['crawl-delay', 'crawl-delay'],
  ['request-rate', 'request-rate'],
];

/** Google cuts longer lines: eight times the longest URL that a browser of old would take. */
const LINE_LENGTH_MAX = 2_083 * 8 - 1;

/**
 * Different rules kept of one file. Only lines shorter than 17 characters make more of them in 500 KB. Further allow
 * rules are left out; a further disallow rule closes the site, as it cannot be said what it closes.
 */
export const ROBOTS_RULES_MAX = 30_000;

/**
 * What one check may cost: a step is a character that is compared, or a rule that is looked at. 5,000 rules that start
 * with a wildcard stay below it for most URLs. A URL that takes more is disallowed: in doubt, stay out.
 */
export const ROBOTS_STEPS_MAX = 2_000_000;

/** The name that robots.txt knows us by: letters, `_` and `-` at the start of the User-Agent. */
export function productToken(userAgent: string): string {
  return /^[a-z_-]*/i.exec(userAgent.trim())![0];
}

function splitLine(raw: string): [Key, string] | null {
  const hashAt = raw.indexOf('#');
  const line = (hashAt === -1 ? raw : raw.slice(0, hashAt)).trim();
  let separatorAt = line.indexOf(':');
  if (separatorAt === -1) {
    // A missing colon is forgiven when the line has two words.
    separatorAt = line.search(/[ \t]/);
    if (separatorAt === -1 || /[ \t]/.test(line.slice(separatorAt).trim())) return null;
  }
  const name = line.slice(0, separatorAt).trim().toLowerCase();
  const key = KEYS.find(([start]) => name.startsWith(start));
  return key === undefined ? null : [key[1], line.slice(separatorAt + 1).trim()];
}

interface Group {
  rules: RuleSet;
  crawlDelayMs: number | null;
  requestRate: RobotsRules['requestRate'];
}

const SECONDS_OF: Record<string, number> = { '': 1, s: 1, m: 60, h: 3_600, d: 86_400 };

function parseRate(value: string): RobotsRules['requestRate'] {
  const found = /^(\d{1,6})\s*\/\s*(\d{1,6})\s*([smhd]?)/i.exec(value);
  if (found === null) return null;
  const requests = Number(found[1]);
  const seconds = Number(found[2]) * SECONDS_OF[found[3]!.toLowerCase()]!;
  return requests > 0 && seconds > 0 ? { requests, seconds } : null;
}

function addTo(group: Group, key: Key, value: string): void {
  if (key === 'allow' || key === 'disallow') {
    for (const rule of compileRules(key === 'allow', value)) group.rules.add(rule);
  } else if (key === 'crawl-delay') {
    const delayMs = /^\d*\.?\d+/.test(value) ? Number.parseFloat(value) * 1_000 : 0;
    if (delayMs > 0)
      group.crawlDelayMs = Math.min(Math.max(group.crawlDelayMs ?? 0, delayMs), CRAWL_DELAY_MS_MAX);
  } else if (key === 'request-rate') {
    group.requestRate ??= parseRate(value);
  }
}

/** Whom the lines at hand are for. A user agent that comes after the first such line starts anew. */
class Audience {
  ours = false;
  everyones = false;
  private closed = false;

  add(agent: 'ours' | 'everyones' | 'others'): void {
    if (this.closed) this.ours = this.everyones = this.closed = false;
    if (agent === 'ours') this.ours = true;
    if (agent === 'everyones') this.everyones = true;
  }

  close(): void {
    this.closed = true;
  }
}

function agentOf(value: string, product: string): 'ours' | 'everyones' | 'others' {
  if (/^\*(?:\s|$)/.test(value)) return 'everyones';
  return product !== '' && productToken(value).toLowerCase() === product ? 'ours' : 'others';
}

/** The rules for one product token. Groups that name it are merged and decide alone; without one, those for `*` do. */
export function parseRobots(text: string, product: string): RobotsRules {
  const ours: Group = { rules: new RuleSet(), crawlDelayMs: null, requestRate: null };
  const everyones: Group = { rules: new RuleSet(), crawlDelayMs: null, requestRate: null };
  const sitemaps = new Set<string>();
  // At Google only allow and disallow end a list of user agents. A delay ends it too, but for other delays only.
  const ruled = new Audience();
  const paced = new Audience();
  let isNamed = false;
  const known = wholeLines(text, LIMITS.robotsBytesMax).replace(/^\uFEFF/, '');
  for (const raw of known.split(/\r\n|\r|\n/)) {
    const line = splitLine(raw.slice(0, LINE_LENGTH_MAX));
    if (line === null) continue;
    const [key, value] = line;
    if (key === 'sitemap') {
      if (value !== '') sitemaps.add(value);
    } else if (key === 'user-agent') {
      const agent = agentOf(value, product.toLowerCase());
      isNamed ||= agent === 'ours';
      ruled.add(agent);
      paced.add(agent);
    } else {
      const audience = key === 'allow' || key === 'disallow' ? ruled : paced;
      if (audience === ruled) ruled.close();
      paced.close();
      if (audience.ours) addTo(ours, key, value);
      else if (audience.everyones) addTo(everyones, key, value);
    }
  }
  const { rules, crawlDelayMs, requestRate } = isNamed ? ours : everyones;
  rules.seal();
  const check = (url: string) => rules.check(pathOf(url));
  return {
    allows: (url) => check(url).allowed,
    check,
    crawlDelayMs,
    requestRate,
    sitemaps: [...sitemaps],
    ruleCount: rules.size,
    // What is cut out of the text keeps all of it in memory.
    bytes: rules.bytes + 2 * known.length + 64 * sitemaps.size,
  };
}

/** The text of a file. Some are UTF-16, as editors save them; a byte order mark says so. */
export function decodeRobots(bytes: Uint8Array): string {
  const [first, second] = bytes;
  const name =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  // A character takes two bytes, or up to three in UTF-8: more text than the limit is never needed.
  const max = LIMITS.robotsBytesMax * (name === 'utf-8' ? 1 : 2);
  const text = new TextDecoder(name).decode(bytes.subarray(0, max));
  return bytes.length > max ? wholeLines(`${text}x`, text.length) : text;
}

/** The beginning of a text without its last line, where that is cut: what is left of a rule may close a whole site. */
function wholeLines(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max);
  return cut.slice(0, Math.max(cut.lastIndexOf('\n'), cut.lastIndexOf('\r')) + 1);
}

/** The least time between two requests that robots.txt asks for, by Crawl-delay or Request-rate. */
export function delayOf({ crawlDelayMs, requestRate }: RobotsRules): number | null {
  const rateMs = requestRate
    ? Math.min((requestRate.seconds / requestRate.requests) * 1_000, CRAWL_DELAY_MS_MAX)
    : 0;
  return Math.max(crawlDelayMs ?? 0, rateMs) || null;
}

/** One line of robots.txt, ready to be matched. */
interface Rule {
  allow: boolean;
  /** Length of the pattern as written: the longest match decides, and allow wins a tie. */
  priority: number;
  /** The pattern between its wildcards; one part only means a plain prefix. */
  parts: string[];
  anchored: boolean;
}

function isStronger(rule: Rule, other: Rule | null): boolean {
  if (other === null || rule.priority !== other.priority) return rule.priority > (other?.priority ?? -1);
  return rule.allow && !other.allow;
}

/** Rules with the same beginning, up to their first wildcard. */
interface Bucket {
  /** The strongest of those that hold for every path with this beginning, and for just this path. */
  prefix: Rule | null;
  exact: Rule | null;
  /** Strongest first. */
  wild: Rule[];
}

/** The rules of a group by their beginning, so that a check looks only at those that can match. */
class RuleSet {
  readonly #buckets = new Map<string, Bucket>();
  readonly #seen = new Set<string>();
  #lengths: number[] = [];
  #isClosed = false;
  #bytes = 0;
  size = 0;

  add(rule: Rule): void {
    const { allow, parts, anchored, priority } = rule;
    const key = `${allow ? '+' : '-'}${anchored ? '$' : '.'}${priority} ${parts.join('*')}`;
    if (this.#seen.has(key)) return;
    if (this.size >= ROBOTS_RULES_MAX) {
      this.#isClosed ||= !allow;
      return;
    }
    this.#seen.add(key);
    this.size++;
    // Measured: 260 bytes for a rule with one wildcard.
    this.#bytes += 260 + 2 * key.length + 24 * parts.length;
    const beginning = parts[0]!;
    let bucket = this.#buckets.get(beginning);
    if (!bucket) {
      bucket = { prefix: null, exact: null, wild: [] };
      this.#buckets.set(beginning, bucket);
    }
    if (parts.length > 1) bucket.wild.push(rule);
    else if (anchored) bucket.exact = isStronger(rule, bucket.exact) ? rule : bucket.exact;
    else bucket.prefix = isStronger(rule, bucket.prefix) ? rule : bucket.prefix;
  }

  /** No rule comes after it. */
  seal(): void {
    this.#seen.clear();
    const lengths = new Set<number>();
    for (const [beginning, { wild }] of this.#buckets) {
      lengths.add(beginning.length);
      wild.sort((a, b) => b.priority - a.priority || Number(b.allow) - Number(a.allow));
    }
    this.#lengths = [...lengths].sort((a, b) => a - b);
  }

  get bytes(): number {
    return this.#bytes;
  }

  check(path: string): { allowed: boolean; steps: number } {
    // RFC 9309: the file itself is always allowed.
    if (path === '/robots.txt') return { allowed: true, steps: 0 };
    if (this.#isClosed) return { allowed: false, steps: 0 };
    const budget = { left: ROBOTS_STEPS_MAX };
    const rule = this.#strongest(path, budget);
    return { allowed: budget.left >= 0 && (rule?.allow ?? true), steps: ROBOTS_STEPS_MAX - budget.left };
  }

  #strongest(path: string, budget: Budget): Rule | null {
    let best: Rule | null = null;
    const wild: Rule[][] = [];
    for (const length of this.#lengths) {
      if (length > path.length) break;
      budget.left -= 1 + length;
      if (budget.left < 0) return null;
      const bucket = this.#buckets.get(path.slice(0, length));
      if (!bucket) continue;
      if (bucket.prefix && isStronger(bucket.prefix, best)) best = bucket.prefix;
      if (bucket.exact && length === path.length && isStronger(bucket.exact, best)) best = bucket.exact;
      if (bucket.wild.length > 0) wild.push(bucket.wild);
    }
    // Rules with wildcards cost the most: only those that would win are tried.
    for (const rules of wild) {
      for (const rule of rules) {
        if (!isStronger(rule, best)) break;
        const isMatch = matchesWild(rule, path, budget);
        if (budget.left < 0) return null;
        if (!isMatch) continue;
        best = rule;
        break;
      }
    }
    return best;
  }
}

interface Budget {
  left: number;
}

/** Patterns are compared with URLs as they are sent: UTF-8 escaped, escapes in upper case. */
function escapePattern(pattern: string): string {
  return pattern
    .toWellFormed()
    .replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase())
    .replace(/[^\x00-\x7f]+/g, encodeURIComponent);
}

function compileRule(allow: boolean, pattern: string, priority: number): Rule {
  const anchored = pattern.endsWith('$');
  // Wildcards in a row are as good as one.
  const parts = (anchored ? pattern.slice(0, -1) : pattern).replace(/\*{2,}/g, '*').split('*');
  return { allow, priority, anchored, parts };
}

const ESCAPED_UNRESERVED = /%(?:4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE]|3[0-9]|2[DE])/g;

/** RFC 9309, 2.2.3: escaped, they are characters of the path. */
const ESCAPED_SPECIAL = /%(?:24|2A)/g;
const withSpecial = (rule: Rule): Rule => ({
  ...rule,
  parts: rule.parts.map((part) => part.replace(ESCAPED_SPECIAL, (code) => decodeURIComponent(code))),
});

/** What URLs never have as it stands, in a path and in a query. */
const NOT_IN_PATH = /[ "<>^`{|}]/g;
const NOT_IN_QUERY = /[ "<>]/g;
const escapeAll = (pattern: string, characters: RegExp) =>
  pattern.replace(characters, (character) => encodeURIComponent(character));

/** What one line stands for; nothing when its value is empty. */
function compileRules(allow: boolean, value: string): Rule[] {
  const pattern = escapePattern(value);
  if (pattern === '') return [];
  const rules = [compileRule(allow, pattern, pattern.length)];
  const slashAt = pattern.lastIndexOf('/');
  if (allow && slashAt !== -1 && pattern.startsWith('/index.htm', slashAt)) {
    const folder = `${pattern.slice(0, slashAt + 1)}$`;
    rules.push(compileRule(allow, folder, folder.length));
  }
  if (/%(?:24|2A)/.test(pattern)) rules.push(withSpecial(rules[0]!));
  if (!allow) {
    // Google never matches a rule with a raw space or one of `"<>{}`, as URLs have them escaped. Those who wrote it meant it.
    for (const characters of [NOT_IN_PATH, NOT_IN_QUERY]) {
      const escaped = escapeAll(pattern, characters);
      if (escaped !== pattern) rules.push(compileRule(allow, escaped, pattern.length));
    }
    // Google compares escapes byte by byte, but our URLs have none for unreserved characters: `/%7Eme` must hold for
    // `/~me` too. Only for disallow: in doubt, stay out.
    const decoded = pattern.replace(ESCAPED_UNRESERVED, (code) => decodeURIComponent(code));
    if (decoded !== pattern) rules.push(compileRule(allow, decoded, pattern.length));
  }
  return rules;
}

/** A search compares each character of the path with one of the part, and with more where they nearly match. */
const CHARS_PER_STEP = 16;

/** Leftmost matches, part by part, so that wildcards cannot multiply. The path is known to start with the first part. */
function matchesWild({ parts, anchored }: Rule, path: string, budget: Budget): boolean {
  let at = parts[0]!.length;
  const last = parts.length - 1;
  budget.left -= 1;
  for (let i = 1; i <= last; i++) {
    const part = parts[i]!;
    if (anchored && i === last) return path.length - part.length >= at && path.endsWith(part);
    const foundAt = path.indexOf(part, at);
    const passed = (foundAt === -1 ? path.length : foundAt) - at;
    budget.left -= 1 + passed * Math.ceil(part.length / CHARS_PER_STEP) + part.length;
    if (foundAt === -1 || budget.left < 0) return false;
    at = foundAt + part.length;
  }
  return true;
}

/** Path and query of a URL, without a parser, as Google finds them; also in what is no URL. */
function pathOf(url: string): string {
  const start = url.startsWith('//') ? 2 : 0;
  const schemeAt = url.indexOf('://', start);
  const early = url.slice(start, schemeAt === -1 ? start : schemeAt).search(/[/?;]/);
  let at = schemeAt === -1 || early !== -1 ? start : schemeAt + 3;
  const hashAt = url.indexOf('#', start);
  const end = hashAt === -1 ? url.length : hashAt;
  for (; at < end; at++) {
    const code = url.charCodeAt(at);
    if (code === 47 || code === 63 || code === 59) break;
  }
  if (at >= end) return '/';
  const path = url.slice(at, end);
  const rooted = path.startsWith('/') ? path : `/${path}`;
  return rooted.includes('%') ? rooted.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase()) : rooted;
}

/** What an answer is kept under: the origin whose robots.txt it is, or the URL of any other file that one redirects to. */
export function robotsPlaceOf(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return pathname === '/robots.txt' && search === '' ? origin : url;
}

export function robotsUrlOf(place: string): string {
  return isOrigin(place) ? `${place}/robots.txt` : place;
}

/** Whether what is kept there are the rules of that place itself, and not only of those that redirect to it. */
export function isOrigin(place: string): boolean {
  return !place.includes('/', place.indexOf('://') + 3);
}
