import { SeineError } from '../../core/errors.ts';
import type { RouteSpec } from '../../core/job-schema/job.ts';
import { isBlank } from '../../core/values/blank.ts';
import type { RecordData, RouteCode } from '../job/route-code.ts';
import type { Page } from '../page/page.ts';
import { ValidationError } from './read-records.ts';
import { type Kept, RECORDS_PER_TASK_MAX, recordsOf } from './record-drafts.ts';
import type { SchemaCheck } from './record-schema.ts';

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
  runDefaults(result: unknown, page: Page): Kept[] {
    return recordsOf(result).map((record, index) => {
      const data = this.#checked(record);
      return { key: this.#defaultKey(data, placeOf(result, index, page)), data };
    });
  }

  /** Yields what functions of the job return, for the caller to wait if it is a promise. */
  *run(result: unknown, page: Page): Generator<unknown, Kept[], unknown> {
    const kept: Kept[] = [];
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
