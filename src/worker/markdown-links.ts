import { type Element, isText } from 'domhandler';
import { absoluteUrl, escapeInline, foldText, linkTarget } from './markdown-text.ts';

/** What links, pictures and formulas become. */

/** Pictures this small count visitors. */
const TINY_PIXELS = 2;

/** Null where there is no link. A heading that leads to itself has an empty one: its sign goes, its text stays. */
export function linkOf({ attribs }: Element, base: URL, isHeading: boolean): string | null {
  return isHeading && attribs.href?.startsWith('#') ? '' : absoluteUrl(attribs.href, base);
}

/** Null for what is no picture to look at, or has no address. */
export function pictureOf({ attribs }: Element, base: URL): string | null {
  if (isTiny(attribs.width) || isTiny(attribs.height)) return null;
  const raw =
    [attribs['data-src'], attribs.src, attribs['data-lazy-src'], attribs['data-original']].find(
      (url) => url !== undefined && url !== '' && !url.startsWith('data:'),
    ) ?? firstOf(attribs.srcset ?? attribs['data-srcset']);
  const url = absoluteUrl(raw, base);
  if (url === null || !url.startsWith('http')) return null;
  return `![${escapeInline(foldText(attribs.alt ?? '').trim(), true)}](${linkTarget(url)})`;
}

function isTiny(size: string | undefined): boolean {
  return size !== undefined && /^\d+(?:px)?$/.test(size) && Number.parseInt(size, 10) <= TINY_PIXELS;
}

function firstOf(srcset: string | undefined): string | undefined {
  return srcset === undefined || srcset.startsWith('data:')
    ? undefined
    : /^[\s,]*([^\s,]+)/.exec(srcset)?.[1];
}

/** A power as `^2`, a formula as its author wrote it; null for others, which are read like any text. */
export function wordsFor({ name, attribs, children }: Element): string | null {
  if (name === 'math') return attribs.alttext ? `$${foldText(attribs.alttext).trim()}$` : null;
  const [only] = children;
  if (only === undefined || children.length > 1 || !isText(only)) return null;
  const power = only.data.trim();
  return /^[-+−]?\d{1,9}$/.test(power) ? `^${power}` : null;
}
