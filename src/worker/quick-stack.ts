import type { Matches } from './quick-matches.ts';
import { CONTEXT, type ElementNames, SILENT } from './quick-names.ts';

const KEPT_MAX = 10_000;

/** The elements that are open at a place of the page, by htmlparser2's rules of what ends what. */
export class OpenElements {
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
