import { z } from 'zod';
import { ALERT_KINDS, type AlertKind } from '../../../core/alerts/alerts.ts';
import { SLOT_STATES } from '../../../core/explain/slot-states.ts';
import { route } from '../../../core/job-schema/route.ts';
import type { RollupStep } from '../../../core/rollups/rollup.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import { Problem } from './problems.ts';

/** What a request may say about how pages are fetched, and what it wants of them: the same for scrapes, batches and jobs. */

export const FORMATS = ['html', 'text', 'markdown', 'links', 'records', 'screenshot', 'pdf'] as const;
export type Format = (typeof FORMATS)[number];

/** Of the number in the id of a scrape. */
export function formatsOf(asked: number): Format[] {
  return FORMATS.filter((_, at) => Math.floor(asked / 2 ** at) % 2 === 1);
}

const HEADERS_MAX = 50;
/** It is stored with every task and travels in every batch. */
export const META_CHARS_MAX = 16_384;
export const META_TOO_LONG = 'longer than 16,384 characters as JSON';

const meta = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= META_CHARS_MAX, META_TOO_LONG);

const pageOptions = {
  use_js_render: z.boolean().default(false).describe('Render the page in a browser.'),
  formats: z
    .array(z.enum(FORMATS))
    .min(1)
    .max(FORMATS.length)
    .default(['html'])
    .describe('What the result has of the page.'),
  select: route.shape.select.describe('Fields of the record, by name: CSS selectors, as in docs/records.md.'),
  schema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema that records must match.'),
  wait_for: z
    .union([z.string().min(1).max(1_000), z.int().min(1).max(60_000)])
    .optional()
    .describe('Wait in the browser for an element (CSS selector), or for so many milliseconds.'),
  headers: z
    .record(z.string().regex(/^[\w-]{1,64}$/, 'not a header name'), z.string().max(4_096))
    .refine((value) => Object.keys(value).length <= HEADERS_MAX, `at most ${HEADERS_MAX} headers`)
    .optional()
    .describe('Additional request headers.'),
  timeout: z.int().min(1).max(300).default(60).describe('Seconds that a page may take.'),
  priority: z.int().min(-1_000).max(1_000).default(0).describe('Higher runs first.'),
  proxy_pool: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('Send requests through this pool of proxies of the server (setting `proxyPools`).'),
  country: z
    .string()
    .regex(/^[A-Za-z]{2}$/, 'must be two letters, such as DE')
    .optional()
    .describe('Use only proxies of the pool in this country, or with none in their list.'),
  robots: z.boolean().default(true).describe('Obey robots.txt. Switching it off needs admin scope.'),
  rate: z
    .union([z.number().positive().max(100_000), z.literal('max')])
    .default(4)
    .describe('Requests per second and host. More than 4 needs admin scope.'),
  meta: meta.optional().describe('Returned with each result.'),
  max_cost_usd: z
    .number()
    .positive()
    .max(1e9)
    .optional()
    .describe('Refuse with 409 and the quote if it would probably cost more; stop when so much is spent.'),
};

const url = z.string().min(1).max(8_192).describe('An http or https URL.');

export type ScrapeRequest = z.output<typeof scrapeSchema>;

export const scrapeSchema = z.strictObject({
  url,
  ...pageOptions,
  max_age: z
    .int()
    .min(0)
    .max(31_536_000)
    .default(0)
    .describe('Answer with the stored page if it is not older than so many seconds.'),
  wait: z.int().min(0).max(300).default(60).describe('Seconds to wait for the page before 202.'),
});

/** Beside a job definition. */
export const costSchema = z.strictObject({ max_cost_usd: pageOptions.max_cost_usd });

export const forecastSchema = z.strictObject({
  urls: z.array(url).min(1).max(100_000).optional().describe('Pages, with the options of a batch.'),
  job: z.record(z.string(), z.unknown()).optional().describe('Or a whole job, as in a job file.'),
  sample: z
    .int()
    .min(0)
    .max(1_000)
    .optional()
    .describe('Requests of the sample; 0 sends none. Default: 200, unless an earlier run is known.'),
  wait: z.int().min(0).max(300).default(60).describe('Seconds to wait for the sample before 202.'),
  ...pageOptions,
});

