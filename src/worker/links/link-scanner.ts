import { decodeHTMLAttribute } from 'entities/decode';
import { LINK_KINDS, type LinkOrigin, type NativeLinks } from '../native-links/native-links.ts';
import { isSpace } from '../page/html-tags.ts';

/** Links taken from one page; a page with a million links is a trap or a sitemap. */
export const LINKS_PER_PAGE_MAX = 10_000;

/** The text of an attribute value: references decoded, white space around it gone. */
function attributeText(page: Buffer, start: number, end: number): string {
  const raw = page.toString('utf8', start, end);
  const value = raw.includes('&') ? decodeHTMLAttribute(raw) : raw;
  let from = 0;
  let to = value.length;
  while (from < to && isSpace(value.charCodeAt(from))) from++;
  while (to > from && isSpace(value.charCodeAt(to - 1))) to--;
  return to - from === value.length ? value : value.slice(from, to);
}

const UNWANTED_SCHEME = /^(?:javascript|mailto|tel|data):/i;
const RELATED_PAGE = /(?:^|[\t\n\f\r ])(?:next|prev)(?:$|[\t\n\f\r ])/i;

const isWanted = (href: string) =>
  href.length > 0 && href.charCodeAt(0) !== 35 && !UNWANTED_SCHEME.test(href);

interface LinkReader {
  /** Links that are remembered for it are passed over. */
  origin?: LinkOrigin | null;
  onHref(href: string, start: number, end: number): void;
  /** Links with `rel=nofollow` are passed over. */
  skipsNofollow?: boolean;
}

/**
 * Calls back with the href of each `<a>`, `<area>` and `<link rel=next|prev>`, in order and unresolved, and returns
 * the first `<base href>`. Stops at `LINKS_PER_PAGE_MAX` links. `links` has the page loaded.
 */
export function scanLinks(page: Buffer, links: NativeLinks, reader: LinkReader): { base: string | null } {
  let base: string | null = null;
  let count = 0;
  links.find(reader.origin ?? null, (kind, start, end, relStart, relEnd) => {
    if (kind === LINK_KINDS.base) {
      base ??= attributeText(page, start, end);
      return true;
    }
    const rel = relStart === -1 ? '' : attributeText(page, relStart, relEnd);
    if (kind === LINK_KINDS.relLink && !RELATED_PAGE.test(rel)) return true;
    if (reader.skipsNofollow && hasNofollow(rel)) return true;
    const href = attributeText(page, start, end);
    if (!isWanted(href)) return true;
    reader.onHref(href, start, end);
    return ++count < LINKS_PER_PAGE_MAX;
  });
  return { base: base === '' ? null : base };
}

export function hasNofollow(rel: string): boolean {
  return /(?:^|[\t\n\f\r ])nofollow(?:$|[\t\n\f\r ])/i.test(rel);
}
