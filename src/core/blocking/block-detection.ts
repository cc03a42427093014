import {
  BLOCK_ADDRESSES,
  BLOCK_HEADERS,
  BLOCK_MARKERS,
  BLOCK_TITLES,
  type BlockCode,
  CAPTCHA_WIDGETS,
} from './block-markers.ts';
import {
  CONTENT,
  EXPLAINING,
  FOREIGN_TITLES,
  LOGIN_WALLS,
  REFERENCE,
  REFUSALS,
  STRONG,
} from './block-signals.ts';
import { TextFinder } from './text-finder.ts';

/**
 * Tells pages of a site's defences from its content, with the evidence. The rule against false alarms: a word is never
 * enough by itself. A page is a refusal when it carries what only a refusal carries (`block-markers.ts`), or when several
 * signals add up: what it says to the visitor (`block-signals.ts`), its title, its status, how short it is, a number to
 * quote, a widget; and what speaks against it: links, articles, prices, forms.
 */

export interface Answer {
  status: number;
  /** Alternating names and values. */
  rawHeaders: readonly string[];
  body: Buffer;
  isHtml: boolean;
  /** Where it was asked for: the page to sign in is not a wall. */
  url?: string;
}

/** What a job looks for. */
interface BlockPolicy {
  /** `known`: only what known defences send. */
  detect: 'all' | 'known' | 'off';
  /** Texts that only block pages of its sites have. */
  add: readonly string[];
}

const EVERYTHING: BlockPolicy = { detect: 'all', add: [] };

export interface Block {
  code: BlockCode | 'soft-block';
  /** For people: what was seen. */
  evidence: string;
}

/** Titles stand in the first lines of refusals, which have few styles and scripts before them. */
const TITLE_WITHIN_BYTES = 2 * 1024;
const TITLE_BYTES_MAX = 200;
export const BLOCK_SIZES = {
  /** Pages of known defences with a success status are below this; most ordinary pages are above, and cost nothing. */
  smallBytes: 8 * 1024,
  /** Further into a page nothing is looked at. */
  lookedAtBytes: 64 * 1024,
  /** Characters of text that a refusal has at most; contact forms and articles have more. */
  fewWords: 700,
  someWords: 2_500,
} as const;

/** So much speaks for a refusal. Tuned on one half of the corpus of the tests, never on the other. */
const SCORE_MIN = 6;

/** Null for everything that is not plainly a refusal. */
export function detectBlock(answer: Answer, policy: BlockPolicy = EVERYTHING): Block | null {
  const { status, body, isHtml, rawHeaders } = answer;
  if (policy.detect === 'off') return null;
  if (policy.add.length > 0) {
    const text = body.toString('utf8', 0, BLOCK_SIZES.lookedAtBytes).toLowerCase();
    const own = policy.add.find((each) => text.includes(each.toLowerCase()));
    if (own !== undefined)
      return {
        code: status < 300 ? 'soft-block' : 'blocked',
        evidence: `the page has "${own}", as the job says`,
      };
  }
  if (isSuccess(status)) {
    if (!isHtml || status === 204 || status === 205) return null;
    if (body.length > BLOCK_SIZES.smallBytes && !isRefusalTitle(titleOf(body))) return null;
  } else if (!mayRefuse(status)) return null;
  const named = isSuccess(status) ? null : headerIn(rawHeaders);
  if (named) return named;
  const page = new Words(body);
  const found = page.marker;
  if (found) {
    const isSoft = isSuccess(status) && found.code !== 'captcha';
    return isSoft ? { ...found, code: 'soft-block' } : found;
  }
  return policy.detect === 'known' ? null : byScore(answer, page);
}

const isSuccess = (status: number) => status >= 200 && status < 300 && status !== 202;

/**
 * A closer look at a page that lacks what its route requires: there, the words of a refusal are enough. The page itself
 * is not read as one: null when nothing speaks for it.
 */
export function detectBlockOfLacking(answer: Answer, policy: BlockPolicy = EVERYTHING): Block | null {
  if (!answer.isHtml || policy.detect === 'off') return null;
  const page = new Words(answer.body);
  const found = page.marker;
  if (found) return found.code === 'captcha' ? found : { ...found, code: 'soft-block' };
  if (policy.detect === 'known') return null;
  const said = page.title ?? (page.isShorterThan(BLOCK_SIZES.someWords) ? page.refusals[0]?.said : null);
  if (!said) return null;
  return { code: page.widget === null ? 'soft-block' : 'captcha', evidence: `the page says "${said}"` };
}