const webhook = z.strictObject({
  url: z.string().min(1).max(2_048),
  events: z.array(z.string().min(1).max(64)).max(20).optional(),
  metadata: z.unknown().optional(),
});

const batchOptions = {
  ...pageOptions,
  callback_url: z.string().min(1).max(2_048).optional().describe('Called when the batch is finished.'),
  webhook: webhook.optional().describe('The same with more to say: `{url, events, metadata}`.'),
  on_invalid: z
    .enum(['skip', 'fail'])
    .default('skip')
    .describe('What a URL that cannot be used does: it is listed in `rejected`, or nothing is accepted.'),
  append_to: z.string().min(1).max(200).optional().describe('Add the URLs to this batch.'),
  deadline: z.int().min(1).max(31_536_000).optional().describe('Seconds after which the batch stops.'),
};

const batchUrl = z.union([
  url,
  z.strictObject({
    url,
    meta: z.record(z.string(), z.unknown()).optional(),
    priority: z.int().min(-1_000).max(1_000).optional(),
  }),
]);

export const batchOptionsSchema = z.strictObject(batchOptions);
export const batchSchema = z.strictObject({
  urls: z.array(z.unknown()).min(1).max(1_000_000).describe('URLs, or `{url, meta, priority}`.'),
  ...batchOptions,
});
export const batchUrlSchema = batchUrl;

export const patchSchema = z.strictObject({
  rate: z
    .union([z.number().positive().max(100_000), z.literal('max')])
    .optional()
    .describe('Requests per second and host.'),
  parallel: z.int().min(1).max(1_000).optional().describe('Concurrent requests per host.'),
  hosts: z
    .record(
      z.string().min(1).max(300),
      z.strictObject({
        rate: z.number().positive().max(100_000).optional(),
        parallel: z.int().min(1).max(1_000).optional(),
      }),
    )
    .refine((hosts) => Object.keys(hosts).length <= 100, 'at most 100 hosts')
    .optional()
    .describe('The same for single hosts: `{"shop.example": {"rate": 0.5}}`.'),
  pages: z.int().min(1).nullable().optional().describe('Stop after so many pages.'),
  bytes: z.int().min(1).nullable().optional().describe('Stop after so many bytes.'),
  seconds: z.int().min(1).nullable().optional().describe('Stop after so many seconds of running.'),
  requests: z.int().min(1).nullable().optional().describe('Stop after so many requests.'),
  dollars: z.number().positive().max(1e9).nullable().optional().describe('Stop after spending so much.'),
  browserSeconds: z
    .number()
    .positive()
    .max(1e9)
    .nullable()
    .optional()
    .describe('Stop after so many seconds of browser pages.'),
  priority: z
    .int()
    .min(-10)
    .max(10)
    .optional()
    .describe('Among the jobs of the server: each step doubles the share of workers.'),
});

export const silenceSchema = z.strictObject({
  kind: z
    .enum(Object.keys(ALERT_KINDS) as [AlertKind, ...AlertKind[]])
    .optional()
    .describe('Only alerts of this kind.'),
  job: z.string().max(200).optional().describe('Only alerts of this job.'),
  seconds: z.int().min(0).max(2_592_000).describe('For how long; 0 ends a silence.'),
});

export const retrySchema = z.strictObject({
  code: z.string().max(64).optional().describe('Only failures with this code.'),
  host: z.string().max(300).optional().describe('Only URLs of this host.'),
  url: z.string().max(8_192).optional().describe('Only URLs that contain this text.'),
});

const count = (max: number, byDefault: number) => z.coerce.number().int().min(0).max(max).default(byDefault);

export const listQuery = z.strictObject({
  cursor: z.string().max(300).optional().describe('`next_cursor` of the page before.'),
  limit: z.coerce.number().int().min(1).max(1_000).default(100).describe('Most rows of the answer.'),
});

const formatList = z
  .string()
  .max(200)
  .transform((text) => text.split(','))
  .pipe(z.array(z.enum(FORMATS)))
  .optional()
  .describe('What to add of each page, such as `html,markdown`; at most 20 rows then.');

