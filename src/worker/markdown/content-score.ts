import type { Element } from 'domhandler';
import { type Beside, isOverlay } from './boilerplate.ts';
import type { Survey } from './page-survey.ts';

/**
 * Where most of the text of a page is. Each block of text counts for the element around it, less for the next one out,
 * and so on; the element with most is the top. Names and labels only make text count less: a body may be called
 * `paywall`, and one name is no proof.
 */

/** What text counts for an element further out. With two parts of one size, what is around both has more than each. */
const OUTWARD = 0.6;
/** One child with this share of what an element has makes it a wrapper: it counts as that child. */
const WRAPPED_SHARE = 0.9;
/** What text counts in an element whose names place it beside the content; by its label, or by both. */
const NAMED = 0.35;
const LABELLED = 0.15;
/** What text above the title counts. */
const ABOVE_TITLE = 0.5;
/** Links among the text of a box that is labelled as one of links. */
const LABELLED_LINKS_SHARE = 0.3;

/** A box with more links than this among its text is one of links. */
export const LINKS_SHARE = 2 / 3;
const ASIDE_LINKS_SHARE = 0.2;

const FRAMES = new Set(['header', 'footer', 'aside']);
const LANDMARKS = new Set(['article', 'main']);
/** Elements whose names count; those within lines are called all kinds of things. */
const BOXES = new Set(
  'div section aside ul ol table form header footer dl p li address details blockquote td'.split(' '),
);

export function isLandmark({ name, attribs }: Element): boolean {
  return LANDMARKS.has(name) || attribs.role === 'main' || attribs.itemprop === 'articleBody';
}

/** What says that an element is not content, and how surely. */
export interface Evidence {
  kind: Beside;
  /** Its label or its place says so, and not its names alone. */
  isStrong: boolean;
}

export function evidenceOf(page: Survey, number: number): Evidence | null {
  const { name, attribs } = page.elements[number]!;
  if (name === 'time') return { kind: 'byline', isStrong: false };
  if (!BOXES.has(name)) return null;
  const label = labelOf(page, number);
  if (label !== null) return { kind: label, isStrong: true };
  const named = page.names[number]!;
  if (named === 'other')
    return { kind: named, isStrong: attribs.role !== undefined || isOverlay(page.elements[number]!) };
  if (named !== null) return { kind: named, isStrong: false };
  // Notes in a text are asides too, and have no links.
  const isAside = name === 'aside' && page.linked[number]! > ASIDE_LINKS_SHARE * page.characters[number]!;
  if (isAside) return { kind: 'other', isStrong: false };
  return name === 'address' ? { kind: 'byline', isStrong: false } : null;
}

function labelOf(page: Survey, number: number): Beside | null {
  const label = page.labels[number]!;
  if (label === null || isLandmark(page.elements[number]!)) return null;
  if (label === 'other' && page.weights[number]! > LABELLED_WEIGHT_MAX) return null;
  if (label !== 'links') return label;
  // Chapters end with what to read next, and are sections.
  const share = page.elements[number]!.name === 'section' ? LINKS_SHARE : LABELLED_LINKS_SHARE;
  const isLinks = page.linked[number]! > share * page.characters[number]!;
  return isLinks || isCardList(page, number) ? 'other' : null;
}

/** A box with more text than this is more than its first line says: a body may begin with `Share` or `Advertisement`. */
const LABELLED_WEIGHT_MAX = 2_000;

const CARDS_MIN = 3;
const CARD_CHARACTERS_MAX = 500;
/** Signs that lead back or up are shorter than the name of a page. */
const CARD_LINK_MIN = 10;
const CARD_LISTS = new Set(['div', 'section', 'ul', 'ol', 'aside']);
const CARD_NAMES = new Set(['div', 'li', 'article', 'section', 'a']);
/** Those that are boxes, whatever is in them. */
const BARE_CARDS = new Set(['div', 'article', 'section']);

/** A list of other pages: boxes that begin with a link and say a little about it. */
export function isCardList(page: Survey, list: number): boolean {
  const { elements, ends, characters, beginsWithLink, linked } = page;
  if (!CARD_LISTS.has(elements[list]!.name)) return false;
  let cards = 0;
  let others = 0;
  for (let at = list + 1; at < ends[list]!; at = ends[at]!) {
    if (characters[at] === 0) continue;
    const isBox = CARD_NAMES.has(elements[at]!.name) && linked[at]! >= CARD_LINK_MIN;
    if (
      isBox &&
      (BARE_CARDS.has(elements[at]!.name) || hasBoxes(page, at)) &&
      (beginsWithLink[at] || hasLinkedHeading(page, at)) &&
      characters[at]! < CARD_CHARACTERS_MAX
    )
      cards++;
    else others++;
  }
  return cards >= CARDS_MIN && others <= 1 + cards / 4;
}

