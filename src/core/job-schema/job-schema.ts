import { z } from 'zod';
import { BATCH_TASKS_MAX } from '../batch-size/batch-size.ts';
import { LEVEL_CHOOSING } from '../escalation/escalation.ts';
import { LIMITS } from '../limits.ts';
import { JOB_PRIORITY_MAX } from '../slots/fair-share.ts';
import { TAIL_POLICIES } from '../tail/tail.ts';
import { archive } from './archive.ts';
import { login } from './browser.ts';
import { notify } from './notify.ts';
import { proxies, secretRef } from './proxies.ts';
import { api } from './remote-api.ts';
import { patterns, route } from './route.ts';
import { sink } from './sink.ts';
import { source } from './source.ts';

/** Larger objects are films; a job may ask for them. */
const MEDIA_BYTES_MAX = 2 * 1024 ** 3;

/** How requests identify themselves: as the crawler, or like a browser. */

const identity = z
  .strictObject({
    mode: z
      .enum(['honest', 'browser'])
      .default('honest')
      .describe(
        '`honest` sends the User-Agent of the crawler; `browser` sends the headers of current browsers.',
      ),
    userAgent: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe(
        'User-Agent header in honest mode. In both modes its first word selects the rules in robots.txt.',
      ),
    contact: z
      .string()
      .max(256)
      .optional()
      .describe('URL or email address to include in the default User-Agent.'),
    headers: z.record(z.string(), z.string()).default({}).describe('Additional request headers.'),
    secretHeaders: z
      .record(
        z.string().regex(/^https?:\/\/[^/@?#\s]+$/, 'an origin must look like https://shop.example'),
        z.record(z.string().regex(/^[\w-]+$/, 'not a header name'), secretRef),
      )
      .optional()
      .describe('Headers with secret values, by origin. They are sent only to that origin.'),
    languages: z
      .array(z.string().regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language must look like de-CH'))
      .min(1)
      .max(8)
      .optional()
      .describe('Languages for Accept-Language, in order of preference. Default: English.'),
    device: z.enum(['desktop', 'mobile']).default('desktop').describe('Device type in browser mode.'),
    cookies: z
      .boolean()
      .optional()
      .describe('Keep cookies, by origin and identity. Default: true in browser mode, false in honest mode.'),
  })
  .prefault({})
  .describe('How the job presents itself to the sites.');

/** Request rates and other rules of politeness. */

const clockTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time must look like 22:30');

const hostRule = z.strictObject({
  rate: z
    .union([z.number().positive().max(100_000), z.literal('max')])
    .optional()
    .describe('Requests per second.'),
  parallel: z.int().min(1).max(1_000).optional().describe('Concurrent requests.'),
  window: z
    .strictObject({
      from: clockTime.describe('Start, such as 22:00.'),
      to: clockTime.describe('End, such as 06:00. If it is before `from`, it is on the next day.'),
      timeZone: z.string().min(1).default('UTC').describe('Such as Europe/Paris.'),
    })
    .optional()
    .describe('Hours in which requests to the host are allowed.'),
});

export type HostRule = z.output<typeof hostRule>;

const politeness = z
  .strictObject({
    rate: z
      .union([z.number().positive().max(100_000), z.literal('max')])
      .default(4)
      .describe('Requests per second and host, or `max` for no limit.'),
    parallel: z
      .int()
      .min(1)
      .max(1_000)
      .nullable()
      .default(null)
      .describe('Concurrent requests per host. Default: 4, or 32 with rate `max`.'),
    adaptive: z
      .boolean()
      .default(true)
      .describe('Start at half the rate, and slow down if a host refuses requests, fails or becomes slow.'),
    perAddress: z
      .boolean()
      .default(false)
      .describe(
        'For hosts that count requests by address: learn a rate for each outgoing address (a Lambda environment, a worker of the fleet), and use several at once. `rate` stays the limit of the whole host.',
      ),
    jitter: z
      .number()
      .min(0)
      .max(3)
      .default(0)
      .describe(
        'Lengthen each pause between requests by a random share up to this value; sometimes by much more.',
      ),
    groupBy: z
      .enum(['host', 'site', 'address'])
      .default('host')
      .describe(
        'Apply rates per host, per registrable domain (`site`), or per IP address. An address is resolved once, when the host is first seen.',
      ),
    hosts: z
      .record(z.string().min(1), hostRule)
      .default({})
      .describe('Limits for single hosts; `*.example.com` matches all subdomains. The first match applies.'),
    robots: z.boolean().default(true).describe('Obey robots.txt, including Crawl-delay and Request-rate.'),
    robotsTags: z
      .enum(['record', 'obey'])
      .default('record')
      .describe(
        'What to do with X-Robots-Tag and meta robots. `record` only records them. `obey` also follows no links of nofollow pages, stores no records or copies of noindex and noai pages, no copies of noarchive pages, and no media of noai, noimageai and noimageindex pages.',
      ),
    nofollow: z
      .enum(['follow', 'skip'])
      .default('follow')
      .describe('What follow rules do with links that have `rel=nofollow`. `skip` does not follow them.'),
    log: z
      .boolean()
      .default(true)
      .describe(
        'Log the requests to each host, as a chain of entries that others can check: `seine export --what hosts`, `seine verify`.',
      ),
  })
  .prefault({})
  .describe('How gently hosts are asked; see docs/politeness.md.');

/** The fields of a job. Input is what users write; `JobSpec` is the same with every default filled in. */

export const FOLLOW_SCOPES = ['host', 'site', 'any'] as const;

const followRule = z.strictObject({
  within: z.enum(FOLLOW_SCOPES).default('host').describe('Same host, same registrable domain, or any host.'),
  match: patterns.optional().describe('Only links that match.'),
  not: patterns.optional().describe('Only links that do not match.'),
  css: z.string().min(1).optional().describe('Only links inside elements that match this selector.'),
  from: z.string().optional().describe('Only on pages of this route.'),
  route: z.string().optional().describe('Route of the new tasks. Default: the route that matches the URL.'),
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
    'Links to follow: true, `host`, `site`, `any`, or rules. The first rule that matches a link applies.',
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
      'a name may contain only letters, digits, single dots, dashes and underscores',
    )
    .optional()
    .describe('Name of the job. Default: the name of the file or host.'),
  sources: z
    .union([source, z.array(source)])
    .default([])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .describe(
      'URLs, files of URLs, sitemaps, tables and queries to start from. Needed unless `keepOpen` is set.',
    ),
  keepOpen: z
    .boolean()
    .optional()
    .describe('Wait for URLs from `seine add` or the API when all are finished, instead of ending.'),
  routes: z
    .array(route)
    .default([])
    .describe('Rules for kinds of pages: which URLs, and what to extract. The first match applies.'),
  follow: followInput,
  redirects: z
    .enum(['auto', 'follow', 'discover'])
    .default('auto')
    .describe(
      '`follow` continues the same task at the new URL. `discover` creates a new task for it, so that it is never fetched twice. `auto` is `discover` if links are followed, otherwise `follow`.',
    ),
  limits: z
    .strictObject({
      pages: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe('Stop after requesting this many pages, also those that fail.'),
      depth: z
        .int()
        .min(0)
        .nullable()
        .default(null)
        .describe('Maximum number of links between a source and a page.'),
      bytes: z.int().min(1).nullable().default(null).describe('Stop after receiving this many bytes.'),
      seconds: z.int().min(1).nullable().default(null).describe('Stop after this many seconds of running.'),
      requests: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe('Stop after sending this many requests, retries and robots.txt included.'),
      dollars: z
        .number()
        .positive()
        .max(1e9)
        .nullable()
        .default(null)
        .describe('Stop after spending this many US dollars, at the prices of the settings.'),
      browserSeconds: z
        .number()
        .positive()
        .max(1e9)
        .nullable()
        .default(null)
        .describe('Stop after this many seconds of browser pages, added up over all pages.'),
      diskFreeBytes: z
        .int()
        .min(0)
        .default(256 * 1024 * 1024)
        .describe('Fetch nothing while the disk has less free space than this.'),
      perTemplate: z
        .int()
        .min(1)
        .nullable()
        .default(100_000)
        .describe(
          'Maximum followed URLs that differ only in numbers and ids. It guards against crawler traps such as endless calendars.',
        ),
      bodyBytes: z
        .int()
        .min(1)
        .max(1024 ** 3)
        .default(LIMITS.bodyBytesMax)
        .describe('Maximum size of a page.'),
      window: z
        .int()
        .min(100)
        .default(50_000)
        .describe('Read sources ahead until this many tasks are waiting.'),
    })
    .prefault({})
    .describe('When the job stops, and what it takes at most.'),
  politeness,
  identity,
  proxies,
  api,
  login,
  timeouts: z
    .strictObject({
      connectMs: positiveMs(10_000, 'TCP and TLS handshake.'),
      headersMs: positiveMs(20_000, 'From the request to the response headers.'),
      bodyMs: positiveMs(20_000, 'Longest pause while a body arrives.'),
      taskMs: positiveMs(60_000, 'A whole task.'),
      adaptive: z
        .boolean()
        .default(false)
        .describe(
          'Learn a timeout for each host from its requests: 1.5 × their 99th percentile, at most `taskMs`.',
        ),
    })
    .prefault({})
    .describe('How long each part of a request may take.'),
  retry: z
    .strictObject({
      attempts: z.int().min(1).max(100).default(4).describe('Attempts before a task becomes a dead letter.'),
      baseMs: positiveMs(1_000, 'First backoff. It doubles each time, with jitter.'),
      maxMs: positiveMs(300_000, 'Longest backoff.'),
    })
    .prefault({})
    .describe('How often and when a failed task is tried again.'),
  escalation: z
    .strictObject({
      choose: z
        .enum(LEVEL_CHOOSING)
        .default('lowest')
        .describe(
          'How to choose among the fetch methods that a route allows: the `lowest` that mostly works, or the `cheapest` by cost per success for each URL template.',
        ),
      exploreDollars: z
        .number()
        .min(0)
        .max(1e6)
        .default(1)
        .describe(
          'Most US dollars to spend on trying whether another fetch method is cheaper. Seine never spends more than 5 % of the fetching cost on it.',
        ),
    })
    .prefault({})
    .describe('Which fetch method is used, where a route allows several.'),
  scaling: z
    .strictObject({
      adaptive: z
        .boolean()
        .default(false)
        .describe(
          'Have only as many batches under way as hosts and backlog need, instead of as many as the workers take.',
        ),
      finishSeconds: z
        .number()
        .positive()
        .nullable()
        .default(null)
        .describe('Wanted running time of the job. Seine uses no more workers than it needs for that.'),
    })
    .prefault({})
    .describe('How many workers are wanted.'),
  tail: z
    .enum(TAIL_POLICIES)
    .default('wait')
    .describe(
      'What to do with the last 1 % of the tasks: `wait` for them, `repeat` late requests on another worker, or `defer` them to the next run once they have taken a tenth of the time.',
    ),
  breaker: z
    .strictObject({
      hostFailures: z.int().min(1).default(10).describe('Failures in a row after which a host is paused.'),
      hostRestMs: positiveMs(5_000, 'First pause of a failing host. It doubles each time.'),
      hostProbes: z
        .int()
        .min(1)
        .default(6)
        .describe('Failed probes after which its tasks become dead letters.'),
      jobBatches: z
        .int()
        .min(1)
        .default(20)
        .describe('Completely failed batches in a row after which the job stops.'),
    })
    .prefault({})
    .describe('When a failing host pauses, and when the job stops.'),
  blocking: z
    .strictObject({
      detect: z
        .enum(['all', 'known', 'off'])
        .default('all')
        .describe(
          'How block pages are recognised: `all` signals, only what `known` defences send, or not at all. A page on which the route finds what it requires never counts as blocked.',
        ),
      add: z
        .array(z.string().min(4).max(200))
        .max(50)
        .default([])
        .describe(
          'Texts that only block pages of the sites have, in upper or lower case. A page with one of them is blocked.',
        ),
    })
    .prefault({})
    .describe('How pages that block the job are recognised; see docs/blocking.md.'),
  url: z
    .strictObject({
      stripTracking: z.boolean().default(true).describe('Remove utm_*, gclid and similar parameters.'),
      sortQuery: z.boolean().default(false).describe('Sort query parameters.'),
      trailingSlash: z
        .enum(['keep', 'strip'])
        .default('keep')
        .describe('`strip` treats /a/ and /a as one page.'),
    })
    .prefault({})
    .describe('How URLs are written, so that each page has one.'),
  records: z
    .strictObject({
      guardSeconds: z
        .int()
        .min(0)
        .default(3_600)
        .describe('Update the time of an unchanged record in the store at most once per this interval.'),
      history: z.boolean().default(false).describe('Keep earlier versions of changed records.'),
    })
    .prefault({})
    .describe('What is kept of records that were there before.'),
  revisit: z
    .strictObject({
      afterSeconds: z
        .int()
        .min(0)
        .default(0)
        .describe('A refresh fetches only URLs that were last fetched longer ago than this.'),
      adapt: z
        .strictObject({
          minSeconds: z
            .int()
            .min(1)
            .default(86_400)
            .describe('Shortest time between two visits; also the first.'),
          maxSeconds: z.int().min(1).default(2_592_000).describe('Longest time between two visits.'),
        })
        .refine(({ minSeconds, maxSeconds }) => minSeconds <= maxSeconds, {
          message: '`minSeconds` is larger than `maxSeconds`',
        })
        .optional()
        .describe('Learn a separate interval for each URL, from how often it changes.'),
    })
    .refine(({ afterSeconds, adapt }) => adapt === undefined || afterSeconds === 0, {
      message: 'set either `afterSeconds` or `adapt`',
    })
    .prefault({})
    .describe('When a page is fetched again; see docs/revisits.md.'),
  media: z
    .strictObject({
      pack: z
        .enum(['none', 'webdataset'])
        .default('none')
        .describe('One file each, named by its hash, or tar shards with a JSON file for each item.'),
      bytes: z.int().min(1).default(MEDIA_BYTES_MAX).describe('Maximum size of a media file.'),
      types: z
        .array(z.string().min(1))
        .default([])
        .describe('Accepted types such as `image/*`, detected from the content. Empty accepts all but HTML.'),
    })
    .prefault({})
    .describe('How media files are stored; see docs/media.md.'),
  schedule: z
    .union([
      z.string().min(1),
      z.strictObject({
        cron: z.string().min(1).describe('Cron expression.'),
        timeZone: z
          .string()
          .min(1)
          .optional()
          .describe('Such as Europe/Paris. Default: the time zone of the machine.'),
        refresh: z.boolean().default(true).describe('Fetch known URLs again instead of starting a new run.'),
      }),
    ])
    .transform((value) => (typeof value === 'string' ? { cron: value, refresh: true } : value))
    .optional()
    .describe('When `seine serve` and `seine run --watch` run the job.'),
  notify,
  sink,
  priority: z
    .int()
    .min(-JOB_PRIORITY_MAX)
    .max(JOB_PRIORITY_MAX)
    .optional()
    .describe('Among the jobs of one server: each step doubles the share of workers.'),
  archive,
  batchSize: z
    .int()
    .min(1)
    .max(BATCH_TASKS_MAX)
    .optional()
    .describe(
      'Maximum tasks in one batch. Without it: 120, and up to 1,000 of hosts without a rate limit whose pages come fast.',
    ),
  allowPrivate: z.boolean().default(false).describe('Allow loopback and private addresses.'),
  privateServices: z
    .boolean()
    .optional()
    .describe(
      'Allow proxies, scraping APIs and servers of source files at private addresses. Default: true; false for jobs of the API, unless the server runs with --allow-private.',
    ),
});

export type JobInput = z.input<typeof jobSchema>;
type ParsedJob = z.output<typeof jobSchema>;
/** Validated, defaults filled in, no functions: travels in every batch. */
export type JobSpec = Omit<ParsedJob, 'name' | '$schema'> & { name: string };
export type RouteSpec = JobSpec['routes'][number];
export type SourceSpec = JobSpec['sources'][number];
export type { FieldInput, FieldSpec, MediaRule, Pagination } from './route.ts';