export const resultsQuery = listQuery.extend({
  formats: formatList,
  status: z.enum(['succeeded', 'failed', 'skipped', 'pending']).optional(),
  host: z.string().max(300).optional(),
  code: z.string().max(64).optional().describe('Failure code; see docs/failure-codes.md.'),
  q: z.string().max(1_000).optional().describe('Text within the URL.'),
});

const q = z.string().max(1_000).optional();
const host = z.string().max(300).optional();
const code = z.string().max(64).optional();

export const jobsQuery = listQuery.extend({
  status: z.enum(['queued', 'running', 'completed', 'failed', 'stopped', 'cancelled']).optional(),
  q: q.describe('Text within the name.'),
});

export const attemptsQuery = listQuery.extend({
  status: z
    .enum(['fetched', 'unchanged', 'redirected', 'failed', 'lost'])
    .optional()
    .describe('What came of the request.'),
  host,
  code: code.describe('Failure code; see docs/failure-codes.md.'),
  q: q.describe('Text within the URL.'),
});

export const recordsQuery = listQuery.extend({
  host: host.describe('Of the page that the record is from.'),
  q: q.describe('Text within the URL or the key.'),
});

export const hostsQuery = listQuery.extend({
  status: z.enum(['open', 'banned']).optional().describe('`banned`: it refuses everything.'),
  code: code.describe('Code of its last error.'),
  q: q.describe('Text within the name.'),
});

export const jobQuery = z.strictObject({
  wait: count(60, 0).describe('Seconds to wait until the job has ended.'),
});

const time = z
  .union([
    z.coerce.number().int().min(0).max(8.64e15),
    z.iso.datetime().transform((text) => Date.parse(text)),
  ])
  .optional();

export const seriesQuery = z.strictObject({
  step: z
    .enum(['10', '60', '3600'])
    .default('60')
    .transform((text) => Number(text) as RollupStep)
    .describe('Seconds of a point.'),
  from: time.describe('ISO 8601, or milliseconds since 1970; else 360 points before `to`.'),
  to: time.describe('The same; else now, or the end of the job.'),
  host: z.string().max(300).optional().describe('Of this host, or `_other`; else of the whole job.'),
});

export const workersQuery = z.strictObject({
  state: z
    .enum(['live', 'draining', 'gone'])
    .optional()
    .describe('Only those; else all of the last 14 days.'),
});

export const workerSeriesQuery = z.strictObject({
  step: seriesQuery.shape.step,
  from: time.describe('ISO 8601, or milliseconds since 1970; else 400 points before `to`.'),
  to: time.describe('The same; else now.'),
});

export const explainQuery = z.strictObject({
  what_if: z
    .union([z.string().max(300), z.array(z.string().max(300)).max(20)])
    .optional()
    .transform((value) => [value ?? []].flat())
    .describe('A change to predict, as in docs/explain.md: workers=+8, rate:shop.example=8. Repeatable.'),
});

const percent = z.number().min(0).max(100);

/** The answer of `/jobs/{id}/explain`. */
export const explanationSchema = z.strictObject({
  shares: z
    .partialRecord(z.enum(SLOT_STATES), percent)
    .describe('Percent of all slot-seconds by state; they add up to 100.'),
  limiting: z
    .enum(['workers', ...SLOT_STATES])
    .nullable()
    .describe('What the job is limited by; null when nothing has been measured.'),
  criticalHost: z.string().nullable().describe('The host that would be the last.'),
  gains: z.array(
    z.strictObject({
      change: z.string(),
      gainPercent: z.number().describe('More pages per second, in percent.'),
      etaSeconds: z.number().nullable().describe('Until the job is done, with the change.'),
    }),
  ),
  eta: z
    .strictObject({
      seconds: z.number(),
      low: z.number(),
      high: z.number(),
      tasks: z.number().describe('Tasks that are left.'),
    })
    .nullable()
    .describe(
      'Until all known tasks are done, with a band; null when there is no telling, or nothing is left.',
    ),
  sentence: z.string().describe('All of it for people.'),
  wanted: z
    .strictObject({
      slots: z.int().describe('Batches under way at once.'),
      workers: z.int(),
      reason: z.string(),
      limit: z
        .enum(['refusals', 'gain'])
        .optional()
        .describe('Why there are not to be more of them, although more could be used.'),
    })
    .nullable()
    .describe('How many workers a job that runs could use; null while that is not known.'),
  decisions: z
    .array(
      z.strictObject({
        at: z.number().describe('Epoch milliseconds.'),
        text: z.string().describe('What was decided, and why.'),
      }),
    )
    .describe('What was decided about threads and batches at once; the newest last.'),
});

