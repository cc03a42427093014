import { resolveBase } from './base-url.ts';
import { LinkedData } from './json-ld.ts';
import type { Page } from './page.ts';
import { compileQuick, parseQuick, type QuickValue } from './quick-select.ts';

const readBase = compileQuick([{ selector: parseQuick('base[href]')!, attr: 'href', all: false }]);
const MAY_HAVE_BASE = /<base[\s/]/i;

/** One page while its fields are read: what several of them need is made once. */
export class Reading {
  readonly page: Page;
  /** What the one pass over the page has found, in the order of its fields. */
  readonly found: QuickValue[];
  /** Required fields that have no value; null while there are none. */
  missing: Set<string> | null = null;
  #base: string | null = null;
  #data: LinkedData | null = null;

  constructor(page: Page, found: QuickValue[]) {
    this.page = page;
    this.found = found;
  }

  /** What URLs of the page are relative to. */
  base(): string {
    this.#base ??= baseOf(this.page);
    return this.#base;
  }

  miss(field: string): void {
    this.missing ??= new Set();
    this.missing.add(field);
  }

  /** `slot` is where the blocks are among what was found. */
  dataIn(slot: number): LinkedData {
    this.#data ??= new LinkedData(this.found[slot] as string[]);
    return this.#data;
  }
}

/** `baseUrlOf`, without a tree. */
function baseOf({ text, url }: Page): string {
  if (!MAY_HAVE_BASE.test(text)) return url;
  const [href] = readBase(text);
  return resolveBase(href as string | null, url);
}
