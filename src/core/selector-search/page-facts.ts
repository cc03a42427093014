/** A page as the search for selectors sees it: its elements in the order of the document, and its structured data. */

export interface ElementFacts {
  tag: string;
  /** By lower-case name. */
  attributes: ReadonlyMap<string, string>;
  /** White space folded; null when it is too long to be a value. */
  text: string | null;
  /** Places in the list of elements; -1 for none. */
  parent: number;
  /** The element before it, below the same parent. */
  before: number;
  /** Its place among those siblings that have its tag, from 1 on. */
  nth: number;
}

export interface PageFacts {
  url: string;
  elements: readonly ElementFacts[];
  /** Leaves of JSON-LD: `Product.offers.price`. */
  data: readonly { path: string; text: string }[];
}

/** Values that people give as examples are shorter. */
export const VALUE_LENGTH_MAX = 2_000;
/** Elements that are looked at; few pages have more, and their values seldom come last. */
export const ELEMENTS_MAX = 20_000;
