import type { Element } from 'domhandler';
import { messageOf, SeineError } from '../../core/errors.ts';
import type { FieldSpec } from '../../core/job-schema/job.ts';
import { isBlank } from '../../core/values/blank.ts';
import { getOwn, setOwn } from '../../core/values/own-property.ts';
import { ValidationError } from '../job/compiled-job.ts';
import type { RecordData } from '../job/route-code.ts';
import { type Page, resolveBase, toJson } from '../page/page.ts';
import { innerHtml } from '../page/serialize-html.ts';
import { foldSpace } from '../page/text.ts';
import { type TreeQuery, TreeSearch, VALUES_PER_FIELD_MAX } from '../page/tree-search.ts';
import { parseStreamSelector, type StreamSelector } from '../selectors/compile.ts';
import type { StreamField, StreamValue } from '../selectors/matches.ts';
import { compileStreamSelectors } from '../selectors/stream-select.ts';
import { type FieldPlan, planFields } from './field-plan.ts';
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
import { type DataPath, type DataValue, LinkedData } from './json-ld.ts';

/** Null when no field has a value. Throws a ValidationError when something that must be there is not. */
export type Extractor = (page: Page) => RecordData | null;

interface ExtractorOptions {
  /** For error messages. */
  route?: string;
  /** Selectors that must match. */
  require?: readonly string[];
}

const NOTHING: StreamValue[] = [];

/**
 * Compiles the fields of a route once. Throws a SeineError that names the field when one is wrong. Plain selectors are
 * read off the text in one pass, for a tenth of what a tree costs; the others share one tree.
 */
export async function compileFields(
  fields: Record<string, FieldSpec | string>,
  { route, require = [] }: ExtractorOptions = {},
): Promise<Extractor> {
  const compiler = new FieldCompiler();
  const wanted = require.map((css) => ({ css, isThere: compiler.isPresent(css, route) }));
  const members = await compiler.members(planFields(fields, route ?? null), false);
  const { streamed, tree } = compiler;
  const scanFields = compileStreamSelectors(streamed);
  return (page) => {
    tree.begin();
    const context = new FieldContext(page, streamed.length > 0 ? scanFields(page.text) : NOTHING);
    for (const { css, isThere } of wanted)
      if (!isThere(context)) throw new ValidationError(`no element matches ${css}`);
    if (members.length === 0) return null;
    const record = objectOf(members, context, null);
    if (context.missing !== null)
      throw new ValidationError(`required fields are missing: ${[...context.missing].join(', ')}`);
    return record;
  };
}

const readBase = compileStreamSelectors([
  { selector: parseStreamSelector('base[href]')!, attr: 'href', all: false },
]);
const MAY_HAVE_BASE = /<base[\s/]/i;

/** One page while its fields are read: what several of them need is made once. */
export class FieldContext {
  readonly page: Page;
  /** What the one pass over the page has found, in the order of its fields. */
  readonly found: StreamValue[];
  /** Required fields that have no value; null while there are none. */
  missing: Set<string> | null = null;
  #base: string | null = null;
  #data: LinkedData | null = null;

  constructor(page: Page, found: StreamValue[]) {
    this.page = page;
    this.found = found;
  }

  /** What URLs of the page are relative to. */
  base(): string {
    this.#base ??= baseOf(this.page);
    return this.#base;
  }

  miss(field: string): void {
    this.missing ??= new Set();
    this.missing.add(field);
  }

  /** `slot` is where the blocks are among what was found. */
  dataIn(slot: number): LinkedData {
    this.#data ??= new LinkedData(this.found[slot] as string[]);
    return this.#data;
  }
}

/** `baseUrlOf`, without a tree. */
function baseOf({ text, url }: Page): string {
  if (!MAY_HAVE_BASE.test(text)) return url;
  const [href] = readBase(text);
  return resolveBase(href as string | null, url);
}

/** `root` is the element that a nested field is read in; null for the whole page. */
type Read = (context: FieldContext, root: Element | null) => unknown;

interface Member {
  name: string;
  path: string;
  required: boolean;
  read: Read;
}

/** Null when all fields are blank; then their absence in one of many elements is no mistake of the page. */
export function objectOf(
  members: readonly Member[],
  context: FieldContext,
  root: Element | null,
): RecordData | null {
  const object: RecordData = {};
  let hasValue = false;
  let lacksRequired = false;
  for (const { name, read, required } of members) {
    const value = read(context, root);
    setOwn(object, name, value);
    if (!isBlank(value)) hasValue = true;
    else if (required) lacksRequired = true;
  }
  if (lacksRequired && (hasValue || root === null)) {
    for (const { name, path, required } of members)
      if (required && isBlank(getOwn(object, name))) context.miss(path);
  }
  return hasValue ? object : null;
}

const DATA_BLOCKS = parseStreamSelector('script[type^="application/ld+json" i]')!;

/** Makes readers of fields. What they find by one pass over a page is collected in `streamed`, by slot. */
class FieldCompiler {
  readonly streamed: StreamField[] = [];
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
  isPresent(css: string, route?: string): (context: FieldContext) => boolean {
    const query = this.#query(css, false, `\`require\` of route '${route}'`);
    const selector = parseStreamSelector(css);
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
    const selector = scoped ? null : streamSelectorOf(plan);
    return selector === null ? this.#fromTree(plan, query, finish) : this.#fromPass(plan, selector, finish);
  }

