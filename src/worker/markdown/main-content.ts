import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';
import {
  type Evidence,
  evidenceOf,
  findTop,
  framesOf,
  isCardList,
  isLandmark,
  isSlideShow,
  LINKS_SHARE,
} from './content-score.ts';
import { type Head, type Heading, type Survey, survey } from './page-survey.ts';

interface Content {
  /** Of the `base` element. */
  base: string | null;
  title: string | null;
  root: Document | Element;
  /** Elements inside the root that are not content. */
  omitted: ReadonlySet<Element>;
}

/**
 * Where the content of a page is: the element with most of the text (`content-score.ts`), what belongs to it among its
 * neighbours up to the title, and without what is in it that is none: boxes of links, of other pages, of comments.
 */
export function findContent(document: Document): Content {
  const page = survey(document);
  const frames = framesOf(page);
  const scope = scopeOf(page, frames);
  const headings = titleHeadings(page, scope);
  const top = findTop(page, scope, headings[0] ?? -1, frames);
  const heading = nearestHeading(page, headings, top.number);
  const isList = top.score < PROSE_MIN || isLinkPage(page, scope, top.score);
  const region = isList
    ? listRegion(page, scope, frames)
    : textRegion(page, scope, top.number, heading, frames);
  const omitted = new Set(region.omitted.map((number) => page.elements[number]!));
  for (const above of [...omitted].map(headingAbove)) if (above) omitted.add(above);
  return {
    base: page.head.base,
    title: titleOf(page, region.root),
    root: page.elements[region.root] ?? document,
    omitted,
  };
}

/** A page with less text than this in one place is a list, or next to nothing. */
const PROSE_MIN = 40;
const THIN_SHARE = 0.15;
/** Pages that are built by scripts have a main element with nothing in it. */
const MAIN_MIN = 20;
/** A main element with less of the text of a page than this may not have what the page is about. */
const MAIN_SHARE_MIN = 0.25;

/** Number of the one element that the page itself calls its main content, or -1. */
function mainOf(page: Survey): number {
  let found = -1;
  for (const [number, { name, attribs }] of page.elements.entries()) {
    if (name !== 'main' && attribs.role !== 'main') continue;
    if (found !== -1 && number >= page.ends[found]!) return -1;
    if (found === -1) found = number;
  }
  return found !== -1 && page.characters[found]! >= MAIN_MIN ? found : -1;
}

/** The main element, unless the text is elsewhere: some close it too early, or fill it later. */
function scopeOf(page: Survey, frames: ReadonlySet<number>): number {
  const main = mainOf(page);
  if (main === -1 || page.weights[main]! >= MAIN_SHARE_MIN * page.weights[0]!) return main;
  const top = findTop(page, -1, -1, frames);
  const isInside = top.number >= main && top.number < page.ends[main]!;
  return isInside || top.score < ARTICLE_MIN ? main : -1;
}

function isLinkPage(page: Survey, scope: number, score: number): boolean {
  const whole = Math.max(0, scope);
  const isThin = (page.weights[whole] ?? 0) < THIN_SHARE * (page.characters[whole] ?? 0);
  return isThin && (scope !== -1 || score < ARTICLE_MIN);
}

interface Region {
  /** Number of the root, or -1 for the whole document. */
  root: number;
  /** Numbers of elements to leave out, each with all that is inside. */
  omitted: number[];
}

const HALF = 0.5;

/** A page without text in one place: all of it but its frame, and what its names place beside, unless that is most of it. */
function listRegion(page: Survey, scope: number, frames: ReadonlySet<number>): Region {
  const whole = scope === -1 ? page.characters[0]! : page.characters[scope]!;
  const without = (isOut: (number: number) => boolean): Region & { left: number } => {
    const omitted: number[] = [];
    let left = whole;
    for (let number = Math.max(0, scope) + 1; number < (page.ends[scope] ?? page.elements.length); number++) {
      if (!isOut(number)) continue;
      omitted.push(number);
      left -= page.characters[number]!;
      number = page.ends[number]! - 1;
    }
    return { root: scope, omitted, left };
  };
  const named = without((number) => frames.has(number) || evidenceOf(page, number)?.kind === 'other');
  if (named.left >= HALF * whole) return named;
  const framed = without((number) => frames.has(number));
  return framed.left > 0 ? framed : without(() => false);
}

