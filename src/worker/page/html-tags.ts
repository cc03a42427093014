/** Steps over HTML markup by offsets, as the HTML standard tokenises it; each step is linear in what it passes. */

const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const DASH = 45;
const SLASH = 47;
const EQUALS = 61;
const GREATER = 62;

// The first comparison settles nearly every character of a name: letters lie above all others.
export const isSpace = (code: number) =>
  code <= 32 && (code === 32 || (code >= 9 && code <= 13 && code !== 11));
export const isLetter = (code: number) => (code | 32) >= 97 && (code | 32) <= 122;
export const endsName = (code: number) =>
  code <= GREATER && (code === GREATER || code === SLASH || isSpace(code));

/** Whether `name`, in lower case, stands at `start` in any case. Letters only, so the case bit may be set. */
export function nameAt(html: string, start: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    if ((html.charCodeAt(start + i) | 32) !== name.charCodeAt(i)) return false;
  }
  return true;
}

export function endOfName(html: string, start: number): number {
  let at = start;
  while (at < html.length && !endsName(html.charCodeAt(at))) at++;
  return at;
}

function endOfComment(html: string, start: number): number {
  if (html.startsWith('>', start)) return start + 1;
  if (html.startsWith('->', start)) return start + 2;
  let at = start;
  for (;;) {
    at = html.indexOf('--', at);
    if (at === -1) return -1;
    at += 2;
    while (html.charCodeAt(at) === DASH) at++;
    if (html.startsWith('>', at)) return at + 1;
    if (html.startsWith('!>', at)) return at + 2;
  }
}

/**
 * `start` is a `<` that no tag name follows: a comment, a declaration, or just text.
 * Returns where the document goes on, or -1 when the rest is swallowed. CDATA exists in SVG and MathML only.
 */
export function endOfMarkup(html: string, start: number, foreign: boolean): number {
  const next = html[start + 1];
  if (next !== '!' && next !== '?' && next !== '/') return start + 1;
  if (html.startsWith('!--', start + 1)) return endOfComment(html, start + 4);
  if (foreign && html.startsWith('![CDATA[', start + 1)) {
    const end = html.indexOf(']]>', start + 9);
    return end === -1 ? -1 : end + 3;
  }
  const end = html.indexOf('>', start + 2);
  return end === -1 ? -1 : end + 1;
}

/** Where the end tag of a raw text element begins, or -1. */
export function endOfRawText(html: string, start: number, name: string): number {
  let at = html.indexOf('</', start);
  while (at !== -1) {
    if (nameAt(html, at + 2, name) && endsName(html.charCodeAt(at + 2 + name.length))) {
      const isEscaped = name === 'script' && html.slice(start, at).includes('<!--');
      return isEscaped ? endOfEscapedScript(html, start) : at;
    }
    at = html.indexOf('</', at + 2);
  }
  return -1;
}

/** Between `<!--` and `-->` a script may hold scripts in quotes: those end without ending it. */
function endOfEscapedScript(html: string, start: number): number {
  const marks = /<!--|-->|<\/?script(?=[\t\n\f\r />])/gi;
  marks.lastIndex = start;
  let state: 'plain' | 'comment' | 'script in comment' = 'plain';
  for (let found = marks.exec(html); found !== null; found = marks.exec(html)) {
    const [mark] = found;
    if (mark === '<!--') {
      if (state === 'plain') state = 'comment';
      // `<!-->` begins and ends it.
      marks.lastIndex = found.index + 2;
    } else if (mark === '-->') {
      state = 'plain';
    } else if (mark[1] !== '/') {
      if (state === 'comment') state = 'script in comment';
    } else if (state === 'script in comment') {
      state = 'comment';
    } else {
      return found.index;
    }
  }
  return -1;
}

/** Steps over the tags of one page, whose attributes do not matter. */
export class TagSkipper {
  private nextSingleQuote = -1;

  /**
   * `start` is the end of the tag name. Returns the place after `>`, or -1 when the tag never ends. Without a look at most
   * characters, where possible: when the first `>` follows a double quote that cannot open a value, and there is no single
   * quote, then no value is open and the tag ends there.
   */
  skip(html: string, start: number): number {
    if (html.charCodeAt(start) === GREATER) return start + 1;
    const end = html.indexOf('>', start);
    if (end === -1) return -1;
    if (this.nextSingleQuote < start) {
      const next = html.indexOf("'", start);
      this.nextSingleQuote = next === -1 ? html.length : next;
    }
    let last = end - 1;
    if (html.charCodeAt(last) === SLASH) last--;
    if (html.charCodeAt(last) === 32) last--;
    const before = html.charCodeAt(last - 1);
    const isClosed = html.charCodeAt(last) === DOUBLE_QUOTE && before !== EQUALS && !isSpace(before);
    return isClosed && last > start && this.nextSingleQuote > end ? end + 1 : endOfTag(html, start);
  }
}

function endOfTag(html: string, start: number): number {
  let at = start;
  for (;;) {
    let code = html.charCodeAt(at);
    while (code === SLASH || isSpace(code)) code = html.charCodeAt(++at);
    if (code === GREATER) return at + 1;
    at = endOfAttribute(html, at);
    if (at === -1) return -1;
  }
}

function endOfAttribute(html: string, nameStart: number): number {
  // The first character belongs to the name whatever it is, even `=`.
  let at = nameStart + 1;
  let code = html.charCodeAt(at);
  while (at < html.length && code !== EQUALS && !endsName(code)) code = html.charCodeAt(++at);
  while (isSpace(code)) code = html.charCodeAt(++at);
  if (code === EQUALS) {
    code = html.charCodeAt(++at);
    while (isSpace(code)) code = html.charCodeAt(++at);
    if (code === DOUBLE_QUOTE || code === SINGLE_QUOTE) {
      const valueEnd = html.indexOf(code === DOUBLE_QUOTE ? '"' : "'", at + 1);
      if (valueEnd === -1) return -1;
      at = valueEnd + 1;
    } else {
      while (at < html.length && code !== GREATER && !isSpace(code)) code = html.charCodeAt(++at);
    }
  }
  return at >= html.length ? -1 : at;
}
