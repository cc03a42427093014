import { stripVTControlCharacters } from 'node:util';

/** Lines as pieces of text with a style each: width is counted here, in one place, before any colour. */

const STYLES = {
  plain: '',
  bold: '1',
  /** Labels and lines: readable on dark and light backgrounds alike. */
  faint: '38;5;245',
  line: '38;5;240',
  title: '1;36',
  accent: '36',
  good: '32',
  goodBold: '1;32',
  info: '34',
  warn: '33',
  bad: '31',
  badBold: '1;31',
} as const;

export type Style = keyof typeof STYLES;
export type Piece = readonly [text: string, style?: Style];
export type Line = readonly Piece[];

/**
 * Text from elsewhere, made harmless for a terminal: no escape sequences, no control characters, and none of
 * the marks that reverse or hide text.
 */
export function cleanText(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .replace(
      /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu,
      '',
    );
}

/** The same for several lines: their ends and tabs stay. */
export function cleanLines(text: string): string {
  return text
    .split('\n')
    .map((line) => line.split('\t').map(cleanText).join('\t'))
    .join('\n');
}

/** Clean, and one column for each character: what may be wider or narrower becomes a question mark. */
export function narrowText(text: string): string {
  return cleanText(text).replace(
    /[^\u0020-\u007e\u00a1-\u02ff\u0370-\u03ff\u0400-\u0482\u2013-\u2026]/gu,
    '?',
  );
}

/** Cut to a width; the middle of a URL says less than its ends. */
export function cutMiddle(text: string, width: number): string {
  if (text.length <= width) return text;
  if (width < 8) return cutEnd(text, width);
  const tail = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`;
}

export function cutEnd(text: string, width: number): string {
  if (text.length <= width) return text;
  return width <= 0 ? '' : `${text.slice(0, width - 1)}…`;
}

export function widthOf(line: Line): number {
  let width = 0;
  for (const [text] of line) width += text.length;
  return width;
}

/** Exactly `width` columns: the rest is cut off or filled with blanks. */
export function fitLine(line: Line, width: number): Line {
  const fitted: Piece[] = [];
  let left = width;
  for (const [text, style] of line) {
    if (left === 0) break;
    const part = cutEnd(text, left);
    fitted.push([part, style]);
    left -= part.length;
  }
  if (left > 0) fitted.push([' '.repeat(left)]);
  return fitted;
}

export function paintLine(line: Line, color: boolean): string {
  let painted = '';
  for (const [text, style = 'plain'] of line) {
    const code = STYLES[style];
    painted += !color || code === '' || text.trim() === '' ? text : `\u001b[${code}m${text}\u001b[0m`;
  }
  return painted;
}
