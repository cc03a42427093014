import { endOfMarkup, isLetter } from '../page/html-tags.ts';
import { decodeRcdata, decodeText, endOfTextOnly } from '../page/text.ts';
import { BITS_MAX, bitsOf } from './compile.ts';
import {
  CONTEXT,
  ElementNames,
  INTEGRATION,
  MATH,
  PLAIN,
  RAW,
  RCDATA,
  SILENT,
  SVG,
  TEXT_ONLY,
  VOID,
} from './elements.ts';
import { Matches, type StreamField, type StreamValue } from './matches.ts';
import { StartTag } from './start-tag.ts';
import { Steps } from './steps.ts';

const SLASH = 47;
const LESS = 60;
const GREATER = 62;

/** Reads all fields of a page; the values are in the order of the fields. */
export function compileStreamSelectors(fields: readonly StreamField[]): (html: string) => StreamValue[] {
  const passes: StreamField[][] = [];
  let bits = BITS_MAX;
  for (const field of fields) {
    bits += bitsOf(field.selector);
    if (bits > BITS_MAX || passes.length === 0) {
      passes.push([]);
      bits = bitsOf(field.selector);
    }
    passes.at(-1)!.push(field);
  }
  const scans = passes.map((pass) => new StreamScan(pass));
  if (scans.length === 1) return (html) => scans[0]!.run(html);
  return (html) => scans.flatMap((scan) => scan.run(html));
}

/**
 * Matches fields in one pass over a page, with a stack of open elements in place of a tree. Elements begin and end as
 * in htmlparser2, its oddities at the end of a page included, so that a field has the same value both ways.
 */
class StreamScan {
  readonly #names: ElementNames;
  readonly #matches: Matches;
  readonly #steps: Steps;
  readonly #elements: OpenElements;
  readonly #tag = new StartTag();
  readonly #form: number;
  readonly #p: number;
  readonly #br: number;
  readonly #image: number;
  readonly #img: number;
  readonly #template: number;
  #html = '';

  constructor(fields: readonly StreamField[]) {
    const compounds = fields.flatMap((field) => field.selector.flat());
    const names = new ElementNames(compounds.flatMap(({ tag }) => (tag === null ? [] : [tag])));
    this.#names = names;
    this.#matches = new Matches(fields);
    this.#steps = new Steps(fields, names, this.#matches);
    this.#elements = new OpenElements(names, this.#matches);
    this.#form = names.idOf('form');
    this.#p = names.idOf('p');
    this.#br = names.idOf('br');
    this.#image = names.idOf('image');
    this.#img = names.idOf('img');
    this.#template = names.idOf('template');
  }

  run(html: string): StreamValue[] {
    this.#html = html;
    this.#tag.open(html);
    this.#matches.open();
    this.#steps.open(html);
    this.#elements.open();
    this.#scan(html);
    this.#elements.endAll();
    // Nothing of the page is kept until the next one.
    this.#html = '';
    this.#tag.close();
    this.#steps.close();
    this.#names.forgetMet();
    return this.#matches.close();
  }

  #scan(html: string): void {
    const matches = this.#matches;
    let textStart = 0;
    let at = 0;
    while (matches.unfinished > 0) {
      const open = html.charCodeAt(at) === LESS ? at : html.indexOf('<', at);
      if (open === -1) break;
      const code = html.charCodeAt(open + 1);
      if (isLetter(code)) {
        if (matches.active > 0) this.#text(textStart, open);
        at = this.#startTag(html, open + 1);
      } else if (code === SLASH && isLetter(html.charCodeAt(open + 2))) {
        if (matches.active > 0) this.#text(textStart, open);
        at = this.#endTag(html, open + 2);
      } else {
        // CDATA is passed over everywhere, though it is text in SVG and MathML only.
        at = code === SLASH && open + 2 === html.length ? open + 1 : endOfMarkup(html, open, true);
        if (at === open + 1) continue;
        if (matches.active > 0) {
          this.#text(textStart, open);
          if (at !== -1 && this.#isForeign() && html.startsWith('![CDATA[', open + 1))
            matches.addText(html.slice(open + 9, at - 3));
        }
      }
      if (at === -1) return;
      textStart = at;
    }
    if (matches.active > 0) this.#text(textStart, html.length);
  }

