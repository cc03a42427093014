import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';
import { type Head, type Survey, survey } from './page-survey.ts';

interface Content {
  /** Of the `base` element. */
  base: string | null;
  title: string | null;
  root: Document | Element;
  /** Elements inside the root that are not content. */
  omitted: ReadonlySet<Element>;
}

/** The root holds at least this share of what is content. */
const SHARE = 0.85;
/** With less left than this, what names say about the page must be wrong. */
const REST_MIN = 200;
const REST_SHARE_MIN = 0.1;
const HALF = 0.5;
/** Pages that are built by scripts have a main element with nothing in it. */
const MAIN_MIN = 20;
const LINKS_SHARE = 0.15;
/** Boxes to buy, search or sign up in have less text than this. */
const FORM_CHARACTERS_MAX = 200;

const FRAMES = new Set(['header', 'footer', 'aside']);
const LANDMARKS = new Set(['article', 'main']);
const BOXES = new Set(['div', 'section', 'aside', 'ul', 'ol', 'table', 'form', 'header', 'footer', 'dl']);

/**
 * Where the content of a page is. Text is weighed by how much of it is no link; what is beside the content by its names
 * or by its links is left out; the root is the innermost element that holds nearly all of what remains.
 */
export function findContent(document: Document): Content {
  const page = survey(document);
  const scope = mainOf(page);
  const plan = planOf(page, scope);
  const root = rootOf(page, plan, scope);
  const omitted = new Set(plan.omitted.map((number) => page.elements[number]!));
  for (const heading of [...omitted].map(headingOf)) if (heading) omitted.add(heading);
  return { base: page.head.base, title: titleOf(page, root), root: page.elements[root] ?? document, omitted };
}

/** The heading right above, when the element is all that follows it. */
function headingOf(element: Element): Element | null {
  const above = besideOf(element, 'prev');
  const below = besideOf(element, 'next');
  return above && isHeading(above) && (below === null || isHeading(below)) ? above : null;
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

function isHeading({ name }: Element): boolean {
  return /^h[2-6]$/.test(name);
}

interface Plan {
  /** Numbers of elements to leave out, each with all that is inside; in ascending order. */
  omitted: number[];
  /** As in the survey, without what is left out. */
  weights: number[];
  total: number;
}

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

function planOf(page: Survey, scope: number): Plan {
  const without = (omitted: number[]) => lighten(page, omitted, scope);
  const everything = without([]);
  const named = without(outermost(page, [...page.beside, ...frames(page)]));
  const isEnough =
    named.total >= Math.min(HALF * everything.total, Math.max(REST_MIN, REST_SHARE_MIN * everything.total));
  const content = isEnough ? named : without(outermost(page, frames(page)));
  // A page that is a list of links.
  if (scope !== -1 && content.total < LINKS_SHARE * page.characters[scope]!) return content;
  const linked = without(outermost(page, [...content.omitted, ...linkBoxes(page, content)]));
  const best = linked.total >= HALF * content.total ? linked : content;
  return best.total > 0 ? best : everything;
}

/** Headers and footers of the page itself, and what stands beside; those of an article are part of it. */
function frames(page: Survey): number[] {
  const found: number[] = [];
  let landmarkEnd = 0;
  for (const [number, element] of page.elements.entries()) {
    if (isLandmark(element)) landmarkEnd = Math.max(landmarkEnd, page.ends[number]!);
    if (number >= landmarkEnd && FRAMES.has(element.name)) found.push(number);
  }
  return found;
}

function isLandmark({ name, attribs }: Element): boolean {
  return LANDMARKS.has(name) || attribs.role === 'main' || attribs.itemprop === 'articleBody';
}

/** Boxes of little but links, unless they stand among paragraphs, and forms. */
function linkBoxes(page: Survey, { omitted }: Plan): number[] {
  const skipped = new Set(omitted);
  const found: number[] = [];
  for (let number = 0; number < page.elements.length; number++) {
    if (skipped.has(number)) {
      number = page.ends[number]! - 1;
      continue;
    }
    if (!isLinkBox(page, number)) continue;
    found.push(number);
    number = page.ends[number]! - 1;
  }
  return found;
}

function isLinkBox({ elements, characters, linked, parents }: Survey, number: number): boolean {
  const { name } = elements[number]!;
  if (name === 'form' && characters[number]! < FORM_CHARACTERS_MAX) return true;
  if (!BOXES.has(name) || linked[number]! * 3 <= characters[number]! * 2) return false;
  const parent = parents[number]!;
  const isAmongText = parent !== -1 && linked[parent]! * 3 < characters[parent]!;
  return !isAmongText || (name !== 'ul' && name !== 'ol' && name !== 'table');
}

/** Ascending, without those inside others. */
function outermost(page: Survey, numbers: readonly number[]): number[] {
  const kept: number[] = [];
  let end = 0;
  for (const number of numbers.toSorted((a, b) => a - b)) {
    if (number < end) continue;
    kept.push(number);
    end = page.ends[number]!;
  }
  return kept;
}

function lighten(page: Survey, omitted: number[], scope: number): Plan {
  const weights = page.weights.slice();
  const lost = new Float64Array(weights.length);
  for (const number of omitted) lost[number] = weights[number]!;
  let whole = 0;
  // From the inside out: what is left out lightens all that is around it.
  for (let number = weights.length - 1; number >= 0; number--) {
    weights[number]! -= lost[number]!;
    const parent = page.parents[number]!;
    if (parent === -1) whole += weights[number]!;
    else lost[parent]! += lost[number]!;
  }
  return { omitted, weights, total: scope === -1 ? whole : weights[scope]! };
}

/** Number of the root, or -1 for the whole document. */
function rootOf(page: Survey, { weights, total, omitted }: Plan, scope: number): number {
  const skipped = new Set(omitted);
  const { elements, parents, ends, head } = page;
  const heading = head.headings.find(({ text }) => isTitle(head, text))?.number ?? -1;
  let root = scope;
  let landmark = scope;
  for (let number = Math.max(0, scope); number < (ends[scope] ?? elements.length); number++) {
    if (skipped.has(number) || weights[number]! < SHARE * total || total === 0) {
      number = ends[number]! - 1;
      continue;
    }
    root = number;
    if (isLandmark(elements[number]!)) landmark = number;
  }
  if (landmark !== -1) return landmark;
  // The heading belongs to the content, even when it stands beside the box with the text.
  const isOutside = (at: number) => heading < at || heading >= ends[at]!;
  if (heading !== -1 && !isOmitted(page, heading, skipped))
    while (root !== -1 && isOutside(root) && elements[parents[root]!]?.name !== 'body') root = parents[root]!;
  return root;
}

function isOmitted(page: Survey, number: number, skipped: ReadonlySet<number>): boolean {
  for (let at = number; at !== -1; at = page.parents[at]!) if (skipped.has(at)) return true;
  return false;
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
  if (heading && given.split(SEPARATORS).includes(heading.text)) return heading.text;
  if (siteName === null || !given.endsWith(siteName)) return given;
  return given.slice(0, -siteName.length).replace(/\s+[|\-–—·•:»«/]+\s*$/u, '') || given;
}
