import { type Element, isText } from 'domhandler';
import { BlockWriter } from './blocks.ts';
import { codeIn, isGutter, languageOf } from './code.ts';
import { type InlineKind, InlineWriter } from './inline.ts';
import { holdsData, TableWriter } from './table.ts';
import {
  absoluteUrl,
  codeBlock,
  codeSpan,
  escapeHeadingEnd,
  escapeInline,
  escapeLineStart,
  foldText,
  linkTarget,
} from './text.ts';

/** What to do when an element ends; null for nothing. `SKIP` leaves out what is inside. */
export type Leave = () => void;
export const SKIP = Symbol('not looked into');

const BLOCKS = new Set(
  (
    'html body main article section div p header footer aside address figure figcaption fieldset legend form details ' +
    'summary center hgroup dl dt thead tbody tfoot tr td th caption search'
  ).split(' '),
);
const INLINE: Record<string, InlineKind> = Object.assign(Object.create(null), {
  b: 'strong',
  strong: 'strong',
  i: 'em',
  em: 'em',
  del: 'del',
  s: 'del',
  strike: 'del',
  code: 'code',
  kbd: 'code',
  samp: 'code',
  tt: 'code',
});

/** What each element means in Markdown. */
export class ElementWriter {
  readonly #base: URL;
  readonly #inline = new InlineWriter();
  readonly #blocks = new BlockWriter();
  readonly #lists: List[] = [];
  /** What the end of a block is where all must be one line: in headings a space, in cells a break. */
  #flat: ' ' | '<br>' | null = null;
  #isHeading = false;
  #table: TableWriter | null = null;
  #isTableHead = false;
  /** The list that ended last, while nothing was written since. */
  #lastList: List | null = null;

  constructor(base: URL) {
    this.#base = base;
  }

  /** Nothing more would fit. */
  get isFull(): boolean {
    return this.#blocks.isFull || this.#inline.isFull || this.#table?.isFull === true;
  }

  text(data: string): void {
    this.#inline.text(data);
  }

  end(): string {
    this.#boundary();
    return this.#blocks.end();
  }

  begin(element: Element): Leave | typeof SKIP | null {
    const { name } = element;
    const kind = INLINE[name];
    if (kind !== undefined) return kind === 'strong' && this.#isHeading ? null : this.#beginInline(kind);
    switch (name) {
      case 'a': {
        const href = linkOf(element, this.#base, this.#isHeading);
        return href === null ? null : this.#beginInline('link', href);
      }
      case 'br':
        this.#lineBreak();
        return null;
      case 'hr':
        this.#boundary();
        this.#blocks.rule();
        return null;
      case 'img':
        this.#picture(element);
        return null;
      case 'pre':
        this.#code(element);
        return SKIP;
      case 'button':
        return this.#isHeading && this.#inline.isEmpty ? null : SKIP;
      case 'blockquote':
        return this.#beginContainer('> ', '> ');
      case 'dd':
        return this.#beginContainer(': ', '  ', true);
      case 'ul':
      case 'ol':
      case 'menu':
      case 'dir':
        return this.#beginList(element);
      case 'li':
        return this.#beginItem();
      case 'table':
        return this.#beginTable(element);
      case 'q':
        this.#inline.text('"');
        return () => this.#inline.text('"');
      case 'math':
      case 'sup':
        return this.#words(wordsFor(element));
      default:
        if (/^h[1-6]$/.test(name)) return this.#beginHeading(Number(name[1]));
        if (!BLOCKS.has(name)) return null;
        return this.#table ? this.#beginTablePart(element) : this.#beginBlock(element);
    }
  }

  /** The box of a task in a list. */
  checkbox({ attribs }: Element): void {
    if (attribs.type !== 'checkbox' || this.#lists.length === 0) return;
    this.#inline.raw(attribs.checked === undefined ? '[ ]' : '[x]');
    this.#inline.space();
  }

  readonly #boundary = (): void => {
    if (this.#flat === ' ') this.#inline.space();
    else if (this.#flat === '<br>') this.#inline.lineBreak();
    else {
      const text = this.#inline.take();
      if (text !== '') this.#write(text.split('\n').map(escapeLineStart).join('\n'));
    }
  };

  #write(block: string): void {
    this.#blocks.write(block);
    this.#lastList = null;
  }

  #lineBreak(): void {
    if (this.#flat === ' ') this.#inline.space();
    else this.#inline.lineBreak();
  }

  #beginInline(kind: InlineKind, href?: string): Leave | null {
    return this.#inline.open(kind, href) ? () => this.#inline.close() : null;
  }

  #beginBlock(element: Element): Leave | typeof SKIP {
    if (element.name === 'td' && isGutter(element)) return SKIP;
    this.#boundary();
    return this.#boundary;
  }

  /** All that ends inside is a space or a break within one line. */
  #beginLine(flat: ' ' | '<br>', finish: (line: string) => void): Leave {
    this.#boundary();
    this.#flat = flat;
    return () => {
      this.#flat = null;
      finish(this.#inline.take().replace(/ *\n\s*/g, flat));
    };
  }

