import { parseRobots } from '../robots/robots.ts';
import {
  EntryList,
  isAbsoluteUrl,
  type ListReader,
  NAMELESS_ENTRY,
  RAW_URL_LENGTH_MAX,
  resolveUrl,
  type SitemapContent,
  type SitemapEntry,
} from './entry.ts';
import { SitemapXml } from './xml.ts';

/** The limit of the sitemap protocol. */
export const SITEMAP_URLS_MAX = 50_000;

/**
 * Lists of URLs: sitemaps and indexes of them, RSS and Atom feeds, plain text, and the sitemaps that a robots.txt
 * names. They are read as tolerantly as search engines do; what is no list throws.
 */
export class SitemapReader implements ListReader {
  readonly #baseUrl: string | null;
  readonly #urlsMax: number;
  #reader: ListReader | null = null;

  constructor(baseUrl: string | null, urlsMax: number = SITEMAP_URLS_MAX) {
    this.#baseUrl = baseUrl;
    this.#urlsMax = urlsMax;
  }

  /** The first character that means something tells the format. */
  write(text: string): boolean {
    if (this.#reader !== null) return this.#reader.write(text);
    const start = text.search(/[^\s\uFEFF]/);
    if (start === -1) return true;
    this.#reader =
      text[start] === '<' ? new SitemapXml(this.#baseUrl, this.#urlsMax) : new SitemapText(this.#urlsMax);
    return this.#reader.write(start === 0 ? text : text.slice(start));
  }

  end(): SitemapContent {
    if (this.#reader === null) throw new Error('the sitemap is empty');
    return this.#reader.end();
  }
}

export function parseSitemap(
  text: string | Iterable<string>,
  baseUrl: string | null,
  urlsMax: number = SITEMAP_URLS_MAX,
): SitemapContent {
  const reader = new SitemapReader(baseUrl, urlsMax);
  for (const piece of typeof text === 'string' ? [text] : text) if (!reader.write(piece)) break;
  return reader.end();
}

/** The sitemaps that a robots.txt names; when it names none, the place where most sites have theirs. */
export function parseRobotsSitemaps(text: string, robotsUrl: string): SitemapContent {
  const named = parseRobots(text, '').sitemaps;
  const entries = (named.length > 0 ? named : ['/sitemap.xml']).map(
    (url): SitemapEntry => ({ kind: 'sitemap', url: resolveUrl(url, robotsUrl), modified: null, meta: null }),
  );
  return { entries, trouble: null };
}

/** One URL a line. Other lines name none: relative URLs could not be told from any other text. */
class SitemapText implements ListReader {
  readonly #list: EntryList;
  /** The line at hand, as far as it has come. */
  #line = '';

  constructor(urlsMax: number) {
    this.#list = new EntryList(urlsMax);
  }

  write(text: string): boolean {
    const lines = text.split(/[\r\n]+/);
    for (const [index, piece] of lines.entries()) {
      if (index > 0) this.#take();
      if (this.#line.length <= RAW_URL_LENGTH_MAX) this.#line += piece;
    }
    return !this.#list.overflows;
  }

  end(): SitemapContent {
    this.#take();
    const { entries, trouble } = this.#list;
    if (entries.every(({ url }) => url === '')) throw new Error('it is neither XML nor a list of URLs');
    return { entries, trouble };
  }

  #take(): void {
    const url = this.#line.trim();
    this.#line = '';
    if (url === '' || url.startsWith('#')) return;
    if (url.length > RAW_URL_LENGTH_MAX || !isAbsoluteUrl(url)) this.#list.add(NAMELESS_ENTRY);
    else this.#list.add({ kind: 'page', url, modified: null, meta: null });
  }
}
