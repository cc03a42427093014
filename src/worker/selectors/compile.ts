import { compile, type Options } from 'css-select';
import { AttributeAction, type AttributeSelector, type Selector, SelectorType } from 'css-what';
import { parseSelector } from '../page/parse-selector.ts';
import type { StartTag } from './start-tag.ts';

/** The part of a selector between two combinators. */
export interface Compound {
  /** Type selector in lower case, or null for any. */
  tag: string | null;
  /** Attributes, classes and id; null when there are none. */
  test: ((tag: StartTag) => boolean) | null;
  /** Stands in every tag that can match, unless the tag has a character reference. Empty when nothing is sure. */
  needle: string;
  /** Joined to the compound before it by `>`; by white space otherwise. */
  isChild: boolean;
}

/** Compounds that are not the last of their selector get a bit each; more fields than fit take another pass. */
export const BITS_MAX = 31;

/** Compounds from the outermost to the element itself, for each selector of a comma list. */
export type StreamSelector = Compound[][];

// The same rules for attribute values as with a tree: css-select compiles them, over a tag instead of an element.
type Attributes = Pick<StartTag, 'get' | 'has'>;
type OverTags = Options<Attributes, Attributes>;
const OVER_TAGS: OverTags = {
  adapter: {
    isTag: (_tag: Attributes): _tag is Attributes => true,
    getAttributeValue: (tag: Attributes, name: string) => tag.get(name),
    hasAttrib: (tag: Attributes, name: string) => tag.has(name),
  } as NonNullable<OverTags['adapter']>,
};

/** Null for a selector that needs a tree: siblings, pseudo-classes, namespaces. Throws when it is no CSS. */
export function parseStreamSelector(css: string): StreamSelector | null {
  const chains: StreamSelector = [];
  for (const tokens of parseSelector(css)) {
    const chain = chainOf(tokens);
    if (chain === null) return null;
    chains.push(chain);
  }
  return bitsOf(chains) > BITS_MAX ? null : chains;
}

export function bitsOf(selector: StreamSelector): number {
  return selector.reduce((sum, chain) => sum + chain.length - 1, 0);
}

function chainOf(tokens: Selector[]): Compound[] | null {
  const chain: Compound[] = [];
  let part: Selector[] = [];
  let isChild = false;
  for (const token of [...tokens, { type: SelectorType.Descendant } as const]) {
    if (token.type !== SelectorType.Descendant && token.type !== SelectorType.Child) {
      part.push(token);
      continue;
    }
    const compound = compoundOf(part, isChild);
    if (compound === null) return null;
    chain.push(compound);
    part = [];
    isChild = token.type === SelectorType.Child;
  }
  return chain;
}

function compoundOf(tokens: Selector[], isChild: boolean): Compound | null {
  if (tokens.length === 0) return null;
  const attributes: AttributeSelector[] = [];
  let tag: string | null = null;
  let needle = '';
  for (const token of tokens) {
    if (token.type === SelectorType.Attribute && token.namespace === null) {
      if (isOfObjects(token.name.toLowerCase())) return null;
      const text = needleOf(token);
      if (text.length > needle.length) needle = text;
      attributes.push(token);
    } else if (token.type === SelectorType.Tag && token.namespace === null && tag === null) {
      tag = token.name.toLowerCase();
    } else if (token.type !== SelectorType.Universal || token.namespace !== null) {
      return null;
    }
  }
  const test = attributes.length === 0 ? null : compile<Attributes, Attributes>([attributes], OVER_TAGS);
  return { tag, test, needle: rareStart(needle), isChild };
}

function needleOf(token: AttributeSelector): string {
  if (token.action === AttributeAction.Exists || token.action === AttributeAction.Not) return '';
  return ignoresCase(token) ? '' : token.value;
}

/** Letters of pages, the most frequent first. */
const FREQUENT = 'etaoinsrlhdcupmfgwybvk';

/**
 * The part of a needle that begins with its rarest character: engines look for the first one and then compare, so that
 * `-such` is found missing in 2 µs where `no-such` takes 14.
 */
function rareStart(needle: string): string {
  let best = needle;
  let bestRank = -1;
  for (let at = 0; at + 3 <= needle.length || at === 0; at++) {
    const place = FREQUENT.indexOf(needle[at] ?? '');
    const rank = place === -1 ? FREQUENT.length : place;
    if (rank > bestRank) {
      bestRank = rank;
      best = needle.slice(at);
    }
  }
  return best;
}

/** By a flag, or as HTML has it for attributes like `lang`: css-select knows which, so it is asked. */
function ignoresCase(token: AttributeSelector): boolean {
  const isSmallA = compile<Attributes, Attributes>(
    [[{ ...token, action: AttributeAction.Equals, value: 'a' }]],
    OVER_TAGS,
  );
  return isSmallA({ get: () => 'A', has: () => true });
}

/** In a tree these are found on every element, since its attributes are a plain object. */
function isOfObjects(attribute: string): boolean {
  return attribute in Object.prototype;
}
