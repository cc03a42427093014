import { normalizeUrl, type UrlOptions } from '../core/url/url.ts';

interface Target {
  url: string;
  host: string;
}

/** URLs of a numbered list, as seen from one of its pages. */
export interface PageTemplate {
  urlOf(number: number, from: string, options: UrlOptions): Target | null;
  /** Null when the URL is not one of the list. */
  numberOf(url: string, from: string, options: UrlOptions): number | null;
}

/** Stand for the numbers while a template becomes a URL: no site has these in its paths. */
const PAGE_MARK = '917350462816';
const OFFSET_MARK = '917350462817';
const DIGITS = '\\d{1,15}';

/** `{page}` is the number of a page, `{offset}` that of its first item. */
export function compileTemplate(template: string, first: number, perPage: number): PageTemplate {
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
