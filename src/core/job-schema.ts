import { z } from 'zod';
import { LIMITS } from './limits.ts';

/** What a job may say. Input is what people write; `JobSpec` is the same with every default filled in. */

const patterns = z
  .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
  .transform((value) => (typeof value === 'string' ? [value] : value))
  .describe(
    'URL patterns: `/product/*` is matched with the path, `https://*.example.com/**` with the whole URL; `*` stays within a segment, `**` does not.',
  );

const field = z
  .union([
    z.string().min(1),
    z.strictObject({
      css: z.string().min(1).describe('CSS selector.'),
      attr: z.string().min(1).optional().describe('Attribute to take instead of the text.'),
      all: z.boolean().default(false).describe('Every match as a list, instead of the first.'),
    }),
  ])
  .describe('A CSS selector, `selector@attribute`, or an object.');

const route = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe('Shown in exports; follow rules refer to it.'),
  match: patterns
    .optional()
    .describe('Which URLs belong to this route; without it, every URL that no earlier route matched.'),
  select: z.record(z.string().min(1), field).optional().describe('Fields of the record, by name.'),
  follow: z.boolean().default(true).describe('Whether links on these pages are followed.'),
});

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

const source = z.union([
  z.string().min(1),
  z.strictObject({
    file: z.string().min(1).describe('A file of URLs.'),
    format: z.enum(['txt', 'csv', 'jsonl']).optional().describe('By the file name when absent.'),
    urlColumn: z.string().min(1).default('url').describe('Column or property that holds the URL.'),
    priority: z.int().min(-1_000).max(1_000).default(0),
  }),
]);

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
    .describe('URLs and files of URLs to start from.'),
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
  politeness: z
    .strictObject({
      rate: z
        .union([z.number().positive().max(100_000), z.literal('max')])
        .default(4)
        .describe('Requests per second and host, or `max`.'),
      parallel: z
        .int()
        .min(1)
        .max(1_000)
        .nullable()
        .default(null)
        .describe('Requests at once per host; 4, or 32 with rate `max`.'),
      robots: z.boolean().default(true).describe('Obey robots.txt, its Crawl-delay too.'),
    })
    .prefault({}),
  identity: z
    .strictObject({
      userAgent: z
        .string()
        .min(1)
        .max(512)
        .optional()
        .describe('User-Agent header; robots.txt is read for its first word.'),
      contact: z
        .string()
        .max(256)
        .optional()
        .describe('URL or mail address put into the default User-Agent.'),
      headers: z.record(z.string(), z.string()).default({}).describe('Further request headers.'),
    })
    .prefault({}),
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
  archive: z.boolean().default(true).describe('Keep pages in WARC files.'),
  batchSize: z.int().min(1).max(LIMITS.batchTasksMax).default(120).describe('Most tasks in one batch.'),
  allowPrivate: z.boolean().default(false).describe('Permit loopback and private addresses.'),
});

export type JobInput = z.input<typeof jobSchema>;
type ParsedJob = z.output<typeof jobSchema>;
/** Validated, defaults filled in, no functions: travels in every batch. */
export type JobSpec = Omit<ParsedJob, 'name' | '$schema'> & { name: string };
export type RouteSpec = JobSpec['routes'][number];
export type FieldSpec = NonNullable<RouteSpec['select']>[string];
export type SourceSpec = JobSpec['sources'][number];
