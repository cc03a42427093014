import { parseDate } from '../values/parse-date.ts';
import { parseNumber } from '../values/parse-number.ts';
import { type Example, findValue, type Place, type ValueType } from './find-values.ts';
import type { ElementFacts, PageFacts } from './page-facts.ts';
import { selectorsFor } from './selectors.ts';

/** Ways to read a field, as a job would write them, before they are tried on other pages. */

export interface Candidate {
  /** Exactly one of `css`, `jsonLd` and `meta` is there. */
  origin: { css?: string; attr?: string; jsonLd?: string; meta?: string };
  type: ValueType;
  /** The lower, the more likely it outlives a new design. */
  cost: number;
  /** A language model proposed it. */
  isFromModel?: true;
}

/** Elements that have the value: a page may repeat it in every link. */
const PLACES_MAX = 40;
const CANDIDATES_MAX = 120;
const TELLING_ATTRIBUTES = new Set(['content', 'href', 'src', 'datetime']);
const COST = { data: 1, meta: 2 };

/** Ways to the value. `types`: what the field is, where that is known. */
export function candidatesFor(page: PageFacts, value: Example, types?: ValueType[]): Candidate[] {
  const places = types ? findValue(page, value, types) : findValue(page, value);
  return candidatesAt(page, places.slice(0, PLACES_MAX));
}

/** Ways to what a page calls by the name of a field, where nobody gave a value. */
export function candidatesNamed(page: PageFacts, name: string, type: ValueType): Candidate[] {
  const names = namesOf(name);
  const isNamed = (text: string) => names.some((words) => hasWords(text, words));
  const isLast = (path: string) =>
    names.some((words) => isWords(path.slice(path.lastIndexOf('.') + 1), words));
  const fits = (text: string | null | undefined): boolean => isOfType(text, type, page.url);
  const places: Place[] = page.data
    .filter(({ path, text }) => isLast(path) && fits(text))
    .map(({ path }) => ({ element: null, attr: null, data: path, type }));
  page.elements.forEach((element, index) => {
    const attr = attrFor(element, type);
    const text = attr === null ? element.text : element.attributes.get(attr);
    if (fits(text) && isCalled(page, element, isNamed))
      places.push({ element: index, attr, data: null, type });
  });
  return candidatesAt(page, places.slice(0, PLACES_MAX));
}

function candidatesAt(page: PageFacts, places: readonly Place[]): Candidate[] {
  const around = new Set(
    places.map(({ element }) => (element === null ? -1 : page.elements[element]!.parent)),
  );
  /** Elements that only wrap the one with the value, and those that say more than it. */
  const excessOf = (element: number): number =>
    (around.has(element) ? 1 : 0) + Math.min(3, (page.elements[element]!.text?.length ?? 0) / 100);
  const found = places.flatMap(({ element, attr, data, type }): Candidate[] => {
    if (data !== null)
      return [{ origin: { jsonLd: data }, type, cost: COST.data + data.split('.').length / 4 }];
    const facts = page.elements[element!]!;
    const meta = facts.tag === 'meta' && attr === 'content' ? nameOfMeta(facts) : null;
    if (meta !== null) return [{ origin: { meta }, type, cost: COST.meta }];
    return selectorsFor(page, element!).map(({ css, cost }) => ({
      origin: attr === null ? { css } : { css, attr },
      type,
      cost: cost + (attr === null ? excessOf(element!) : TELLING_ATTRIBUTES.has(attr) ? 0 : 0.5),
    }));
  });
  const best = new Map<string, Candidate>();
  for (const candidate of found.sort((a, b) => a.cost - b.cost)) {
    const key = JSON.stringify(candidate.origin);
    if (!best.has(key)) best.set(key, candidate);
  }
  return [...best.values()].slice(0, CANDIDATES_MAX);
}

function nameOfMeta({ attributes }: ElementFacts): string | null {
  return attributes.get('property') ?? attributes.get('name') ?? attributes.get('itemprop') ?? null;
}

/** By its own names, those of the element around it, or the label before it. */
function isCalled(
  { elements }: PageFacts,
  { tag, attributes, before, parent }: ElementFacts,
  isNamed: (text: string) => boolean,
): boolean {
  const own = ['itemprop', 'property', 'name', 'id', 'class', 'data-testid', 'data-test', 'data-qa'];
  if (own.some((attribute) => isNamed(attributes.get(attribute) ?? ''))) return true;
  if (tag === 'h1' && (isNamed('title') || isNamed('name'))) return true;
  const label = before === -1 ? null : elements[before]!;
  if (label && (label.tag === 'dt' || label.tag === 'th') && isNamed(label.text ?? '')) return true;
  const around = parent === -1 ? null : elements[parent]!;
  return (
    around !== null &&
    (tag === 'a' || tag === 'img' || tag === 'time') &&
    isNamed(around.attributes.get('class') ?? '')
  );
}

function attrFor({ tag, attributes }: ElementFacts, type: ValueType): string | null {
  if (tag === 'meta') return 'content';
  if (type === 'url') return tag === 'img' ? 'src' : attributes.has('href') ? 'href' : null;
  if (type === 'date' && attributes.has('datetime')) return 'datetime';
  return attributes.has('content') ? 'content' : null;
}

function isOfType(text: string | null | undefined, type: ValueType, base: string): boolean {
  if (!text) return false;
  if (type === 'number' || type === 'money') return parseNumber(text) !== null;
  if (type === 'date') return parseDate(text) !== null;
  return type === 'url' ? !/\s/.test(text) && URL.canParse(text, base) : true;
}

/** What sites call the things that jobs want. */
const SYNONYMS = new Map<string, readonly string[]>([
  ['title', ['name', 'headline']],
  ['name', ['title', 'headline']],
  ['image', ['photo', 'picture']],
  ['date', ['date published', 'published time', 'published']],
  ['published', ['date published', 'published time']],
  ['rating', ['rating value']],
  ['currency', ['price currency']],
  ['text', ['article body', 'body', 'content']],
]);

function namesOf(name: string): string[][] {
  const words = wordsOf(name);
  const others = SYNONYMS.get(words.join(' ')) ?? [];
  return [words, ...others.map((other) => other.split(' '))];
}

/** `datePublished`, `date-published` and `date_published` are the same two. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

function isWords(text: string, words: readonly string[]): boolean {
  return wordsOf(text).join(' ') === words.join(' ');
}

function hasWords(text: string, words: readonly string[]): boolean {
  return words.length > 0 && ` ${wordsOf(text).join(' ')} `.includes(` ${words.join(' ')} `);
}
