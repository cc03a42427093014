import { LIMITS } from '../core/limits.ts';
import { isBlank } from '../core/values/blank.ts';
import { canonicalJson } from '../core/values/canonical-json.ts';

type Data = Record<string, unknown>;

interface FieldSample {
  url: string;
  before: unknown;
  after: unknown;
}

export interface FieldChange {
  field: string;
  /** Records in which it has a value now and had none, the other way round, and another one. */
  added: number;
  removed: number;
  changed: number;
  samples: FieldSample[];
}

/** In how many records a field has a value, before and after. */
export interface FieldFill {
  field: string;
  before: number;
  after: number;
}

const SAMPLES_MAX = 3;

/** Adds up how records differ from what they were, by field. */
export class RecordDiff {
  readonly records = { same: 0, changed: 0, new: 0, gone: 0 };
  readonly #fields = new Map<string, FieldChange>();
  readonly #fills = new Map<string, FieldFill>();

  /** Null is no record. Returns whether anything differs. */
  add(url: string, before: Data | null, after: Data | null): boolean {
    this.#fill(before ?? {}, 'before');
    this.#fill(after ?? {}, 'after');
    const differs = this.#compare(url, before ?? {}, after ?? {});
    if (before === null) this.records.new++;
    else if (after === null) this.records.gone++;
    else if (differs) this.records.changed++;
    else this.records.same++;
    return differs || before === null || after === null;
  }

  /** What changed most comes first. */
  get fields(): FieldChange[] {
    const weight = ({ added, removed, changed }: FieldChange) => added + removed + changed;
    return [...this.#fields.values()].sort((a, b) => weight(b) - weight(a) || (a.field < b.field ? -1 : 1));
  }

  /** Of every field that has a value somewhere, by name. */
  get fills(): FieldFill[] {
    return [...this.#fills.values()].sort((a, b) => (a.field < b.field ? -1 : 1));
  }

  #fill(data: Data, side: 'before' | 'after'): void {
    for (const field of Object.keys(data)) {
      if (isBlank(data[field])) continue;
      const fill = this.#fills.get(field) ?? { field, before: 0, after: 0 };
      if (this.#fills.size >= LIMITS.tableFieldsMax && !this.#fills.has(field)) continue;
      fill[side]++;
      this.#fills.set(field, fill);
    }
  }

  #compare(url: string, before: Data, after: Data): boolean {
    let differs = false;
    for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [was, is] = [valueIn(before, field), valueIn(after, field)];
      if (isSame(was, is)) continue;
      differs = true;
      this.#note(field, { url, before: was, after: is });
    }
    return differs;
  }

  #note(field: string, sample: FieldSample): void {
    let change = this.#fields.get(field);
    if (!change) {
      if (this.#fields.size >= LIMITS.tableFieldsMax) return;
      change = { field, added: 0, removed: 0, changed: 0, samples: [] };
      this.#fields.set(field, change);
    }
    if (sample.before === null) change.added++;
    else if (sample.after === null) change.removed++;
    else change.changed++;
    if (change.samples.length < SAMPLES_MAX) change.samples.push(sample);
  }
}

/** The order of properties says nothing. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  return typeof a === 'object' && typeof b === 'object' && canonicalJson(a) === canonicalJson(b);
}

function valueIn(data: Data, field: string): unknown {
  return Object.hasOwn(data, field) ? (data[field] ?? null) : null;
}

/** What a record becomes when a page adds to it: fields without a value take nothing away. */
export function mergedData(before: Data, found: Data): Data {
  const values = Object.entries(found).filter(([, value]) => value !== null);
  return Object.fromEntries([...Object.entries(before), ...values]);
}