  #beginHeading(level: number): Leave {
    if (this.#flat !== null) return this.#boundary;
    this.#isHeading = true;
    return this.#beginLine(' ', (line) => {
      this.#isHeading = false;
      if (line !== '') this.#write(`${'#'.repeat(level)} ${escapeHeadingEnd(line)}`);
    });
  }

  #beginContainer(first: string, rest: string, isTight = false): Leave {
    this.#boundary();
    if (this.#flat !== null || !this.#blocks.open(first, rest)) return this.#boundary;
    if (isTight) this.#blocks.tighten();
    return () => {
      this.#boundary();
      this.#blocks.close();
    };
  }

  #beginList(element: Element): Leave {
    this.#boundary();
    const list = listOf(element, this.#lastList, this.#lists.length > 0);
    this.#lists.push(list);
    return () => {
      this.#boundary();
      this.#lists.pop();
      this.#lastList = list;
    };
  }

  #beginItem(): Leave {
    this.#boundary();
    const list = this.#lists.at(-1);
    const mark = nextMark(list);
    if (this.#flat !== null || !this.#blocks.open(mark, ' '.repeat(mark.length))) return this.#boundary;
    if (list?.isBegun) this.#blocks.tighten();
    return () => {
      this.#boundary();
      if (this.#blocks.close() && list) list.isBegun = true;
    };
  }

  #beginTable(element: Element): Leave {
    this.#boundary();
    if (this.#flat !== null || this.#table !== null || !holdsData(element)) return this.#boundary;
    this.#table = new TableWriter();
    return () => {
      const table = this.#table!.end();
      this.#table = null;
      if (table !== null) this.#write(table);
    };
  }

  #beginTablePart(element: Element): Leave | null {
    const { name } = element;
    if (name === 'td' || name === 'th')
      return this.#beginLine('<br>', (line) => this.#table!.cell(line, element));
    if (name === 'tr') return () => this.#table!.endRow(this.#isTableHead);
    if (name === 'tbody' || name === 'tfoot') return null;
    if (name !== 'thead') {
      this.#boundary();
      return this.#boundary;
    }
    this.#isTableHead = true;
    return () => {
      this.#isTableHead = false;
    };
  }

  #picture(element: Element): void {
    const picture = pictureOf(element, this.#base);
    if (picture !== null) this.#inline.raw(picture);
  }

  #code(pre: Element): void {
    const code = codeIn(pre);
    if (this.#flat === null) {
      this.#boundary();
      if (code !== '') this.#write(codeBlock(code, languageOf(pre)));
    } else if (code !== '') this.#inline.raw(codeSpan(foldText(code).trim()));
  }

  #words(words: string | null): typeof SKIP | null {
    if (words === null) return null;
    this.#inline.raw(words);
    return SKIP;
  }
}

interface List {
  isOrdered: boolean;
  number: number;
  marker: string;
  /** Something stands before the next item, so that no empty line is needed. */
  isBegun: boolean;
}

const NUMBER_MAX = 1_000_000;

/** `before` is the list that ended right here: two in a row with one marker would be one list. */
function listOf({ name, attribs }: Element, before: List | null, isNested: boolean): List {
  const isOrdered = name === 'ol';
  const start = Number.parseInt(attribs.start ?? '1', 10);
  const [marker, other] = isOrdered ? (['.', ')'] as const) : (['-', '*'] as const);
  const isAgain = before?.isOrdered === isOrdered && before.marker === marker;
  return {
    isOrdered,
    number: start >= 0 && start < NUMBER_MAX ? start : 1,
    marker: isAgain ? other : marker,
    isBegun: isNested,
  };
}

/** What the next item begins with. */
function nextMark(list: List | undefined): string {
  if (list === undefined) return '- ';
  return list.isOrdered ? `${list.number++}${list.marker} ` : `${list.marker} `;
}

/** What links, pictures and formulas become. */

/** Pictures this small count visitors. */
const TINY_PIXELS = 2;

/** Null where there is no link. A heading that leads to itself has an empty one: its sign goes, its text stays. */
function linkOf({ attribs }: Element, base: URL, isHeading: boolean): string | null {
  return isHeading && attribs.href?.startsWith('#') ? '' : absoluteUrl(attribs.href, base);
}

/** Null for what is no picture to look at, or has no address. */
function pictureOf({ attribs }: Element, base: URL): string | null {
  if (isTiny(attribs.width) || isTiny(attribs.height)) return null;
  const raw =
    [attribs['data-src'], attribs.src, attribs['data-lazy-src'], attribs['data-original']].find(
      (url) => url !== undefined && url !== '' && !url.startsWith('data:'),
    ) ?? firstOf(attribs.srcset ?? attribs['data-srcset']);
  const url = absoluteUrl(raw, base);
  if (url === null || !url.startsWith('http')) return null;
  return `![${escapeInline(foldText(attribs.alt ?? '').trim(), true)}](${linkTarget(url)})`;
}

function isTiny(size: string | undefined): boolean {
  return size !== undefined && /^\d+(?:px)?$/.test(size) && Number.parseInt(size, 10) <= TINY_PIXELS;
}

function firstOf(srcset: string | undefined): string | undefined {
  return srcset === undefined || srcset.startsWith('data:')
    ? undefined
    : /^[\s,]*([^\s,]+)/.exec(srcset)?.[1];
}

/** A power as `^2`, a formula as its author wrote it; null for others, which are read like any text. */
function wordsFor({ name, attribs, children }: Element): string | null {
  if (name === 'math') return attribs.alttext ? `$${foldText(attribs.alttext).trim()}$` : null;
  const [only] = children;
  if (only === undefined || children.length > 1 || !isText(only)) return null;
  const power = only.data.trim();
  return /^[-+−]?\d{1,9}$/.test(power) ? `^${power}` : null;
}
