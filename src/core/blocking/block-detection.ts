import {
  BLOCK_ADDRESSES,
  BLOCK_HEADERS,
  BLOCK_MARKERS,
  BLOCK_PHRASES,
  BLOCK_TITLES,
  type BlockCode,
  CAPTCHA_WIDGETS,
} from './block-markers.ts';
import { TextFinder } from './text-finder.ts';

/**
 * Tells pages of a site's defences from its content, with the evidence. The rule against false alarms: a word is never
 * enough by itself. A page is a refusal when it carries what only a refusal carries (`block-markers.ts`), or when the
 * status or the shortness of the page says so and the words agree.
 */

export interface Answer {
  status: number;
  /** Alternating names and values. */
  rawHeaders: readonly string[];
  body: Buffer;
  isHtml: boolean;
}

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

/** Null for everything that is not plainly a refusal. */
export function detectBlock(answer: Answer): Block | null {
  const { status } = answer;
  if (status >= 200 && status < 300 && status !== 202) return inSuccess(answer);
  return mayRefuse(status) ? inRefusal(answer) : null;
}

/**
 * A closer look at a page that lacks what its route requires: there, the words of a refusal are enough. The page itself
 * is not read as one: null when nothing speaks for it.
 */
export function detectBlockOfLacking(answer: Answer): Block | null {
  if (!answer.isHtml) return null;
  const page = new Words(answer.body);
  const found = page.marker;
  if (found) return found.code === 'captcha' ? found : { ...found, code: 'soft-block' };
  const said = page.title ?? page.phrase(BLOCK_SIZES.someWords);
  if (said === null) return null;
  return { code: page.widget === null ? 'soft-block' : 'captcha', evidence: `the page says "${said}"` };
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

function inRefusal({ status, rawHeaders, body }: Answer): Block | null {
  const named = headerIn(rawHeaders);
  if (named) return named;
  const page = new Words(body);
  const found = page.marker;
  if (found) return found;
  const said = page.phrase(BLOCK_SIZES.someWords);
  if (said === null) return null;
  const evidence = `status ${status}, and the page says "${said}"`;
  if (page.widget !== null) return { code: 'captcha', evidence: `${evidence}, with ${page.widget}` };
  // A host that asks for fewer requests says so in many words; 202 is no refusal by itself.
  return status === 429 || status === 202 ? null : { code: 'blocked', evidence };
}

function inSuccess({ body, isHtml }: Answer): Block | null {
  if (!isHtml || body.length === 0) return null;
  if (body.length > BLOCK_SIZES.smallBytes) return inLargeSuccess(body);
  const page = new Words(body);
  const found = page.marker;
  if (found) return found.code === 'captcha' ? found : { ...found, code: 'soft-block' };
  const title = page.title;
  const said =
    title !== null && page.isShorterThan(BLOCK_SIZES.fewWords) ? title : page.phrase(BLOCK_SIZES.fewWords);
  if (said === null || page.hasForm) return null;
  const evidence = `a short page that says "${said}"`;
  return page.widget === null
    ? { code: 'soft-block', evidence }
    : { code: 'captcha', evidence: `${evidence}, with ${page.widget}` };
}

/** Only a page with the title of a refusal is looked at. */
function inLargeSuccess(body: Buffer): Block | null {
  const title = titleOf(body);
  if (title === null || !BLOCK_TITLES.has(title)) return null;
  const found = new Words(body).marker;
  return found && { code: found.code, evidence: `titled "${title}", ${found.evidence}` };
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

/** Phrases may be broken by tags: they are looked for in the text, where a part of them occurs at all. */
const PHRASES = BLOCK_PHRASES.map((phrase) => ({ phrase, part: telltaleOf(phrase) }));

const FINDER = new TextFinder([
  ...BLOCK_MARKERS.flatMap(({ texts }) => texts),
  ...CAPTCHA_WIDGETS,
  ...PHRASES.map(({ part }) => part),
]);

/** Its two longest words that stand together: single ones are too common. */
function telltaleOf(phrase: string): string {
  const words = phrase.split(' ');
  const pairs = words.slice(1).map((word, before) => `${words[before]!} ${word}`);
  return pairs.reduce((most, pair) => (pair.length >= most.length ? pair : most));
}

/** The beginning of a page, looked at once; its words are read only when it comes to that. */
class Words {
  readonly #body: Buffer;
  readonly #found: ReadonlySet<string>;
  #text: string | null = null;

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
    return title !== null && BLOCK_TITLES.has(title) ? title : null;
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

  phrase(charsMax: number): string | null {
    const possible = PHRASES.filter(({ part }) => this.#found.has(part));
    if (possible.length === 0 || !this.isShorterThan(charsMax)) return null;
    return possible.find(({ phrase }) => this.#words().includes(phrase))?.phrase ?? null;
  }

  #words(): string {
    this.#text ??= textOfHtml(this.#lower()).replace(/&#0?39;|&apos;|&#x27;|\u00e2\u0080\u0099/g, "'");
    return this.#text;
  }

  /** Bytes as characters: what is looked for is ASCII. */
  #lower(): string {
    return this.#body.toString('latin1', 0, BLOCK_SIZES.lookedAtBytes).toLowerCase();
  }
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
