import { z } from 'zod';

/** What is written to the archive besides the pages themselves. */

const archiveParts = z.strictObject({
  requests: z
    .boolean()
    .default(true)
    .describe('Write a `request` record for each page, without cookies, credentials and secret headers.'),
  blockDigests: z.boolean().default(true).describe('Write a `WARC-Block-Digest` for each page.'),
  errors: z
    .boolean()
    .default(false)
    .describe('Store responses with an error status (4xx and 5xx), up to 1 MB each.'),
  subresources: z
    .boolean()
    .default(false)
    .describe(
      'Store what a browser loads for a page: scripts, styles, images, data. Up to 500 and 32 MB a page.',
    ),
});

export type ArchiveParts = z.output<typeof archiveParts>;

export const archive = z
  .union([z.boolean(), archiveParts])
  .default(true)
  .describe('Store pages in WARC files: true, false, or what is stored with them.');
