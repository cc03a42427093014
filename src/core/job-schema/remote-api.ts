import { z } from 'zod';
import { secretRef } from './proxies.ts';

/** A remote scraping API: a paid service that fetches pages from its own addresses. */

const pathIn = (value: string, doc: string) => z.string().default(value).describe(doc);
const template = z.string().regex(/^https?:\/\//i, 'a URL must begin with http:// or https://');

const batchApi = z.strictObject({
  submit: template.describe('URL that accepts a list of URLs; `{key}` is replaced with the key.'),
  body: z
    .record(z.string(), z.unknown())
    .default({ urls: '{urls}' })
    .describe(
      'JSON body of the request. `{urls}` is replaced with the list, `{key}` with the key, `{callback}` with the URL that receives pages.',
    ),
  poll: template
    .optional()
    .describe(
      'URL with the status of a job; `{id}` and `{key}` are replaced. Default: the `statusUrl` of the response.',
    ),
  size: z.int().min(1).max(1_000).default(50).describe('Maximum URLs in one list.'),
  gatherMs: z
    .int()
    .min(1)
    .max(60_000)
    .default(500)
    .describe('How long to collect requests before a list is sent.'),
  pollMs: z.int().min(10).max(600_000).default(2_000).describe('Polling interval of a job.'),
  callbackPollMs: z
    .int()
    .min(10)
    .max(600_000)
    .default(15_000)
    .describe('Polling interval of a job whose pages arrive by callback.'),
  jobs: pathIn(
    '',
    'Path to the jobs in the response to a list: one job for all URLs, or a list with one job per URL.',
  ),
  id: pathIn('id', 'In a job: path to its id.'),
  statusUrl: pathIn('statusUrl', 'In a job: path to its status URL.'),
  state: pathIn('status', 'In a job: path to its state.'),
  done: z.array(z.string()).default(['finished', 'done', 'completed']).describe('States of finished jobs.'),
  failed: z.array(z.string()).default(['failed', 'error']).describe('States of failed jobs.'),
  results: pathIn('results', 'In a finished job: path to its pages, a list or a single page.'),
  url: pathIn('url', 'In a page, or in a job for a single URL: path to the URL.'),
  status: pathIn('statusCode', 'In a page: path to the HTTP status of the site.'),
  headers: pathIn('headers', 'In a page: path to the response headers of the site.'),
  page: pathIn('body', 'In a page: path to its content.'),
  base64: z.boolean().default(false).describe('Whether the content is base64.'),
  cost: pathIn('cost', 'In a page: path to its cost.'),
});

export const api = z
  .strictObject({
    url: template
      .refine((text) => text.includes('{url}'), 'the URL must contain `{url}`')
      .optional()
      .describe(
        'URL that fetches one page: `{url}` is replaced with the URL of the page, `{key}` with the key.',
      ),
    batch: batchApi
      .optional()
      .describe('Alternative to `url`: submit lists of URLs, and fetch their pages later.'),
    key: secretRef.optional().describe('Where to read the API key.'),
    headers: z
      .record(z.string(), z.string())
      .default({})
      .describe(
        'Headers of requests to the API; `{key}` is replaced with the key. The headers of the job are not sent to the API.',
      ),
    statusHeader: z
      .string()
      .min(1)
      .optional()
      .describe("Response header with the site's status. Default: the status of the response is the site's."),
    errors: z
      .array(z.int().min(400).max(599))
      .default([401, 402, 403, 407, 429, 500, 502, 503, 504])
      .describe("Statuses that are errors of the API itself, if no header contains the site's status."),
    parallel: z
      .int()
      .min(1)
      .max(1_000)
      .default(16)
      .describe('Concurrent requests to the API per worker. The limits per host still apply.'),
    cost: z.number().min(0).default(1).describe('Cost of a page, if the response does not contain it.'),
    costHeader: z.string().min(1).optional().describe('Response header with the cost of the page.'),
  })
  .refine(({ url, batch }) => (url === undefined) !== (batch === undefined), 'set either `url` or `batch`')
  .optional()
  .describe('Remote scraping API, for routes with `fetcher: api` or `escalate: [api]`. See docs/proxies.md.');

export type ApiSpec = NonNullable<z.output<typeof api>>;
export type BatchApiSpec = z.output<typeof batchApi>;
