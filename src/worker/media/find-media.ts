import type { Element } from 'domhandler';
import type { Discovered } from '../../core/batch/outcome.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { type JobSpec, MEDIA_ROUTE, type MediaRule } from '../../core/job-schema/job.ts';
import { isHtml } from '../../core/media/media-type.ts';
import { largestOf } from '../../core/media/srcset.ts';
import { normalizeUrl } from '../../core/url/url.ts';
import { getOwn } from '../../core/values/own-property.ts';
import type { MediaFinder } from '../job/compiled-job.ts';
import { LINKS_PER_PAGE_MAX } from '../links/link-scanner.ts';
import { baseUrlOf, type Page } from '../page/page.ts';
import { TreeSearch } from '../page/tree-search.ts';

type Values = readonly Record<string, unknown>[];

/** A URL as it stands in the page. */
interface Shown {
  raw: string;
  alt?: string | undefined;
}

type Reader = (page: Page, values: Values) => Iterable<Shown>;

/** The text beside a picture travels with it; more than this is no description. */
const ALT_LENGTH_MAX = 1_000;

export function compileMedia(
  rules: readonly MediaRule[],
  route: string,
  urlOptions: JobSpec['url'],
): MediaFinder {
  const search = new TreeSearch();
  const readers = rules.map((rule) => {
    const { priority = 0, route: target = MEDIA_ROUTE } = typeof rule === 'string' ? {} : rule;
    return { read: compileRule(rule, route, search), priority, route: target };
  });
  return (page, values) => {
    const base = isHtml(page.contentType) ? baseUrlOf(page) : page.url;
    const found = new Map<string, Discovered>();
    search.begin();
    for (const { read, priority, route: target } of readers) {
      for (const { raw, alt } of read(page, values)) {
        const place = normalizeUrl(raw, base, urlOptions);
        if (!place) continue;
        const known = found.get(place.url);
        if (known) {
          // The first rule decides, but only elements have a text beside the picture.
          if (alt && known.meta?.alt === undefined) known.meta = { ...known.meta, alt: altOf(alt) };
          continue;
        }
        if (found.size >= LINKS_PER_PAGE_MAX) return [...found.values()];
        const meta = { referrer: page.url, ...(alt ? { alt: altOf(alt) } : {}) };
        // Media lead no further, so neither depth nor the trap budget has to hold them.
        found.set(place.url, { ...place, priority, route: target, meta, listed: true });
      }
    }
    return [...found.values()];
  };
}

function altOf(text: string): string {
  return text.slice(0, ALT_LENGTH_MAX);
}

function compileRule(rule: MediaRule, route: string, search: TreeSearch): Reader {
  const { css, attr, field } =
    typeof rule === 'string' ? { css: rule, attr: undefined, field: undefined } : rule;
  if (field !== undefined) {
    if (css !== undefined || attr !== undefined)
      throw new SeineError(
        `a media rule of route '${route}' has both a field and a selector; keep one of them`,
      );
    return (_page, values) => inField(values, field);
  }
  if (css === undefined)
    throw new SeineError(`a media rule of route '${route}' has neither a selector nor a field`);
  const query = compileCss(css, route, search);
  const name = attr?.toLowerCase();
  return (page) => {
    if (!isHtml(page.contentType)) return [];
    return search
      .all(query, page.document)
      .flatMap((element) => (name === undefined ? shownBy(element) : inAttribute(element, name)));
  };
}

function compileCss(css: string, route: string, search: TreeSearch) {
  try {
    return search.compile(css, false);
  } catch (error) {
    throw new SeineError(
      `a media rule of route '${route}' has a selector that is not valid CSS: ${css} (${messageOf(error)})`,
      { written: css },
    );
  }
}

/** The URL or URLs of a field, whatever lists they are in. */
function* inField(values: Values, field: string): Generator<Shown> {
  for (const record of values) {
    for (const value of [getOwn(record, field)].flat(3)) if (typeof value === 'string') yield { raw: value };
  }
}

/** Where an element has its URL; the first that has one counts. `data-src` is there when `src` is only a placeholder. */
const ATTRIBUTES: Record<string, readonly string[]> = {
  img: ['data-src', 'src', 'data-srcset', 'srcset'],
  source: ['data-src', 'src', 'data-srcset', 'srcset'],
  video: ['data-src', 'src'],
  a: ['href'],
  area: ['href'],
  link: ['href'],
  meta: ['content'],
  object: ['data'],
};
const OTHER_ATTRIBUTES = ['data-src', 'src', 'href'];

function shownBy(element: Element): Shown[] {
  const names = getOwn(ATTRIBUTES, element.name) ?? OTHER_ATTRIBUTES;
  const shown: Shown[] = [];
  for (const name of names) {
    const [first] = inAttribute(element, name);
    // A placeholder in the page itself: the next attribute has the picture.
    if (first === undefined || first.raw === '' || /^data:/i.test(first.raw)) continue;
    shown.push(first);
    break;
  }
  if (element.name === 'video') shown.push(...inAttribute(element, 'poster'));
  return shown;
}

function inAttribute(element: Element, name: string): Shown[] {
  const value = element.attribs[name];
  if (value === undefined) return [];
  const raw = name.endsWith('srcset') ? largestOf(value) : value.trim();
  return raw === null ? [] : [{ raw, alt: element.attribs.alt?.trim() }];
}
