import type { Page } from '../page/page.ts';

export type RecordData = Record<string, unknown>;

/**
 * Code of a route: gets a page, and what `select` found on it; returns a record, records, or nothing. It may be async.
 */
export type Handler = (page: Page, selected: RecordData | null) => unknown;

/** What a schema library must offer to check records; zod does. */
export interface RecordSchema {
  safeParse(
    value: unknown,
  ):
    | { success: true; data: unknown }
    | { success: false; error: { issues: readonly { path: PropertyKey[]; message: string }[] } };
}

/** The steps that every record goes through. Each may be async. */
export interface RouteSteps {
  /** Puts a record in order; null drops it. */
  clean?(record: RecordData, page: Page): RecordData | null | Promise<RecordData | null>;
  /** A text says what is wrong; the page is then a `validation` failure. */
  validate?(
    record: RecordData,
    page: Page,
  ): string | boolean | null | undefined | Promise<string | boolean | null | undefined>;
  /** The key of the record: records of one key are one. Null drops it. */
  dedupe?(record: RecordData, page: Page): string | null | Promise<string | null>;
  /** What is written in its place: another shape, several records, or nothing. */
  store?(
    record: RecordData,
    page: Page,
  ): RecordData | RecordData[] | null | Promise<RecordData | RecordData[] | null>;
}

/** The functions of a route: the handler, and the steps. */
export interface RouteCode extends RouteSteps {
  handler?: Handler;
  schema?: RecordSchema;
}

/** The functions among them, by name. */
export const CODE_NAMES = ['handler', 'clean', 'validate', 'dedupe', 'store'] as const;

export function isRecordSchema(value: unknown): value is RecordSchema {
  return typeof (value as Partial<RecordSchema> | null | undefined)?.safeParse === 'function';
}

/** By the name of the route. */
export type JobHandlers = ReadonlyMap<string, RouteCode>;
