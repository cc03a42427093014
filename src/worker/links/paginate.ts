import { type ChildNode, type Element, isTag, isText } from 'domhandler';
import type { Discovered } from '../../core/batch/outcome.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import type { JobSpec, Pagination } from '../../core/job-schema/job.ts';
import { isHtml } from '../../core/media/media-type.ts';
import { isWithin } from '../../core/url/scope.ts';
import { isTrapUrl, normalizeUrl, type UrlOptions } from '../../core/url/url.ts';
import { getOwn } from '../../core/values/own-property.ts';
import type { Paginator } from '../job/compiled-job.ts';
import { baseUrlOf, type Page } from '../page/page.ts';
import { type TreeQuery, TreeSearch } from '../page/tree-search.ts';
import { compileRegex, type LinearRegex, REGEX_TEXT_MAX } from '../records/linear-regex.ts';
import { LINKS_PER_PAGE_MAX } from './link-scanner.ts';

type Query = (page: Page) => Element | null;
/** How many pages a page says there are; null when it does not say. */
type Counter = (page: Page, spec: JobSpec) => number | null;

/** Travels with pages that were reached by next-links, so that no chain of them is longer than `max`. */
const PLACE_KEY = '@page';

export async function compilePagination(pagination: Pagination, route: string): Promise<Paginator> {
  const { first, max, priority, count } = pagination;
  const fail = (problem: string): never => {
    throw new SeineError(`the pagination of route '${route}' ${problem}`);
  };
  if (!count && pagination.next === undefined) fail('needs `count` or `next`');
  if (count && !/\{(?:page|offset)\}/.test(pagination.url ?? ''))
    fail('has a count, but no url with {page} or {offset}');
  const template =
    pagination.url === undefined ? null : compileTemplate(pagination.url, first, count?.perPage ?? 1);
  const elements = new PageElements(fail);
  const counter = count && template ? await compileCount(pagination, template, elements, fail) : null;
  const nextOf = pagination.next === undefined ? null : elements.compile(pagination.next);
  const found = { priority, route, listed: true as const };

  const byCount: Paginator = (page, spec) => {
    if (!counter || !template) return [];
    const own = template.numberOf(page.url, page.url, spec.url) ?? first;
    // The first page says it for all. A list too long for one report goes on from the last page of each stretch.
    if ((own - first) % LINKS_PER_PAGE_MAX !== 0) return [];
    const pages = Math.min(counter(page, spec) ?? 0, max);
    const last = Math.min(first + pages - 1, own + LINKS_PER_PAGE_MAX);
    const links: Discovered[] = [];
    for (let number = own + 1; number <= last; number++) {
      const target = template.urlOf(number, page.url, spec.url);
      if (target) links.push({ ...target, ...found, ...(page.meta ? { meta: page.meta } : {}) });
    }
    return links;
  };

  const byNext: Paginator = (page, spec) => {
    const place = placeOf(page, template?.numberOf(page.url, page.url, spec.url) ?? first, first);
    const href = nextOf && place < max ? elements.hrefOf(nextOf(page)) : null;
    if (href === null) return [];
    const target = normalizeUrl(href, baseUrlOf(page), spec.url);
    const goesOn = target && target.url !== page.url && !isTrapUrl(target.url);
    if (!goesOn || !isWithin('site', target.host, new URL(page.url).host)) return [];
    return [{ ...target, ...found, meta: { ...page.meta, [PLACE_KEY]: place + 1 } }];
  };

  return (page, spec) => {
    elements.begin();
    const links = byCount(page, spec);
    return links.length > 0 ? links : byNext(page, spec);
  };
}

async function compileCount(
  pagination: Pagination,
  template: PageTemplate,
  elements: PageElements,
  fail: (problem: string) => never,
): Promise<Counter> {
  const { css, attr, json, header, lastLink, perPage, regex: pattern } = pagination.count!;
  const places = [css, json, header, lastLink].filter((place) => place !== undefined);
  if (places.length > 1) fail('may have only one of css, json, header and lastLink');
  if (places.length === 0 && pattern === undefined)
    fail('has a count without css, regex, json, header or lastLink');
  if (lastLink !== undefined) {
    const linkOf = elements.compile(lastLink);
    return (page, spec) => {
      const href = elements.hrefOf(linkOf(page));
      const target = href === null ? null : normalizeUrl(href, baseUrlOf(page), spec.url);
      const number = target && template.numberOf(target.url, page.url, spec.url);
      return number === null ? null : number - pagination.first + 1;
    };
  }
  const regex = pattern === undefined ? null : await compilePattern(pattern, fail);
  const textOf = compileText({ css, attr, json, header }, elements);
  return (page) => {
    const text = textOf(page);
    const counted = text !== null && regex ? regex.first(text.slice(0, REGEX_TEXT_MAX)) : text;
    const number = counted === null ? null : largestNumber(counted);
    return number === null ? null : Math.ceil(number / perPage);
  };
}

