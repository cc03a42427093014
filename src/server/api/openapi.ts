import { z } from 'zod';
import { FAILURES, SKIPS } from '../../core/failures.ts';
import { jobSchema } from '../../core/job-schema/job-schema.ts';
import type { Scope } from '../../core/keys/api-key.ts';
import { escapeHtml } from '../../core/text/escape-html.ts';
import { newKeySchema } from './keys/keys-routes.ts';
import {
  attemptsQuery,
  batchSchema,
  costSchema,
  createQuery,
  explainQuery,
  explanationSchema,
  exportQuery,
  forecastSchema,
  hostsQuery,
  jobQuery,
  jobsQuery,
  keyQuery,
  listQuery,
  patchSchema,
  recordsQuery,
  resultsQuery,
  retrySchema,
  scrapeSchema,
  seriesQuery,
  silenceSchema,
  snapshotQuery,
  storedQuery,
  urlQuery,
  workerSeriesQuery,
  workersQuery,
} from './requests/options.ts';
import { PROBLEMS } from './requests/problems.ts';
import { deliveriesQuery, endpointChangeSchema, endpointSchema } from './webhooks-routes.ts';

interface Operation {
  method: 'get' | 'post' | 'patch' | 'delete';
  /** Below `/api/v1`. */
  path: string;
  id: string;
  summary: string;
  scope: Scope;
  body?: z.ZodType;
  query?: z.ZodObject;
  /** Of the answer that is no error. */
  status?: 200 | 201 | 202 | 204;
  /** Media type of the answer, where that is not JSON. */
  answers?: string;
  /** What the answer looks like, where that is promised field by field. */
  answer?: z.ZodType;
}

