import { LIMITS } from '../../core/limits.ts';
import { foldSpace } from '../page/text.ts';
import type { StreamSelector } from './compile.ts';
import type { StartTag } from './start-tag.ts';

export interface StreamField {
  selector: StreamSelector;
  /** Name of the attribute to take, in lower case; the text when absent. */
  attr: string | undefined;
  /** Every match as a list, instead of the first. */
  all: boolean;
  /** White space of the text stays as it is: for data inside a script. */
  raw?: boolean;
  /** Only whether there is a match is asked: the value is '' or null. */
  presence?: boolean;
}

/** Matches inside each other repeat their text: a hostile page of 1 MB could ask for a terabyte. */
const TEXT_LENGTH_MAX = 4 * LIMITS.bodyBytesMax;

export type StreamValue = string | string[] | null;

/** What the fields have found so far on one page, and the text of elements that are still open. */
export class Matches {
  /** Fields that can still change. */
  unfinished = 0;
  /** Innermost level with something to do at its end, or -1. */
  level = -1;
  /** Whether text is being gathered. */
  active = 0;
  readonly #fields: readonly StreamField[];
  readonly #settled: Uint8Array;
  readonly #lastElement: Int32Array;
  #values: StreamValue[] = [];
  #textLength = 0;
  // Pieces of text, and for each open match the piece it begins with: shared, so that nested matches cost nothing more.
  #pieces: string[] = [];
  #levels: number[] = [];
  #firstPieces: number[] = [];
  #openFields: number[] = [];
  #places: number[] = [];
  #held: { level: number; pieces: string[]; active: number }[] = [];

  constructor(fields: readonly StreamField[]) {
    this.#fields = fields;
    this.#settled = new Uint8Array(fields.length);
    this.#lastElement = new Int32Array(fields.length);
  }

  open(): void {
    this.unfinished = this.#fields.length;
    this.level = -1;
    this.active = 0;
    this.#textLength = 0;
    this.#pieces = [];
    this.#levels.length = 0;
    this.#firstPieces.length = 0;
    this.#openFields.length = 0;
    this.#places.length = 0;
    this.#held.length = 0;
    this.#settled.fill(0);
    this.#lastElement.fill(-1);
    this.#values = this.#fields.map((field) => (field.all ? [] : null));
  }

  /** The values, in the order of the fields; lets go of all text. */
  close(): StreamValue[] {
    const values = this.#values;
    this.#values = [];
    this.#pieces = [];
    return values;
  }

  /** Whether a first match was found: the field's selector need not be tried any more. */
  isSettled(field: number): boolean {
    return this.#settled[field] === 1;
  }

  /** `element` tells elements apart; `level` is its place among the open ones, or -1 when it cannot have text. */
  add(field: number, element: number, level: number, tag: StartTag): void {
    if (this.#lastElement[field] === element) return;
    this.#lastElement[field] = element;
    const { attr, all, presence } = this.#fields[field]!;
    if (!all) this.#settled[field] = 1;
    if (attr === undefined && level !== -1 && presence !== true) {
      this.#places.push(all ? (this.#values[field] as string[]).push('') - 1 : -1);
      this.#levels.push(level);
      this.#firstPieces.push(this.#pieces.length);
      this.#openFields.push(field);
      this.level = level;
      this.active++;
      return;
    }
    const value = attr === undefined ? '' : (tag.get(attr) ?? null);
    if (!all) {
      this.#values[field] = value;
      this.unfinished--;
    } else if (value !== null) {
      (this.#values[field] as string[]).push(value);
    }
  }

  addText(text: string): void {
    this.#pieces.push(text);
  }

  /** What is inside a script or style is not text of the elements around it. */
  hold(level: number): void {
    this.#held.push({ level, pieces: this.#pieces, active: this.active });
    this.#pieces = [];
    this.active = 0;
    this.level = level;
  }

  /** The element at `level` ends. */
  end(level: number): void {
    while (this.#levels.at(-1) === level) this.#finish();
    const held = this.#held.at(-1);
    if (held?.level === level) {
      this.#held.pop();
      this.#pieces = held.pieces;
      this.active = held.active;
    } else if (this.active === 0) {
      this.#pieces.length = 0;
    }
    this.level = Math.max(this.#levels.at(-1) ?? -1, this.#held.at(-1)?.level ?? -1);
  }

  #finish(): void {
    this.#levels.pop();
    const first = this.#firstPieces.pop()!;
    const field = this.#openFields.pop()!;
    const place = this.#places.pop()!;
    const isSingle = first + 1 === this.#pieces.length;
    const raw = isSingle ? this.#pieces[first]! : this.#pieces.slice(first).join('');
    this.#textLength += raw.length;
    if (this.#textLength > TEXT_LENGTH_MAX) {
      throw new Error(`the selected texts of a page exceed ${TEXT_LENGTH_MAX} characters`);
    }
    const text = this.#fields[field]!.raw === true ? raw : foldSpace(raw);
    this.active--;
    if (place === -1) {
      this.#values[field] = text;
      this.unfinished--;
    } else {
      (this.#values[field] as string[])[place] = text;
    }
  }
}
