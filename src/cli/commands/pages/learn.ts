import { readFileSync } from 'node:fs';
import { type ExitName, messageOf, SeineError } from '../../../core/errors.ts';
import type { FieldInput, JobSpec } from '../../../core/job-schema/job.ts';
import type { Example, ValueType } from '../../../core/selector-search/find-values.ts';
import { modelMessages, proposalsIn } from '../../../core/selector-search/model-proposals.ts';
import { normalizeUrl } from '../../../core/url/url.ts';
import type { Store } from '../../../ports/store.ts';
import { kindOf, openPage, samplePages } from '../../../reparse/archived-pages.ts';
import { learnField, type Proposal, type WantedField } from '../../../reparse/learn-fields.ts';
import { factsOf } from '../../../reparse/page-facts.ts';
import type { Page } from '../../../worker/page/page.ts';
import { type Command, type Context, print, printable, printJson } from '../../context.ts';
import { toNumber } from '../run/job-from-flags.ts';
import { askModel } from './ask-model.ts';
import { type ArchiveWork, counted, withArchive } from './reparse.ts';
import { fieldText, proposalLines } from './show-proposals.ts';

/** Pages that each way to read a field is tried on. */
const SAMPLE_PAGES = 60;

/** Proposes selectors for fields, from values that pages are known to have, or from the names of a schema. */
export const learnCommand: Command = (context) =>
  withArchive(
    context,
    { toWork: false, args: context.parsed.args.slice(0, 1) },
    async (work): Promise<ExitName> => {
      const urls = context.parsed.args.slice(1);
      const limit = limitOf(context);
      const known = knownValues(context, urls);
      const named = schemaFields(context);
      if (known.size + named.size === 0)
        throw new SeineError('no fields given', {
          hint: 'pass --field name=value with a value of the first page, --examples file or --schema file',
        });
      const pages = await pagesOf(work, [
        ...new Set([...urls, ...[...known.values()].flatMap((one) => [...one.keys()])]),
      ]);
      const [first] = pages.keys();
      if (first === undefined)
        throw new SeineError('no page given', { hint: 'seine learn <job> <url…> --field name=value' });
      const kind = kindOf(work.code, first);
      const sample = await samplePages(work, kind, limit);
      const own = new Set([...pages.values()].map((page) => page.url));
      const others = sample.map(({ page }) => page).filter((page) => !own.has(page.url));
      const tried = [...pages.values(), ...others];
      const learned: { field: string; proposals: Proposal[] }[] = [];
      const fields = [...wantedFields(known, named, pages)];
      const proposed = context.parsed.values.model ? await modelProposals(context, fields, tried) : new Map();
      for (const wanted of fields) {
        const all = { ...wanted, proposed: proposed.get(wanted.name) ?? [] };
        learned.push({ field: wanted.name, proposals: await learnField(all, tried) });
      }
      show(context, `${work.job.name}-${work.job.run}`, tried.length, learned);
      return learned.every(({ proposals }) => proposals.length > 0) ? 'success' : 'failed-check';
    },
  );

export function limitOf({ parsed }: Context): number {
  const { limit } = parsed.values;
  return limit === undefined ? SAMPLE_PAGES : toNumber('--limit', limit);
}

/** By field, then by URL as it was given. */
type KnownValues = Map<string, Map<string, string | number>>;

function knownValues({ parsed }: Context, urls: readonly string[]): KnownValues {
  const known: KnownValues = new Map();
  const add = (url: string, field: string, value: string | number) => {
    const values = known.get(field) ?? new Map<string, string | number>();
    known.set(field, values.set(url, value));
  };
  for (const text of parsed.lists.field ?? []) {
    const at = text.indexOf('=');
    const value = text.slice(at + 1).trim();
    if (at < 1 || value === '')
      throw new SeineError(`--field needs name=value, got '${text}'`, {
        hint: 'the value is what the first page says: --field price="12.50"',
      });
    if (urls[0] === undefined)
      throw new SeineError('--field needs a URL: the page that has the value', {
        hint: 'seine learn <job> <url> --field name=value',
      });
    add(urls[0], text.slice(0, at).trim(), value);
  }
  const { examples } = parsed.values;
  if (examples === undefined) return known;
  for (const [url, fields] of objectIn(examples, '--examples')) {
    if (typeof fields !== 'object' || fields === null)
      throw new SeineError(`${examples}: ${url} must have an object of fields and their values`);
    for (const [field, value] of Object.entries(fields)) {
      if (typeof value !== 'string' && typeof value !== 'number')
        throw new SeineError(`${examples}: ${field} of ${url} must be a text or a number`);
      add(url, field, value);
    }
  }
  return known;
}

