import { z } from 'zod';
import { ESCALATIONS, ROUTE_FETCHERS } from '../escalation/escalation.ts';
import { routeBrowser } from './browser.ts';

/** How pages of one kind are recognised, fetched and parsed. */

export const patterns = z
  .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
  .transform((value) => (typeof value === 'string' ? [value] : value))
  .describe(
    'URL patterns: `/product/*` matches the path, `https://*.example.com/**` the whole URL. `*` matches within a segment, `**` across segments.',
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
    css: z
      .string()
      .min(1)
      .optional()
      .describe('CSS selector; in nested fields, inside the match of the parent.'),
    attr: z.string().min(1).optional().describe('Attribute to extract instead of the text.'),
    jsonLd: z
      .string()
      .min(1)
      .optional()
      .describe('Path into JSON-LD that starts with a type: `Product.offers.price`.'),
    meta: z.string().min(1).optional().describe('Name or property of a meta tag: `og:title`.'),
    regex: z
      .string()
      .min(1)
      .optional()
      .describe(
        'Extracts the match, or its first group, from the value; without a selector, from the page. Runs in linear time.',
      ),
    all: z.boolean().default(false).describe('Extract all matches as a list instead of the first.'),
    type: z
      .enum(FIELD_TYPES)
      .default('text')
      .describe('Type to convert the text to. The value is null if the text does not fit.'),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, 'a currency must be a code such as EUR')
      .optional()
      .describe('For money: the currency if the text has none, or an ambiguous sign such as `$`.'),
    decimal: z
      .enum(['.', ','])
      .optional()
      .describe('For numbers and money: the decimal mark. Default: detected from the text.'),
    dayFirst: z
      .boolean()
      .optional()
      .describe(
        'For dates: true reads 01/02/2024 as 1 February, false as 2 January. Without it such dates are null.',
      ),
    fields: z
      .record(z.string().min(1), z.union([z.string().min(1), fieldObject]))
      .optional()
      .describe('Nested fields, extracted inside each match of `css`.'),
    required: z
      .boolean()
      .default(false)
      .describe('If the value is missing, the page is a `validation` failure.'),
  }),
);

const field = z
  .union([z.string().min(1), fieldObject])
  .describe('A CSS selector, `selector@attribute`, or an object.');

const mediaRule = z.union([
  z.string().min(1),
  z.strictObject({
    css: z.string().min(1).optional().describe('Elements with media.'),
    attr: z
      .string()
      .min(1)
      .optional()
      .describe('Attribute with the URL. Default: src, srcset, href, poster or data-src.'),
    field: z.string().min(1).optional().describe('Field of the record with the URL or URLs.'),
    route: z.string().min(1).optional().describe('Route of kind media. Default: a built-in one.'),
    priority: z.int().min(-1_000).max(1_000).default(0),
  }),
]);

const pagination = z.strictObject({
  url: z
    .string()
    .min(1)
    .optional()
    .describe(
      'URL template with {page} (page number) or {offset} (item offset): absolute, relative to the page (`?page={page}`), or a query parameter to set (`&page={page}`). Required with `count`.',
    ),
  count: z
    .strictObject({
      css: z.string().min(1).optional().describe('Element whose text contains the number.'),
      attr: z.string().min(1).optional(),
      regex: z
        .string()
        .min(1)
        .optional()
        .describe('Applied to the text of the element, or of the whole page.'),
      json: z.string().min(1).optional().describe('Path into a JSON page: `meta.pages`.'),
      header: z.string().min(1).optional().describe('Response header with the number.'),
      lastLink: z
        .string()
        .min(1)
        .optional()
        .describe(
          'CSS selector of the link to the last page. `url` must match its URL and yields the number.',
        ),
      perPage: z.int().min(1).default(1).describe('Items per page, if the number counts items.'),
    })
    .optional()
    .describe('Where a page contains the number of pages.'),
  next: z
    .string()
    .min(1)
    .optional()
    .describe('CSS selector of the link to the next page, used if there is no count.'),
  first: z.int().min(0).default(1).describe('Number of the first page.'),
  max: z.int().min(1).default(10_000).describe('Maximum number of pages.'),
  priority: z.int().min(-1_000).max(1_000).default(0),
});

export const route = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe('Name of the route, for exports and follow rules.'),
  match: patterns
    .optional()
    .describe('URLs of this route. Default: every URL that no earlier route matches.'),
  kind: z
    .enum(['page', 'media', 'sitemap'])
    .default('page')
    .describe('What the URLs are: pages, media files to store, or sitemaps.'),
  select: z.record(z.string().min(1), field).optional().describe('Fields of the record, by name.'),
  markdown: z
    .boolean()
    .default(false)
    .describe('Adds the fields `title` and `markdown`: the main content of the page.'),
  require: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Selectors that must match. If one does not, the page is a `validation` failure and is retried.',
    ),
  schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('JSON Schema that records must match. In TypeScript it can be a zod schema.'),
  key: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe('Fields that identify a record; records with the same key are merged. Default: the URL.'),
  media: z.array(mediaRule).default([]).describe('Media to store: selectors, or fields of the record.'),
  paginate: pagination.optional().describe('Pagination of lists.'),
  follow: z.boolean().default(true).describe('Whether to follow links on these pages.'),
  fetcher: z
    .enum(ROUTE_FETCHERS)
    .optional()
    .describe(
      'How to fetch the pages: plain HTTP, HTTP with the TLS fingerprint and headers of a browser, a real browser, or a remote scraping API. `auto` uses HTTP, and a browser for pages that need JavaScript. Default: `browser` if the route has `browser`, otherwise `http`.',
    ),
  browser: routeBrowser
    .optional()
    .describe('What the browser does with the pages, and what to store. See docs/rendering.md.'),
  escalate: z
    .array(z.enum(ESCALATIONS))
    .default([])
    .describe(
      'Fetchers and proxies to try if a site refuses requests. Seine learns the cheapest that works for each host.',
    ),
  proxy: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Proxy pool for these pages instead of the default. If `escalate` contains `proxy`, it is used only from that step on.',
    ),
});

export type MediaRule = z.output<typeof mediaRule>;
export type Pagination = z.output<typeof pagination>;
