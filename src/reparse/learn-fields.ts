import type { FieldInput, FieldSpec } from '../core/job-schema/job.ts';
import { type Candidate, candidatesFor, candidatesNamed } from '../core/selector-search/candidates.ts';
import { type Example, isSameValue, typesOf, type ValueType } from '../core/selector-search/find-values.ts';
import { modelCandidates } from '../core/selector-search/model-proposals.ts';
import { rankTried, type Tried } from '../core/selector-search/rank.ts';
import { isBlank } from '../core/values/blank.ts';
import { canonicalJson } from '../core/values/canonical-json.ts';
import type { Page } from '../worker/page/page.ts';
import { compileFields, type Extractor } from '../worker/records/extract.ts';
import { factsOf } from './page-facts.ts';

/** Finds ways to read fields, and tries each on pages of the archive. */

/** A field that is looked for: by known values, or else by its name. */
export interface WantedField {
  name: string;
  /** What pages are known to say, by the page. */
  examples: ReadonlyMap<Page, Example>;
  /** Null where the examples tell. */
  type: ValueType | null;
  /** What the field is besides where it is read: kept as it is. */
  rest?: Partial<FieldSpec>;
  /** Selectors that a language model proposes: tried like those that the search finds. */
  proposed?: readonly string[];
}

export interface Proposal extends Omit<Tried, keyof Candidate> {
  /** As a job writes it. */
  field: FieldInput;
  samples: { url: string; value: unknown }[];
  isFromModel?: true;
}

/** Pages with known values that candidates are taken from; the others only check them. */
const SEARCHED_PAGES_MAX = 3;
/** Candidates that are tried on the whole sample. */
const TRIED_MAX = 15;
const SAMPLES_SHOWN = 3;
const PROPOSALS_MAX = 3;

/** The best first; none where nothing fits. */
export async function learnField(wanted: WantedField, pages: readonly Page[]): Promise<Proposal[]> {
  const known = [...wanted.examples.keys()];
  const searched = (known.length > 0 ? known : pages).slice(0, SEARCHED_PAGES_MAX);
  const pool = new Map<string, Candidate>();
  for (const page of searched)
    for (const candidate of candidatesOn(page, wanted)) {
      const key = JSON.stringify(candidate.origin);
      if ((pool.get(key)?.cost ?? Number.POSITIVE_INFINITY) > candidate.cost) pool.set(key, candidate);
    }
  const proposed = modelCandidates(wanted.proposed ?? [], typesFor(wanted)).filter(
    ({ origin }) => !pool.has(JSON.stringify(origin)),
  );
  const candidates = [...pool.values(), ...proposed];
  const trials = (await Promise.all(candidates.map((candidate) => trialOf(candidate, wanted)))).flatMap(
    (trial) => trial ?? [],
  );
  const first = known.length > 0 ? known : searched;
  const hopeful = ranked(trials, first, wanted).slice(0, TRIED_MAX);
  return ranked(hopeful, pages, wanted)
    .slice(0, PROPOSALS_MAX)
    .map((trial) => proposalOf(trial, pages, wanted));
}

function candidatesOn(page: Page, { name, examples, type }: WantedField): Candidate[] {
  const facts = factsOf(page);
  const example = examples.get(page);
  if (example === undefined) return candidatesNamed(facts, name, type ?? 'text');
  return type === null ? candidatesFor(facts, example) : candidatesFor(facts, example, [type]);
}

/** What a field may be that nobody searched for. */
function typesFor({ examples, type }: WantedField): readonly ValueType[] {
  if (type !== null) return [type];
  const [example] = examples.values();
  return example === undefined ? ['text'] : typesOf(example);
}

interface Trial extends Candidate {
  field: FieldInput;
  read: Extractor;
}

/** Null for a selector that is none: a model may write anything. */
async function trialOf(candidate: Candidate, { rest }: WantedField): Promise<Trial | null> {
  const field = fieldOf(candidate, rest);
  const spec = typeof field === 'string' ? field : { all: false, type: 'text', required: false, ...field };
  try {
    return { ...candidate, field, read: await compileFields({ value: spec as FieldSpec | string }) };
  } catch (error) {
    if (candidate.isFromModel) return null;
    throw error;
  }
}

/** The short form where it says everything. */
function fieldOf({ origin, type }: Candidate, rest: Partial<FieldSpec> | undefined): FieldInput {
  const { css, attr } = origin;
  if (!rest && type === 'text' && css !== undefined) return attr === undefined ? css : `${css}@${attr}`;
  const { fields: _, ...kept } = rest ?? {};
  return { ...(type === 'text' ? {} : { type }), ...kept, ...origin };
}

function ranked(trials: readonly Trial[], pages: readonly Page[], wanted: WantedField): (Trial & Tried)[] {
  return rankTried(trials.map((trial) => ({ ...trial, ...countsOf(trial, pages, wanted) })));
}

function countsOf(
  trial: Trial,
  pages: readonly Page[],
  { examples }: WantedField,
): Omit<Tried, keyof Candidate> {
  const counts = { known: examples.size, right: 0, pages: pages.length, filled: 0 };
  const values = new Set<string>();
  for (const page of pages) {
    const value = valueOn(trial, page);
    if (isBlank(value)) continue;
    counts.filled++;
    values.add(canonicalJson(value));
  }
  for (const [page, example] of examples) if (isSameValue(example, valueOn(trial, page))) counts.right++;
  return { ...counts, different: values.size };
}

/** A page that cannot be read with it has no value. */
function valueOn({ read }: Trial, page: Page): unknown {
  try {
    return read(page)?.value ?? null;
  } catch {
    return null;
  }
}

function proposalOf(trial: Trial & Tried, pages: readonly Page[], { examples }: WantedField): Proposal {
  const { field, known, right, pages: count, filled, different } = trial;
  const shown = [...new Set([...examples.keys(), ...pages])];
  const samples = shown
    .map((page) => ({ url: page.url, value: valueOn(trial, page) }))
    .filter(({ value }) => !isBlank(value));
  return {
    ...{ field, known, right, pages: count, filled, different, samples: samples.slice(0, SAMPLES_SHOWN) },
    ...(trial.isFromModel ? { isFromModel: true } : {}),
  };
}
