import { hash } from 'node:crypto';
import type { RecordDraft } from '../../core/batch/outcome.ts';
import { LIMITS } from '../../core/limits.ts';
import { isBlank } from '../../core/values/blank.ts';
import { canonicalJson } from '../../core/values/canonical-json.ts';
import type { RecordData } from '../job/route-code.ts';
import { toJson } from '../page/page.ts';

/** A record under its key, on the way to the store. */
export interface Kept {
  key: string;
  data: RecordData;
}

/** What selectors, a handler or a step gave, as a list of records. */
export function recordsOf(result: unknown): RecordData[] {
  if (result === null || result === undefined) return [];
  const list: unknown[] = Array.isArray(result) ? result : [result];
  if (list.length > LIMITS.recordsPerTaskMax)
    throw new Error(`a page gave ${list.length} records, the limit is ${LIMITS.recordsPerTaskMax}`);
  for (const record of list) {
    if (typeof record !== 'object' || record === null || Array.isArray(record))
      throw new Error(`a record must be an object, got ${kindOf(record)}`);
  }
  return list as RecordData[];
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}

/** `merge`: fields of other pages with the same key stay. */
export function toDrafts(records: readonly Kept[], merge: boolean): RecordDraft[] {
  return records.map(({ key, data }) => {
    const json = toJson(data, 'a record');
    // A record may write itself, with `toJSON`, as something else.
    if (!json?.startsWith('{')) throw new Error('a record must be an object when it is written as JSON');
    if (json.length > LIMITS.recordBytesMax)
      throw new Error(`a record has ${json.length} bytes, the limit is ${LIMITS.recordBytesMax}`);
    return { key, json, hash: hash('sha256', canonicalOf(data, json)), merge };
  });
}

/** `canonicalJson`, which takes 2 µs even for the small flat records that most are. */
function canonicalOf(data: RecordData, json: string): string {
  const names = Object.keys(data);
  let isSorted = true;
  for (let index = 0; index < names.length; index++) {
    const value = data[names[index]!];
    if (typeof value !== 'string' && value !== null) return canonicalJson(data);
    if (index > 0 && names[index - 1]! > names[index]!) isSorted = false;
  }
  if (isSorted) return json;
  // Without a prototype, for a field of the name `__proto__`.
  const sorted: RecordData = Object.create(null);
  for (const name of names.sort()) sorted[name] = data[name];
  return JSON.stringify(sorted);
}

/** Records of one page with the same key become one: later values win, but nothing is replaced by null. */
export function mergeEqualKeys(records: readonly Kept[]): Kept[] {
  const byKey = new Map<string, RecordData>();
  for (const { key, data } of records) {
    const former = byKey.get(key);
    byKey.set(key, former ? { ...former, ...withValues(data) } : data);
  }
  return byKey.size === records.length ? [...records] : [...byKey].map(([key, data]) => ({ key, data }));
}

function withValues(data: RecordData): RecordData {
  return Object.fromEntries(
    Object.entries(data).filter(([, value]) => value !== null && value !== undefined),
  );
}

/** Records in which a field has a value, by field; a field that is always blank is there too, with none. */
export function countFilled(records: readonly RecordData[]): Record<string, number> {
  // A field may have any name, `constructor` too.
  const filled: Record<string, number> = Object.create(null);
  let names = 0;
  for (const record of records) {
    for (const name in record) {
      const count = filled[name];
      if (count === undefined && ++names > LIMITS.qualityFieldsMax) continue;
      filled[name] = (count ?? 0) + (isBlank(record[name]) ? 0 : 1);
    }
  }
  return filled;
}