/** Lines that cannot be all of the content. */
const LINES = new Set(
  'p li dt dd pre blockquote h1 h2 h3 h4 h5 h6 figcaption a span b i em strong font'.split(' '),
);

function textRegion(
  page: Survey,
  scope: number,
  top: number,
  heading: number,
  frames: ReadonlySet<number>,
): Region {
  let inner = top;
  while (inner > Math.max(0, scope) && LINES.has(page.elements[inner]!.name) && page.parents[inner] !== -1)
    inner = page.parents[inner]!;
  const region = new RegionFinder(page, scope, inner, heading, frames);
  region.climb();
  region.clean();
  return { root: region.root, omitted: region.omitted };
}

/** A block of this many characters is a sentence or more. */
const SENTENCE = 80;
/** A neighbour with this share of the text of the top is part of the content. */
const PART_SHARE = 0.2;
const PART_LINKS_SHARE = 0.25;
/** A box is left out with at most this share of the content, by its names alone, and by what is stronger. */
const NAMED_SHARE_MAX = 0.3;
const STRONG_SHARE_MAX = 0.5;
/** With this much left, the comments of an article may be longer than itself. */
const ARTICLE_MIN = 500;
const BYLINE_MAX = 160;
/** All, as sums of fractions come out. */
const ALL_SHARE = 0.999;
/** Boxes to buy, search or sign up in have less text than this. */
const FORM_CHARACTERS_MAX = 200;

class RegionFinder {
  readonly #page: Survey;
  readonly #scope: number;
  readonly #isTrusted: boolean;
  readonly #top: number;
  readonly #heading: number;
  readonly #frames: ReadonlySet<number>;
  readonly #omitted = new Set<number>();
  /** Weight of the region, and of the boxes in it with the same names that place them beside. */
  #whole = 0;
  readonly #groups = new Map<string, number>();
  root: number;

  constructor(page: Survey, scope: number, top: number, heading: number, frames: ReadonlySet<number>) {
    this.#page = page;
    this.#top = top;
    this.#heading = heading;
    this.#frames = frames;
    this.root = top;
    // What a page calls its main content is, unless it has an article in it.
    let at = top;
    while (at !== scope && at !== -1 && page.elements[at]!.name !== 'article') at = page.parents[at]!;
    this.#isTrusted = scope !== -1 && at === scope;
    this.#scope = scope;
  }

  get omitted(): number[] {
    return [...this.#omitted];
  }

  #holds(outer: number, inner: number): boolean {
    return inner >= outer && inner < this.#page.ends[outer]!;
  }

