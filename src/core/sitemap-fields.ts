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
export type Field = 'url' | 'id' | 'modified' | 'lastmod' | 'published' | 'title' | 'changefreq' | 'priority';

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
