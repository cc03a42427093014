import type { Meta } from '../model.ts';
import { parseDate } from './dates.ts';
import { isAbsoluteUrl, NAMELESS_ENTRY, resolveUrl, type SitemapEntry } from './entry.ts';

/** All that an entry says about its page: it travels with the task. */
export const SITEMAP_META_CHARS_MAX = 8_192;
/** URLs of one entry after its first; a list of nothing but `loc` in a single entry has been seen. */
const FURTHER_URLS_MAX = 50_000;

/** One URL of a list while it is being read. */
export class SitemapItem {
  readonly kind: 'page' | 'sitemap';
  /** Of the element, to tell its own children from those of extensions. */
  readonly prefix: string;
  readonly depth: number;
  base: string | null;
  /** Text right inside the element: some indexes leave out `loc`. */
  text = '';
  /** Some lists put several `loc` into one entry: each is one of its own. */
  readonly #furtherUrls: string[] = [];
  readonly #fields = new Map<Field, string>();
  readonly #images: Record<string, string>[] = [];
  readonly #videos: Record<string, string>[] = [];
  #news: Record<string, string> | null = null;
  #charsLeft: number = SITEMAP_META_CHARS_MAX;

  constructor(kind: 'page' | 'sitemap', at: { prefix: string; depth: number; base: string | null }) {
    this.kind = kind;
    this.prefix = at.prefix;
    this.depth = at.depth;
    this.base = at.base;
  }

  set(field: Field, text: string): void {
    if (text === '') return;
    if (this.#fields.has(field)) {
      if (field === 'url' && this.#furtherUrls.length < FURTHER_URLS_MAX) this.#furtherUrls.push(text);
      return;
    }
    if (field === 'url' || field === 'id' || this.#affords(text)) this.#fields.set(field, text);
  }

  has(field: Field): boolean {
    return this.#fields.has(field);
  }

  addExtension(kind: Extension, values: Record<string, string>): void {
    const texts = Object.values(values);
    if (texts.length === 0 || !texts.every((text) => this.#affords(text))) return;
    if (kind === 'image') this.#images.push(values);
    else if (kind === 'video') this.#videos.push(values);
    else this.#news ??= values;
  }

  /** `severalUrls`: in feeds the links of an entry are forms of one page. */
  toEntries(severalUrls: boolean): SitemapEntry[] {
    const first = this.#toEntry();
    if (!severalUrls) return [first];
    return [first, ...this.#furtherUrls.map((url) => ({ ...first, url: resolveUrl(url, this.base) }))];
  }

  #toEntry(): SitemapEntry {
    const named =
      this.#fields.get('url') ?? [this.#fields.get('id') ?? '', this.text.trim()].find(isAbsoluteUrl);
    if (named === undefined) return NAMELESS_ENTRY;
    const date =
      this.#fields.get('modified') ?? this.#fields.get('lastmod') ?? this.#fields.get('published') ?? '';
    return {
      kind: this.kind,
      url: resolveUrl(named, this.base),
      modified: parseDate(date),
      meta: this.kind === 'page' ? this.#meta() : null,
    };
  }

  #affords(text: string): boolean {
    this.#charsLeft -= text.length;
    return this.#charsLeft >= 0;
  }

  #meta(): Meta | null {
    const meta: Meta = {};
    for (const name of ['lastmod', 'changefreq', 'title', 'published'] as const) {
      const text = this.#fields.get(name);
      if (text !== undefined) meta[name] = text;
    }
    const updated = this.#fields.get('modified');
    if (updated !== undefined) meta.updated = updated;
    const priority = Number(this.#fields.get('priority') ?? Number.NaN);
    if (Number.isFinite(priority)) meta.priority = priority;
    if (this.#images.length > 0) meta.images = this.#images;
    if (this.#videos.length > 0) meta.videos = this.#videos;
    if (this.#news !== null) meta.news = this.#news;
    return Object.keys(meta).length > 0 ? meta : null;
  }
}

/** What is taken from each format, by the names of elements without their prefix, in lower case. */

export type Format = 'sitemap' | 'rss' | 'atom';

export const FORMATS: ReadonlyMap<string, Format> = new Map<string, Format>([
  ['urlset', 'sitemap'],
  ['sitemapindex', 'sitemap'],
  ['rss', 'rss'],
  ['rdf', 'rss'],
  ['feed', 'atom'],
]);

/** Elements that stand for one URL. */
export const ITEMS: Record<Format, ReadonlyMap<string, 'page' | 'sitemap'>> = {
  sitemap: new Map([
    ['url', 'page'],
    ['sitemap', 'sitemap'],
  ]),
  rss: new Map([['item', 'page']]),
  atom: new Map([['entry', 'page']]),
};

/** `url` and `id` name the page, `modified` dates it; all others are told to the page's task. */
type Field = 'url' | 'id' | 'modified' | 'lastmod' | 'published' | 'title' | 'changefreq' | 'priority';

/** Direct children of an item; the first of a kind with text in it counts. */
export const FIELDS: Record<Format, ReadonlyMap<string, Field>> = {
  sitemap: new Map([
    ['loc', 'url'],
    ['lastmod', 'lastmod'],
    ['changefreq', 'changefreq'],
    ['priority', 'priority'],
  ]),
  rss: new Map([
    ['link', 'url'],
    ['guid', 'id'],
    ['pubdate', 'published'],
    ['date', 'published'],
    ['title', 'title'],
  ]),
  atom: new Map([
    ['id', 'id'],
    ['updated', 'modified'],
    ['modified', 'modified'],
    ['published', 'published'],
    ['issued', 'published'],
    ['title', 'title'],
  ]),
};

export type Extension = 'image' | 'video' | 'news';

/** Whatever stands inside these extensions of a sitemap's item, however deep. */
export const EXTENSIONS: Record<Extension, ReadonlyMap<string, string>> = {
  image: new Map([
    ['loc', 'url'],
    ['title', 'title'],
    ['caption', 'caption'],
    ['license', 'license'],
  ]),
  video: new Map([
    ['content_loc', 'url'],
    ['player_loc', 'player'],
    ['thumbnail_loc', 'thumbnail'],
    ['title', 'title'],
    ['description', 'description'],
    ['duration', 'duration'],
    ['publication_date', 'published'],
  ]),
  news: new Map([
    ['name', 'publication'],
    ['language', 'language'],
    ['publication_date', 'published'],
    ['title', 'title'],
    ['keywords', 'keywords'],
  ]),
};

export function isExtension(name: string): name is Extension {
  return name === 'image' || name === 'video' || name === 'news';
}