export const storedQuery = z.strictObject({
  url: z.string().max(8_192).describe('The URL that was fetched.'),
  job: z.string().max(100).optional().describe('Of this job; else of the newest one that has it.'),
  inline: z
    .union([z.literal(''), z.literal('true'), z.literal('1')])
    .optional()
    .describe('To be shown, without scripts, and not as a download.'),
});

export const urlQuery = z.strictObject({
  url: z.string().min(1).max(8_192).describe('The URL of the task.'),
});

export const keyQuery = z.strictObject({
  key: z.string().min(1).max(8_192).describe('The key of the record.'),
});

export const EXPORTS = ['records', 'results', 'attempts'] as const;
export const exportQuery = z.strictObject({
  what: z.enum(EXPORTS).default('records').describe('What is exported.'),
  format: z.enum(['jsonl', 'csv', 'parquet']).default('jsonl').describe('As it is written.'),
});

export const snapshotQuery = z.strictObject({
  job: z.string().max(100).optional().describe('With more about this job.'),
});

export const createQuery = z.strictObject({
  dry_run: z
    .union([z.literal(''), z.literal('true'), z.literal('1')])
    .optional()
    .describe('Check the job and show it complete, without starting it.'),
});

export type BatchOptions = z.output<typeof batchOptionsSchema>;

interface FieldError {
  field: string;
  message: string;
}

const ERRORS_SHOWN = 20;

/** The value as the schema has it, or a problem that names each wrong field. */
export function parseAs<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues
    .slice(0, ERRORS_SHOWN)
    .flatMap((issue) => errorsOf(issue, schema, value));
  const [first] = errors;
  const text = first?.field ? `${first.field}: ${first.message}` : (first?.message ?? 'not valid');
  throw new Problem('bad-option', text, { extensions: { errors } });
}

function errorsOf(issue: z.core.$ZodIssue, schema: z.ZodType, value: unknown): FieldError[] {
  const field = issue.path.map(String).join('.');
  if (issue.code !== 'unrecognized_keys') return [{ field, message: messageOf(issue, value) }];
  const known = namesAt(schema, issue.path);
  return issue.keys.slice(0, ERRORS_SHOWN).map((name) => ({
    field: [field, name.slice(0, 100)].filter((part) => part !== '').join('.'),
    message: `unknown field${suggestion(name.slice(0, 100), known)}`,
  }));
}

function messageOf(issue: z.core.$ZodIssue, value: unknown): string {
  const given = issue.path.reduce<unknown>(
    (inside, name) =>
      typeof inside === 'object' && inside !== null && Object.hasOwn(inside, name)
        ? (inside as Record<PropertyKey, unknown>)[name]
        : undefined,
    value,
  );
  // What the schema itself says is better.
  if (!/^(Invalid|Too) /.test(issue.message)) return issue.message;
  const isKind = issue.code === 'invalid_type' || issue.code === 'invalid_value';
  if (isKind && given === undefined && issue.path.length > 0) return 'is missing';
  if (isKind && given === undefined) return 'the body is missing: send a JSON object';
  if (issue.code === 'invalid_value') {
    const values = issue.values.map(String);
    const meant = typeof given === 'string' ? suggestion(given.slice(0, 100), values) : '';
    return `expected ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}${meant}`;
  }
  const message = issue.message.replace(/^Invalid input: /, '');
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** Names of the fields that an object within the schema may have; none where there are several kinds of it. */
function namesAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return namesAt(schema.unwrap(), path);
  const [name, ...rest] = path;
  if (schema instanceof z.ZodArray && name !== undefined) return namesAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  if (name === undefined) return Object.keys(schema.shape);
  const field: z.core.$ZodType | undefined = Object.hasOwn(schema.shape, name)
    ? schema.shape[String(name)]
    : undefined;
  return field === undefined ? [] : namesAt(field, rest);
}
