import { LIMITS } from '../core/limits.ts';
import { isHtml } from '../core/media-type.ts';
import { productToken } from '../core/robots.ts';
import { endOfMarkup, endOfName, endOfRawText, endsName, isLetter, isSpace, TagReader } from './html-tags.ts';
import type { Page } from './page.ts';
import { decodeText } from './quick-text.ts';

/** Words that say what may be done with a page; others (unavailable_after, max-snippet…) say how it may be shown. */
const WORDS = new Set(['noindex', 'nofollow', 'none', 'noai', 'noimageai', 'noimageindex', 'noarchive']);
/** Directives with a value, which are no names of crawlers. */
const VALUED = new Set(['max-snippet', 'max-image-preview', 'max-video-preview', 'unavailable_after']);

/** X-Robots-Tag and meta robots as one list of known words, or null. What is said to another crawler by name is not to us. */
export function robotsTagsOf(page: Page, userAgent: string): string | null {
  const found = new Set<string>();
  for (const value of page.headersOf('x-robots-tag')) addHeader(found, value, userAgent);
  if (isHtml(page.contentType)) addMetaTags(found, page.text, userAgent);
  return found.size === 0 ? null : [...found].sort().join(', ');
}

/** What a page lets a job do that obeys. */
export interface Permissions {
  links: boolean;
  records: boolean;
  archive: boolean;
  media: boolean;
}

const EVERYTHING: Permissions = { links: true, records: true, archive: true, media: true };

export function permissionsOf(tags: string | null, policy: 'record' | 'obey'): Permissions {
  if (tags === null || policy === 'record') return EVERYTHING;
  const said = new Set(tags.split(', '));
  const none = (...words: string[]) => !words.some((word) => said.has(word));
  return {
    links: none('nofollow', 'none'),
    records: none('noindex', 'none', 'noai'),
    archive: none('noindex', 'none', 'noai', 'noarchive'),
    media: none('noai', 'noimageai', 'noimageindex'),
  };
}

function addWords(found: Set<string>, text: string): void {
  for (const word of text.toLowerCase().split(/[\s,;]+/)) if (WORDS.has(word)) found.add(word);
}

/** `noindex, otherbot: nofollow, noai`: a name holds for what follows it. */
function addHeader(found: Set<string>, value: string, userAgent: string): void {
  const own = productToken(userAgent).toLowerCase();
  let isOurs = true;
  for (const part of value.split(',')) {
    const colonAt = part.indexOf(':');
    const name = part.slice(0, Math.max(0, colonAt)).trim().toLowerCase();
    if (VALUED.has(name)) continue;
    if (colonAt !== -1) isOurs = name === '*' || name === own;
    if (isOurs) addWords(found, part.slice(colonAt + 1));
  }
}

/** Elements of a head whose content is no markup. */
const TEXT_ONLY = new Set(['script', 'style', 'title', 'noscript', 'template']);
const ROBOTS = /robots/i;
const META = /^<meta$/i;
const tags = new TagReader();

/** Most pages cost a look at their meta tags; the others a walk over the tags of their head. */
function addMetaTags(found: Set<string>, html: string, userAgent: string): void {
  const head = html.length > LIMITS.robotsTagsCharsMax ? html.slice(0, LIMITS.robotsTagsCharsMax) : html;
  const own = productToken(userAgent).toLowerCase();
  if (!mayName(head, own)) return;
  let at = head.indexOf('<');
  while (at !== -1) {
    const nameAt = head[at + 1] === '/' ? at + 2 : at + 1;
    if (!isLetter(head.charCodeAt(nameAt))) {
      const end = endOfMarkup(head, at, false);
      at = end === -1 ? -1 : head.indexOf('<', end);
      continue;
    }
    const nameEnd = endOfName(head, nameAt);
    const name = head.slice(nameAt, nameEnd).toLowerCase();
    if (name === 'body' || (name === 'head' && nameAt === at + 2)) return;
    let end = tags.skip(head, nameEnd);
    if (end === -1) return;
    if (name === 'meta') addMeta(found, head.slice(nameEnd, end - 1), own);
    if (nameAt === at + 1 && TEXT_ONLY.has(name)) end = endOfRawText(head, end, name);
    at = end === -1 ? -1 : head.indexOf('<', end);
  }
}

/**
 * Whether a meta tag may speak of robots, or to our crawler by name. Only `<m` is searched for, which is rare: a search
 * for the word itself, in either case, took 3 % of all the time of a worker.
 */
function mayName(html: string, own: string): boolean {
  for (const start of ['<m', '<M']) {
    for (let at = html.indexOf(start); at !== -1; at = html.indexOf(start, at + 2)) {
      if (!META.test(html.slice(at, at + 5))) continue;
      const end = html.indexOf('>', at);
      const tag = html.slice(at, end === -1 ? html.length : end);
      // With a quote that is open the tag goes on: whatever follows may be in it.
      if (ROBOTS.test(tag) || isQuoteOpen(tag) || (own !== '' && tag.toLowerCase().includes(own)))
        return true;
    }
  }
  return false;
}

function isQuoteOpen(tag: string): boolean {
  return tag.split('"').length % 2 === 0 || tag.split("'").length % 2 === 0;
}

function addMeta(found: Set<string>, attributes: string, own: string): void {
  let name = '';
  let content = '';
  for (const [key, value] of attributesIn(attributes)) {
    if (key === 'name' && name === '') name = value.trim().toLowerCase();
    if (key === 'content' && content === '') content = value;
  }
  if (name === 'robots' || (own !== '' && name === own)) addWords(found, decodeText(content));
}

/** `text` is what stands between the name of a tag and its end. */
function* attributesIn(text: string): Generator<[name: string, value: string]> {
  let at = 0;
  while (at < text.length) {
    while (at < text.length && endsName(text.charCodeAt(at))) at++;
    const nameStart = at++;
    while (at < text.length && text[at] !== '=' && !endsName(text.charCodeAt(at))) at++;
    const name = text.slice(nameStart, at).toLowerCase();
    while (isSpace(text.charCodeAt(at))) at++;
    if (text[at] !== '=') continue;
    at++;
    while (isSpace(text.charCodeAt(at))) at++;
    const quote = text[at];
    let end = at + 1;
    if (quote === '"' || quote === "'") {
      const closing = text.indexOf(quote, end);
      end = closing === -1 ? text.length : closing;
      yield [name, text.slice(at + 1, end)];
      at = end + 1;
    } else {
      while (end < text.length && !isSpace(text.charCodeAt(end))) end++;
      yield [name, text.slice(at, end)];
      at = end;
    }
  }
}
