import type { CaptureSpec } from '../../core/job-schema/browser.ts';
import type { FieldSpec, RouteSpec } from '../../core/job-schema/job.ts';
import { isHtml } from '../../core/media/media-type.ts';
import { isBlank } from '../../core/values/blank.ts';
import { getOwn } from '../../core/values/own-property.ts';
import { type ReadResult, type RecordReader, ValidationError } from '../job/compiled-job.ts';
import type { RecordData, RouteCode } from '../job/route-code.ts';
import type { Page } from '../page/page.ts';
import { compileFields, type Extractor } from './extract.ts';
import { checkBySchema, compileJsonSchema } from './record-schema.ts';
import { countFilled, type KeyedRecord, mergeEqualKeys, RecordSteps, toDrafts } from './record-steps.ts';

/*
 * How a page becomes records. `compileReader` makes, once for each route, the function that does all of it:
 * 1. extract.ts reads the fields. field-plan.ts has checked what the job says of them; plain selectors are matched in one
 *    pass over the text (../selectors/stream-select.ts), the others in a tree (../page/tree-search.ts), JSON-LD is read by
 *    json-ld.ts. field-types.ts turns each text into a number, date, URL or price.
 * 2. Main content as Markdown (../markdown) and what a browser captured are added here; the route's handler may replace
 *    the record.
 * 3. record-steps.ts cleans, validates (record-schema.ts), gives each record its key, and writes it as a draft for the
 *    report.
 */

const EMPTY: ReadResult = { drafts: [], values: [], quality: null };
/** The selectors, or the handler, found nothing: told, because that is how a page looks whose design has changed. */
const BLANK: ReadResult = {
  ...EMPTY,
  quality: { records: 0, invalid: 0, blank: 1, filled: {} },
};

/** Null when the route takes no records and checks nothing. */
export async function compileReader(route: RouteSpec, code: RouteCode): Promise<RecordReader | null> {
  const { handler } = code;
  const captures = route.browser?.capture ?? [];
  const takesFields = route.select !== undefined || route.markdown || captures.length > 0;
  if (!takesFields && !handler && route.require.length === 0) return null;
  const fields = await compileExtractor(route);
  const extract = captures.length > 0 ? withCaptured(fields, captures) : fields;
  const steps = new RecordSteps(route, code, await compileSchema(route, code));
  const resultOf = (kept: KeyedRecord[], { contentType }: Page): ReadResult => {
    if (kept.length === 0) return (takesFields || handler) && isHtml(contentType) ? BLANK : EMPTY;
    const records = steps.namesRecords ? mergeEqualKeys(kept) : kept;
    const values = records.map(({ data }) => data);
    const quality = { records: values.length, invalid: 0, filled: countFilled(values) };
    return { drafts: toDrafts(records, steps.namesRecords), values, quality };
  };
  if (!handler && !steps.hasCode) return (page) => resultOf(steps.runDefaults(extract(page), page), page);
  return (page) => runSteps(readByCode(page));

  function* readByCode(page: Page): Generator<unknown, ReadResult, unknown> {
    const selected = extract(page);
    const result = handler ? yield handler(page, selected) : selected;
    if (handler) refusePromises(result, route.name);
    return resultOf(yield* steps.run(result, page), page);
  }
}

/** Data that scripts loaded are fields, too; those of selectors win. */
function withCaptured(extract: Extractor, captures: readonly CaptureSpec[]): Extractor {
  return (page) => {
    const record = extract(page);
    const captured = captures.map(({ name }) => [name, getOwn(page.captured, name) ?? []] as const);
    if (record === null && captured.every(([, data]) => data.length === 0)) return null;
    return { ...Object.fromEntries(captured), ...record };
  };
}

/** Whether a page must have something to pass. */
export function demandsFields({ require, select }: RouteSpec): boolean {
  return require.length > 0 || hasRequired(select ?? {});
}

export function isBlankRecord(record: RecordData): boolean {
  return Object.values(record).every(isBlankValue);
}

function isBlankValue(value: unknown): boolean {
  return isBlank(value) || (Array.isArray(value) && value.every(isBlankValue));
}

/** Fields of the page. HTML alone has any; plain text has content. */
async function compileExtractor(route: RouteSpec): Promise<Extractor> {
  const { require, name } = route;
  const fields = await compileFields(route.select ?? {}, { route: name, require });
  const mustHave = demandsFields(route);
  const readFields: Extractor = (page) => {
    if (isHtml(page.contentType)) return fields(page);
    if (mustHave) throw new ValidationError(`the page is ${page.contentType ?? 'empty'}, not HTML`);
    return null;
  };
  if (!route.markdown) return readFields;
  const { mainContent } = await import('../markdown/markdown.ts');
  return (page) => {
    const record = readFields(page);
    const { title, markdown } = mainContent(page);
    return record === null && isBlank(markdown) ? null : { title, markdown, ...record };
  };
}

function hasRequired(fields: Record<string, FieldSpec | string>): boolean {
  return Object.values(fields).some(
    (field) => typeof field === 'object' && (field.required || hasRequired(field.fields ?? {})),
  );
}

async function compileSchema({ schema, name }: RouteSpec, code: RouteCode) {
  if (code.schema) return checkBySchema(code.schema);
  return schema ? compileJsonSchema(schema, name) : null;
}

/** A promise inside of a record would be written as `{}`. */
function refusePromises(result: unknown, route: string): void {
  for (const record of Array.isArray(result) ? (result as unknown[]) : [result]) {
    if (typeof record !== 'object' || record === null) continue;
    const field = isPromise(record) ? '' : Object.entries(record).find(([, value]) => isPromise(value))?.[0];
    if (field === undefined) continue;
    const what = field === '' ? 'a promise among its records' : `a promise as the field '${field}'`;
    throw new Error(`the handler of route '${route}' returned ${what}: an await is missing`);
  }
}

/** Runs steps that may wait: a promise comes back only when one of them gave a promise. */
function runSteps<T>(steps: Generator<unknown, T, unknown>): T | Promise<T> {
  let step = steps.next();
  while (!step.done) {
    if (isPromise(step.value)) return waitFor(steps, step.value);
    step = steps.next(step.value);
  }
  return step.value;
}

async function waitFor<T>(steps: Generator<unknown, T, unknown>, first: PromiseLike<unknown>): Promise<T> {
  let step = steps.next(await first);
  while (!step.done) step = steps.next(await step.value);
  return step.value;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}
