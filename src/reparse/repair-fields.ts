import type { FieldSpec } from '../core/job-schema/job.ts';
import type { Example, ValueType } from '../core/selector-search/find-values.ts';
import { isBlank } from '../core/values/blank.ts';
import type { Page } from '../worker/page/page.ts';
import { compileFields } from '../worker/records/extract.ts';
import type { SampledPage } from './archived-pages.ts';
import { learnField, type Proposal } from './learn-fields.ts';

/** Fields that pages had and lost: where their values are now. */

export interface RepairedField {
  field: string;
  /** As the job writes it today. */
  now: FieldSpec | string;
  /** Pages with an earlier version; those of them that had a value then, and those that have one now. */
  pages: number;
  before: number;
  after: number;
  /** The best first. */
  proposals: Proposal[];
  /** Why nothing is proposed, where that is known. */
  reason: string | null;
}

/** A field is lost where it was read from so much fewer pages than before. */
const LOST_SHARE_MIN = 0.1;
const TYPES: readonly string[] = ['text', 'number', 'money', 'date', 'url'] satisfies ValueType[];

/** Of the fields of a route, those that its pages lost. `pairs`: pages of today with their earlier versions. */
export async function repairFields(
  select: Record<string, FieldSpec | string>,
  sample: readonly SampledPage[],
  pairs: ReadonlyMap<SampledPage, readonly Page[]>,
): Promise<RepairedField[]> {
  const found: RepairedField[] = [];
  for (const [field, now] of Object.entries(select)) {
    const read = await readerOf(now);
    const examples = new Map<Page, Example>();
    let before = 0;
    let after = 0;
    for (const [{ page }, earlier] of pairs) {
      const former = earlier.map(read).find((value) => !isBlank(value));
      const isThere = !isBlank(read(page));
      if (former !== undefined) before++;
      if (isThere) after++;
      if (former !== undefined && !isThere && isExample(former)) examples.set(page, former);
    }
    if (pairs.size === 0 || (before - after) / pairs.size < LOST_SHARE_MIN) continue;
    const reason = reasonAgainst(now, examples);
    const rest = typeof now === 'string' ? undefined : restOf(now);
    const wanted = { name: field, examples, type: typeOf(now), ...(rest ? { rest } : {}) };
    const pages = sample.map(({ page }) => page);
    const proposals = reason === null ? await learnField(wanted, pages) : [];
    found.push({ field, now, pages: pairs.size, before, after, proposals, reason });
  }
  return found;
}

async function readerOf(field: FieldSpec | string): Promise<(page: Page) => unknown> {
  const spec = typeof field === 'string' ? field : { ...field, required: false };
  const read = await compileFields({ value: spec });
  return (page) => {
    try {
      return read(page)?.value ?? null;
    } catch {
      return null;
    }
  };
}

function isExample(value: unknown): value is Example {
  if (typeof value === 'string' || typeof value === 'number') return true;
  return typeof value === 'object' && value !== null && 'amount' in value && 'currency' in value;
}

function reasonAgainst(now: FieldSpec | string, examples: ReadonlyMap<Page, Example>): string | null {
  if (typeof now !== 'string') {
    if (now.all || now.fields) return 'lists and nested fields are not searched';
    if (now.regex !== undefined) return 'fields with a regex are not searched';
    if (!TYPES.includes(now.type)) return `fields of type ${now.type} are not searched`;
  }
  return examples.size === 0 ? 'no page that lost it has an earlier version with a value' : null;
}

function typeOf(now: FieldSpec | string): ValueType {
  return typeof now === 'string' ? 'text' : (now.type as ValueType);
}

/** What stays: all but where it is read. */
function restOf({ css: _, attr: __, jsonLd: ___, meta: ____, all, required, type, ...rest }: FieldSpec) {
  return {
    ...rest,
    ...(all ? { all } : {}),
    ...(required ? { required } : {}),
    ...(type === 'text' ? {} : { type }),
  };
}
