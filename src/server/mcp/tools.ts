import { z } from 'zod';
import { ApiError, type Client, type Format, type Result } from '../../client/client.ts';
import { messageOf, SeineError } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { fittingRows, partOfText } from './fit.ts';
import { type CallToolResult, McpServer } from './mcp-sdk.ts';

const CHARS_DEFAULT = 40_000;
const ROWS_DEFAULT = 20;
const REJECTED_SHOWN = 10;

const FORMATS = ['markdown', 'text', 'html', 'links', 'records'] as const;
const formats = z.array(z.enum(FORMATS)).min(1);
const maxChars = z
  .int()
  .min(1_000)
  .max(1_000_000)
  .default(CHARS_DEFAULT)
  .describe('Most characters of the answer.');
const cursor = z
  .string()
  .max(300)
  .optional()
  .describe('next_cursor of the answer before, for the rest of it.');
const jobId = z.string().min(1).max(200).describe('Id of a batch, scrape or job.');

const fields = z.array(z.string()).min(1).optional().describe('Only these fields of the answer.');

const pageFields = {
  use_js_render: z.boolean().optional().describe('Render pages in a browser.'),
  wait_for: z.string().max(1_000).optional().describe('CSS selector to wait for in the browser.'),
  select: z.record(z.string(), z.string()).optional().describe('Fields of a record: CSS selectors by name.'),
};

/** The tools of `seine mcp` and of `/mcp`. The client is asked for at each call: the server may have been restarted. */
export function makeMcpServer(connectNow: () => Client): McpServer {
  const server = new McpServer({ name: 'seine', version: VERSION }, { capabilities: { tools: {} } });
  addScrape(server, connectNow);
  addBatch(server, connectNow);
  addStatus(server, connectNow);
  addResults(server, connectNow);
  addExplain(server, connectNow);
  addForecast(server, connectNow);
  addRetry(server, connectNow);
  return server;
}

function addBatch(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'start_batch',
    {
      description: 'Fetch many pages in the background. Returns batch_id for job_status and job_results.',
      inputSchema: z.strictObject({
        urls: z.array(z.string()).min(1).max(100_000),
        ...pageFields,
        fields,
        max_chars: maxChars,
      }),
      annotations: { openWorldHint: true },
    },
    ({ urls, fields: wanted, max_chars: max, ...options }) =>
      answered(async () => {
        const { rejected, ...batch } = await connectNow().batch(urls, definedOf(options));
        return cutAnswer({ ...batch, rejected: rejected.slice(0, REJECTED_SHOWN) }, { fields: wanted, max });
      }),
  );
}

function addStatus(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'job_status',
    {
      description: 'How far a batch, scrape or job is: its status and counts.',
      inputSchema: z.strictObject({
        job_id: jobId,
        wait: z.int().min(0).max(30).default(0).describe('Seconds to wait until it has ended.'),
        fields,
        max_chars: maxChars,
        cursor,
      }),
      annotations: { readOnlyHint: true },
    },
    ({ job_id: id, wait, fields: wanted, max_chars: max, cursor: at }) =>
      answered(async () => {
        const { ...job } = await connectNow().job(id, wait);
        return partOfAnswer(job, { fields: wanted, max, cursor: at });
      }),
  );
}

function addExplain(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'explain_run',
    {
      description:
        'Why a batch or job is not faster: where its time goes in percent, its bottleneck, the critical host, and what changes would gain.',
      inputSchema: z.strictObject({
        job_id: jobId,
        what_if: z
          .array(z.string().max(300))
          .max(20)
          .default([])
          .describe(
            'Changes to predict: workers=+8, rate:shop.example=8, parallel:shop.example=4, store=2x.',
          ),
        fields,
        max_chars: maxChars,
        cursor,
      }),
      annotations: { readOnlyHint: true },
    },
    ({ job_id: id, what_if: changes, fields: wanted, max_chars: max, cursor: at }) =>
      answered(async () => {
        const { ...explanation } = await connectNow().explain(id, changes);
        return partOfAnswer(explanation, { fields: wanted, max, cursor: at });
      }),
  );
}

function addForecast(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'forecast',
    {
      description:
        'How long pages would take and what they would cost, as p50 and p90. A sample of the pages is requested, politely; sample 0 requests none.',
      inputSchema: z.strictObject({
        urls: z.array(z.string()).min(1).max(100_000),
        sample: z.int().min(0).max(1_000).optional().describe('Requests of the sample. Default: 200.'),
        ...pageFields,
      }),
      annotations: { openWorldHint: true },
    },
    (asked) =>
      answered(async () => {
        const forecast = await connectNow().forecast(definedOf(asked));
        return JSON.stringify(forecast ?? { status: 'running', hint: 'call again with the same arguments' });
      }),
  );
}

function addRetry(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'retry_failed',
    {
      description: 'Try the failed URLs of a batch or job again: all of them, or by code, host or text.',
      inputSchema: z.strictObject({
        job_id: jobId,
        code: z.string().optional().describe('Only failures with this code.'),
        host: z.string().optional().describe('Only URLs of this host.'),
        url: z.string().optional().describe('Only URLs that contain this text.'),
        fields,
        max_chars: maxChars,
      }),
    },
    ({ job_id: id, fields: wanted, max_chars: max, ...filter }) =>
      answered(async () =>
        cutAnswer(await connectNow().retry(id, definedOf(filter)), { fields: wanted, max }),
      ),
  );
}

