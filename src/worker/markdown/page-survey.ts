import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';
import { foldSpace } from '../page/text.ts';
import {
  type Beside,
  besideByLabel,
  besideByNames,
  isByline,
  isNeverContent,
  isNotice,
  LABEL_CHARACTERS_MAX,
  NOTICE_CHARACTERS,
} from './boilerplate.ts';

/** One visit of every element of a page: how much it says, how much of that is links, and what it calls itself. */

/** Elements that end a line; text belongs to the nearest one around it. */
const BLOCKS = new Set(
  (
    'html body main article section div p pre blockquote ul ol li dl dt dd table tr td th caption figure figcaption ' +
    'header footer aside form fieldset details summary address center h1 h2 h3 h4 h5 h6'
  ).split(' '),
);

/** Elements that may be shown, in the order of the document. Each has a number, and those inside follow it. */
export interface Survey {
  elements: Element[];
  /** Number of the element around it, or -1. */
  parents: number[];
  /** Number of the first element after those inside. */
  ends: number[];
  /** Characters, and those of them in links, with all that is inside. */
  characters: number[];
  linked: number[];
  /** What the text directly in a block is worth as content; 0 for elements within a line. */
  worth: number[];
  /** The same, with all that is inside. */
  weights: number[];
  /** What its class names, its id and its role say that it is. */
  names: (Beside | null)[];
  /** What the line that it begins with says that it is. */
  labels: (Beside | 'links' | null)[];
  /** Whether its first text is a link. */
  beginsWithLink: boolean[];
  /** Whether there is a block of code in it. */
  hasCode: boolean[];
  head: Head;
}

export interface Heading {
  number: number;
  text: string;
}

export interface Head {
  base: string | null;
  title: string | null;
  ogTitle: string | null;
  siteName: string | null;
  /** The first headings of the page with text: `h1`, and `h2` for pages that have none. */
  headings: Heading[];
  subheadings: Heading[];
}

const HEADINGS_MAX = 20;

/** Lines of a few words are rarely what a page is about, unless they are cells, items or headings; links hardly ever. */
const SHORT = 25;
const SHORT_WORTH = 0.3;
const MAY_BE_SHORT = new Set('td th li dt dd h1 h2 h3 h4 h5 h6'.split(' '));
/** A character of these is about half a word. */
const DENSE = /[\u2e80-\ud7ff\uf900-\ufaff]/;
const DENSITY = 2.5;

function worthOf(name: string, characters: number, linked: number): number {
  if (characters === 0) return 0;
  const own = 1 - linked / characters;
  return characters * own * own * (characters < SHORT && !MAY_BE_SHORT.has(name) ? SHORT_WORTH : 1);
}

export function survey(document: Document): Survey {
  return new Surveyor().survey(document);
}

