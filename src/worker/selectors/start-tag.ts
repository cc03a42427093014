import { decodeHTMLAttribute } from 'entities/decode';
import { endsName, isSpace } from '../page/html-tags.ts';
import { isName } from './elements.ts';

const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const SLASH = 47;
const EQUALS = 61;
const GREATER = 62;
const NEVER = 2 ** 30;
const SPANS_KEPT_MAX = 10_000;

/** One start tag of a page. Its attributes are looked at only when a selector or a field asks for one. */
export class StartTag {
  selfClosing = false;
  /** The page ended after a slash of this tag. */
  brokenAtSlash = false;
  #html = '';
  #start = -1;
  #walked = false;
  #spans: number[] = [];
  #count = 0;
  #wideNames = false;
  #doubleQuote = -1;
  #singleQuote = -1;

  open(html: string): void {
    this.#html = html;
    this.#doubleQuote = -1;
    this.#singleQuote = -1;
  }

  /** Drops the reference to the page. */
  close(): void {
    this.#html = '';
    if (this.#spans.length > SPANS_KEPT_MAX) this.#spans = [];
  }

  /** An element that no tag stands for: it has no attributes. */
  setImplied(): void {
    this.#walked = true;
    this.#count = 0;
  }

  /** `start` is the end of the name. Returns the place after `>`, or -1; most characters are not looked at. */
  skip(start: number): number {
    const html = this.#html;
    this.#start = start;
    this.#walked = false;
    if (html.charCodeAt(start) === GREATER) return start + 1;
    const end = html.indexOf('>', start);
    if (end === -1) return this.walk(start);
    if (this.#singleQuote < start) this.#singleQuote = next(html, "'", start);
    if (this.#singleQuote > end) {
      // A double quote right before the end, and not after `=`, closes a value: none is open there.
      let last = end - 1;
      if (html.charCodeAt(last) === SLASH) last--;
      if (html.charCodeAt(last) === 32) last--;
      if (html.charCodeAt(last) === DOUBLE_QUOTE) {
        const before = html.charCodeAt(last - 1);
        if (last > start && before !== EQUALS && !isSpace(before)) return end + 1;
      }
      if (this.#doubleQuote < start) this.#doubleQuote = next(html, '"', start);
      if (this.#doubleQuote > end) return end + 1;
    }
    return this.walk(start);
  }

  /** `skip`, and notes the attributes and whether the tag closes itself. */
  walk(start: number): number {
    const html = this.#html;
    this.#start = start;
    this.#walked = true;
    this.#count = 0;
    this.#wideNames = false;
    let at = start;
    for (;;) {
      let slash = false;
      let code = html.charCodeAt(at);
      while (code === SLASH || isSpace(code)) {
        if (code === SLASH) slash = true;
        code = html.charCodeAt(++at);
      }
      if (code === GREATER) {
        this.selfClosing = slash;
        return at + 1;
      }
      this.brokenAtSlash = slash && at >= html.length;
      if (at < html.length) at = this.#attribute(html, at);
      if (at === -1 || at >= html.length) return -1;
    }
  }

  #attribute(html: string, nameStart: number): number {
    // The first character belongs to the name whatever it is, even `=`.
    let at = nameStart;
    let code = html.charCodeAt(at);
    let all = 0;
    do {
      all |= code;
      code = html.charCodeAt(++at);
    } while (at < html.length && code !== EQUALS && !endsName(code));
    if (all > 127) this.#wideNames = true;
    const nameEnd = at;
    while (isSpace(code)) code = html.charCodeAt(++at);
    let valueStart = at;
    let valueEnd = at;
    if (code === EQUALS) {
      code = html.charCodeAt(++at);
      while (isSpace(code)) code = html.charCodeAt(++at);
      valueStart = at;
      if (code === DOUBLE_QUOTE || code === SINGLE_QUOTE) {
        valueStart = at + 1;
        valueEnd = html.indexOf(code === DOUBLE_QUOTE ? '"' : "'", valueStart);
        if (valueEnd === -1) return -1;
        at = valueEnd + 1;
      } else {
        while (at < html.length && code !== GREATER && !isSpace(code)) code = html.charCodeAt(++at);
        valueEnd = at;
      }
    }
    const base = this.#count++ * 4;
    this.#spans[base] = nameStart;
    this.#spans[base + 1] = nameEnd;
    this.#spans[base + 2] = valueStart;
    this.#spans[base + 3] = valueEnd;
    return at;
  }

  has(name: string): boolean {
    return this.#find(name) !== -1;
  }

  /** The value of the first attribute of that name, in lower case here. */
  get(name: string): string | undefined {
    const base = this.#find(name);
    if (base === -1) return undefined;
    const raw = this.#html.slice(this.#spans[base + 2], this.#spans[base + 3]);
    return raw.includes('&') ? decodeHTMLAttribute(raw) : raw;
  }

  #find(name: string): number {
    if (!this.#walked) this.walk(this.#start);
    for (let base = 0; base < this.#count * 4; base += 4) {
      const start = this.#spans[base]!;
      const end = this.#spans[base + 1]!;
      const same = this.#wideNames
        ? this.#html.slice(start, end).toLowerCase() === name
        : isName(this.#html, start, end, name);
      if (same) return base;
    }
    return -1;
  }
}

/** Where `text` comes next, or far beyond any page. */
export function next(html: string, text: string, from: number): number {
  const at = html.indexOf(text, from);
  return at === -1 ? NEVER : at;
}
