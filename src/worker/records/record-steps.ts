import { hash } from 'node:crypto';
import type { RecordDraft } from '../../core/batch/outcome.ts';
import { SeineError } from '../../core/errors.ts';
import type { RouteSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { isBlank } from '../../core/values/blank.ts';
import { canonicalJson } from '../../core/values/canonical-json.ts';
import { storableJson } from '../../core/values/storable-json.ts';
import { ValidationError } from '../job/compiled-job.ts';
import type { RecordData, RouteCode } from '../job/route-code.ts';
import { type Page, toJson } from '../page/page.ts';
import type { SchemaCheck } from './record-schema.ts';

/** A record under its key, on the way to the store. */
export interface KeyedRecord {
  key: string;
  data: RecordData;
}

/** Records of one page: more is a trap, or a page that is a whole database. */
export const RECORDS_PER_TASK_MAX = 10_000;
/** As long as a URL, which is what keys are otherwise. */
export const RECORD_KEY_LENGTH_MAX = 2_048;

/** The way of a record: clean → validate → dedupe → store. Each step is a default, or a function of the job. */
export class RecordSteps {
  readonly #code: RouteCode;
  readonly #check: SchemaCheck | null;
  readonly #keyFields: readonly string[];

  constructor(route: RouteSpec, code: RouteCode, check: SchemaCheck | null) {
    if (route.key !== undefined && code.dedupe)
      throw new SeineError(`route '${route.name}' has both key and dedupe; keep one of them`);
    this.#code = code;
    this.#check = check;
    this.#keyFields = [route.key ?? []].flat();
  }

  get hasCode(): boolean {
    const { clean, validate, dedupe, store } = this.#code;
    return Boolean(clean ?? validate ?? dedupe ?? store);
  }

  /** Whether the job names the records: then those of several pages are one. */
  get namesRecords(): boolean {
    return this.#keyFields.length > 0 || this.#code.dedupe !== undefined;
  }

  /** Without functions of the job. */
  runDefaults(result: unknown, page: Page): KeyedRecord[] {
    return recordsOf(result).map((record, index) => {
      const data = this.#checked(record);
      return { key: this.#defaultKey(data, placeOf(result, index, page)), data };
    });
  }

  /** Yields what functions of the job return, for the caller to wait if it is a promise. */
  *run(result: unknown, page: Page): Generator<unknown, KeyedRecord[], unknown> {
    const kept: KeyedRecord[] = [];
    const { clean, validate, dedupe, store } = this.#code;
    for (const [index, record] of recordsOf(result).entries()) {
      const cleaned = clean ? yield clean(record, page) : record;
      if (cleaned === null || cleaned === undefined) continue;
      const data = this.#checked(recordOf(cleaned, 'clean'));
      if (validate) refuse(yield validate(data, page));
      const place = placeOf(result, index, page);
      const key = dedupe ? namedKey(yield dedupe(data, page)) : this.#defaultKey(data, place);
      if (key === null) continue;
      const stored = store ? yield store(data, page) : data;
      recordsOf(stored).forEach((written, part) => {
        kept.push({ key: Array.isArray(stored) ? `${key}#${part}` : key, data: written });
      });
      if (kept.length > RECORDS_PER_TASK_MAX)
        throw new Error(`a page gave more than ${RECORDS_PER_TASK_MAX} records`);
    }
    return kept;
  }

  #checked(record: RecordData): RecordData {
    return this.#check === null ? record : recordOf(this.#check(record), 'the schema');
  }

  #defaultKey(record: RecordData, place: string): string {
    if (this.#keyFields.length === 0) return place;
    const parts = this.#keyFields.map((field) => keyPart(record, field));
    // As JSON, so that no two lists of parts give one key.
    return checkedKey(parts.length === 1 ? parts[0]! : JSON.stringify(parts));
  }
}

function placeOf(result: unknown, index: number, page: Page): string {
  return Array.isArray(result) ? `${page.url}#${index}` : page.url;
}

function recordOf(value: unknown, by: string): RecordData {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as RecordData;
  throw new Error(`${by} must return an object, got ${Array.isArray(value) ? 'a list' : String(value)}`);
}

function keyPart(record: RecordData, field: string): string {
  const value = Object.hasOwn(record, field) ? record[field] : null;
  if (isBlank(value)) throw new ValidationError(`the key field '${field}' is missing`);
  if (typeof value === 'object')
    throw new ValidationError(`the key field '${field}' is not a string or number`);
  return String(value);
}

function checkedKey(key: string): string {
  if (key.length > RECORD_KEY_LENGTH_MAX)
    throw new ValidationError(`the key of a record has ${key.length} characters`);
  return key;
}

/** Null drops the record. */
function namedKey(key: unknown): string | null {
  if (key === null || key === undefined) return null;
  if (typeof key !== 'string' || key === '')
    throw new Error(
      `dedupe must return a string or null, got ${key === '' ? 'an empty string' : typeof key}`,
    );
  return checkedKey(key);
}

function refuse(verdict: unknown): void {
  if (verdict === true || verdict === null || verdict === undefined || verdict === '') return;
  if (verdict === false) throw new ValidationError('validate rejected the record');
  if (typeof verdict !== 'string')
    throw new Error(`validate must return a string, true, false or nothing, got ${typeof verdict}`);
  throw new ValidationError(verdict);
}

/** What selectors, a handler or a step gave, as a list of records. */
function recordsOf(result: unknown): RecordData[] {
  if (result === null || result === undefined) return [];
  const list: unknown[] = Array.isArray(result) ? result : [result];
  if (list.length > RECORDS_PER_TASK_MAX)
    throw new Error(`a page gave ${list.length} records, the limit is ${RECORDS_PER_TASK_MAX}`);
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
export function toDrafts(records: readonly KeyedRecord[], merge: boolean): RecordDraft[] {
  return records.map(({ key, data }) => {
    const written = toJson(data, 'a record');
    const json = written && storableJson(written);
    // A record may write itself, with `toJSON`, as something else.
    if (!json?.startsWith('{')) throw new Error('a record must be an object when it is written as JSON');
    if (json.length > LIMITS.recordBytesMax)
      throw new Error(`a record has ${json.length} bytes, the limit is ${LIMITS.recordBytesMax}`);
    return {
      key,
      json,
      hash: hash('sha256', canonicalOf(json === written ? data : JSON.parse(json), json)),
      merge,
    };
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
export function mergeEqualKeys(records: readonly KeyedRecord[]): KeyedRecord[] {
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