interface Score {
  points: number;
  /** For people. */
  evidence: string[];
}

function byScore(answer: Answer, page: Words): Block | null {
  const { status } = answer;
  const shell = isSuccess(status) ? emptyShell(answer.body) : null;
  if (shell !== null) return { code: 'soft-block', evidence: shell };
  const wall = isSuccess(status) ? loginWall(answer, page) : null;
  if (wall !== null) return wall;
  const { points, evidence } = scoreOf(status, page);
  if (points < SCORE_MIN) return null;
  const detail = `${evidence.join(', ')} (score ${points})`;
  if (page.widget !== null) return { code: 'captcha', evidence: `${detail}, with ${page.widget}` };
  // A host that asks for fewer requests says so in many words; 202 is no refusal by itself.
  if (status === 429 || status === 202) return null;
  return { code: isSuccess(status) ? 'soft-block' : 'blocked', evidence: detail };
}

function scoreOf(status: number, page: Words): Score {
  const score: Score = { points: 0, evidence: [] };
  const add = (points: number, evidence: string | null = null) => {
    score.points += points;
    if (evidence !== null) score.evidence.push(evidence);
  };
  const { refusals, title } = page;
  // Nothing that it says is a refusal: neither shortness nor a status makes it one.
  if (refusals.length === 0 && title === null) return score;
  if (!isSuccess(status)) add(refusals.length > 0 ? 4 : 0, `status ${status}`);
  if (title !== null) add(3, `titled "${title}"`);
  const [first, ...others] = refusals.toSorted((a, b) => b.weight - a.weight);
  if (first) add(first.weight, `the page says "${first.said}"`);
  if (others.some(({ weight }) => weight === STRONG)) add(2);
  if (page.isShorterThan(BLOCK_SIZES.fewWords)) add(2, 'a short page');
  else if (!page.isShorterThan(BLOCK_SIZES.someWords)) add(-6);
  if (page.hasReference) add(2, 'a number to quote');
  if (page.isUnindexed) add(1);
  if (page.widget !== null && !page.hasForm) add(2);
  if (page.hasForm) add(-4);
  if (page.hasContent || page.isExplaining) add(-4);
  add(page.links >= 6 ? -4 : page.links >= 3 ? -2 : 0);
  return score;
}

/** Asked to log in at a page that is not there for that. */
function loginWall({ url }: Answer, page: Words): Block | null {
  if (!page.hasPassword || (url !== undefined && LOGIN_ADDRESS.test(url))) return null;
  const said = page.wall;
  if (said === null || !page.isShorterThan(BLOCK_SIZES.fewWords) || page.hasContent || page.links > 12)
    return null;
  return { code: 'soft-block', evidence: `a short page with a field for a password that says "${said}"` };
}

const LOGIN_ADDRESS =
  /[/?=.-](?:log-?in|sign-?in|signup|register|auth|account|sso|anmelden|connexion|accedi)\b/i;

