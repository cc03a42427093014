import type { RecordData, RecordSchema, RouteSteps } from '../worker/job/route-code.ts';
import type { Page } from '../worker/page/page.ts';
import type { FieldInput, JobFields, RouteFields } from './job-input.ts';

type Select = Readonly<Record<string, string | FieldInput>>;

/** An amount with its currency, as fields of type `money` have it. */
export interface Money {
  amount: number;
  /** Null where the text has none. */
  currency: string | null;
}

/** What the types of fields become. */
interface ValueTypes {
  text: string;
  number: number;
  money: Money;
  date: string;
  url: string;
  html: string;
  json: unknown;
  markdown: string;
}

type TypeName<Field> = Field extends { readonly type: infer Name extends keyof ValueTypes } ? Name : 'text';
type OneValue<Field> = Field extends { readonly fields: infer Fields extends Select }
  ? SelectedRecord<Fields>
  : ValueTypes[TypeName<Field>];
type FieldValue<Field> = Field extends { readonly all: true }
  ? OneValue<Field>[]
  : Field extends { readonly required: true }
    ? OneValue<Field>
    : OneValue<Field> | null;

/** What `select` finds on a page: a field that matches nothing is null. */
export type SelectedRecord<Fields extends Select> = {
  -readonly [Name in keyof Fields]: FieldValue<Fields[Name]>;
};

/**
 * Is always `Select`, for which editors show the texts of its fields. The compiler learns `Fields` from what is written, all
 * the same: it looks into both branches. With `Fields & Select` a field would be declared twice, and no text be shown.
 */
type SelectOf<Fields> = [Fields] extends [never] ? Fields : Select;

/** Of a route without `select`, and of jobs whose types are not known, any field may be there. */
type Found<Fields> = Select extends Fields
  ? RecordData
  : Fields extends Select
    ? SelectedRecord<Fields> & { title?: unknown; markdown?: unknown }
    : RecordData;

/**
 * A route as people write it in TypeScript: what a YAML file may say, plus functions and a schema object. Types are put together
 * without `Omit`, which would lose the texts that editors show.
 */
export type RouteDefinition<Fields = Select> = RouteFields &
  RouteSteps & {
    /** Fields of the record, by name. Each is a CSS selector, or an object that says more. */
    select?: SelectOf<Fields> | undefined;
    /** JSON Schema, or an object with `safeParse` as zod makes them; what that returns replaces the record. */
    schema?: Record<string, unknown> | RecordSchema | undefined;
    /**
     * Code of the route: gets the page, and what `select` found on it; returns a record, records, or nothing. It may be
     * async.
     */
    handler?(page: Page, selected: Found<Fields> | null): unknown;
  };

export type JobDefinition<Routes extends readonly unknown[] = readonly Select[]> = JobFields & {
  /** Rules for kinds of pages: which URLs, and what to extract. The first match applies. */
  routes?: { [Index in keyof Routes]: RouteDefinition<Routes[Index]> } | undefined;
};

/** Gives a job file its types; the default export of the file. */
export function defineJob<const Routes extends readonly unknown[]>(
  job: JobDefinition<Routes>,
): JobDefinition<Routes> {
  return job;
}