function compileText(
  place: Pick<NonNullable<Pagination['count']>, 'css' | 'attr' | 'json' | 'header'>,
  elements: PageElements,
): (page: Page) => string | null {
  const { css, attr, json, header } = place;
  if (header !== undefined) return (page) => page.header(header);
  if (json !== undefined) return (page) => jsonAt(page, json.split('.'));
  if (css === undefined) return (page) => page.text;
  const elementOf = elements.compile(css);
  return (page) => {
    const element = elementOf(page);
    if (element === null) return null;
    return attr === undefined ? rawTextOf(element) : (getOwn(element.attribs, attr.toLowerCase()) ?? null);
  };
}

/** Finds elements of a page within the steps that all selectors of its pagination have together. */
class PageElements {
  readonly #search = new TreeSearch();
  readonly #link = this.#search.compile('a[href]', false);
  readonly #fail: (problem: string) => never;

  constructor(fail: (problem: string) => never) {
    this.#fail = fail;
  }

  begin(): void {
    this.#search.begin();
  }

  compile(css: string): Query {
    let query: TreeQuery;
    try {
      query = this.#search.compile(css, false);
    } catch (error) {
      return this.#fail(`has a selector that is not valid CSS: ${css} (${messageOf(error)})`);
    }
    return (page) => (isHtml(page.contentType) ? this.#search.first(query, page.document) : null);
  }

  /** The link itself, or the one inside, as in `<li class=next><a href>`. */
  hrefOf(element: Element | null): string | null {
    const isInside = element && element.attribs.href === undefined;
    const link = isInside ? this.#search.first(this.#link, element) : element;
    const href = link?.attribs.href?.trim() ?? '';
    return href === '' || href.startsWith('#') ? null : href;
  }
}

async function compilePattern(pattern: string, fail: (problem: string) => never): Promise<LinearRegex> {
  try {
    return await compileRegex(pattern);
  } catch (error) {
    return fail(`has an invalid regular expression: ${messageOf(error)}`);
  }
}

/** Counted from one. A chain of links may tell its pages any number; the place in it only grows. */
function placeOf(page: Page, number: number, first: number): number {
  const place = page.meta?.[PLACE_KEY];
  return Math.max(number - first + 1, typeof place === 'number' ? place : 1);
}

function jsonAt(page: Page, path: readonly string[]): string | null {
  let value: unknown;
  try {
    value = page.json();
  } catch {
    return null;
  }
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return null;
    value = (value as Record<string, unknown>)[key];
  }
  if (typeof value === 'number') return value > 0 ? String(Math.min(Math.ceil(value), ABSURD)) : null;
  return typeof value === 'string' ? value : null;
}

/** With its spaces as they are: the hard ones group digits. No recursion: a page can nest deeper than the call stack. */
function rawTextOf(element: Element): string {
  let text = '';
  const waiting: ChildNode[] = [element];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (isText(node)) text += `${node.data} `;
    else if (isTag(node)) for (const child of node.children.toReversed()) waiting.push(child);
  }
  return text;
}

