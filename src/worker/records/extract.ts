import type { FieldSpec } from '../../core/job-schema/job.ts';
import { ValidationError } from '../job/compiled-job.ts';
import type { RecordData } from '../job/route-code.ts';
import { type Page, resolveBase } from '../page/page.ts';
import { compileStreamSelectors, parseQuick, type QuickValue } from '../selectors/stream-select.ts';
import { FieldCompiler, objectOf } from './field-compiler.ts';
import { planFields } from './field-plan.ts';
import { LinkedData } from './json-ld.ts';

/** Null when no field has a value. Throws a ValidationError when something that must be there is not. */
export type Extractor = (page: Page) => RecordData | null;

interface ExtractorOptions {
  /** For error messages. */
  route?: string;
  /** Selectors that must match. */
  require?: readonly string[];
}

const NOTHING: QuickValue[] = [];

/**
 * Compiles the fields of a route once. Throws a SeineError that names the field when one is wrong. Plain selectors are
 * read off the text in one pass, for a tenth of what a tree costs; the others share one tree.
 */
export async function compileFields(
  fields: Record<string, FieldSpec | string>,
  { route, require = [] }: ExtractorOptions = {},
): Promise<Extractor> {
  const compiler = new FieldCompiler();
  const wanted = require.map((css) => ({ css, isThere: compiler.presence(css, route) }));
  const members = await compiler.members(planFields(fields, route ?? null), false);
  const { quick, tree } = compiler;
  const readQuick = compileStreamSelectors(quick);
  return (page) => {
    tree.begin();
    const reading = new FieldContext(page, quick.length > 0 ? readQuick(page.text) : NOTHING);
    for (const { css, isThere } of wanted)
      if (!isThere(reading)) throw new ValidationError(`no element matches ${css}`);
    if (members.length === 0) return null;
    const record = objectOf(members, reading, null);
    if (reading.missing !== null)
      throw new ValidationError(`required fields are missing: ${[...reading.missing].join(', ')}`);
    return record;
  };
}

const readBase = compileStreamSelectors([{ selector: parseQuick('base[href]')!, attr: 'href', all: false }]);
const MAY_HAVE_BASE = /<base[\s/]/i;

/** One page while its fields are read: what several of them need is made once. */
export class FieldContext {
  readonly page: Page;
  /** What the one pass over the page has found, in the order of its fields. */
  readonly found: QuickValue[];
  /** Required fields that have no value; null while there are none. */
  missing: Set<string> | null = null;
  #base: string | null = null;
  #data: LinkedData | null = null;

  constructor(page: Page, found: QuickValue[]) {
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