  /** Takes in what belongs to the top around it, out to the title and at least one step; with little text, one more. */
  climb(): void {
    const { parents, elements } = this.#page;
    let beyond = this.#page.weights[this.#top]! < ARTICLE_MIN ? 2 : 1;
    for (;;) {
      const outer = parents[this.root]!;
      const isLast = elements[this.root]!.name === 'body' || this.root === this.#scope;
      if (outer === -1 || isLast) return;
      if (this.#heading === -1 || this.#holds(this.root, this.#heading)) {
        if (isLandmark(elements[this.root]!) || (!this.#isTrusted && beyond-- === 0)) return;
      }
      this.#judgeChildren(outer, this.root);
      this.root = outer;
    }
  }

  /** Leaves out the children of an element that do not belong to the top; `inner` holds it. */
  #judgeChildren(outer: number, inner: number): void {
    const { ends } = this.#page;
    let above = -1;
    for (let at = outer + 1; at < ends[outer]!; at = ends[at]!) {
      const isPart = at === inner || this.#holds(at, this.#heading) || this.#isPart(at, at > inner);
      if (!isPart) this.#omitted.add(at);
      // A heading stays with what follows it.
      if (above !== -1) {
        if (isPart) this.#omitted.delete(above);
        above = -1;
      }
      if (isSubheading(this.#page.elements[at]!)) above = at;
    }
  }

  #isPart(number: number, isBelow: boolean): boolean {
    const { elements, weights, characters, linked, hasCode } = this.#page;
    const element = elements[number]!;
    const all = characters[number]!;
    if (all === 0) return true;
    if (this.#frames.has(number) || evidenceOf(this.#page, number) !== null) return false;
    const isText = TEXTS.has(element.name) || this.#isTrusted || hasCode[number]!;
    if (isSubheading(element) || linked[number]! > (isText ? LINKS_SHARE : PART_LINKS_SHARE) * all)
      return false;
    if (isCardList(this.#page, number)) return false;
    if (weights[number]! >= PART_SHARE * this.#page.weights[this.#top]!) return true;
    const isBetween = !isBelow && this.#heading !== -1 && number > this.#heading;
    if (isBetween || this.#isTrusted) return true;
    const { name, attribs } = elements[this.#top]!;
    const isAlike = element.name === name && (name === 'section' || attribs.class === element.attribs.class);
    if (isAlike && attribs.class !== undefined && weights[number]! > 0) return true;
    if ((element.name === 'p' || (isAlike && name === 'section')) && weights[number]! >= SENTENCE)
      return true;
    // Above the title, a box without a name is a column or a notice.
    if (isAlike && attribs.id === undefined && number > this.#heading && this.#isOnlyParagraphs(number))
      return true;
    return hasCode[number]!;
  }

  /** Whether all that it says are sentences in paragraphs. */
  #isOnlyParagraphs(box: number): boolean {
    const { elements, ends, worth, weights } = this.#page;
    let inParagraphs = 0;
    for (let at = box + 1; at < ends[box]!; at++)
      if (elements[at]!.name === 'p' && worth[at]! >= SENTENCE) inParagraphs += worth[at]!;
    return inParagraphs > 0 && inParagraphs >= ALL_SHARE * weights[box]!;
  }

  /** Leaves out what is no content within the root. */
  clean(): void {
    const { ends, characters } = this.#page;
    const end = ends[this.root]!;
    this.#gather(end);
    const prose = this.#secondSentence(end);
    const last = this.#lastSentence(end);
    for (let number = this.root + 1; number < end; number++) {
      if (this.#omitted.has(number)) {
        number = ends[number]! - 1;
        continue;
      }
      if (characters[number] === 0 || this.#holds(number, this.#heading) || this.#isAround(number)) continue;
      const isOut = number < this.#heading ? this.#isAboveTitle(number) : false;
      if (!isOut && !this.#isOut(number, number < prose, number > last)) continue;
      this.#omitted.add(number);
      number = ends[number]! - 1;
    }
  }

  /** Adds up what boxes of the same names have: a body in ten parts is one. */
  #gather(end: number): void {
    const { ends, elements, weights } = this.#page;
    this.#whole = weights[this.root]!;
    for (let number = this.root + 1; number < end; number++) {
      const evidence = this.#omitted.has(number) ? null : this.#evidenceOf(number);
      if (this.#omitted.has(number)) this.#whole -= weights[number]!;
      else if (evidence === null || evidence.isStrong || this.#isAround(number)) continue;
      else {
        const group = groupOf(elements[number]!, evidence);
        this.#groups.set(group, (this.#groups.get(group) ?? 0) + weights[number]!);
      }
      number = ends[number]! - 1;
    }
  }

  #evidenceOf(number: number): Evidence | null {
    return this.#frames.has(number) ? FRAME : evidenceOf(this.#page, number);
  }

  #isAround(number: number): boolean {
    return this.#holds(number, this.#top);
  }

  /**
   * Number of the second block with a sentence in it: the first may stand above the author. Where lines end with `br`, all
   * of the text is one block.
   */
  #secondSentence(end: number): number {
    let first = -1;
    for (let number = Math.max(this.root, this.#heading) + 1; number < end; number++) {
      if (!this.#isSentence(number)) continue;
      if (first !== -1) return number;
      first = number;
    }
    return first;
  }

  /** Number of the last one; what stands about the author is none. */
  #lastSentence(end: number): number {
    let last = end;
    for (let number = this.root + 1; number < end; number++) {
      if (this.#omitted.has(number) || (this.#isAuthorBox(number) && !this.#isAround(number)))
        number = this.#page.ends[number]! - 1;
      else if (this.#isSentence(number)) last = number;
    }
    return last;
  }

  #isAuthorBox(number: number): boolean {
    return this.#page.names[number] === 'byline' && BOXES.has(this.#page.elements[number]!.name);
  }

  #isSentence(number: number): boolean {
    return this.#page.worth[number]! >= SENTENCE && evidenceOf(this.#page, number) === null;
  }

  #isOut(number: number, isAbove: boolean, isBelow: boolean): boolean {
    const { characters, linked, weights, elements, names } = this.#page;
    const { name } = elements[number]!;
    const evidence = this.#evidenceOf(number);
    if (evidence?.kind === 'byline') {
      const isWord = name === 'time' && !this.#isLoose(number);
      if (isAbove && characters[number]! <= BYLINE_MAX && !isWord) return true;
      const isBox = isBelow && this.#isAuthorBox(number);
      if (isBox && weights[number]! <= NAMED_SHARE_MAX * this.#whole) return true;
    } else if (evidence !== null) {
      const weight = evidence.isStrong
        ? weights[number]!
        : this.#groups.get(groupOf(elements[number]!, evidence))!;
      if (weight <= (evidence.isStrong ? STRONG_SHARE_MAX : NAMED_SHARE_MAX) * this.#whole) return true;
      if (evidence.kind === 'comments' && this.#whole - weight >= ARTICLE_MIN) return true;
    }
    const share = weights[number]! / this.#whole;
    if (name === 'form' && characters[number]! < FORM_CHARACTERS_MAX) return true;
    if (isCardList(this.#page, number) && share <= STRONG_SHARE_MAX) return true;
    if (share <= STRONG_SHARE_MAX && isSlideShow(this.#page, number)) return true;
    if (this.#isLinkBox(number) && share <= STRONG_SHARE_MAX) return true;
    if (name === 'a') return (isAbove || isBelow) && this.#isLoose(number);
    if (name === 'span' && isAbove && names[number] === 'byline')
      return characters[number]! <= BYLINE_MAX && !isInLine(elements[number]!);
    return isBelow && PARTS.has(name) && linked[number]! > LINKS_SHARE * characters[number]!;
  }

  /** Sections, dates and buttons stand above a title; what is said there in sentences may be the first of the text. */
  #isAboveTitle(number: number): boolean {
    return this.#page.weights[number]! < SENTENCE;
  }

  /** A word that stands among boxes, and not in a line. */
  #isLoose(number: number): boolean {
    const { parents, weights, worth } = this.#page;
    const parent = parents[number]!;
    return parent !== -1 && worth[parent]! < SENTENCE && weights[parent]! - worth[parent]! >= SENTENCE;
  }

  /** A box of little but links, unless it is a list below a line of text. */
  #isLinkBox(number: number): boolean {
    const { elements, characters, linked, labels, hasCode } = this.#page;
    const element = elements[number]!;
    if (!BOXES.has(element.name) || linked[number]! <= LINKS_SHARE * characters[number]!) return false;
    if (hasCode[number]) return false;
    if (!LISTS.has(element.name)) return true;
    const above = besideOf(element, 'prev');
    const isLabelled = above !== null && isSubheading(above) && labels[this.#above(number)] !== null;
    return above === null ? !ITEMS.has(parentName(element)) : isLabelled;
  }

  /** Number of the element right before, at the same depth. */
  #above(number: number): number {
    const { parents, ends } = this.#page;
    let above = number - 1;
    while (above > 0 && parents[above] !== parents[number]) above = parents[above]!;
    return ends[above] === number ? above : -1;
  }
}

const LISTS = new Set(['ul', 'ol', 'table', 'dl']);
const ITEMS = new Set(['li', 'dd']);

function parentName({ parent }: Element): string {
  return parent !== null && isTag(parent) ? parent.name : '';
}

const FRAME: Evidence = { kind: 'other', isStrong: true };

function groupOf({ attribs }: Element, { kind }: Evidence): string {
  return kind === 'comments' ? kind : (attribs.class ?? attribs.id ?? '');
}

const BOXES = new Set('div section aside ul ol table form header footer dl'.split(' '));
/** Elements that are text, even with many links. */
const TEXTS = new Set(['p', 'section', 'pre', 'blockquote']);
/** Boxes that stand for themselves. */
const PARTS = new Set(['div', 'section', 'header', 'footer']);

function isSubheading({ name }: Element): boolean {
  return /^h[2-6]$/.test(name);
}

/** The heading right above, when the element is all that follows it. */
function headingAbove(element: Element): Element | null {
  const above = besideOf(element, 'prev');
  const below = besideOf(element, 'next');
  return above && isSubheading(above) && (below === null || isSubheading(below)) ? above : null;
}

/** Whether there is text beside it. */
function isInLine(element: Element): boolean {
  return besideOf(element, 'prev') === element || besideOf(element, 'next') === element;
}

/** The next element in one direction, or null where there is none; text in between counts as the element itself. */
function besideOf(element: Element, direction: 'prev' | 'next'): Element | null {
  let at: ChildNode | null = element[direction];
  while (at !== null && !isTag(at)) {
    if (isText(at) && at.data.trim() !== '') return element;
    at = at[direction];
  }
  return at;
}

/**
 * A title may end with the names of a section and the site, and those are headings too: what has less of the title than
 * this, or less than this of the longest such heading, is one of them.
 */
const TITLE_SHARE_MIN = 0.3;
const TITLE_HEADING_SHARE_MIN = 0.5;

/** Numbers of the headings that may have the title of the page, in the order of the document. */
function titleHeadings({ head, ends }: Survey, scope: number): number[] {
  const isInside = ({ number }: Heading) => scope === -1 || (number > scope && number < ends[scope]!);
  const headings = head.headings.filter(isInside);
  const all = [...headings, ...head.subheadings.filter(isInside)];
  const named = all.filter(({ text }) => isTitle(head, text));
  let found = longEnough(head, named);
  if (found.length === 0) found = longEnough(head, all.filter(sayTitle(head)));
  if (found.length === 0) found = headings.length === 1 ? headings : named;
  return found.map(({ number }) => number).toSorted((a, b) => a - b);
}

function longEnough({ title, ogTitle }: Head, headings: readonly Heading[]): Heading[] {
  const lengths = headings.map(({ text }) => text.length);
  const titleLength = Math.min(title?.length ?? Infinity, ogTitle?.length ?? Infinity);
  const least = Math.max(TITLE_SHARE_MIN * titleLength, TITLE_HEADING_SHARE_MIN * Math.max(...lengths));
  return headings.filter(({ text }) => text.length >= least);
}

/** With this share of its words in the title, a heading says the same in other words. */
const SAME_WORDS_SHARE = 0.8;
const SAME_WORDS_MIN = 5;

function sayTitle({ title, ogTitle }: Head): (heading: Heading) => boolean {
  const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const known = new Set(wordsOf(`${title ?? ''} ${ogTitle ?? ''}`));
  return ({ text }) => {
    const words = wordsOf(text);
    const same = words.filter((word) => known.has(word)).length;
    return words.length >= SAME_WORDS_MIN && same >= SAME_WORDS_SHARE * words.length;
  };
}

/** The first within the top, or else the last above it: one further up may be the name of the site. */
function nearestHeading({ ends }: Survey, headings: readonly number[], top: number): number {
  const inside = headings.find((number) => number >= top && number < (ends[top] ?? 0));
  return inside ?? headings.findLast((number) => number < top) ?? headings[0] ?? -1;
}

function isTitle({ title, ogTitle }: Head, text: string): boolean {
  return `${title ?? ''} ${ogTitle ?? ''}`.includes(text);
}

const SEPARATORS = /\s+[|\-–—·•:»«/]+\s+|:\s+/u;

/** As the page names itself for others, without the name of the site where that is known. */
function titleOf({ head, ends }: Survey, root: number): string | null {
  const { title, ogTitle, siteName, headings } = head;
  const isInside = ({ number }: { number: number }) =>
    root === -1 || (number >= root && number < ends[root]!);
  const heading = headings.find(isInside) ?? headings.find(({ text }) => isTitle(head, text));
  const given = ogTitle ?? heading?.text ?? title ?? headings[0]?.text ?? null;
  if (given === null || given === heading?.text) return given;
  if (given === title && heading === undefined) return withoutSite(title, siteName);
  if (heading && given.split(SEPARATORS).includes(heading.text)) return heading.text;
  return siteName !== null && given.endsWith(siteName) ? withoutEnd(given, siteName) : given;
}

/** A title of this many words is one without the name of the site behind it. */
const TITLE_WORDS_MIN = 4;

/** Where the page has no heading: without what follows the last mark between title and site. */
function withoutSite(title: string, siteName: string | null): string {
  if (siteName !== null && title.endsWith(siteName)) return withoutEnd(title, siteName);
  const at = [' | ', ' - ', ' – ', ' — ', ' · ', ' » '].reduce(
    (last, mark) => Math.max(last, title.lastIndexOf(mark)),
    -1,
  );
  const before = title.slice(0, Math.max(0, at));
  const after = title.slice(at + 3);
  const isLonger = before.split(' ').length >= TITLE_WORDS_MIN && before.length > after.length;
  return isLonger ? before : title;
}

function withoutEnd(title: string, siteName: string): string {
  return title.slice(0, -siteName.length).replace(/\s+[|\-–—·•:»«/]+\s*$/u, '') || title;
}
