import { LIMITS } from '../limits.ts';
import type { Meta } from '../model.ts';
import type { Period } from './dates.ts';

export interface SitemapEntry {
  kind: 'page' | 'sitemap';
  /** Absolute when it can be told; not normalised. Empty when the entry names none. */
  url: string;
  modified: Period | null;
  /** What the list says about the page, and null when that is nothing. */
  meta: Meta | null;
}

export interface SitemapContent {
  entries: SitemapEntry[];
  /** Why there may be more than these entries; null when the list was read to its end. */
  trouble: string | null;
}

/** Reads one format, piece by piece. Throws when it is not that format, or one that must not be sent. */
export interface ListReader {
  /** False when nothing that may follow can add an entry. */
  write(text: string): boolean;
  end(): SitemapContent;
}

/** Longer text is no URL, whatever its normal form: see `normalizeUrl`. */
export const RAW_URL_LENGTH_MAX = 4 * LIMITS.urlLengthMax;

/** It has its place in the list, so that it can be told of. */
export const NAMELESS_ENTRY: SitemapEntry = { kind: 'page', url: '', modified: null, meta: null };

const ABSOLUTE = /^https?:\/\//i;

export function isAbsoluteUrl(text: string): boolean {
  return ABSOLUTE.test(text);
}

/** As it is when it cannot be resolved: whoever normalises it has a reason to give. */
export function resolveUrl(url: string, base: string | null): string {
  if (base === null || isAbsoluteUrl(url)) return url;
  return URL.parse(url, base)?.href ?? url;
}

/** Entries up to the limit, and whether there were more. */
export class EntryList {
  readonly entries: SitemapEntry[] = [];
  readonly #max: number;
  overflows = false;

  constructor(max: number) {
    this.#max = max;
  }

  add(entry: SitemapEntry): void {
    if (this.entries.length < this.#max) this.entries.push(entry);
    else this.overflows = true;
  }

  get trouble(): string | null {
    return this.overflows ? `only the first ${this.#max} URLs were read` : null;
  }
}