/** Calls for pages, batches and jobs; the routes are compared with it. */
export const OPERATIONS: readonly Operation[] = [
  {
    method: 'post',
    path: '/scrape',
    id: 'scrape',
    summary: 'Fetch a page and wait for it.',
    scope: 'write',
    body: scrapeSchema,
  },
  {
    method: 'post',
    path: '/scrape/async',
    id: 'scrapeAsync',
    summary: 'Fetch a page in the background.',
    scope: 'write',
    body: scrapeSchema,
    status: 202,
  },
  {
    method: 'post',
    path: '/batch',
    id: 'batch',
    summary: 'Fetch many pages. As application/x-ndjson, a list of any length is streamed.',
    scope: 'write',
    body: batchSchema,
    status: 202,
  },
  {
    method: 'post',
    path: '/forecast',
    id: 'forecast',
    summary: 'Say how long pages or a job would take and what they would cost.',
    scope: 'write',
    body: forecastSchema,
  },
  {
    method: 'get',
    path: '/jobs/{id}/receipt',
    id: 'receipt',
    summary: 'What it cost, line by line, against its quote, and the result of every URL.',
    scope: 'read',
  },
  {
    method: 'get',
    path: '/jobs',
    id: 'listJobs',
    summary: 'Jobs, newest first.',
    scope: 'read',
    query: jobsQuery,
  },
  {
    method: 'post',
    path: '/jobs',
    id: 'createJob',
    summary: 'Start a job, described as in a job file.',
    scope: 'write',
    body: jobSchema.extend(costSchema.shape),
    query: createQuery,
    status: 202,
  },
  {
    method: 'get',
    path: '/jobs/{id}',
    id: 'getJob',
    summary: 'How far a scrape, batch or job is.',
    scope: 'read',
    query: jobQuery,
  },
  {
    method: 'patch',
    path: '/jobs/{id}',
    id: 'changeJob',
    summary: 'Change pace, limits and priority while it runs.',
    scope: 'write',
    body: patchSchema,
  },
  {
    method: 'delete',
    path: '/jobs/{id}',
    id: 'deleteJob',
    summary: 'Delete a job that does not run, with all its data.',
    scope: 'write',
    status: 204,
  },
  {
    method: 'post',
    path: '/jobs/{id}/stop',
    id: 'stopJob',
    summary: 'Stop it; it can be resumed.',
    scope: 'write',
  },
  { method: 'post', path: '/jobs/{id}/cancel', id: 'cancelJob', summary: 'End it for good.', scope: 'write' },
  { method: 'post', path: '/jobs/{id}/resume', id: 'resumeJob', summary: 'Continue it.', scope: 'write' },
  {
    method: 'post',
    path: '/jobs/{id}/refresh',
    id: 'refreshJob',
    summary: 'Fetch its URLs again.',
    scope: 'write',
  },
  {
    method: 'post',
    path: '/jobs/{id}/retry',
    id: 'retryJob',
    summary: 'Try failed URLs again.',
    scope: 'write',
    body: retrySchema,
  },
  {
    method: 'get',
    path: '/jobs/{id}/results',
    id: 'results',
    summary: 'A row for each URL. JSON, NDJSON or CSV by Accept.',
    scope: 'read',
    query: resultsQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/records',
    id: 'records',
    summary: 'Extracted records.',
    scope: 'read',
    query: recordsQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/attempts',
    id: 'attempts',
    summary: 'Every request that was sent.',
    scope: 'read',
    query: attemptsQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/events',
    id: 'events',
    summary:
      'Every request as it is sent, as server-sent events; `Last-Event-ID` goes on after the last one.',
    scope: 'read',
    answers: 'text/event-stream',
  },
  {
    method: 'get',
    path: '/jobs/{id}/export',
    id: 'export',
    summary: 'All records, results or attempts as one file.',
    scope: 'read',
    query: exportQuery,
    answers: '*/*',
  },
  {
    method: 'get',
    path: '/jobs/{id}/task',
    id: 'task',
    summary: 'One URL of a job with its attempts, records and their history.',
    scope: 'read',
    query: urlQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/record',
    id: 'record',
    summary: 'One record and its earlier versions, newest first.',
    scope: 'read',
    query: keyQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/dead',
    id: 'dead',
    summary: 'URLs that failed for good, by reason and host.',
    scope: 'read',
  },
  {
    method: 'get',
    path: '/snapshots',
    id: 'snapshots',
    summary: 'The state of all jobs, once a second, as server-sent events.',
    scope: 'read',
    query: snapshotQuery,
    answers: 'text/event-stream',
  },
  {
    method: 'get',
    path: '/jobs/{id}/hosts',
    id: 'hosts',
    summary: 'Hosts, their pace and errors.',
    scope: 'read',
    query: hostsQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/quality',
    id: 'quality',
    summary: 'How complete records are.',
    scope: 'read',
  },
  {
    method: 'get',
    path: '/jobs/{id}/series',
    id: 'series',
    summary: 'Pages, latencies, failures and costs over time, in steps of 10 s, a minute or an hour.',
    scope: 'read',
    query: seriesQuery,
  },
  {
    method: 'get',
    path: '/jobs/{id}/failures',
    id: 'failures',
    summary: 'How often which host failed with which code.',
    scope: 'read',
  },
  {
    method: 'get',
    path: '/jobs/{id}/explain',
    id: 'explain',
    summary: 'Why the job is not faster: where its time goes, its bottleneck, what a change would gain.',
    scope: 'read',
    query: explainQuery,
    answer: explanationSchema,
  },
  {
    method: 'get',
    path: '/pages',
    id: 'storedPage',
    summary: 'A stored page, as it came.',
    scope: 'read',
    query: storedQuery,
    answers: '*/*',
  },
  {
    method: 'get',
    path: '/media/{sha256}',
    id: 'storedMedia',
    summary: 'A stored image, video or file.',
    scope: 'read',
    query: storedQuery,
    answers: '*/*',
  },
  {
    method: 'get',
    path: '/shots/{key}',
    id: 'storedShot',
    summary: 'A screenshot or PDF, by the `key` that results have.',
    scope: 'read',
    query: storedQuery,
    answers: '*/*',
  },
  {
    method: 'get',
    path: '/hosts',
    id: 'allHosts',
    summary: 'Hosts of all jobs, their pace and errors.',
    scope: 'admin',
    query: listQuery,
  },
  {
    method: 'get',
    path: '/proxies',
    id: 'proxies',
    summary: 'Pools of proxies that requests may name, and how proxies did within the last week.',
    scope: 'admin',
  },
  {
    method: 'get',
    path: '/pressure',
    id: 'pressure',
    summary: 'How busy the workers are, and what waits for them, for programs that add or remove workers.',
    scope: 'read',
  },
  {
    method: 'get',
    path: '/server',
    id: 'server',
    summary: 'What server this is, and what the caller may do.',
    scope: 'read',
  },
  {
    method: 'get',
    path: '/workers',
    id: 'workers',
    summary: 'Workers: what they do, their CPU and memory, and those that have ended.',
    scope: 'admin',
    query: workersQuery,
  },
  {
    method: 'get',
    path: '/workers/{id}/series',
    id: 'workerSeries',
    summary: 'CPU, memory and batches of a worker over time.',
    scope: 'admin',
    query: workerSeriesQuery,
  },
  {
    method: 'post',
    path: '/workers/{id}/drain',
    id: 'drainWorker',
    summary: 'Let a worker of a queue finish what it has, take no more, and end.',
    scope: 'admin',
    status: 202,
  },
  {
    method: 'get',
    path: '/alerts',
    id: 'alerts',
    summary: 'Alerts, newest first: those that fire, and those that are resolved.',
    scope: 'admin',
    query: listQuery,
  },
  {
    method: 'post',
    path: '/alerts/silence',
    id: 'silenceAlerts',
    summary: 'Silence some alerts for a while.',
    scope: 'admin',
    body: silenceSchema,
  },
  {
    method: 'get',
    path: '/keys',
    id: 'listKeys',
    summary: 'API keys, without the keys themselves.',
    scope: 'admin',
  },
  {
    method: 'post',
    path: '/keys',
    id: 'createKey',
    summary: 'Make an API key. Only this answer contains it.',
    scope: 'admin',
    body: newKeySchema,
    status: 201,
  },
  {
    method: 'delete',
    path: '/keys/{id}',
    id: 'revokeKey',
    summary: 'Revoke an API key.',
    scope: 'admin',
  },
  {
    method: 'get',
    path: '/webhooks',
    id: 'listWebhooks',
    summary: 'Endpoints that get events.',
    scope: 'read',
  },
  {
    method: 'post',
    path: '/webhooks',
    id: 'createWebhook',
    summary: 'Send events to an endpoint. The answer has the secret that signs them.',
    scope: 'write',
    body: endpointSchema,
    status: 201,
  },
  {
    method: 'get',
    path: '/webhooks/secret',
    id: 'webhookSecret',
    summary: 'The secret that signs callbacks of jobs.',
    scope: 'write',
  },
  {
    method: 'post',
    path: '/webhooks/secret/rotate',
    id: 'rotateWebhookSecret',
    summary: 'Make a new one; the old one also signs for a while.',
    scope: 'write',
  },
  {
    method: 'get',
    path: '/webhooks/{id}',
    id: 'getWebhook',
    summary: 'One endpoint.',
    scope: 'read',
  },
  {
    method: 'patch',
    path: '/webhooks/{id}',
    id: 'changeWebhook',
    summary: 'Change an endpoint, or switch it off and on.',
    scope: 'write',
    body: endpointChangeSchema,
  },
  {
    method: 'delete',
    path: '/webhooks/{id}',
    id: 'deleteWebhook',
    summary: 'Delete an endpoint.',
    scope: 'write',
    status: 204,
  },
  {
    method: 'post',
    path: '/webhooks/{id}/rotate',
    id: 'rotateWebhook',
    summary: 'Give an endpoint a new secret.',
    scope: 'write',
  },
  {
    method: 'get',
    path: '/webhooks/{id}/deliveries',
    id: 'deliveries',
    summary: 'Messages sent to it, with every try.',
    scope: 'read',
    query: deliveriesQuery,
  },
  {
    method: 'post',
    path: '/webhooks/{id}/deliveries/{delivery}/redeliver',
    id: 'redeliver',
    summary: 'Send it again, under the same id.',
    scope: 'write',
    status: 202,
  },
];

