import type { Compound } from './compile.ts';
import type { ElementNames } from './elements.ts';
import type { Matches, StreamField } from './matches.ts';
import { next, type StartTag } from './start-tag.ts';

/** A compound in its place among the selectors of one pass. */
interface Step {
  field: number;
  isChild: boolean;
  /** Bit of the step before, to be found on the parent or around it; 0 for the first. */
  after: number;
  /** Bit of this step; 0 for the last, which makes a match. */
  bit: number;
  needle: number;
  test: Compound['test'];
}

/** The selectors of one pass, found by tag name, so that most tags have none to try. */
export class Steps {
  readonly #byName: (Step[] | undefined)[] = [];
  readonly #ofAnyName: Step[] | undefined;
  readonly #needles: string[] = [];
  readonly #needlesAt: number[] = [];
  readonly #matches: Matches;
  #referenceAt = -1;
  #html = '';

  constructor(fields: readonly StreamField[], names: ElementNames, matches: Matches) {
    this.#matches = matches;
    const named: [number, Step][] = [];
    const ofAnyName: Step[] = [];
    let bits = 0;
    fields.forEach(({ selector }, field) => {
      for (const chain of selector) {
        let after = 0;
        chain.forEach(({ tag, test, needle, isChild }, index) => {
          const bit = index === chain.length - 1 ? 0 : 1 << bits++;
          const step = { field, isChild, after, bit, needle: this.#placeOf(needle), test };
          if (tag === null) ofAnyName.push(step);
          else named.push([names.idOf(tag), step]);
          after = bit;
        });
      }
    });
    this.#ofAnyName = ofAnyName.length > 0 ? ofAnyName : undefined;
    for (let id = 0; id < names.known; id++) this.#byName.push(this.#ofAnyName);
    for (const [id, step] of named) {
      if (this.#byName[id] === this.#ofAnyName) this.#byName[id] = [...ofAnyName];
      this.#byName[id]!.push(step);
    }
  }

  #placeOf(needle: string): number {
    if (needle === '') return -1;
    const place = this.#needles.indexOf(needle);
    return place === -1 ? this.#needles.push(needle) - 1 : place;
  }

  open(html: string): void {
    this.#html = html;
    this.#referenceAt = -1;
    for (let place = 0; place < this.#needles.length; place++) this.#needlesAt[place] = -1;
  }

  close(): void {
    this.#html = '';
  }

  /** The steps that an element of this name could match. */
  of(id: number): Step[] | undefined {
    return id < this.#byName.length ? this.#byName[id] : this.#ofAnyName;
  }

  /**
   * Tries the steps on the element whose tag lies from `start` to `end`, and returns the bits that it sets. `own` are
   * the bits of its parent, `around` also those of all around it; `level` is as in Matches.
   */
  match(
    steps: Step[],
    tag: StartTag,
    start: number,
    end: number,
    own: number,
    around: number,
    level: number,
  ): number {
    const matches = this.#matches;
    let bits = 0;
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]!;
      if (step.after !== 0 && ((step.isChild ? own : around) & step.after) === 0) continue;
      if (step.needle !== -1 && !this.#canHold(step.needle, start, end)) continue;
      if (matches.isSettled(step.field)) continue;
      if (step.test !== null && !step.test(tag)) continue;
      if (step.bit === 0) matches.add(step.field, start, level, tag);
      else bits |= step.bit;
    }
    return bits;
  }

  /** Whether the needle, or a reference that could stand for a part of it, is between `start` and `end`. */
  #canHold(place: number, start: number, end: number): boolean {
    let at = this.#needlesAt[place]!;
    if (at < start) {
      at = next(this.#html, this.#needles[place]!, start);
      this.#needlesAt[place] = at;
    }
    if (at < end) return true;
    if (this.#referenceAt < start) this.#referenceAt = next(this.#html, '&', start);
    return this.#referenceAt < end;
  }
}