/** Below this, a page may be a frame with nothing in it. */
const SHELL_BYTES_MAX = 4 * 1024;
/** Something to see, or to go on to. */
const SOMETHING =
  /<(?:img|video|audio|canvas|svg|iframe|frame|object|embed|input|button|a|picture)\b|\bsrc\s*=|http-equiv\s*=\s*["']?refresh|location\s*[.=]/;
/** A place for what a script shows. */
const PLACE = /\bid\s*=\s*["']?(?:root|app|__next|__nuxt)/;

/** A page without a word, a picture or a way on: sites send that to robots. */
function emptyShell(body: Buffer): string | null {
  if (body.length > SHELL_BYTES_MAX) return null;
  const lower = body.toString('latin1').toLowerCase();
  // Nearly every page has something of the kind near its beginning. Its text takes 15 µs for 3 KB.
  if (SOMETHING.test(lower) || (PLACE.test(lower) && lower.includes('<script'))) return null;
  const start = lower.indexOf('<body');
  if (textOfHtml(withoutNoscript(start === -1 ? lower : lower.slice(start))) !== '') return null;
  return body.length === 0 ? 'an empty page' : 'a page without a word, a picture or a link';
}

/** Whether a redirect leads to a page of a defence. */
export function detectBlockedRedirect(location: string): Block | null {
  const lower = location.toLowerCase();
  const address = BLOCK_ADDRESSES.find((part) => lower.includes(part));
  return address === undefined ? null : { code: 'captcha', evidence: `redirected to ${address}` };
}

/** What is gone or broken is no refusal: 404, 410 and server errors but 503. */
function mayRefuse(status: number): boolean {
  if (status === 404 || status === 410) return false;
  return (status >= 400 && status < 500) || status === 503 || status === 202;
}

function headerIn(rawHeaders: readonly string[]): Block | null {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    for (const known of BLOCK_HEADERS) {
      if (name !== known.name || !rawHeaders[at + 1]!.toLowerCase().startsWith(known.value)) continue;
      return { code: known.code, evidence: `${known.by}: header ${known.name}: ${known.value}` };
    }
  }
  return null;
}

function titleOf(body: Buffer): string | null {
  const head = body.length > TITLE_WITHIN_BYTES ? body.subarray(0, TITLE_WITHIN_BYTES) : body;
  const start = head.indexOf('<title');
  if (start === -1) return null;
  const from = head.indexOf(62, start) + 1;
  const to = from === 0 ? -1 : head.indexOf(60, from);
  if (to === -1 || to - from > TITLE_BYTES_MAX) return null;
  return head.toString('utf8', from, to).replaceAll('&#39;', "'").trim().toLowerCase();
}

function isRefusalTitle(title: string | null): title is string {
  return title !== null && (BLOCK_TITLES.has(title) || FOREIGN_TITLES.has(title));
}

const isSought = ({ part }: (typeof REFUSALS)[number]) => Buffer.byteLength(part) >= 7;

/** Sentences may be broken by tags: they are looked for in the text, where a part of them occurs at all. */
const FINDER = new TextFinder([
  ...BLOCK_MARKERS.flatMap(({ texts }) => texts),
  ...CAPTCHA_WIDGETS,
  ...[...REFUSALS, ...LOGIN_WALLS].filter(isSought).map(({ part }) => part),
]);
/** An end tag. It leaves no space in the text, nor do comments, declarations and `noscript`, where more than a word may be inside. */
const END_TAG = '<\\/[^>]{0,100}>';
const OTHER_BREAK = '<(?:[!?]|noscript|\\/[^>]{101})';

/** Their parts are too short for the finder: they are tried where a word of them may be, which is looked for in the page as it is. */
const BY_WORD = new Map(
  [REFUSALS, LOGIN_WALLS].map((sentences) => [
    sentences,
    new Map(
      sentences
        .filter((sentence) => !isSought(sentence))
        .map((sentence) => [sentence, compileWord(sentence.word ?? '')]),
    ),
  ]),
);

/** Whether the text of a page may have the word: as it is, or with something inside that leaves no space in the text. */
function compileWord(word: string): (lower: string) => boolean {
  const [first = '', ...others] = word;
  const withTags = [first, ...others].join(`(?:${END_TAG})*`);
  const beginning = others
    .slice(0, -1)
    .reduceRight((rest, letter) => `(?:${letter}(?:${END_TAG})*${rest})?`, '');
  const isBroken = new RegExp(`${withTags}|${first}(?:${END_TAG})*${beginning}${OTHER_BREAK}`);
  return (lower) => lower.includes(word) || isBroken.test(lower);
}

/** The beginning of a page, looked at once; its words are read only when it comes to that. */
class Words {
  readonly #body: Buffer;
  readonly #found: ReadonlySet<string>;
  #text: string | null = null;
  #small: string | null = null;
  #links: number | null = null;
  #refusals: { said: string; weight: number }[] | null = null;

  constructor(body: Buffer) {
    this.#body = body;
    this.#found = FINDER.find(body, BLOCK_SIZES.lookedAtBytes);
  }

  get marker(): { code: BlockCode; evidence: string } | null {
    if (this.#found.size === 0) return null;
    const marker = BLOCK_MARKERS.find(({ texts }) => texts.every((text) => this.#found.has(text)));
    if (marker === undefined) return null;
    const texts = marker.texts.map((text) => `"${text}"`).join(' and ');
    return { code: marker.code, evidence: `${marker.by}: the page has ${texts}` };
  }

  /** That of a refusal, or null. */
  get title(): string | null {
    const title = titleOf(this.#body);
    return isRefusalTitle(title) ? title : null;
  }

  get widget(): string | null {
    return CAPTCHA_WIDGETS.find((widget) => this.#found.has(widget)) ?? null;
  }

  /** Something for people to fill in: a contact or login form, not a refusal. */
  get hasForm(): boolean {
    return /<textarea(?![^>]*recaptcha)|type=["']?(?:email|password|tel)\b/.test(this.#lower());
  }

  isShorterThan(chars: number): boolean {
    return this.#words().length <= chars;
  }

  /** What it says that refusals say, and how much that weighs. */
  get refusals(): { said: string; weight: number }[] {
    this.#refusals ??= this.#sentences(REFUSALS);
    return this.#refusals;
  }

  /** That it wants the visitor to log in, or null. */
  get wall(): string | null {
    return this.#sentences(LOGIN_WALLS)[0]?.said ?? null;
  }

  get hasPassword(): boolean {
    return /type=["']?password\b/.test(this.#lower());
  }

  get hasReference(): boolean {
    return REFERENCE.test(this.#words());
  }

  get hasContent(): boolean {
    return CONTENT.test(this.#lower());
  }

  /** Glossaries and help pages say what a CAPTCHA is; refusals do not. */
  get isExplaining(): boolean {
    return EXPLAINING.test(this.#words());
  }

  get isUnindexed(): boolean {
    return /<meta[^>]{0,60}noindex/.test(this.#lower());
  }

  get links(): number {
    this.#links ??= this.#lower().split(/<a\b/).length - 1;
    return this.#links;
  }

  #sentences(sentences: typeof REFUSALS): { said: string; weight: number }[] {
    const byWord = BY_WORD.get(sentences)!;
    const mayBe = (sentence: (typeof sentences)[number]) => byWord.get(sentence)?.(this.#lower());
    const possible =
      this.#found.size === 0
        ? [...byWord.keys()].filter(mayBe)
        : sentences.filter((sentence) => mayBe(sentence) ?? this.#found.has(sentence.part));
    if (possible.length === 0) return [];
    const words = this.#words();
    const found: { said: string; weight: number }[] = [];
    for (const { pattern, weight } of possible) {
      const match = pattern.exec(words);
      // What is quoted is spoken about.
      if (match && !/["“„«‘]$/.test(words.slice(0, match.index).trimEnd()))
        found.push({ said: match[0].trim(), weight });
    }
    return found;
  }

  #words(): string {
    this.#text ??= textOfHtml(withoutNoscript(this.#lower()))
      .replace(/&#0?39;|&apos;|&#x27;|’/g, "'")
      .replaceAll('&nbsp;', ' ');
    return this.#text;
  }

  #lower(): string {
    this.#small ??= this.#body.toString('utf8', 0, BLOCK_SIZES.lookedAtBytes).toLowerCase();
    return this.#small;
  }
}

/** Ordinary pages tell browsers without scripts there what refusals tell everybody. */
function withoutNoscript(lower: string): string {
  return lower.includes('<noscript')
    ? lower.replace(/<noscript\b[^>]*>[^<]*(?:<(?!\/noscript)[^<]*)*<\/noscript\s*>/g, '')
    : lower;
}

/** Elements whose content is not for reading. */
const UNREAD = ['script', 'style', 'svg'] as const;

/** The words of a page in lower case, roughly and in linear time: tags away, spaces collapsed. Not for extraction. */
export function textOfHtml(lower: string): string {
  let text = '';
  let at = 0;
  while (at < lower.length) {
    const open = lower.indexOf('<', at);
    if (open === -1) return collapsed(`${text} ${lower.slice(at)}`);
    text += lower.slice(at, open);
    if (isNameStart(lower.charCodeAt(open + 1))) text += ' ';
    else if (!isMarkup(lower.charCodeAt(open + 1))) text += '<';
    at = endOf(lower, open);
  }
  return collapsed(text);
}

/** Where reading goes on after the tag, comment or unread element that begins at `open`. */
function endOf(lower: string, open: number): number {
  if (!isMarkup(lower.charCodeAt(open + 1)) && !isNameStart(lower.charCodeAt(open + 1))) return open + 1;
  if (lower.startsWith('<!--', open)) return after(lower, '-->', open + 4);
  const unread = UNREAD.find((name) => lower.startsWith(name, open + 1));
  if (unread !== undefined) return after(lower, '>', after(lower, `</${unread}`, open) - 1);
  return after(lower, '>', open);
}

function after(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at + sign.length;
}

const isNameStart = (code: number) => code >= 97 && code <= 122;
/** An end tag, a comment or a declaration. */
const isMarkup = (code: number) => code === 47 || code === 33 || code === 63;

function collapsed(text: string): string {
  return text.replace(/[\s\u00a0]+/g, ' ').trim();
}
