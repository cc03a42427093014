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
    // The types of the record come from what is written here, for which editors show no texts: all are at `select`.
    /**
     * Fields of the record, by name. Each is a CSS selector, or an object with
     *
     * - `css`: CSS selector; in nested fields, inside the match of the parent.
     * - `attr`: Attribute to extract instead of the text.
     * - `jsonLd`: Path into JSON-LD that starts with a type: `Product.offers.price`.
     * - `meta`: Name or property of a meta tag: `og:title`.
     * - `regex`: Extracts the match, or its first group, from the value; without a selector, from the page. Runs in linear time.
     * - `all`: Extract all matches as a list instead of the first.
     * - `type`: Type to convert the text to. The value is null if the text does not fit.
     * - `currency`: For money: the currency if the text has none, or an ambiguous sign such as `$`.
     * - `decimal`: For numbers and money: the decimal mark. Default: detected from the text.
     * - `dayFirst`: For dates: true reads 01/02/2024 as 1 February, false as 2 January. Without it such dates are null.
     * - `fields`: Nested fields, extracted inside each match of `css`.
     * - `required`: If the value is missing, the page is a `validation` failure.
     */
    select?: (Fields & Select) | undefined;
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
