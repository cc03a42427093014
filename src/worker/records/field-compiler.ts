import type { Element } from 'domhandler';
import { messageOf, SeineError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { isBlank } from '../../core/values/blank.ts';
import { getOwn, setOwn } from '../../core/values/own-property.ts';
import type { RecordData } from '../job/route-code.ts';
import { toJson } from '../page/page.ts';
import { innerHtml } from '../page/serialize-html.ts';
import { foldSpace } from '../page/text.ts';
import { type TreeQuery, TreeSearch } from '../page/tree-search.ts';
import type { StreamSelector } from '../selectors/compile.ts';
import { parseQuick, type QuickField } from '../selectors/stream-select.ts';
import type { FieldContext } from './extract.ts';
import type { FieldPlan } from './field-plan.ts';
import {
  dataOf,
  type Finish,
  finishAll,
  finishOf,
  patternOf,
  sourceReader,
  textOfData,
  tooMany,
} from './field-types.ts';
import type { DataPath, DataValue } from './json-ld.ts';

/** `root` is the element that a nested field is read in; null for the whole page. */
type Read = (reading: FieldContext, root: Element | null) => unknown;

interface Member {
  name: string;
  path: string;
  required: boolean;
  read: Read;
}

/** Null when all fields are blank; then their absence in one of many elements is no mistake of the page. */
export function objectOf(
  members: readonly Member[],
  reading: FieldContext,
  root: Element | null,
): RecordData | null {
  const object: RecordData = {};
  let hasValue = false;
  let lacksRequired = false;
  for (const { name, read, required } of members) {
    const value = read(reading, root);
    setOwn(object, name, value);
    if (!isBlank(value)) hasValue = true;
    else if (required) lacksRequired = true;
  }
  if (lacksRequired && (hasValue || root === null)) {
    for (const { name, path, required } of members)
      if (required && isBlank(getOwn(object, name))) reading.miss(path);
  }
  return hasValue ? object : null;
}

const DATA_BLOCKS = parseQuick('script[type^="application/ld+json" i]')!;

/** Makes readers of fields. What they find by one pass over a page is asked for in `quick`, by slot. */
export class FieldCompiler {
  readonly quick: QuickField[] = [];
  readonly tree = new TreeSearch();
  #dataSlot = -1;

  async members(plans: readonly FieldPlan[], scoped: boolean): Promise<Member[]> {
    const members: Member[] = [];
    for (const plan of plans) {
      const { name, path, spec } = plan;
      members.push({ name, path, required: spec.required, read: await this.#compile(plan, scoped) });
    }
    return members;
  }

  /** Whether an element is there. */
  presence(css: string, route?: string): (reading: FieldContext) => boolean {
    const query = this.#query(css, false, `\`require\` of route '${route}'`);
    const selector = parseQuick(css);
    if (selector === null) return ({ page }) => this.tree.first(query, page.document) !== null;
    const slot = this.#slotFor({ selector, attr: undefined, all: false, presence: true });
    return ({ found }) => found[slot] !== null;
  }

  async #compile(plan: FieldPlan, scoped: boolean): Promise<Read> {
    const { origin } = plan;
    if (plan.fields) return this.#objects(plan, plan.fields, scoped);
    const regex = await patternOf(plan);
    const finish = finishOf(plan, regex);
    if (origin.kind === 'data') return this.#fromData(plan, origin.path, finish);
    if (origin.kind === 'here' && !scoped) return sourceReader(plan, regex!);
    const query = origin.kind === 'css' ? this.#query(origin.css, scoped, plan.place) : null;
    const selector = scoped ? null : quickSelectorOf(plan);
    return selector === null ? this.#fromTree(plan, query, finish) : this.#fromPass(plan, selector, finish);
  }

  #query(css: string, scoped: boolean, place: string): TreeQuery {
    try {
      return this.tree.compile(css, scoped);
    } catch (error) {
      throw new SeineError(`the selector of ${place} is not valid CSS: ${css} (${messageOf(error)})`);
    }
  }

  #slotFor(field: QuickField): number {
    return this.quick.push(field) - 1;
  }

  async #objects(plan: FieldPlan, fields: FieldPlan[], scoped: boolean): Promise<Read> {
    const { origin, spec, place } = plan;
    const { tree } = this;
    if (origin.kind !== 'css') {
      const members = await this.members(fields, scoped);
      return (reading, root) => objectOf(members, reading, root);
    }
    const query = this.#query(origin.css, scoped, place);
    const members = await this.members(fields, true);
    if (spec.all) {
      return (reading, root) =>
        tree
          .all(query, root ?? reading.page.document)
          .map((element) => objectOf(members, reading, element))
          .filter((object) => object !== null);
    }
    return (reading, root) => {
      const element = tree.first(query, root ?? reading.page.document);
      return element ? objectOf(members, reading, element) : null;
    };
  }

  #fromPass({ spec, attr, place }: FieldPlan, selector: StreamSelector, finish: Finish | null): Read {
    const { all } = spec;
    const slot = this.#slotFor({ selector, attr, all, raw: spec.type === 'json' });
    if (!all) {
      if (finish === null) return ({ found }) => found[slot];
      return (reading) => {
        const text = reading.found[slot] as string | null;
        return text === null ? null : finish(text, reading);
      };
    }
    return (reading) => {
      const texts = reading.found[slot] as string[];
      if (texts.length > LIMITS.valuesPerFieldMax) throw tooMany(place);
      return finish === null ? texts : finishAll(texts, finish, reading);
    };
  }

  async #fromTree(plan: FieldPlan, query: TreeQuery | null, finish: Finish | null): Promise<Read> {
    const { tree } = this;
    const take = await this.#taker(plan);
    const valueFrom = (element: Element, reading: FieldContext): unknown => {
      const text = take(element, reading);
      return text === null || finish === null ? text : finish(text, reading);
    };
    if (query === null) return (reading, root) => wrapped(valueFrom(root!, reading), plan.spec.all);
    if (plan.spec.all) {
      return (reading, root) =>
        tree
          .all(query, root ?? reading.page.document)
          .map((element) => valueFrom(element, reading))
          .filter((value) => value !== null);
    }
    return (reading, root) => {
      const element = tree.first(query, root ?? reading.page.document);
      return element ? valueFrom(element, reading) : null;
    };
  }

  async #taker({
    attr,
    spec,
  }: FieldPlan): Promise<(element: Element, reading: FieldContext) => string | null> {
    const { tree } = this;
    if (attr !== undefined) return ({ attribs }) => (Object.hasOwn(attribs, attr) ? attribs[attr]! : null);
    if (spec.type === 'json') return (element) => tree.rawTextOf(element);
    if (spec.type === 'html') return (element) => innerHtml(element, (steps) => tree.spend(steps));
    if (spec.type !== 'markdown') return (element) => tree.textOf(element);
    const { toMarkdown } = await import('../markdown/markdown.ts');
    return (element, reading) => toMarkdown(element, reading.base());
  }

  #fromData({ spec, place }: FieldPlan, path: DataPath, finish: Finish | null): Read {
    if (this.#dataSlot === -1)
      this.#dataSlot = this.#slotFor({ selector: DATA_BLOCKS, attr: undefined, all: true, raw: true });
    const slot = this.#dataSlot;
    const valueFrom = (data: DataValue, reading: FieldContext): unknown => {
      const value = spec.regex === undefined ? dataOf(data, spec) : textOfData(data.value, ['name']);
      if (spec.type === 'json' && spec.regex === undefined) {
        // One object can be found many times, by what refers to it.
        this.tree.spend(toJson(value, 'JSON-LD')?.length ?? 0);
        return value;
      }
      if (typeof value !== 'string') return value;
      this.tree.spend(value.length);
      return finish === null ? foldSpace(value) : finish(value, reading);
    };
    return (reading) => {
      const values: unknown[] = [];
      for (const data of reading.dataIn(slot).valuesAt(path)) {
        const value = valueFrom(data, reading);
        if (value === null || value === undefined) continue;
        if (!spec.all) return value;
        if (values.push(value) > LIMITS.valuesPerFieldMax) throw tooMany(place);
      }
      return spec.all ? values : null;
    };
  }
}

/** Null for what needs a tree. */
function quickSelectorOf({ origin, attr, spec }: FieldPlan): StreamSelector | null {
  if (origin.kind !== 'css' || attr === '__proto__') return null;
  return spec.type === 'html' || spec.type === 'markdown' ? null : parseQuick(origin.css);
}

function wrapped(value: unknown, all: boolean): unknown {
  if (!all) return value;
  return value === null ? [] : [value];
}
