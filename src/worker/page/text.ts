import { decodeHTML } from 'entities/decode';
import { endsName } from './html-tags.ts';

/** Text of pages: what stands inside elements that hold nothing but text, and how values look in the end. */

const AMPERSAND = 38;
const LESS = 60;

/** White space of any kind and length becomes one space, and none at the ends. */
export function foldSpace(text: string): string {
  // Single spaces are not matched, since nearly all are: a third of the time of /\s+/g.
  return text.replace(/[^\S ]\s*| \s+/g, ' ').trim();
}

export function decodeText(raw: string): string {
  return raw.includes('&') ? decodeHTML(raw) : raw;
}

/**
 * Where the end tag of an element like script or title begins, or -1. The steps are those of htmlparser2, which
 * sets the case bit of every character: after a title's text, U+001C and U+000F pass for `<` and `/`.
 */
export function endOfTextOnly(html: string, start: number, name: string, rcdata: boolean): number {
  const wanted = `</${name}`;
  let matched = 0;
  for (let at = start; at < html.length; at++) {
    const code = html.charCodeAt(at);
    if (matched === wanted.length) {
      if (endsName(code)) return at - matched;
      matched = 0;
    }
    if ((code | 32) === wanted.charCodeAt(matched)) {
      matched++;
    } else if (matched > 0) {
      matched = code === LESS ? 1 : 0;
    } else if (!rcdata) {
      at = html.indexOf('<', at + 1);
      if (at === -1) return -1;
      matched = 1;
    }
  }
  return -1;
}

/** Text of a title or textarea. An `&` that breaks off what began like the end tag is not decoded. */
export function decodeRcdata(raw: string, name: string): string {
  if (!raw.includes('&')) return raw;
  const wanted = `</${name}`;
  let text = '';
  let from = 0;
  let matched = 0;
  for (let at = 0; at < raw.length; at++) {
    const code = raw.charCodeAt(at);
    if (matched === wanted.length) matched = 0;
    if ((code | 32) === wanted.charCodeAt(matched)) {
      matched++;
    } else if (matched > 0) {
      if (code === AMPERSAND) {
        text += `${decodeText(raw.slice(from, at))}&`;
        from = at + 1;
      }
      matched = code === LESS ? 1 : 0;
    }
  }
  return text + decodeText(raw.slice(from));
}
