import { canonicalJson } from '../values/canonical-json.ts';

type Data = Record<string, unknown>;

/** What a pass changed among the records of a job. */
export interface RecordChanges {
  created: number;
  changed: number;
  /** Records whose page was found to be gone, and was there at the visit before. */
  gone: number;
  /** Records in which a field changed, the most first. */
  fields: { field: string; count: number }[];
}

/** One count of them, as stores keep it: `field` is empty for whole records. */
export interface RecordChangeRow {
  kind: 'created' | 'changed' | 'gone';
  field: string;
  count: number;
}

/** Names are data of the job or the site: the longest ones are cut, and there are no more than this. */
const FIELD_LENGTH_MAX = 200;
const FIELDS_MAX = 500;

/** Adds up what one report changes. */
export class RecordChangeSum {
  readonly #rows = new Map<string, RecordChangeRow>();

  created(count = 1): void {
    this.#add('created', '', count);
  }

  gone(count: number): void {
    this.#add('gone', '', count);
  }

  /** Both as JSON. */
  changed(before: string, after: string): void {
    this.#add('changed', '', 1);
    for (const field of changedFields(JSON.parse(before), JSON.parse(after)))
      this.#add('changed', field.slice(0, FIELD_LENGTH_MAX), 1);
  }

  /** In one order, so that two reports never wait for each other. */
  get rows(): RecordChangeRow[] {
    return [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  }

  #add(kind: RecordChangeRow['kind'], field: string, count: number): void {
    const key = `${kind} ${field}`;
    const row = this.#rows.get(key);
    if (row) row.count += count;
    else if (count > 0 && this.#rows.size < FIELDS_MAX) this.#rows.set(key, { kind, field, count });
  }
}

function changedFields(before: Data, after: Data): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => !isSame(ownValue(before, name), ownValue(after, name)));
}

function ownValue(data: Data, name: string): unknown {
  return Object.hasOwn(data, name) ? (data[name] ?? null) : null;
}

/** The order of properties says nothing. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  return typeof a === 'object' && typeof b === 'object' && canonicalJson(a) === canonicalJson(b);
}

export function toRecordChanges(rows: readonly RecordChangeRow[]): RecordChanges {
  const total = (kind: RecordChangeRow['kind']) =>
    rows.find((row) => row.kind === kind && row.field === '')?.count ?? 0;
  const fields = rows.filter(({ kind, field }) => kind === 'changed' && field !== '');
  return {
    created: total('created'),
    changed: total('changed'),
    gone: total('gone'),
    fields: fields
      .map(({ field, count }) => ({ field, count }))
      .sort((a, b) => b.count - a.count || (a.field < b.field ? -1 : 1)),
  };
}
