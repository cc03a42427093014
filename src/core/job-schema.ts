import { z } from 'zod';
import { api } from './job-schema-api.ts';
import { login } from './job-schema-browser.ts';
import { identity } from './job-schema-identity.ts';
import { politeness } from './job-schema-politeness.ts';
import { proxies } from './job-schema-proxies.ts';
import { patterns, route } from './job-schema-route.ts';
import { source } from './job-schema-source.ts';
import { LIMITS } from './limits.ts';

/** What a job may say. Input is what people write; `JobSpec` is the same with every default filled in. */

export const FOLLOW_SCOPES = ['host', 'site', 'any'] as const;

const followRule = z.strictObject({
  within: z.enum(FOLLOW_SCOPES).default('host').describe('Same host, same registrable domain, or anywhere.'),
  match: patterns.optional().describe('Only links that match.'),
  not: patterns.optional().describe('No links that match.'),
  css: z.string().min(1).optional().describe('Only links inside elements that match this selector.'),
  from: z.string().optional().describe('Only on pages of this route.'),
  route: z.string().optional().describe('Route of the new tasks; by URL when absent.'),
  priority: z.int().min(-1_000).max(1_000).default(0).describe('Higher runs first.'),
});

const followInput = z
  .union([z.boolean(), z.enum(FOLLOW_SCOPES), z.array(followRule)])
  .default(false)
  .transform((value): FollowRule[] => {
    if (value === false) return [];
    if (value === true) return [{ within: 'host', priority: 0 }];
    return typeof value === 'string' ? [{ within: value, priority: 0 }] : value;
  })
  .describe(
    'Links to follow: true, `host`, `site`, `any`, or rules; the first rule that fits a link decides.',
  );

export type FollowRule = z.output<typeof followRule>;

const positiveMs = (value: number, doc: string) =>
  z.int().min(1).max(86_400_000).default(value).describe(doc);

export const jobSchema = z.strictObject({
  $schema: z.string().optional(),
  name: z
    .string()
    .regex(
      /^(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,63}$/i,
      'a name has letters, digits, single dots, dashes and underscores',
    )
    .optional()
    .describe('Name of the job; from the file or host when absent.'),
  sources: z
    .union([source, z.array(source).min(1)])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .describe('URLs, files of URLs, sitemaps, tables and queries to start from.'),
  routes: z
    .array(route)
    .default([])
    .describe('How pages are told apart and what is taken from them; the first match decides.'),
  follow: followInput,
  redirects: z
    .enum(['auto', 'follow', 'discover'])
    .default('auto')
    .describe(
      '`follow`: the task goes on at the new URL; `discover`: the new URL is a task of its own, never fetched twice; `auto`: discover when links are followed.',
    ),
  limits: z
    .strictObject({
      pages: z.int().min(1).nullable().default(null).describe('Stop after so many pages.'),
      depth: z.int().min(0).nullable().default(null).describe('Links away from a source.'),
      bytes: z.int().min(1).nullable().default(null).describe('Stop after so many bytes received.'),
      seconds: z.int().min(1).nullable().default(null).describe('Stop after so many seconds of work.'),
      diskFreeBytes: z
        .int()
        .min(0)
        .default(256 * 1024 * 1024)
        .describe('Stop when the disk has less free than this.'),
      perTemplate: z
        .int()
        .min(1)
        .nullable()
        .default(100_000)
        .describe('Followed URLs that differ only in numbers and ids; a guard against endless calendars.'),
      bodyBytes: z
        .int()
        .min(1)
        .max(1024 ** 3)
        .default(LIMITS.bodyBytesMax)
        .describe('Largest page.'),
      window: z.int().min(100).default(50_000).describe('Sources are read ahead until this many tasks wait.'),
    })
    .prefault({}),
  politeness,
  identity,
  proxies,
  api,
  login,
  timeouts: z
    .strictObject({
      connectMs: positiveMs(10_000, 'TCP and TLS handshake.'),
      headersMs: positiveMs(20_000, 'From the request to the response headers.'),
      bodyMs: positiveMs(20_000, 'Longest silence within a body.'),
      taskMs: positiveMs(60_000, 'A whole task.'),
    })
    .prefault({}),
  retry: z
    .strictObject({
      attempts: z.int().min(1).max(100).default(4).describe('Attempts before a task is a dead letter.'),
      baseMs: positiveMs(1_000, 'First pause; doubled each time, with jitter.'),
      maxMs: positiveMs(300_000, 'Longest pause.'),
    })
    .prefault({}),
  breaker: z
    .strictObject({
      hostFailures: z.int().min(1).default(10).describe('Failures in a row that rest a host.'),
      hostRestMs: positiveMs(5_000, 'First rest of a failing host; doubled each time.'),
      hostProbes: z.int().min(1).default(6).describe('Failed probes before its tasks are dead letters.'),
      jobBatches: z.int().min(1).default(20).describe('Wholly failed batches in a row that stop the job.'),
    })
    .prefault({}),
  url: z
    .strictObject({
      stripTracking: z.boolean().default(true).describe('Drop utm_*, gclid and the like.'),
      sortQuery: z.boolean().default(false).describe('Sort query parameters.'),
      trailingSlash: z.enum(['keep', 'strip']).default('keep').describe('Whether /a/ and /a are one page.'),
    })
    .prefault({}),
  records: z
    .strictObject({
      guardSeconds: z
        .int()
        .min(0)
        .default(3_600)
        .describe('An unchanged record is confirmed in the store at most this often.'),
      history: z.boolean().default(false).describe('Keep the former states of changed records.'),
    })
    .prefault({}),
  revisit: z
    .strictObject({
      afterSeconds: z
        .int()
        .min(0)
        .default(0)
        .describe('A refresh visits URLs that were last visited longer ago than this.'),
    })
    .prefault({}),
  media: z
    .strictObject({
      pack: z
        .enum(['none', 'webdataset'])
        .default('none')
        .describe('One object each, named by its hash, or tar shards with JSON beside each item.'),
      bytes: z.int().min(1).default(LIMITS.mediaBytesMax).describe('Largest object.'),
      types: z
        .array(z.string().min(1))
        .default([])
        .describe('Accepted types, like `image/*`, as told by the bytes; empty accepts all.'),
    })
    .prefault({}),
  schedule: z
    .union([
      z.string().min(1),
      z.strictObject({
        cron: z.string().min(1).describe('Cron expression.'),
        timeZone: z
          .string()
          .min(1)
          .optional()
          .describe('Like Europe/Paris; that of the machine when absent.'),
        refresh: z.boolean().default(true).describe('Visit known URLs again, instead of a new run.'),
      }),
    ])
    .transform((value) => (typeof value === 'string' ? { cron: value, refresh: true } : value))
    .optional()
    .describe('When `seine serve` and `run --watch` run the job again.'),
  archive: z.boolean().default(true).describe('Keep pages in WARC files.'),
  batchSize: z.int().min(1).max(LIMITS.batchTasksMax).default(120).describe('Most tasks in one batch.'),
  allowPrivate: z.boolean().default(false).describe('Permit loopback and private addresses.'),
});

export type JobInput = z.input<typeof jobSchema>;
type ParsedJob = z.output<typeof jobSchema>;
/** Validated, defaults filled in, no functions: travels in every batch. */
export type JobSpec = Omit<ParsedJob, 'name' | '$schema'> & { name: string };
export type RouteSpec = JobSpec['routes'][number];
export type SourceSpec = JobSpec['sources'][number];
export type { HostRule } from './job-schema-politeness.ts';
export type { FieldInput, FieldSpec, MediaRule, Pagination } from './job-schema-route.ts';