const schemaOf = (schema: z.ZodType) => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
};

function parametersOf({ path, query }: Operation): object[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const { properties = {}, required = [] } = query ? schemaOf(query) : {};
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    ...(required.includes(name) ? { required: true } : {}),
    schema,
  }));
  return [...inPath, ...inQuery];
}

function describeOperation(operation: Operation): object {
  const { id, summary, scope, body, status = 200, answers, answer } = operation;
  const content = answers
    ? { [answers]: { schema: { type: 'string' } } }
    : { 'application/json': { schema: answer ? schemaOf(answer) : { type: 'object' } } };
  return {
    operationId: id,
    summary,
    description: `Needs a key with ${scope} scope.`,
    parameters: parametersOf(operation),
    ...(body
      ? { requestBody: { content: { 'application/json': { schema: schemaOf(body), ...exampleIn(id) } } } }
      : {}),
    responses: {
      [status]: { description: 'Done.', ...(status === 204 ? {} : { content }) },
      default: {
        description: 'A problem (RFC 9457).',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

function exampleIn(id: string): { example?: object } {
  const body = EXAMPLES[id]?.body;
  return body ? { example: body } : {};
}

/** Parts that a schema refers to belong to the whole description; each call has its own. */
function hoisted(operation: Operation, parts: Record<string, unknown>): object {
  const prefix = `${operation.id}-`;
  const text = JSON.stringify(describeOperation(operation)).replaceAll(
    '"#/$defs/',
    `"#/components/schemas/${prefix}`,
  );
  const described = JSON.parse(text) as {
    requestBody?: { content: Record<string, { schema: { $defs?: Record<string, unknown> } }> };
  };
  for (const { schema } of Object.values(described.requestBody?.content ?? {})) {
    for (const [name, part] of Object.entries(schema.$defs ?? {})) parts[prefix + name] = part;
    delete schema.$defs;
  }
  return described;
}

export function describeApi(): object {
  const parts: Record<string, unknown> = {};
  const paths: Record<string, Record<string, object>> = {};
  for (const operation of OPERATIONS) {
    const path = `/api/v1${operation.path}`;
    paths[path] = { ...paths[path], [operation.method]: hoisted(operation, parts) };
  }
  const text = { type: 'string' };
  return {
    openapi: '3.1.0',
    info: { title: 'Seine', version: '1', description: 'Scrapes pages, batches and whole sites.' },
    security: [{ key: [] }, { bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      schemas: {
        ...parts,
        Problem: {
          type: 'object',
          required: ['type', 'code', 'title', 'status', 'detail', 'remedy'],
          properties: {
            type: text,
            code: { enum: Object.keys(PROBLEMS) },
            title: text,
            status: { type: 'integer' },
            detail: text,
            remedy: text,
          },
        },
      },
    },
  };
}

const SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** What calls are given in examples. Those with neither a body nor a query that they need are not here. */
const EXAMPLES: Record<string, { body?: object; query?: string }> = {
  scrape: { body: { url: 'https://example.com/', formats: ['markdown', 'links'] } },
  scrapeAsync: { body: { url: 'https://example.com/', use_js_render: true } },
  batch: {
    body: {
      urls: ['https://example.com/1', 'https://example.com/2'],
      use_js_render: false,
      callback_url: 'https://example.net/hook',
    },
  },
  forecast: { body: { urls: ['https://example.com/1', 'https://example.com/2'], sample: 0 } },
  listJobs: { query: 'status=running&limit=20' },
  createJob: { body: { name: 'shop', sources: ['https://shop.example/'], follow: [{ within: 'host' }] } },
  getJob: { query: 'wait=30' },
  changeJob: { body: { rate: 2, priority: 10 } },
  retryJob: { body: { code: 'timeout' } },
  results: { query: 'status=failed&host=shop.example' },
  records: { query: 'q=/product/' },
  attempts: { query: 'code=timeout' },
  storedPage: { query: 'url=https%3A%2F%2Fexample.com%2F' },
  storedMedia: { query: 'url=https%3A%2F%2Fexample.com%2Flogo.png' },
  storedShot: { query: 'url=https%3A%2F%2Fexample.com%2F' },
  task: { query: 'url=https%3A%2F%2Fexample.com%2F' },
  record: { query: 'key=https%3A%2F%2Fexample.com%2F' },
  silenceAlerts: { body: { kind: 'backlog-grows', seconds: 3_600 } },
  createKey: { body: { name: 'ci', scope: 'write', limits: { pages_per_day: 10_000 } } },
  createWebhook: { body: { url: 'https://example.net/hook', events: ['job.completed', 'job.failed'] } },
  changeWebhook: { body: { enabled: false } },
};
const IN_PATHS: Record<string, string> = { delivery: '12', key: 'media/ab/cd.png', sha256: SHA256 };

const EXAMPLE_IDS: ReadonlyMap<string, string> = new Map([
  ['keys', 'key_1a2b'],
  ['webhooks', 'wh_1a2b'],
  ['workers', 'machine-3-711-9f2c'],
]);

/** A command that calls it. */
export function exampleOf({ id, method, path }: Operation): string {
  const { body, query } = EXAMPLES[id] ?? {};
  const [, first] = path.split('/');
  const name = EXAMPLE_IDS.get(first!) ?? 'job_7';
  const place = path.replace(/\{(\w+)\}/g, (_, part: string) => IN_PATHS[part] ?? name);
  const url = `http://127.0.0.1:7420/api/v1${place}${query === undefined ? '' : `?${query}`}`;
  const sent = body ? ` -H 'content-type: application/json' -d '${JSON.stringify(body)}'` : '';
  const isDefault = method === (body ? 'post' : 'get');
  return `curl${isDefault ? '' : ` -X ${method.toUpperCase()}`} -H 'x-api-key: seine_…'${sent} '${url}'`;
}

/** Fields of the body, with what they mean. */
export function fieldsOf({ body }: Operation): [name: string, doc: string][] {
  const fields = body ? Object.entries(schemaOf(body).properties ?? {}) : [];
  return fields.map(([name, schema]) => [name, typeof schema === 'object' ? (schema.description ?? '') : '']);
}

/** The same for people, without scripts: nothing is loaded from elsewhere. */
export function docsPage(): string {
  const rows = (cells: readonly (readonly string[])[]) =>
    cells.map((row) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`).join('\n');
  const calls = OPERATIONS.map((operation) => {
    const { method, path, summary, scope } = operation;
    const described = fieldsOf(operation);
    const title = escapeHtml(`${method.toUpperCase()} /api/v1${path}`);
    return `<h2><code>${title}</code></h2><p>${escapeHtml(summary)} Scope: ${scope}.</p>${
      described.length === 0 ? '' : `<table>${rows(described)}</table>`
    }`;
  });
  const anchored = (code: string, cells: readonly string[]) =>
    `<tr id="${code}"><td><code>${code}</code></td>${cells.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`;
  const problems = Object.entries(PROBLEMS).map(([code, { status, title, remedy }]) =>
    anchored(code, [String(status), title, remedy]),
  );
  const failures = Object.entries(FAILURES)
    .filter(([code]) => !Object.hasOwn(PROBLEMS, code))
    .map(([code, { doc }]) => anchored(code, [doc]));
  const skips = Object.entries(SKIPS).map(([code, doc]) => anchored(code, [doc]));
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Seine API</title></head><body>
<h1>Seine API</h1><p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>
${calls.join('\n')}
<h2>Problems</h2><table>${problems.join('\n')}</table>
<h2>Why a URL has no page</h2><table>${[...failures, ...skips].join('\n')}</table>
</body></html>
`;
}