/** The properties of a JSON Schema, and what they are. */
function schemaFields({ parsed }: Context): Map<string, ValueType> {
  const { schema } = parsed.values;
  const found = new Map<string, ValueType>();
  if (schema === undefined) return found;
  const properties = objectIn(schema, '--schema').get('properties');
  if (typeof properties !== 'object' || properties === null)
    throw new SeineError(`${schema} has no properties`, { hint: 'it must be a JSON Schema of an object' });
  for (const [name, property] of Object.entries(properties)) found.set(name, typeOfProperty(property));
  return found;
}

function typeOfProperty(property: unknown): ValueType {
  const { type, format } = (property ?? {}) as { type?: unknown; format?: unknown };
  const types = Array.isArray(type) ? type : [type];
  if (types.includes('number') || types.includes('integer')) return 'number';
  if (format === 'date' || format === 'date-time') return 'date';
  return format === 'uri' || format === 'url' ? 'url' : 'text';
}

function objectIn(path: string, option: string): Map<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new SeineError(`cannot read ${path} of ${option}: ${messageOf(error)}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new SeineError(`${path} of ${option} must be a JSON object`);
  return new Map(Object.entries(parsed));
}

/** By URL as it was given. */
async function pagesOf(work: ArchiveWork, urls: readonly string[]): Promise<Map<string, Page>> {
  const { store, blobs, job } = work;
  const pages = new Map<string, Page>();
  for (const url of urls) {
    const task = await taskOf(store, job.id, job.spec, url);
    const page = task?.archive ? await openPage(blobs, { archive: task.archive, sha256: task.sha256 }) : null;
    if (!page)
      throw new SeineError(`${job.name}-${job.run} has no stored HTML page of ${url}`, {
        hint: 'selectors are learned from the archive: `seine add` the URL to the job, or run the job first',
      });
    pages.set(url, page);
  }
  return pages;
}

function taskOf(store: Store, jobId: number, spec: JobSpec, url: string) {
  const target = normalizeUrl(url, null, spec.url);
  if (!target) throw new SeineError(`'${url}' is not a URL`);
  return store.views.task(jobId, target.url);
}

function* wantedFields(
  known: KnownValues,
  named: ReadonlyMap<string, ValueType>,
  pages: ReadonlyMap<string, Page>,
): Generator<WantedField> {
  for (const [name, values] of known) {
    const examples = new Map<Page, Example>();
    for (const [url, value] of values) examples.set(pages.get(url)!, value);
    yield { name, examples, type: null };
  }
  for (const [name, type] of named) if (!known.has(name)) yield { name, examples: new Map(), type };
}

/** Of the page with the most known values. The model sees that one page. */
async function modelProposals(
  { loaded, settings }: Context,
  fields: readonly WantedField[],
  pages: readonly Page[],
): Promise<Map<string, string[]>> {
  const { modelUrl, modelName, modelKey } = loaded.config;
  if (modelUrl === null || modelName === null)
    throw new SeineError('--model needs SEINE_MODEL_URL and SEINE_MODEL_NAME', {
      hint: 'such as SEINE_MODEL_URL=https://api.example/v1; most servers need SEINE_MODEL_KEY, too',
    });
  const knownOn = (page: Page) => fields.filter(({ examples }) => examples.has(page)).length;
  const [page] = [...pages].sort((a, b) => knownOn(b) - knownOn(a));
  const asked = fields.map(({ name, examples, type }) => ({
    ...{ name, type },
    example: examples.get(page!) ?? null,
  }));
  const model = {
    ...{ url: modelUrl, name: modelName, key: modelKey },
    forbidsPrivate: settings.allowPrivate === 'never',
  };
  return proposalsIn(await askModel(model, modelMessages(factsOf(page!), asked)));
}

function show(
  context: Context,
  id: string,
  pages: number,
  learned: readonly { field: string; proposals: Proposal[] }[],
): void {
  if (context.json) {
    printJson(context, { id, pages, fields: learned });
    return;
  }
  const found = learned.filter(({ proposals }) => proposals.length > 0);
  const lines = [
    `${id}: ${found.length} of ${learned.length} fields found, tried on ${counted(pages, 'archived page')}`,
    ...learned.flatMap(({ field, proposals }) => proposalLines(field, proposals)),
    ...(found.length > 0
      ? [
          '',
          'for the route of the job:',
          ...snippet(found.map(({ field, proposals }) => [field, proposals[0]!.field])),
        ]
      : []),
  ];
  print(context.stdout, `${lines.join('\n')}\n`);
}

/** As YAML and JavaScript both read it. */
export function snippet(fields: readonly (readonly [string, FieldInput])[]): string[] {
  return [
    '  select:',
    ...fields.map(([name, field]) => `    ${printable(JSON.stringify(name))}: ${fieldText(field)}`),
  ];
}