class Surveyor {
  readonly #survey: Survey = {
    elements: [],
    parents: [],
    ends: [],
    characters: [],
    linked: [],
    worth: [],
    weights: [],
    names: [],
    labels: [],
    beginsWithLink: [],
    hasCode: [],
    head: { base: null, title: null, ogTitle: null, siteName: null, headings: [], subheadings: [] },
  };
  /** Text directly in a block, with that of inline elements; and of it in links. */
  readonly #direct: number[] = [];
  readonly #directLinked: number[] = [];
  /** How a block begins, as text; null for elements within a line. */
  readonly #line: (string | null)[] = [];
  /** The block with the first text of an element, or -1. */
  readonly #first: number[] = [];
  /** Numbers of the elements around the place, of the blocks among them, and how many of them are links. */
  readonly #around: number[] = [];
  readonly #blocks: number[] = [];
  #links = 0;
  readonly #known = new Map<string, Beside | null>();

  survey(document: Document): Survey {
    let node: ChildNode | Document | null = document;
    for (;;) {
      if (this.#enter(node) && 'children' in node && node.children.length > 0) {
        node = node.children[0]!;
        continue;
      }
      for (;;) {
        if (isTag(node) && this.#survey.elements[this.#around.at(-1) ?? -1] === node) this.#leave(node);
        if (node === document) return this.#survey;
        if (node.next !== null) break;
        node = node.parent as ChildNode | Document;
      }
      node = node.next;
    }
  }

  #enter(node: ChildNode | Document): boolean {
    if (isText(node)) this.#text(node.data);
    if (!isTag(node)) return 'children' in node;
    if (node.name === 'head') return true;
    if (node.name === 'meta' || node.name === 'title' || node.name === 'base') this.#note(node);
    if (node.name === 'button' || isNeverContent(node)) return false;
    const page = this.#survey;
    const number = page.elements.push(node) - 1;
    const isBlock = BLOCKS.has(node.name);
    page.parents.push(this.#around.at(-1) ?? -1);
    page.ends.push(number + 1);
    page.characters.push(0);
    page.linked.push(0);
    page.worth.push(0);
    page.weights.push(0);
    page.names.push(besideByNames(node, this.#known));
    page.labels.push(null);
    page.beginsWithLink.push(false);
    page.hasCode.push(node.name === 'pre');
    this.#direct.push(0);
    this.#directLinked.push(0);
    this.#line.push(isBlock ? '' : null);
    this.#first.push(-1);
    this.#around.push(number);
    if (isBlock) this.#blocks.push(number);
    if (isLink(node)) this.#links++;
    return true;
  }

  #leave(node: Element): void {
    const { parents, ends, characters, linked, worth, weights, hasCode, elements, head } = this.#survey;
    const number = this.#around.pop()!;
    if (isLink(node)) this.#links--;
    if (this.#blocks.at(-1) === number) {
      this.#blocks.pop();
      worth[number] = worthOf(node.name, this.#direct[number]!, this.#directLinked[number]!);
      weights[number]! += worth[number]!;
      this.#label(number);
    }
    ends[number] = elements.length;
    const parent = parents[number]!;
    if (parent !== -1) {
      characters[parent]! += characters[number]!;
      linked[parent]! += linked[number]!;
      weights[parent]! += weights[number]!;
      if (hasCode[number]) hasCode[parent] = true;
    }
    const headings = node.name === 'h1' ? head.headings : node.name === 'h2' ? head.subheadings : null;
    if (headings !== null && headings.length < HEADINGS_MAX) {
      const text = textOf(node);
      if (text !== '') headings.push({ number, text });
    }
  }

  #text(data: string): void {
    const text = data.trim();
    const length = DENSE.test(text) ? text.length * DENSITY : text.length;
    const number = this.#around.at(-1);
    if (length === 0 || number === undefined) return;
    const { characters, linked } = this.#survey;
    const block = this.#blocks.at(-1) ?? number;
    this.#begin(number, block);
    characters[number]! += length;
    this.#direct[block]! += length;
    const line = this.#line[block];
    if (line !== null && line !== undefined && line.length < NOTICE_CHARACTERS)
      this.#line[block] = `${line} ${text.slice(0, NOTICE_CHARACTERS)}`;
    if (this.#links === 0) return;
    linked[number]! += length;
    this.#directLinked[block]! += length;
  }

  /** Notes where the text of an element begins, for it and those around it. */
  #begin(number: number, block: number): void {
    const { parents, beginsWithLink } = this.#survey;
    for (let at = number; at !== -1 && this.#first[at] === -1; at = parents[at]!) {
      this.#first[at] = block;
      beginsWithLink[at] = this.#links > 0;
    }
  }

  /** A short line that opens a box says what is in it. */
  #label(block: number): void {
    const line = this.#line[block];
    if (line === null || line === undefined || line === '') return;
    const text = foldSpace(line);
    const { labels, parents } = this.#survey;
    if (this.#direct[block]! > LABEL_CHARACTERS_MAX) {
      // A sentence; "Read also:" with a link in it is one too.
      if (this.#first[block] !== block) return;
      if (isNotice(text)) labels[block] = 'other';
      else if (besideByLabel(text) === 'links') labels[block] = 'links';
      return;
    }
    const label = isNotice(text) ? 'other' : (besideByLabel(text) ?? (isByline(text) ? 'byline' : null));
    if (label === 'byline') labels[block] = label;
    // Words between or after other blocks say nothing of those.
    if (label === null || label === 'byline' || this.#first[block] !== block) return;
    labels[block] = label;
    for (let at = parents[block]!; at !== -1 && this.#first[at] === block; at = parents[at]!)
      labels[at] = label;
  }

  #note(node: Element): void {
    const { head } = this.#survey;
    const { property, name, content } = node.attribs;
    if (node.name === 'title') head.title ??= textOf(node) || null;
    else if (node.name === 'base') head.base ??= node.attribs.href ?? null;
    else if (property === 'og:title' || name === 'og:title')
      head.ogTitle ??= foldSpace(content ?? '') || null;
    else if (property === 'og:site_name') head.siteName ??= foldSpace(content ?? '') || null;
  }
}

/** A place to jump to is no link, and often not closed. */
function isLink({ name, attribs }: Element): boolean {
  return name === 'a' && attribs.href !== undefined;
}

const TITLE_NODES_MAX = 100;

/** Text of a heading or title; what is hidden in it or goes on without end is left out. */
function textOf(element: Element): string {
  let text = '';
  const waiting: ChildNode[] = [element];
  for (let count = 0; count < TITLE_NODES_MAX; count++) {
    const node = waiting.pop();
    if (node === undefined) break;
    if (isText(node)) text += node.data;
    else if (isTag(node) && (node === element || !isAside(node, text)))
      for (const child of node.children.slice(0, TITLE_NODES_MAX).toReversed()) waiting.push(child);
  }
  return foldSpace(text.slice(0, 10_000))
    .replace(/[\s#¶§🔗]+$/u, '')
    .slice(0, 500);
}

/** A button beside the words is none of them; one that has all of them opens a section. */
function isAside(node: Element, before: string): boolean {
  return isNeverContent(node) || (node.name === 'button' && before.trim() !== '');
}
