import {
  EntryList,
  isAbsoluteUrl,
  type ListReader,
  NAMELESS_ENTRY,
  RAW_URL_LENGTH_MAX,
  type SitemapContent,
} from './sitemap-entry.ts';

/** One URL a line. Other lines name none: relative URLs could not be told from any other text. */
export class SitemapText implements ListReader {
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
