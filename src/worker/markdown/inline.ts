import { MARKDOWN_CHARS_MAX } from './blocks.ts';
import { codeSpan, escapeInline, foldText, linkTarget } from './text.ts';

/** The running text of a block: words, emphasis, links, code. */

export type InlineKind = 'strong' | 'em' | 'del' | 'code' | 'link';

/** What stands between two pieces of text: nothing, a space, a line break, or more than one of these. */
const NOTHING = 0;
const SPACE = 1;
const BREAK = 2;
const PARAGRAPH = 3;
type Gap = typeof NOTHING | typeof SPACE | typeof BREAK | typeof PARAGRAPH;

const GAP_TEXT = ['', ' ', '  \n', '\n\n'] as const;
const MARKS: Record<'strong' | 'em' | 'del', string> = { strong: '**', em: '*', del: '~~' };
const ALONE = /^[\s#¶§†🔗]*$/u;
const PUNCTUATION = /[\p{P}\p{S}]/u;

interface Frame {
  kind: InlineKind | 'text';
  href: string;
  parts: string[];
  /** Before the first part, and after the last. */
  lead: Gap;
  gap: Gap;
  /** The last part, when it is emphasised: what is inside, and how. */
  tail: { kind: InlineKind; inside: string } | null;
}

function frameOf(kind: Frame['kind'], href = ''): Frame {
  return { kind, href, parts: [], lead: NOTHING, gap: NOTHING, tail: null };
}

const isWordly = (char: string | undefined) =>
  char !== undefined && char !== '' && !/\s/.test(char) && !PUNCTUATION.test(char);
const isPunctuation = (char: string | undefined) => char !== undefined && PUNCTUATION.test(char);

/**
 * Collects one block. Emphasis is only marked where it will be read as such, white space at its ends moves outside, and
 * when a block ends inside of it, it goes on in the next.
 */
export class InlineWriter {
  #frames: Frame[] = [frameOf('text')];
  #length = 0;

  get #top(): Frame {
    return this.#frames[this.#frames.length - 1]!;
  }

  get isEmpty(): boolean {
    return this.#frames.every(({ parts }) => parts.length === 0);
  }

  get isFull(): boolean {
    return this.#length > MARKDOWN_CHARS_MAX;
  }

  text(raw: string): void {
    const folded = foldText(raw);
    const text = folded.trim();
    if (text === '') {
      if (folded !== '') this.space();
      return;
    }
    if (folded.startsWith(' ')) this.space();
    const isCode = this.#top.kind === 'code';
    this.#add(isCode ? text : escapeInline(text, this.#has('link')), text[0]!);
    if (folded.endsWith(' ')) this.space();
  }

  /** Finished Markdown, like a picture. */
  raw(markdown: string): void {
    this.#add(markdown, markdown[0]!);
  }

  space(): void {
    this.#widen(SPACE);
  }

  lineBreak(): void {
    const { parts, lead, gap } = this.#top;
    this.#widen((parts.length === 0 ? lead : gap) >= BREAK ? PARAGRAPH : BREAK);
  }

  /** False when it changes nothing: bold within bold, a link within a link, anything within code. */
  open(kind: InlineKind, href = ''): boolean {
    if (this.#has(kind) || this.#top.kind === 'code') return false;
    this.#frames.push(frameOf(kind, href));
    return true;
  }

  close(): void {
    const frame = this.#frames.pop()!;
    this.#widen(frame.lead);
    const inside = frame.parts.join('');
    if (frame.kind !== 'text' && inside !== '') this.#addWrapped(frame.kind, inside, frame.href);
    this.#widen(frame.gap);
  }

  /** The block so far; what was open goes on in the next one. */
  take(): string {
    const reopened = this.#frames.slice(1).map(({ kind, href }) => frameOf(kind, href));
    while (this.#frames.length > 1) this.close();
    const text = this.#top.parts.join('');
    this.#frames = [frameOf('text'), ...reopened];
    this.#length = 0;
    return text;
  }

  #has(kind: InlineKind): boolean {
    return this.#frames.some((frame) => frame.kind === kind);
  }

  #widen(gap: Gap): void {
    const frame = this.#top;
    if (frame.parts.length === 0) frame.lead = Math.max(frame.lead, gap) as Gap;
    else frame.gap = Math.max(frame.gap, gap) as Gap;
  }

  #add(markdown: string, first: string): void {
    const frame = this.#top;
    if (this.isFull) return;
    // An emphasis that ends in a comma and runs into a word would not be seen as one.
    const { tail } = frame;
    if (tail && frame.gap === NOTHING && isWordly(first) && isPunctuation(tail.inside.at(-1)))
      frame.parts[frame.parts.length - 1] = tail.inside;
    frame.tail = null;
    if (frame.gap !== NOTHING) frame.parts.push(this.#gapText(frame));
    frame.gap = NOTHING;
    frame.parts.push(markdown);
    this.#length += markdown.length;
  }

  #gapText({ kind, gap }: Frame): string {
    if (kind === 'code') return ' ';
    return kind !== 'text' && gap === PARAGRAPH ? GAP_TEXT[BREAK] : GAP_TEXT[gap];
  }

  #addWrapped(kind: InlineKind, inside: string, href: string): void {
    if (kind === 'code') this.#add(codeSpan(inside), '`');
    else if (kind === 'link') this.#addLink(inside, href);
    else this.#addEmphasis(kind, inside);
  }

  #addLink(inside: string, href: string): void {
    // A sign beside a heading that leads to the heading.
    if (ALONE.test(inside)) return;
    if (href === '') {
      this.#add(inside, inside[0]!);
      return;
    }
    this.#escapeExclamation(this.#top);
    this.#add(`[${inside}](${linkTarget(href)})`, '[');
  }

  #addEmphasis(kind: keyof typeof MARKS, added: string): void {
    const frame = this.#top;
    const isNext = frame.gap === NOTHING;
    let inside = added;
    if (isNext && frame.tail?.kind === kind) {
      inside = frame.tail.inside + added;
      frame.parts.pop();
    } else if (isNext && isWordly(frame.parts.at(-1)?.at(-1)) && isPunctuation(added[0])) {
      this.#add(added, added[0]!);
      return;
    }
    this.#add(MARKS[kind] + inside + MARKS[kind], MARKS[kind]);
    frame.tail = { kind, inside };
  }

  /** `Look!` before a link would make a picture of it. */
  #escapeExclamation(frame: Frame): void {
    const last = frame.parts.length - 1;
    if (frame.gap === NOTHING && frame.parts[last]?.endsWith('!'))
      frame.parts[last] = `${frame.parts[last].slice(0, -1)}\\!`;
  }
}
