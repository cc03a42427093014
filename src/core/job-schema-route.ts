import { z } from 'zod';
import { ESCALATIONS, ROUTE_FETCHERS } from './approach.ts';
import { routeBrowser } from './job-schema-browser.ts';

/** How pages of one kind are told apart, fetched and read. */

export const patterns = z
  .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
  .transform((value) => (typeof value === 'string' ? [value] : value))
  .describe(
    'URL patterns: `/product/*` is matched with the path, `https://*.example.com/**` with the whole URL; `*` stays within a segment, `**` does not.',
  );

const FIELD_TYPES = ['text', 'number', 'money', 'date', 'url', 'html', 'json', 'markdown'] as const;

export interface FieldSpec {
  css?: string | undefined;
  attr?: string | undefined;
  jsonLd?: string | undefined;
  meta?: string | undefined;
  regex?: string | undefined;
  all: boolean;
  type: (typeof FIELD_TYPES)[number];
  currency?: string | undefined;
  decimal?: '.' | ',' | undefined;
  dayFirst?: boolean | undefined;
  fields?: Record<string, FieldSpec | string> | undefined;
  required: boolean;
}

export type FieldInput =
  | string
  | (Partial<Omit<FieldSpec, 'fields'>> & { fields?: Record<string, FieldInput> });

const fieldObject: z.ZodType<FieldSpec, Exclude<FieldInput, string>> = z.lazy(() =>
  z.strictObject({
    css: z.string().min(1).optional().describe('CSS selector, inside the parent field when nested.'),
    attr: z.string().min(1).optional().describe('Attribute to take instead of the text.'),
    jsonLd: z.string().min(1).optional().describe('Path into JSON-LD, from a type: `Product.offers.price`.'),
    meta: z.string().min(1).optional().describe('Name or property of a meta tag: `og:title`.'),
    regex: z
      .string()
      .min(1)
      .optional()
      .describe(
        'The part of the value, or of the page without a selector, that matches: its first group, if it has one. Linear time.',
      ),
    all: z.boolean().default(false).describe('Every match as a list, instead of the first.'),
    type: z.enum(FIELD_TYPES).default('text').describe('What the text is turned into; null when it is none.'),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, 'a currency is a code like EUR')
      .optional()
      .describe('For money: meant when the text names none, or has a sign that several share, like `$`.'),
    decimal: z
      .enum(['.', ','])
      .optional()
      .describe('For numbers and money: the decimal mark; told by the text when absent.'),
    dayFirst: z
      .boolean()
      .optional()
      .describe('For dates: whether 01/02/2024 is in February; null without it, since it could be January.'),
    fields: z
      .record(z.string().min(1), z.union([z.string().min(1), fieldObject]))
      .optional()
      .describe('An object of fields, read inside each match of `css`.'),
    required: z.boolean().default(false).describe('Without it the page counts as a `validation` failure.'),
  }),
);

const field = z
  .union([z.string().min(1), fieldObject])
  .describe('A CSS selector, `selector@attribute`, or an object.');

const mediaRule = z.union([
  z.string().min(1),
  z.strictObject({
    css: z.string().min(1).optional().describe('Elements that show media.'),
    attr: z
      .string()
      .min(1)
      .optional()
      .describe('Attribute with the URL; src, srcset, href, poster or data-src when absent.'),
    field: z.string().min(1).optional().describe('Field of the record that holds the URL or URLs.'),
    route: z.string().min(1).optional().describe('A route of kind media; a built-in one when absent.'),
    priority: z.int().min(-1_000).max(1_000).default(0),
  }),
]);

const pagination = z.strictObject({
  url: z
    .string()
    .min(1)
    .optional()
    .describe(
      'URL of page {page}, or of the page after {offset} items: absolute, relative to the page (`?page={page}`), or a parameter to set (`&page={page}`). Needed with a count.',
    ),
  count: z
    .strictObject({
      css: z.string().min(1).optional().describe('Element whose text has the number.'),
      attr: z.string().min(1).optional(),
      regex: z.string().min(1).optional().describe('On the text of the element, or of the whole page.'),
      json: z.string().min(1).optional().describe('Path into a JSON page: `meta.pages`.'),
      header: z.string().min(1).optional().describe('Response header with the number.'),
      lastLink: z
        .string()
        .min(1)
        .optional()
        .describe('CSS of the link to the last page; the number is read off its URL with `url`.'),
      perPage: z.int().min(1).default(1).describe('When the number counts items: so many are on a page.'),
    })
    .optional()
    .describe('Where a page says how many pages there are.'),
  next: z
    .string()
    .min(1)
    .optional()
    .describe('CSS of the link to the next page, used when there is no count.'),
  first: z.int().min(0).default(1).describe('Number of the first page.'),
  max: z.int().min(1).default(10_000).describe('Most pages.'),
  priority: z.int().min(-1_000).max(1_000).default(0),
});

export const route = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe('Shown in exports; follow rules refer to it.'),
  match: patterns
    .optional()
    .describe('Which URLs belong to this route; without it, every URL that no earlier route matched.'),
  kind: z
    .enum(['page', 'media', 'sitemap'])
    .default('page')
    .describe('What the URLs lead to: pages, objects to store by themselves, or lists of URLs.'),
  select: z.record(z.string().min(1), field).optional().describe('Fields of the record, by name.'),
  markdown: z
    .boolean()
    .default(false)
    .describe('Adds the fields `title` and `markdown`: the main content of the page.'),
  require: z
    .array(z.string().min(1))
    .default([])
    .describe('Selectors that must match; otherwise the page is a `validation` failure and is tried again.'),
  schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('JSON Schema that records must fit; in TypeScript a zod schema will do too.'),
  key: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe('Fields that name the record; records of one key are merged. The URL when absent.'),
  media: z
    .array(mediaRule)
    .default([])
    .describe('Media of the page to store: selectors, or fields of the record.'),
  paginate: pagination.optional().describe('Lists that go on over several pages.'),
  follow: z.boolean().default(true).describe('Whether links on these pages are followed.'),
  fetcher: z
    .enum(ROUTE_FETCHERS)
    .optional()
    .describe(
      'What asks for the pages: plain HTTP, HTTP that looks like a browser down to TLS, a real browser, or a remote scraping API; `auto` is HTTP, and a browser where pages are nothing without their scripts. `http` when absent, and `browser` for a route with `browser`.',
    ),
  browser: routeBrowser
    .optional()
    .describe('What a browser does with the pages, and what is kept of them; see docs/rendering.md.'),
  escalate: z
    .array(z.enum(ESCALATIONS))
    .default([])
    .describe('What may be tried when pages are refused; the cheapest that works is learned and kept.'),
  proxy: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Proxy pool of these pages instead of the default one; with `proxy` among `escalate` only from there on.',
    ),
});

export type MediaRule = z.output<typeof mediaRule>;
export type Pagination = z.output<typeof pagination>;
