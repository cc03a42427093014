import type { FieldSpec } from '../core/job-schema/job.ts';
import { FieldCompiler, objectOf } from './field-compiler.ts';
import { planFields } from './field-plan.ts';
import type { Page } from './page.ts';
import { compileQuick, type QuickValue } from './quick-select.ts';
import { Reading } from './reading.ts';
import type { RecordData } from './route-code.ts';
import { ValidationError } from './validation-error.ts';

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
  const readQuick = compileQuick(quick);
  return (page) => {
    tree.begin();
    const reading = new Reading(page, quick.length > 0 ? readQuick(page.text) : NOTHING);
    for (const { css, isThere } of wanted)
      if (!isThere(reading)) throw new ValidationError(`no element matches ${css}`);
    if (members.length === 0) return null;
    const record = objectOf(members, reading, null);
    if (reading.missing !== null)
      throw new ValidationError(`required fields are missing: ${[...reading.missing].join(', ')}`);
    return record;
  };
}