const CARD_PARTS = new Set('h2 h3 h4 h5 h6 article img figure'.split(' '));
const CARD_HEADING = /^h[2-6]$/;
const CARD_PARTS_SEEN = 8;

/** An item of a list is a card when there is more than words in it. */
function hasBoxes({ elements, ends }: Survey, item: number): boolean {
  const end = Math.min(ends[item]!, item + CARD_PARTS_SEEN);
  for (let at = item + 1; at < end; at++) if (CARD_PARTS.has(elements[at]!.name)) return true;
  return false;
}

/** Above the name of another page there may be that of its section. */
function hasLinkedHeading({ elements, ends, characters, linked }: Survey, item: number): boolean {
  const end = Math.min(ends[item]!, item + CARD_PARTS_SEEN);
  for (let at = item + 1; at < end; at++)
    if (CARD_HEADING.test(elements[at]!.name)) return linked[at]! > LINKS_SHARE * characters[at]!;
  return false;
}

const SLIDES_MIN = 4;
const SLIDE_NAMES = new Set(['div', 'li']);
/** A picture with words of its own in one of these belongs to the text. */
const STORY_PARTS = new Set('p h1 h2 h3 h4 h5 h6 figure figcaption pre table'.split(' '));

/** Pictures to leaf through: boxes with one each, and a line about it. */
export function isSlideShow(page: Survey, list: number): boolean {
  const { elements, ends, characters } = page;
  if (!CARD_LISTS.has(elements[list]!.name)) return false;
  let slides = 0;
  let others = 0;
  for (let at = list + 1; at < ends[list]!; at = ends[at]!) {
    if (characters[at] === 0) continue;
    if (SLIDE_NAMES.has(elements[at]!.name) && isSlide(page, at)) slides++;
    else if (++others > 2) return false;
  }
  return slides >= SLIDES_MIN;
}

const SLIDE_PARTS_MAX = 40;

function isSlide({ elements, ends, characters }: Survey, item: number): boolean {
  if (characters[item]! >= CARD_CHARACTERS_MAX || ends[item]! - item > SLIDE_PARTS_MAX) return false;
  let pictures = 0;
  for (let at = item + 1; at < ends[item]!; at++) {
    const { name } = elements[at]!;
    if (STORY_PARTS.has(name)) return false;
    if (name === 'img') pictures++;
  }
  return pictures === 1;
}

/** Numbers of the headers and footers of the page itself, and of what stands beside; those of an article are part of it. */
export function framesOf({ elements, ends }: Survey): Set<number> {
  const found = new Set<number>();
  let landmarkEnd = 0;
  for (const [number, element] of elements.entries()) {
    if (isLandmark(element)) landmarkEnd = Math.max(landmarkEnd, ends[number]!);
    if (number >= landmarkEnd && FRAMES.has(element.name)) found.add(number);
  }
  return found;
}

interface Top {
  number: number;
  score: number;
}

/** The element with the highest score within `scope` (-1: the page). `title` is the number of the title's heading or -1. */
export function findTop(page: Survey, scope: number, title: number, frames: ReadonlySet<number>): Top {
  const { elements, parents, ends, worth } = page;
  const count = elements.length;
  const trust = new Float64Array(count);
  for (let number = 0; number < count; number++) {
    const evidence = evidenceOf(page, number);
    let own = 1;
    if (frames.has(number) || evidence?.isStrong) own = evidence?.kind === 'byline' ? 1 : LABELLED;
    else if (evidence !== null && evidence.kind !== 'byline') own = NAMED;
    trust[number] = Math.min(own, trust[parents[number]!] ?? 1);
  }
  const first = Math.max(0, scope);
  const end = scope === -1 ? count : ends[scope]!;
  const score = new Float64Array(count);
  /** Of the children: what they give to it, all of their scores, and the highest. */
  const given = new Float64Array(count);
  const whole = new Float64Array(count);
  const highest = new Float64Array(count);
  const top: Top = { number: scope, score: 0 };
  // From the inside out.
  for (let number = end - 1; number >= first; number--) {
    const own = worth[number]! * trust[number]! * (number < title ? ABOVE_TITLE : 1);
    const isWrapper = highest[number]! >= WRAPPED_SHARE * (own + whole[number]!);
    score[number] = isWrapper ? highest[number]! : own + given[number]!;
    if (score[number]! > top.score) {
      top.number = number;
      top.score = score[number]!;
    }
    const parent = parents[number]!;
    if (parent === -1) continue;
    const isLine = own > 0 && whole[number] === 0;
    given[parent]! += isLine ? own : OUTWARD * score[number]!;
    whole[parent]! += score[number]!;
    highest[parent] = Math.max(highest[parent]!, score[number]!);
  }
  return top;
}
