import { z } from 'zod';
import { websocket } from './websocket.ts';

/** Where URLs come from. A plain string is a URL, a file, `sitemap:…`, or an `s3://` or http(s) table by its ending. */

export const TASK_PRIORITY_MAX = 1_000;

const priority = z
  .int()
  .min(-TASK_PRIORITY_MAX)
  .max(TASK_PRIORITY_MAX)
  .default(0)
  .describe('Higher runs first.');
const route = z
  .string()
  .min(1)
  .optional()
  .describe('Route of the tasks. Default: the route that matches the URL.');

export const FILE_FORMATS = ['txt', 'csv', 'jsonl', 'parquet', 'sitemap'] as const;

const file = z.strictObject({
  file: z
    .string()
    .min(1)
    .describe('Path, `s3://bucket/prefix/*.parquet`, or http(s) URL; `*` matches any name.'),
  format: z.enum(FILE_FORMATS).optional().describe('Format of the file. Default: from the file name.'),
  urlColumn: z
    .string()
    .min(1)
    .optional()
    .describe('Column or property with the URL. Default: `url`, `page_url`, `image_url` or `link`.'),
  columns: z
    .record(z.string().min(1), z.string().min(1))
    .optional()
    .describe('Several URL columns and the route of each. Each row gives one task per column.'),
  routeColumn: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Column with the route of each row. A row without one gets `route`, or the route that matches.',
    ),
  priorityColumn: z
    .string()
    .min(1)
    .optional()
    .describe('Column with the priority of each row, from -1000 to 1000. A row without one gets `priority`.'),
  poolColumn: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Column with the proxy pool of each row, by its name in `proxies.pools`. A row without one gets that of its route.',
    ),
  countryColumn: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Column with the country of each row, two letters: only proxies of its pool in that country are used.',
    ),
  meta: z
    .array(z.string().min(1))
    .optional()
    .describe('Columns to copy to the result; others are not read. Default: all.'),
  route,
  priority,
});

const sitemap = z.strictObject({
  sitemap: z
    .string()
    .min(1)
    .describe('URL of a sitemap, feed or site. For a site, the sitemaps listed in its robots.txt are read.'),
  within: z
    .enum(['host', 'site', 'any'])
    .default('site')
    .describe('Which of its URLs to use: on the same host, within the site, or all.'),
  route,
  priority,
});

const query = z.strictObject({
  query: z
    .string()
    .min(1)
    .describe(
      'SQL on the views seine_tasks and seine_records. The column `url` holds the URL; other columns become meta.',
    ),
  route,
  priority,
});

export const source = z.union([z.string().min(1), file, sitemap, query, websocket]);

export type FileSourceSpec = z.output<typeof file>;
export type SitemapSourceSpec = z.output<typeof sitemap>;
export type QuerySourceSpec = z.output<typeof query>;
