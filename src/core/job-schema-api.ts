import { z } from 'zod';
import { secretRef } from './job-schema-proxies.ts';

/** A remote scraping API: it fetches pages from addresses of its own, for money. */

const pathIn = (value: string, doc: string) => z.string().default(value).describe(doc);
const template = z.string().regex(/^https?:\/\//i, 'a URL begins with http:// or https://');

const batchApi = z.strictObject({
  submit: template.describe('URL that takes a list; `{key}` stands for the key.'),
  body: z
    .record(z.string(), z.unknown())
    .default({ urls: '{urls}' })
    .describe(
      'JSON that is posted: `{urls}` stands for the list, `{key}` for the key, `{callback}` for the URL to which pages may be sent.',
    ),
  poll: template
    .optional()
    .describe('URL that tells how far a job is, with `{id}` and `{key}`; as the answer says when absent.'),
  size: z.int().min(1).max(1_000).default(50).describe('Most URLs in one list.'),
  gatherMs: z.int().min(1).max(60_000).default(500).describe('How long requests wait for others.'),
  pollMs: z.int().min(10).max(600_000).default(2_000).describe('How often a job is asked for.'),
  callbackPollMs: z
    .int()
    .min(10)
    .max(600_000)
    .default(15_000)
    .describe('How often a job is asked for whose pages will be sent.'),
  jobs: pathIn('', 'Where the answer to a list has its jobs: one for all, or a list with one for each URL.'),
  id: pathIn('id', 'Of a job: its id.'),
  statusUrl: pathIn('statusUrl', 'Of a job: where to ask for it.'),
  state: pathIn('status', 'Of a job: how far it is.'),
  done: z.array(z.string()).default(['finished', 'done', 'completed']).describe('States of finished jobs.'),
  failed: z.array(z.string()).default(['failed', 'error']).describe('States of failed jobs.'),
  results: pathIn('results', 'Of a finished job: its pages, a list or one.'),
  url: pathIn('url', 'Of a page, and of a job of one: its URL.'),
  status: pathIn('statusCode', 'Of a page: the status that the site gave.'),
  headers: pathIn('headers', 'Of a page: the headers that the site sent.'),
  page: pathIn('body', 'Of a page: its text.'),
  base64: z.boolean().default(false).describe('Whether pages are base64.'),
  cost: pathIn('cost', 'Of a page: what it cost.'),
});

export const api = z
  .strictObject({
    url: template
      .refine((text) => text.includes('{url}'), '`{url}` must stand somewhere in it')
      .optional()
      .describe('URL that fetches a page: `{url}` stands for its URL, `{key}` for the key.'),
    batch: batchApi
      .optional()
      .describe('Instead: lists of URLs are given in, and their pages asked for later.'),
    key: secretRef.optional().describe('Where the key is.'),
    headers: z
      .record(z.string(), z.string())
      .default({})
      .describe(
        'Request headers; `{key}` stands for the key. Those of the job are for sites, not for the API.',
      ),
    statusHeader: z
      .string()
      .min(1)
      .optional()
      .describe("Response header with the site's own status; without it the status is taken for the site's."),
    errors: z
      .array(z.int().min(400).max(599))
      .default([401, 402, 403, 407, 429, 500, 502, 503, 504])
      .describe("Statuses by which the API speaks of itself, where no header has the site's."),
    parallel: z
      .int()
      .min(1)
      .max(1_000)
      .default(16)
      .describe('Requests at once to the API, from each worker; sites keep their own limits besides.'),
    cost: z.number().min(0).default(1).describe('Cost of a page, where nothing else says so.'),
    costHeader: z.string().min(1).optional().describe('Response header with the cost of the page.'),
  })
  .refine(({ url, batch }) => (url === undefined) !== (batch === undefined), 'either `url` or `batch`')
  .optional()
  .describe(
    'Remote scraping API for routes with `fetcher: api` or that escalate to it; see docs/proxies.md.',
  );

export type ApiSpec = NonNullable<z.output<typeof api>>;
export type BatchApiSpec = z.output<typeof batchApi>;
