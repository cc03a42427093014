import { z } from 'zod';
import { type BatchOptions, batchOptionsSchema, parseAs, scrapeSchema } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';

/** Requests of Firecrawl's API, version 2, in the words of ours. What has no meaning here is refused, not left out. */

/** Their place is in the ids of crawls and batches: add new ones at the end. */
export const DOCUMENT_PARTS = [
  'markdown',
  'html',
  'rawHtml',
  'links',
  'images',
  'screenshot',
  'wholePage',
] as const;
/** What a document has of its page. `wholePage`: the Markdown is of all of it, not only of the main content. */
export type DocumentPart = (typeof DOCUMENT_PARTS)[number];

const FORMATS = DOCUMENT_PARTS.filter((part) => part !== 'wholePage');
const format = z
  .union([z.string(), z.looseObject({ type: z.string() })])
  .transform((value) => (typeof value === 'string' ? value : value.type))
  .pipe(
    z.enum(FORMATS, {
      error: ({ input }) => `there is no ${String(input).slice(0, 50)} here, but ${FORMATS.join(', ')}`,
    }),
  );

/** They say nothing about the result: who sends it, and how Firecrawl's own service works. */
const ignored = {
  origin: z.unknown().optional(),
  integration: z.unknown().optional(),
  blockAds: z.unknown().optional(),
  fastMode: z.unknown().optional(),
  proxy: z.unknown().optional(),
  removeBase64Images: z.unknown().optional(),
  storeInCache: z.unknown().optional(),
  parsers: z.unknown().optional(),
  skipTlsVerification: z.literal(false).optional(),
  mobile: z.literal(false).optional(),
  zeroDataRetention: z.literal(false).optional(),
};

const milliseconds = z.int().min(1).max(300_000);

const pageFields = {
  formats: z.array(format).min(1).max(20).default(['markdown']),
  onlyMainContent: z.boolean().default(true),
  headers: z.record(z.string(), z.string()).optional(),
  timeout: milliseconds.default(60_000),
  waitFor: z.int().min(0).max(60_000).default(0),
  maxAge: z.int().min(0).max(31_536_000_000).default(0),
  ...ignored,
};

const scrapeOptions = z.strictObject(pageFields);
export const firecrawlScrape = z.strictObject({ url: z.string(), ...pageFields });

const webhook = z.union([
  z.string(),
  z.strictObject({
    url: z.string(),
    metadata: z.record(z.string(), z.unknown()).optional(),
    events: z.array(z.enum(['completed', 'failed', 'page', 'started'])).optional(),
  }),
]);
type FirecrawlWebhook = z.output<typeof webhook>;

export const firecrawlBatch = z.strictObject({
  urls: z.array(z.string()).min(1).max(1_000_000),
  ...pageFields,
  webhook: webhook.optional(),
  appendToId: z.string().max(200).optional(),
  ignoreInvalidURLs: z.boolean().default(true),
  maxConcurrency: z.unknown().optional(),
});

export const PAGES_DEFAULT = 10_000;

export const firecrawlCrawl = z.strictObject({
  url: z.string(),
  includePaths: z.array(z.string()).max(100).default([]),
  excludePaths: z.array(z.string()).max(100).default([]),
  maxDiscoveryDepth: z.int().min(0).optional(),
  sitemap: z.enum(['skip', 'include', 'only']).default('include'),
  limit: z.int().min(1).default(PAGES_DEFAULT),
  crawlEntireDomain: z.boolean().default(false),
  allowExternalLinks: z.boolean().default(false),
  allowSubdomains: z.boolean().default(false),
  ignoreRobotsTxt: z.boolean().default(false),
  deduplicateSimilarURLs: z.unknown().optional(),
  ignoreQueryParameters: z.literal(false).optional(),
  regexOnFullURL: z.literal(false).optional(),
  delay: z.number().positive().max(3_600).optional(),
  maxConcurrency: z.int().min(1).max(1_000).optional(),
  webhook: webhook.optional(),
  scrapeOptions: scrapeOptions.prefault({}),
  ...ignored,
});
export type FirecrawlCrawl = z.output<typeof firecrawlCrawl>;

export const firecrawlMap = z.strictObject({
  url: z.string(),
  search: z.string().max(1_000).optional(),
  sitemap: z.enum(['skip', 'include', 'only']).default('include'),
  includeSubdomains: z.boolean().default(true),
  ignoreQueryParameters: z.boolean().default(true),
  limit: z.int().min(1).max(100_000).default(5_000),
  timeout: milliseconds.default(60_000),
  ...ignored,
});
export type FirecrawlMap = z.output<typeof firecrawlMap>;

type PageFields = z.output<typeof scrapeOptions>;

export function partsOf({ formats, onlyMainContent }: PageFields): DocumentPart[] {
  return [...formats, ...(onlyMainContent ? [] : (['wholePage'] as const))];
}

/** The fields that say how pages are fetched. Documents are made of the stored pages later. */
function fetchFields({ formats, headers, timeout, waitFor }: PageFields): object {
  return {
    formats: formats.includes('screenshot') ? ['html', 'screenshot'] : ['html'],
    ...(headers ? { headers } : {}),
    timeout: Math.ceil(timeout / 1_000),
    ...(waitFor > 0 ? { wait_for: waitFor } : {}),
  };
}

export function scrapeRequest(url: string, fields: PageFields) {
  const wait = Math.ceil(fields.timeout / 1_000);
  const maxAge = Math.floor(fields.maxAge / 1_000);
  return parseAs(scrapeSchema, { url, ...fetchFields(fields), wait, max_age: maxAge });
}

export function batchRequest(
  fields: PageFields,
  more: { robots?: boolean; delay?: number | undefined; append_to?: string; on_invalid?: 'skip' | 'fail' },
  hook?: FirecrawlWebhook,
): BatchOptions {
  const { delay, ...options } = more;
  const webhookField = hook === undefined ? {} : { webhook: webhookOf(hook) };
  const rate = delay === undefined ? {} : { rate: Math.min(RATE_DEFAULT, 1 / delay) };
  return parseAs(batchOptionsSchema, { ...fetchFields(fields), ...options, ...rate, ...webhookField });
}

const RATE_DEFAULT = 4;

const EVENTS_OF = {
  completed: ['job.completed'],
  failed: ['job.failed'],
  page: ['page.completed', 'page.failed'],
  started: [],
};

export function webhookOf(hook: FirecrawlWebhook): { url: string; events?: string[]; metadata?: unknown } {
  if (typeof hook === 'string') return { url: hook };
  const { url, events, metadata } = hook;
  const named = events?.flatMap((event) => EVENTS_OF[event]);
  if (named?.length === 0) throw new Problem('bad-option', 'webhook.events: there is no started here');
  return { url, ...(named ? { events: named } : {}), ...(metadata ? { metadata } : {}) };
}

/** As people write it, also without a scheme. */
export function startUrl(text: string): string {
  const url = URL.parse(text) ?? URL.parse(`https://${text}`);
  if (!url || !/^https?:$/.test(url.protocol)) throw new Problem('bad-url');
  return url.href;
}
