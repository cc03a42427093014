import { Readable } from 'node:stream';
import type { Job } from '../../../ports/store.ts';
import { parquetPieces } from '../../../tables/parquet.ts';
import { type ColumnType, tableOf } from '../../../tables/table.ts';
import type { ApiContext, RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { type EXPORTS, exportQuery, parseAs } from '../requests/options.ts';
import { resultOf } from '../scrape/results.ts';
import { attemptOf, cellOf } from './row-routes.ts';

/** Whole lists as one file, written as they are read: memory does not grow with them. */

type Row = Record<string, unknown>;
type What = (typeof EXPORTS)[number];
const ROWS_AT_ONCE = 1_000;

export const exportRoutes: RoutePlugin = (app, context) => {
  app.get<{ Params: { id: string } }>('/jobs/:id/export', async ({ params, query, caller }, reply) => {
    requireScope(caller, 'read');
    const { what, format } = parseAs(exportQuery, query);
    const { job } = await jobOf(context, params.id, caller);
    const name = `${job.name}-${job.run}-${what}.${format}`.replace(/[^\w.-]/g, '_');
    const pages = PAGES[what](context, job);
    return reply
      .headers({
        'content-type': CONTENT_TYPES[format],
        'content-disposition': `attachment; filename="${name}"`,
      })
      .send(Readable.from(WRITERS[format](pages, what), { objectMode: false }));
  });
};

const PAGES: Record<What, (context: ApiContext, job: Job) => AsyncGenerator<Row[], void, void>> = {
  async *records({ reads }, job) {
    let after: string | null = null;
    do {
      const step: Awaited<ReturnType<typeof reads.views.recordStep>> = await reads.views.recordStep(job.id, {
        after,
        limit: ROWS_AT_ONCE,
      });
      yield step.rows.map(({ key, url, data, updatedAt }) => ({ key, url, updated_at: updatedAt, data }));
      after = step.after;
    } while (after !== null);
  },
  results: ({ reads }, job) =>
    stepped(async (after) => {
      const step = await reads.views.taskStep(job.id, { after, limit: ROWS_AT_ONCE });
      return { ...step, rows: step.rows.map(resultOf) };
    }),
  attempts: ({ reads }, job) =>
    stepped(async (after) => {
      const step = await reads.views.attemptStep(job.id, { after, limit: ROWS_AT_ONCE });
      return { ...step, rows: step.rows.map(attemptOf) };
    }),
};

const CONTENT_TYPES = {
  jsonl: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
} as const;

const WRITERS: Record<
  keyof typeof CONTENT_TYPES,
  (pages: AsyncIterable<Row[]>, what: What) => AsyncIterable<string | Uint8Array>
> = { jsonl: jsonLinesOf, csv: csvOf, parquet: parquetOf };

/** Records have any fields, which are one column of JSON: a file of Parquet names its columns before the first row. */
const COLUMNS: Record<What, Record<string, ColumnType>> = {
  records: { key: 'text', url: 'text', updated_at: 'time', data: 'json' },
  results: {
    ...{ url: 'text', status: 'text', http_status: 'integer', code: 'text', retryable: 'boolean' },
    ...{ detail: 'text', content_type: 'text', bytes: 'integer', fetched_at: 'time', final_url: 'text' },
    ...{ attempts: 'integer', sha256: 'text', shots: 'json', meta: 'json' },
  },
  attempts: {
    ...{ url: 'text', outcome: 'text', http_status: 'integer', code: 'text', detail: 'text' },
    ...{ started_at: 'time', duration_ms: 'integer', bytes: 'integer', fetcher: 'text', proxy: 'text' },
    worker: 'text',
  },
};
/** A group is encoded at one go, and other calls wait for that. */
const GROUP_ROWS_MAX = 5_000;

function parquetOf(pages: AsyncIterable<Row[]>, what: What): AsyncIterable<Uint8Array> {
  return parquetPieces(tableOf(COLUMNS[what], rowsOf(pages)), { groupRowsMax: GROUP_ROWS_MAX });
}

async function* rowsOf(pages: AsyncIterable<Row[]>): AsyncGenerator<Row, void, void> {
  for await (const rows of pages) yield* rows;
}

/** Fields of records are columns of their own. */
async function* flat(pages: AsyncIterable<Row[]>, what: What): AsyncGenerator<Row[], void, void> {
  for await (const rows of pages)
    yield what === 'records' ? rows.map(({ data, ...row }) => ({ ...row, ...(data as Row) })) : rows;
}

type Step = { rows: Row[]; after: number; isEnd: boolean };

async function* stepped(read: (after: number) => Promise<Step>): AsyncGenerator<Row[], void, void> {
  let after = 0;
  while (true) {
    const step = await read(after);
    if (step.rows.length > 0) yield step.rows;
    if (step.isEnd) return;
    after = step.after;
  }
}

async function* jsonLinesOf(pages: AsyncIterable<Row[]>, what: What): AsyncGenerator<string, void, void> {
  for await (const rows of flat(pages, what)) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

/** Columns are those of the first thousand rows; what others have besides is in JSON lines alone. */
async function* csvOf(pages: AsyncIterable<Row[]>, what: What): AsyncGenerator<string, void, void> {
  let names: string[] | null = null;
  for await (const rows of flat(pages, what)) {
    if (names === null) {
      names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
      yield `${names.map(cellOf).join(',')}\r\n`;
    }
    const columns = names;
    yield rows
      .map(
        (row) =>
          `${columns.map((name) => cellOf(Object.hasOwn(row, name) ? row[name] : null)).join(',')}\r\n`,
      )
      .join('');
  }
}
