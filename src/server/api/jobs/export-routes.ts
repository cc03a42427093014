import { Readable } from 'node:stream';
import type { Job } from '../../../ports/store.ts';
import type { ApiContext, RoutePlugin } from '../requests/access.ts';
import { jobOf, requireScope } from '../requests/callers.ts';
import { type EXPORTS, exportQuery, parseAs } from '../requests/options.ts';
import { resultOf } from '../scrape/results.ts';
import { attemptOf, cellOf } from './row-routes.ts';

/** Whole lists as one file, written as they are read: memory does not grow with them. */

type Row = Record<string, unknown>;
const ROWS_AT_ONCE = 1_000;

export const exportRoutes: RoutePlugin = (app, context) => {
  app.get<{ Params: { id: string } }>('/jobs/:id/export', async ({ params, query, caller }, reply) => {
    requireScope(caller, 'read');
    const { what, format } = parseAs(exportQuery, query);
    const { job } = await jobOf(context, params.id, caller);
    const name = `${job.name}-${job.run}-${what}.${format}`.replace(/[^\w.-]/g, '_');
    const pages = PAGES[what](context, job);
    const lines = format === 'csv' ? csvOf(pages) : jsonLinesOf(pages);
    return reply
      .headers({
        'content-type': format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
        'content-disposition': `attachment; filename="${name}"`,
      })
      .send(Readable.from(lines, { objectMode: false }));
  });
};

const PAGES: Record<
  (typeof EXPORTS)[number],
  (context: ApiContext, job: Job) => AsyncGenerator<Row[], void, void>
> = {
  async *records({ reads }, job) {
    let after: string | null = null;
    do {
      const step: Awaited<ReturnType<typeof reads.views.recordStep>> = await reads.views.recordStep(job.id, {
        after,
        limit: ROWS_AT_ONCE,
      });
      yield step.rows.map(({ key, url, data, updatedAt }) => ({ key, url, updated_at: updatedAt, ...data }));
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

async function* jsonLinesOf(pages: AsyncIterable<Row[]>): AsyncGenerator<string, void, void> {
  for await (const rows of pages) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

/** Columns are those of the first thousand rows; what others have besides is in JSON lines alone. */
async function* csvOf(pages: AsyncIterable<Row[]>): AsyncGenerator<string, void, void> {
  let names: string[] | null = null;
  for await (const rows of pages) {
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