  #query(css: string, scoped: boolean, place: string): TreeQuery {
    try {
      return this.tree.compile(css, scoped);
    } catch (error) {
      throw new SeineError(`the selector of ${place} is not valid CSS: ${css} (${messageOf(error)})`, {
        written: css,
      });
    }
  }

  #slotFor(field: StreamField): number {
    return this.streamed.push(field) - 1;
  }

  async #objects(plan: FieldPlan, fields: FieldPlan[], scoped: boolean): Promise<Read> {
    const { origin, spec, place } = plan;
    const { tree } = this;
    if (origin.kind !== 'css') {
      const members = await this.members(fields, scoped);
      return (context, root) => objectOf(members, context, root);
    }
    const query = this.#query(origin.css, scoped, place);
    const members = await this.members(fields, true);
    if (spec.all) {
      return (context, root) =>
        tree
          .all(query, root ?? context.page.document)
          .map((element) => objectOf(members, context, element))
          .filter((object) => object !== null);
    }
    return (context, root) => {
      const element = tree.first(query, root ?? context.page.document);
      return element ? objectOf(members, context, element) : null;
    };
  }

  #fromPass({ spec, attr, place }: FieldPlan, selector: StreamSelector, finish: Finish | null): Read {
    const { all } = spec;
    const slot = this.#slotFor({ selector, attr, all, raw: spec.type === 'json' });
    if (!all) {
      if (finish === null) return ({ found }) => found[slot];
      return (context) => {
        const text = context.found[slot] as string | null;
        return text === null ? null : finish(text, context);
      };
    }
    return (context) => {
      const texts = context.found[slot] as string[];
      if (texts.length > VALUES_PER_FIELD_MAX) throw tooMany(place);
      return finish === null ? texts : finishAll(texts, finish, context);
    };
  }

  async #fromTree(plan: FieldPlan, query: TreeQuery | null, finish: Finish | null): Promise<Read> {
    const { tree } = this;
    const take = await this.#taker(plan);
    const valueFrom = (element: Element, context: FieldContext): unknown => {
      const text = take(element, context);
      return text === null || finish === null ? text : finish(text, context);
    };
    if (query === null) return (context, root) => wrapped(valueFrom(root!, context), plan.spec.all);
    if (plan.spec.all) {
      return (context, root) =>
        tree
          .all(query, root ?? context.page.document)
          .map((element) => valueFrom(element, context))
          .filter((value) => value !== null);
    }
    return (context, root) => {
      const element = tree.first(query, root ?? context.page.document);
      return element ? valueFrom(element, context) : null;
    };
  }

  async #taker({
    attr,
    spec,
  }: FieldPlan): Promise<(element: Element, context: FieldContext) => string | null> {
    const { tree } = this;
    if (attr !== undefined) return ({ attribs }) => (Object.hasOwn(attribs, attr) ? attribs[attr]! : null);
    if (spec.type === 'json') return (element) => tree.rawTextOf(element);
    if (spec.type === 'html') return (element) => innerHtml(element, (steps) => tree.spend(steps));
    if (spec.type !== 'markdown') return (element) => tree.textOf(element);
    const { toMarkdown } = await import('../markdown/markdown.ts');
    return (element, context) => toMarkdown(element, context.base());
  }

  #fromData({ spec, place }: FieldPlan, path: DataPath, finish: Finish | null): Read {
    if (this.#dataSlot === -1)
      this.#dataSlot = this.#slotFor({ selector: DATA_BLOCKS, attr: undefined, all: true, raw: true });
    const slot = this.#dataSlot;
    const valueFrom = (data: DataValue, context: FieldContext): unknown => {
      const value = spec.regex === undefined ? dataOf(data, spec) : textOfData(data.value, ['name']);
      if (spec.type === 'json' && spec.regex === undefined) {
        // One object can be found many times, by what refers to it.
        this.tree.spend(toJson(value, 'JSON-LD')?.length ?? 0);
        return value;
      }
      if (typeof value !== 'string') return value;
      this.tree.spend(value.length);
      return finish === null ? foldSpace(value) : finish(value, context);
    };
    return (context) => {
      const values: unknown[] = [];
      for (const data of context.dataIn(slot).valuesAt(path)) {
        const value = valueFrom(data, context);
        if (value === null || value === undefined) continue;
        if (!spec.all) return value;
        if (values.push(value) > VALUES_PER_FIELD_MAX) throw tooMany(place);
      }
      return spec.all ? values : null;
    };
  }
}

/** Null for what needs a tree. */
function streamSelectorOf({ origin, attr, spec }: FieldPlan): StreamSelector | null {
  if (origin.kind !== 'css' || attr === '__proto__') return null;
  return spec.type === 'html' || spec.type === 'markdown' ? null : parseStreamSelector(origin.css);
}

function wrapped(value: unknown, all: boolean): unknown {
  if (!all) return value;
  return value === null ? [] : [value];
}