/** Larger numbers say no more: all are cut at `max`. */
const ABSURD = 1_000_000_000_000;
const COUNT_TEXT_MAX = 10_000;
const NUMBER = /\d{1,3}(?:[.,'’\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+/g;

/** Of `1–20 of 1,234 items` the largest: 1234. Null without a number above zero. */
function largestNumber(text: string): number | null {
  let largest = 0;
  for (const [digits] of text.slice(0, COUNT_TEXT_MAX).matchAll(NUMBER))
    largest = Math.max(largest, Number(digits.replace(/\D/g, '')));
  return largest > 0 ? largest : null;
}

interface Target {
  url: string;
  host: string;
}

/** URLs of a numbered list, as seen from one of its pages. */
interface PageTemplate {
  urlOf(number: number, from: string, options: UrlOptions): Target | null;
  /** Null when the URL is not one of the list. */
  numberOf(url: string, from: string, options: UrlOptions): number | null;
}

/** Stand for the numbers while a template becomes a URL: no site has these in its paths. */
const PAGE_MARK = '917350462816';
const OFFSET_MARK = '917350462817';
const DIGITS = '\\d{1,15}';

/** `{page}` is the number of a page, `{offset}` that of its first item. */
function compileTemplate(template: string, first: number, perPage: number): PageTemplate {
  const fill = (page: string, offset: string) =>
    template.replaceAll('{page}', page).replaceAll('{offset}', offset);
  const marked = fill(PAGE_MARK, OFFSET_MARK);
  const isByPage = template.includes('{page}');
  const mark = isByPage ? PAGE_MARK : OFFSET_MARK;
  const stripOwn = isPathRelative(template) ? compileOwnEnding(marked) : (from: string) => from;
  const resolve = (filled: string, from: string, options: UrlOptions) =>
    filled.startsWith('&')
      ? normalizeUrl(withParameters(from, filled.slice(1)), null, options)
      : normalizeUrl(filled, stripOwn(from), options);
  return {
    urlOf: (number, from, options) =>
      resolve(fill(String(number), String((number - first) * perPage)), from, options),
    numberOf(url, from, options) {
      const target = resolve(marked, from, options);
      const digits = target && readMark(url, target.url, mark);
      if (!digits) return null;
      return isByPage ? Number(digits) : Math.floor(Number(digits) / perPage) + first;
    },
  };
}

function isPathRelative(template: string): boolean {
  return !/^(?:[/?&]|[a-z][a-z0-9+.-]*:)/i.test(template);
}

/** Page 2 of `/list/` may be `/list/page/2`: seen from there, `page/{page}` still means `/list/page/3`. */
function compileOwnEnding(marked: string): (from: string) => string {
  const path = marked.replace(/^\.\//, '').replace(/[?#].*$/s, '');
  const ending = path === '' ? null : new RegExp(`/${patternOf(path, PAGE_MARK)}$`);
  return (from) => {
    const { place } = splitUrl(from);
    const found = ending?.exec(place);
    return found ? place.slice(0, found.index + 1) : from;
  };
}

/** The query keeps its other parameters; those that the template sets are replaced. */
function withParameters(from: string, added: string): string {
  const { place, query } = splitUrl(from);
  const names = new Set(added.split('&').map(nameOf));
  const kept = query.split('&').filter((pair) => pair !== '' && !names.has(nameOf(pair)));
  return `${place}?${[...kept, added].join('&')}`;
}

/** The digits in `url` where the mark is in `marked`. Of a query only the parameter with the number counts. */
function readMark(url: string, marked: string, mark: string): string | null {
  const wanted = splitUrl(marked);
  const given = splitUrl(url);
  if (wanted.place.includes(mark)) return match(wanted.place, given.place, mark);
  if (wanted.place !== given.place) return null;
  const parameter = wanted.query.split('&').find((pair) => pair.includes(mark));
  const value = given.query.split('&').find((pair) => parameter && nameOf(pair) === nameOf(parameter));
  return parameter && value ? match(parameter, value, mark) : null;
}

function match(marked: string, text: string, mark: string): string | null {
  return new RegExp(`^${patternOf(marked, mark)}$`).exec(text)?.[1] ?? null;
}

/** Literal text with runs of digits in it, anchored: nothing here can take long. */
function patternOf(marked: string, captured: string): string {
  const literal = marked.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  return [PAGE_MARK, OFFSET_MARK].reduce(
    (pattern, mark) => pattern.replaceAll(mark, mark === captured ? `(${DIGITS})` : DIGITS),
    literal,
  );
}

function splitUrl(url: string): { place: string; query: string } {
  const queryAt = url.indexOf('?');
  return queryAt === -1
    ? { place: url, query: '' }
    : { place: url.slice(0, queryAt), query: url.slice(queryAt + 1) };
}

function nameOf(pair: string): string {
  const equalsAt = pair.indexOf('=');
  return equalsAt === -1 ? pair : pair.slice(0, equalsAt);
}
