import { isHtml } from '../../core/media/media-type.ts';
import { productToken } from '../../core/robots/robots.ts';
import {
  endOfMarkup,
  endOfName,
  endOfRawText,
  endsName,
  isLetter,
  nameAt as isNameAt,
  isSpace,
  TagSkipper,
} from './html-tags.ts';
import type { Page } from './page.ts';
import { decodeText } from './text.ts';

/** Where tags that speak to robots are looked for; heads with style sheets inside are long. */
const ROBOTS_TAGS_CHARS_MAX = 1024 * 1024;

/** Words that say what may be done with a page; others (unavailable_after, max-snippet…) say how it may be shown. */
const WORDS = new Set(['noindex', 'nofollow', 'none', 'noai', 'noimageai', 'noimageindex', 'noarchive']);
const SLASH = 47;
/** Directives with a value, which are no names of crawlers. */
const VALUED = new Set(['max-snippet', 'max-image-preview', 'max-video-preview', 'unavailable_after']);

/** X-Robots-Tag and meta robots as one list of known words, or null. What is said to another crawler by name is not to us. */
export function robotsTagsOf(page: Page, userAgent: string): string | null {
  const found = new Set<string>();
  for (const value of page.headersOf('x-robots-tag')) addHeader(found, value, userAgent);
  if (isHtml(page.contentType)) addTagsOfHead(found, page, userAgent);
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

/** What matters in a head; the content of most of it is no markup. */
const HEAD_ELEMENTS = ['meta', 'body', 'head', 'script', 'style', 'title', 'noscript', 'template'];
const ROBOTS = /robots/i;

/** Many heads are shorter. */
const HEAD_BYTES_FIRST = 4 * 1024;

/**
 * The whole text is decoded only where the head does not end early, since that takes 5 µs of a page of 24 KB and leaves a
 * string to the garbage collector. Letters beyond ASCII are not read right then, but words for robots have none.
 */
function addTagsOfHead(found: Set<string>, page: Page, userAgent: string): void {
  const start = page.textBytes.toString('latin1', 0, HEAD_BYTES_FIRST);
  if (!addMetaTags(found, start, userAgent)) addMetaTags(found, page.text, userAgent);
}

/**
 * A walk over the tags of the head: a few, where a search of the whole page took 4 % of all the time of a worker. Whether the
 * end of the head was found.
 */
function addMetaTags(found: Set<string>, html: string, userAgent: string): boolean {
  const head = html.length > ROBOTS_TAGS_CHARS_MAX ? html.slice(0, ROBOTS_TAGS_CHARS_MAX) : html;
  const own = productToken(userAgent).toLowerCase();
  const tags = new TagSkipper();
  let at = head.indexOf('<');
  while (at !== -1) {
    const isClosing = head.charCodeAt(at + 1) === SLASH;
    const nameAt = isClosing ? at + 2 : at + 1;
    if (!isLetter(head.charCodeAt(nameAt))) {
      const end = endOfMarkup(head, at, false);
      at = end === -1 ? -1 : head.indexOf('<', end);
      continue;
    }
    const nameEnd = endOfName(head, nameAt);
    // The name may go on behind what was given.
    if (nameEnd === head.length) return false;
    const name = headElementAt(head, nameAt, nameEnd);
    if (name === 'body' || (name === 'head' && isClosing)) return true;
    let end = tags.skip(head, nameEnd);
    if (end === -1) return false;
    if (name === 'meta') addMeta(found, head.slice(nameEnd, end - 1), own);
    else if (name && name !== 'head' && !isClosing) end = endOfRawText(head, end, name);
    at = end === -1 ? -1 : head.indexOf('<', end);
  }
  return false;
}

function headElementAt(html: string, start: number, end: number): string | null {
  for (const name of HEAD_ELEMENTS)
    if (end - start === name.length && isNameAt(html, start, name)) return name;
  return null;
}

function addMeta(found: Set<string>, attributes: string, own: string): void {
  if (!ROBOTS.test(attributes) && (own === '' || !attributes.toLowerCase().includes(own))) return;
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