  #text(start: number, end: number): void {
    if (start < end) this.#matches.addText(decodeText(this.#html.slice(start, end)));
  }

  #isForeign(): boolean {
    const { context } = this.#elements;
    return context !== 0 && context !== INTEGRATION;
  }

  /** The id by which an element of this name is known in the place where it stands. */
  #nameHere(id: number): number {
    const elements = this.#elements;
    if (elements.isInsideForeign && id < this.#names.known) {
      const inSvg = this.#names.svg[id]!;
      if (inSvg !== id && (elements.context === SVG || elements.has(inSvg))) return inSvg;
    }
    return id === this.#image && !this.#isForeign() ? this.#img : id;
  }

  /** Returns where the page goes on after the tag and any text-only content, or -1 at its end. */
  #startTag(html: string, start: number): number {
    const names = this.#names;
    const elements = this.#elements;
    const tag = this.#tag;
    let id = names.read(html, start);
    const nameEnd = names.end;
    const foreign = elements.isInsideForeign && this.#isForeign();
    if (nameEnd >= html.length) return this.#breakInName(foreign, start);
    if (elements.isInsideForeign || id === this.#image) id = this.#nameHere(id);
    // A form inside a form is no element.
    if (id === this.#form && elements.has(id)) return this.#passTag(nameEnd);
    const known = id < names.known;
    const traits = known ? names.traits[id]! : 0;
    if (known && names.closes[id] !== 0) elements.makeWayFor(id);
    // In SVG and MathML a slash at its end closes a tag; elsewhere it means nothing.
    const maySelfClose = foreign || (traits & (SVG | MATH)) !== 0;
    const end = maySelfClose ? tag.walk(nameEnd) : tag.skip(nameEnd);
    if (end === -1) return this.#breakInTag();
    const isVoid = (traits & VOID) !== 0;
    const level = isVoid ? -1 : elements.depth + 1;
    elements.silence(traits);
    const bits = this.#match(id, start, end, level);
    if (isVoid) return end;
    elements.push(id, traits, bits);
    if (maySelfClose && tag.selfClosing && this.#isForeign()) elements.pop();
    return (traits & (RAW | RCDATA | PLAIN)) !== 0 && !foreign ? this.#textOnly(html, end, id, traits) : end;
  }

  #match(id: number, start: number, end: number, level: number): number {
    const steps = this.#steps.of(id);
    // Selectors do not look into templates.
    if (steps === undefined || this.#elements.has(this.#template)) return 0;
    const { depth, own, around } = this.#elements;
    return this.#steps.match(steps, this.#tag, start, end, own[depth]!, around[depth]!, level);
  }

  #endTag(html: string, start: number): number {
    const elements = this.#elements;
    let id = this.#names.read(html, start);
    const nameEnd = this.#names.end;
    if (nameEnd >= html.length) return -1;
    if (elements.isInsideForeign || id === this.#image) id = this.#nameHere(id);
    if (elements.has(id)) {
      elements.end(id);
    } else if (id === this.#p || id === this.#br) {
      // The end of what never began stands for an empty element.
      this.#tag.setImplied();
      this.#match(id, start, start, -1);
    }
    if (html.charCodeAt(nameEnd) === GREATER) return nameEnd + 1;
    const end = html.indexOf('>', nameEnd);
    if (end !== -1) return end + 1;
    this.#oddText();
    return -1;
  }

  #textOnly(html: string, start: number, id: number, traits: number): number {
    const name = this.#names.nameOf(id);
    const isRcdata = (traits & RCDATA) !== 0;
    const found = (traits & PLAIN) !== 0 ? -1 : endOfTextOnly(html, start, name, isRcdata);
    if (this.#matches.active > 0) {
      const raw = html.slice(start, found === -1 ? html.length : found);
      this.#matches.addText(isRcdata ? decodeRcdata(raw, name) : raw);
    }
    return found === -1 ? -1 : this.#endTag(html, found + 2);
  }

  #passTag(nameEnd: number): number {
    const end = this.#tag.skip(nameEnd);
    return end === -1 ? this.#breakInTag() : end;
  }

  /** The page ends in the name of a start tag: nothing, or text when it could become the name of a text-only element. */
  #breakInName(foreign: boolean, start: number): number {
    const name = this.#html.slice(start);
    if (
      !foreign &&
      this.#matches.active > 0 &&
      TEXT_ONLY.some((known) => known.startsWith(name.toLowerCase()))
    )
      this.#matches.addText(name);
    return -1;
  }

  #breakInTag(): number {
    if (this.#tag.brokenAtSlash) this.#oddText();
    return -1;
  }

  /** When a page ends in some parts of a tag, htmlparser2 takes its last character for text. */
  #oddText(): void {
    if (this.#matches.active > 0) this.#matches.addText(this.#html.slice(-1));
  }
}