function addScrape(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'scrape',
    {
      description:
        'Fetch one page and return its main content as Markdown, or other formats. A long page comes in parts: call again with next_cursor.',
      inputSchema: z.strictObject({
        url: z.string().min(1).max(8_192),
        formats: formats.default(['markdown']),
        max_age: z.int().min(0).optional().describe('A stored page may be so many seconds old.'),
        ...pageFields,
        max_chars: maxChars,
        cursor,
      }),
      annotations: { openWorldHint: true },
    },
    ({ url, max_chars: max, cursor: at, ...options }) =>
      answered(async () => {
        const [id, from] = at === undefined ? [null, 0] : scrapeCursor(at);
        // The rest is of the page that was fetched first, not of a newer one.
        const job =
          id === null
            ? await connectNow().scrape(url, definedOf(options))
            : await connectNow().job<Result>(id);
        const { job_id: jobName, status, error, result } = job;
        if (!result) return failed(JSON.stringify({ job_id: jobName, status, error }));
        const part = partOfText(contentOf(result, options.formats), from, max);
        const { http_status, fetched_at } = result;
        const next = part.next === null ? null : `${jobName}@${part.next}`;
        const head = { url: result.url, job_id: jobName, http_status, fetched_at, next_cursor: next };
        return [JSON.stringify(head), part.text];
      }),
  );
}

function scrapeCursor(text: string): [string, number] {
  const [, id, from] = /^(scrape_[\d_]+)@(\d{1,12})$/.exec(text) ?? [];
  if (id === undefined) throw new SeineError('the cursor is not one of this tool');
  return [id, Number(from)];
}

function contentOf(result: Result, wanted: readonly Format[]): string {
  const [only] = wanted;
  const content = wanted.length === 1 ? result[only as keyof Result] : null;
  if (typeof content === 'string') return content;
  return JSON.stringify(Object.fromEntries(wanted.map((name) => [name, result[name as keyof Result]])));
}

function addResults(server: McpServer, connectNow: () => Client): void {
  server.registerTool(
    'job_results',
    {
      description:
        'Rows of a batch or job, one for each URL, with what became of it. More rows: call again with next_cursor.',
      inputSchema: z.strictObject({
        job_id: jobId,
        status: z.enum(['succeeded', 'failed', 'skipped', 'pending']).optional(),
        host: z.string().optional(),
        code: z.string().optional().describe('Failure code.'),
        q: z.string().optional().describe('Text within the URL.'),
        formats: formats.optional().describe('What to add of each page.'),
        fields: fields.describe('Only these fields of each row.'),
        limit: z.int().min(1).max(ROWS_DEFAULT).default(ROWS_DEFAULT),
        max_chars: maxChars,
        cursor,
      }),
      annotations: { readOnlyHint: true },
    },
    ({ job_id: id, fields: shownFields, max_chars: max, cursor: at, formats: wanted, ...filter }) =>
      answered(async () => {
        const [after, skip] = at === undefined ? ['', 0] : rowCursor(at);
        const query = new URLSearchParams(
          Object.entries(definedOf({ ...filter, formats: wanted?.join(',') })).map(
            ([name, value]): [string, string] => [name, String(value)],
          ),
        );
        if (after !== '') query.set('cursor', after);
        const path = `/jobs/${encodeURIComponent(id)}/results?${query}`;
        const page = await connectNow().call<ResultPage>('GET', path);
        const rows = page.results.slice(skip).map((row) => (shownFields ? only(row, shownFields) : row));
        const shown = fittingRows(rows, max);
        const isWhole = shown.length === rows.length;
        const next = isWhole
          ? page.next_cursor && `${page.next_cursor}.0`
          : `${after}.${skip + shown.length}`;
        return JSON.stringify({ results: shown, next_cursor: next });
      }),
  );
}

interface ResultPage {
  results: Record<string, unknown>[];
  next_cursor: string | null;
}

/** Where the page of the API begins, and how many of its rows were shown. */
function rowCursor(text: string): [string, number] {
  const [, after, skip] = /^(\d{0,15})\.(\d{1,4})$/.exec(text) ?? [];
  if (after === undefined) throw new SeineError('the cursor is not one of this tool');
  return [after, Number(skip)];
}

function only(row: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([name]) => fields.includes(name)));
}

interface Shortened {
  fields: readonly string[] | undefined;
  max: number;
}

/** What an action did: to call it again for the rest would do it again, so what is too long is cut. */
function cutAnswer(value: object, { fields: wanted, max }: Shortened): string {
  const row = { ...value } as Record<string, unknown>;
  return JSON.stringify(fittingRows([wanted ? only(row, wanted) : row], max)[0]);
}

/** The answer as JSON, or a part of its text with where the next one begins. */
function partOfAnswer(
  value: object,
  { fields: wanted, max, cursor: at }: Shortened & { cursor: string | undefined },
): string | string[] {
  if (at !== undefined && !/^\d{1,12}$/.test(at)) throw new SeineError('the cursor is not one of this tool');
  const row = { ...value } as Record<string, unknown>;
  const text = JSON.stringify(wanted ? only(row, wanted) : row);
  if (at === undefined && text.length <= max) return text;
  const part = partOfText(text, Number(at ?? 0), max);
  return [JSON.stringify({ next_cursor: part.next === null ? null : String(part.next) }), part.text];
}

function definedOf<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

function failed(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** An error is an answer, too: the model reads what to do about it. */
async function answered(work: () => Promise<string | string[] | CallToolResult>): Promise<CallToolResult> {
  try {
    const found = await work();
    if (typeof found !== 'string' && !Array.isArray(found)) return found;
    return { content: [found].flat().map((text) => ({ type: 'text', text })) };
  } catch (error) {
    const code = error instanceof ApiError ? `${error.code}: ` : '';
    const hint = error instanceof SeineError && error.hint ? `; ${error.hint}` : '';
    return failed(`${code}${messageOf(error)}${hint}`);
  }
}
