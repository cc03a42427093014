/** Text that must not be taken for Markdown, and what is wrapped around text. Every step here is linear. */

/** Control characters, soft hyphens and other marks that have no width. */
const INVISIBLE = /[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u2060\ufeff]+/g;

/** White space of any kind and length becomes one space; the ends keep theirs. */
export function foldText(text: string): string {
  // Single spaces are not matched, since nearly all are.
  return text.replace(INVISIBLE, '').replace(/[^\S ]\s*| \s+/g, ' ');
}

const SPECIAL = /[\\`*~_[\]<&]/;
const WORD = /[\p{L}\p{N}]/u;
const ENTITY_LENGTH_MAX = 34;

/** Escapes what would be read as markup within a line. In the text of a link every bracket counts. */
export function escapeInline(text: string, inLink: boolean): string {
  if (!SPECIAL.test(text)) return text;
  return text.replace(/[\\`*~_[\]<&]/g, (char, at: number) =>
    needsEscape(text, char, at, inLink) ? `\\${char}` : char,
  );
}

function needsEscape(text: string, char: string, at: number, inLink: boolean): boolean {
  const before = text[at - 1] ?? '';
  const after = text[at + 1] ?? '';
  switch (char) {
    case '*':
      return before !== ' ' || after !== ' ';
    case '_':
      return !WORD.test(before) || !WORD.test(after);
    case '[':
      return inLink;
    case ']':
      return inLink || after === '' || after === '(' || after === '[' || after === ':';
    case '<':
      return after === '' || /[a-z/!?]/i.test(after);
    case '&':
      return /^&(?:#[0-9a-fx]+|[a-z][a-z0-9]*);/i.test(text.slice(at, at + ENTITY_LENGTH_MAX));
    default:
      return true;
  }
}

const LINE_STARTS = /^[-+*=_#>:|\d]/;

/** Escapes what would make a line a heading, an item, a quote, a rule or part of a table. */
export function escapeLineStart(line: string): string {
  if (!LINE_STARTS.test(line)) return line;
  const number = /^(\d{1,9})[.)](?=\s|$)/.exec(line)?.[1];
  if (number !== undefined) return `${number}\\${line.slice(number.length)}`;
  const isMark =
    /^(?:#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|=+\s*$)/.test(line) || /^(?:[-:|][-:|\s]*|[*_\s]*)$/.test(line);
  return isMark ? `\\${line}` : line;
}

/** A closing run of number signs would be taken for part of the markup. */
export function escapeHeadingEnd(line: string): string {
  return line.replace(/(?<=\s)#(?=#*$)/, '\\#');
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

export function codeSpan(code: string): string {
  const fence = '`'.repeat(longestRun(code) + 1);
  const pad = code.startsWith('`') || code.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${code}${pad}${fence}`;
}

export function codeBlock(code: string, language: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(code) + 1));
  return `${fence}${language}\n${code}\n${fence}`;
}

/** Parentheses may stand in an address in pairs; a lone one would end it. */
export function linkTarget(url: string): string {
  let open = 0;
  for (const char of url) {
    if (char === '(') open++;
    else if (char === ')' && --open < 0) break;
  }
  return open === 0 && !url.includes('\\') ? url : url.replace(/[()\\]/g, '\\$&');
}

const PLAIN_PATH = /^\/(?!\/)[\w\-./?=&%+,;:@~!$'*#]*$/;
const KINDS = /^(?:https?|mailto|tel):/;

/** Absolute, or null for what is no address of a page, picture or person. */
export function absoluteUrl(raw: string | undefined, base: URL): string | null {
  const url = raw?.trim() ?? '';
  if (url === '') return null;
  if (PLAIN_PATH.test(url) && !url.includes('/.')) return base.origin + url;
  const parsed = URL.parse(url, base.href);
  return parsed && KINDS.test(parsed.href) ? parsed.href : null;
}
