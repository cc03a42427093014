import { z } from 'zod';

/** Where URLs come from. A plain string is a URL, a file, `sitemap:…`, or an `s3://` or http(s) table by its ending. */

const priority = z.int().min(-1_000).max(1_000).default(0).describe('Higher runs first.');
const route = z.string().min(1).optional().describe('Route of the tasks; by URL when absent.');

export const FILE_FORMATS = ['txt', 'csv', 'jsonl', 'parquet', 'sitemap'] as const;

const file = z.strictObject({
  file: z
    .string()
    .min(1)
    .describe('A path, `s3://bucket/prefix/*.parquet`, or an http(s) URL; `*` stands for any name.'),
  format: z.enum(FILE_FORMATS).optional().describe('By the file name when absent.'),
  urlColumn: z
    .string()
    .min(1)
    .optional()
    .describe('Column or property that holds the URL; `url`, `page_url`, `image_url` or `link` when absent.'),
  columns: z
    .record(z.string().min(1), z.string().min(1))
    .optional()
    .describe('Several URL columns with the route of each: one task for each of them.'),
  meta: z
    .array(z.string().min(1))
    .optional()
    .describe('Columns that travel to the result; all when absent. Others are not read.'),
  route,
  priority,
});

const sitemap = z.strictObject({
  sitemap: z
    .string()
    .min(1)
    .describe('A sitemap, feed, or site: of a site, those that its robots.txt names.'),
  within: z.enum(['host', 'site', 'any']).default('site').describe('Which of its URLs are taken.'),
  route,
  priority,
});

const query = z.strictObject({
  query: z
    .string()
    .min(1)
    .describe('SQL over the views seine_tasks and seine_records; a column `url`, the others travel as meta.'),
  route,
  priority,
});

export const source = z.union([z.string().min(1), file, sitemap, query]);

export type FileSourceSpec = z.output<typeof file>;
export type SitemapSourceSpec = z.output<typeof sitemap>;
export type QuerySourceSpec = z.output<typeof query>;