const KEPT_MAX = 10_000;

/** The elements that are open at a place of the page, by htmlparser2's rules of what ends what. */
class OpenElements {
  depth = 0;
  /** Bits of the steps matched by the element of a level, and by it and all around it. Level 0 is the document. */
  readonly own: number[] = [0];
  readonly around: number[] = [0];
  /** The innermost of svg, math and integration points, as its trait; 0 outside of all. */
  context = 0;
  readonly #names: ElementNames;
  readonly #matches: Matches;
  readonly #ids: number[] = [0];
  /** By name, so that an end tag without a start costs no walk through a deep page. */
  readonly #counts: number[] = [];
  readonly #contexts: number[] = [];

  constructor(names: ElementNames, matches: Matches) {
    this.#names = names;
    this.#matches = matches;
  }

  open(): void {
    // What one very deep page took is not kept for all others.
    if (this.#ids.length > KEPT_MAX) this.#ids.length = this.own.length = this.around.length = 1;
    this.depth = 0;
    this.context = 0;
    this.#contexts.length = 0;
    this.#counts.length = Math.min(this.#counts.length, this.#names.known);
    this.#counts.fill(0);
  }

  has(id: number): boolean {
    return this.#counts[id]! > 0;
  }

  get isInsideForeign(): boolean {
    return this.#contexts.length > 0;
  }

  push(id: number, traits: number, bits: number): void {
    const level = ++this.depth;
    this.#ids[level] = id;
    this.own[level] = bits;
    this.around[level] = this.around[level - 1]! | bits;
    while (id >= this.#counts.length) this.#counts.push(0);
    this.#counts[id]!++;
    if ((traits & CONTEXT) !== 0) {
      this.#contexts.push(this.context);
      this.context = traits & CONTEXT;
    }
  }

  /** Holds back text inside a script or style from the matches around it; to be called before its own are added. */
  silence(traits: number): void {
    if ((traits & SILENT) !== 0 && this.#matches.active > 0) this.#matches.hold(this.depth + 1);
  }

  pop(): void {
    const level = this.depth--;
    const id = this.#ids[level]!;
    this.#counts[id]!--;
    if (id < this.#names.known && (this.#names.traits[id]! & CONTEXT) !== 0)
      this.context = this.#contexts.pop()!;
    if (this.#matches.level === level) this.#matches.end(level);
  }

  /** Ends what a start tag of this name ends: a `<li>` the `<li>` before it. */
  makeWayFor(id: number): void {
    const closes = this.#names.closes[id]!;
    while (this.depth > 0) {
      const top = this.#ids[this.depth]!;
      if (top >= this.#names.known || (this.#names.bit[top]! & closes) === 0) return;
      this.pop();
    }
  }

  /** An end tag: the innermost element of that name ends, with all inside it. */
  end(id: number): void {
    while (this.#ids[this.depth] !== id) this.pop();
    this.pop();
  }

  endAll(): void {
    while (this.depth > 0) this.pop();
  }
}
