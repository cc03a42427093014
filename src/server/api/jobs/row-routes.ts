import type { FastifyReply, FastifyRequest } from 'fastify';
import { explainJob } from '../../../coordinator/explain/explain-job.ts';
import { hostLatencies } from '../../../coordinator/reports/latencies.ts';
import { latestQualityOf } from '../../../coordinator/reports/quality.ts';
import { isBanned } from '../../../core/bans/bans.ts';
import { SeineError } from '../../../core/errors.ts';
import type { HostSummary, NumberedAttempt } from '../../../ports/store.ts';
import type { RoutePlugin } from '../requests/access.ts';
import { definedOf, isAdmin, jobOf, requireScope } from '../requests/callers.ts';
import {
  attemptsQuery,
  explainQuery,
  hostsQuery,
  parseAs,
  recordsQuery,
  resultsQuery,
} from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import { resultOf, STATES_OF, wholeResult } from '../scrape/results.ts';

/** Rows of a job, page after page: JSON, or NDJSON and CSV by `Accept`. */

type WithId = { Params: { id: string } };
type Row = Record<string, unknown>;

/** Steps of one request: each looks at a bounded number of rows of the store. */
const STEPS_MAX = 5;
const WHOLE_PAGES_MAX = 20;
const LOOKED_AT = 1_000;

export const rowRoutes: RoutePlugin = (app, context) => {
  taskRows(app, context);
  recordRows(app, context);
  hostRows(app, context);
};

const taskRows: RoutePlugin = (app, context) => {
  const { reads } = context;

  app.get<WithId>('/jobs/:id/results', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { status, host, code, q, cursor, limit, formats } = parseAs(resultsQuery, request.query);
    const { job } = await jobOf(context, request.params.id, request.caller);
    const filter = definedOf({ states: status && STATES_OF[status], host, code, urlContains: q });
    const most = formats ? Math.min(limit, WHOLE_PAGES_MAX) : limit;
    const found = await steps(cursor, most, (after, left) =>
      reads.views.taskStep(job.id, { ...filter, after, limit: left }),
    );
    const rows: Row[] = [];
    for (const task of found.rows)
      rows.push(formats ? await wholeResult(context, task, formats) : resultOf(task));
    return sendRows(request, reply, 'results', rows, found.next);
  });

  app.get<WithId>('/jobs/:id/attempts', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { status, host, code, q, cursor, limit } = parseAs(attemptsQuery, request.query);
    const { job } = await jobOf(context, request.params.id, request.caller);
    const filter = definedOf({ outcome: status, host, code, urlContains: q });
    const found = await steps(cursor, limit, (after, left) =>
      reads.views.attemptStep(job.id, { ...filter, after, limit: left }),
    );
    return sendRows(request, reply, 'attempts', found.rows.map(attemptOf), found.next);
  });
};

const recordRows: RoutePlugin = (app, context) => {
  const { reads } = context;

  app.get<WithId>('/jobs/:id/records', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { host, q, cursor, limit } = parseAs(recordsQuery, request.query);
    const { job } = await jobOf(context, request.params.id, request.caller);
    const found = await namedSteps({
      cursor,
      limit,
      read: (after, most) => reads.views.recordStep(job.id, { after, limit: most }),
      nameOf: ({ key }) => key,
      isWanted: ({ key, url }) =>
        (q === undefined || key.includes(q) || url.includes(q)) &&
        (host === undefined || hostIn(url) === host),
    });
    const rows = found.rows.map(({ key, url, data, updatedAt }) => ({
      key,
      url,
      data,
      updated_at: updatedAt,
    }));
    return sendRows(request, reply, 'records', rows, found.next);
  });

  app.get<WithId>('/jobs/:id/quality', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { job } = await jobOf(context, request.params.id, request.caller);
    const quality = await latestQualityOf(reads, job);
    if (!wantsRows(request)) return quality;
    return sendRows(
      request,
      reply,
      'routes',
      quality.routes.map((route) => ({ ...route })),
      null,
    );
  });
};

const hostRows: RoutePlugin = (app, context) => {
  const { reads } = context;

  app.get<WithId>('/jobs/:id/explain', async ({ params, query, caller }) => {
    requireScope(caller, 'read');
    const { what_if: changes } = parseAs(explainQuery, query);
    const { job } = await jobOf(context, params.id, caller);
    try {
      // A plus in a query is a space.
      return await explainJob(reads, job, { changes: changes.map((text) => text.replace('= ', '=+')) });
    } catch (error) {
      if (error instanceof SeineError) throw new Problem('bad-option', `${error.message}: ${error.hint}`);
      throw error;
    }
  });

  app.get<WithId>('/jobs/:id/hosts', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { status, code, q, cursor, limit } = parseAs(hostsQuery, request.query);
    const { job } = await jobOf(context, request.params.id, request.caller);
    const found = await namedSteps({
      cursor,
      limit,
      read: async (after, most) => {
        const rows = await reads.hosts.listStep(job.id, { after: after ?? '', limit: most });
        return { rows, after: rows.length < most ? null : rows.at(-1)!.host };
      },
      nameOf: ({ host }) => host,
      isWanted: ({ host, ban, lastError }) =>
        (q === undefined || host.includes(q)) &&
        (code === undefined || lastError?.code === code) &&
        (status === undefined || isBanned(ban) === (status === 'banned')),
    });
    const latencies = await hostLatencies(reads, job.id);
    const rows = found.rows.map((facts) => ({
      ...hostOf(facts),
      ...(isAdmin(request.caller) ? {} : { last_error: withoutDetail(facts.lastError) }),
      ready: facts.ready,
      waiting: facts.waiting?.count ?? 0,
      latency_ms: latencies.get(facts.host) ?? null,
    }));
    return sendRows(request, reply, 'hosts', rows, found.next);
  });
};

/** A host is shared by the jobs of all keys: its last error may be of another's page. */
function withoutDetail(error: HostSummary['lastError']): object | null {
  return error && { at: new Date(error.at).toISOString(), code: error.code };
}

interface NamedList<T> {
  cursor: string | undefined;
  limit: number;
  read(after: string | null, limit: number): Promise<{ rows: T[]; after: string | null }>;
  nameOf(row: T): string;
  isWanted(row: T): boolean;
}

/** Lists by name: so many rows are looked at in one request, whatever the filter lets through. */
async function namedSteps<T>({ cursor, limit, read, nameOf, isWanted }: NamedList<T>): Promise<Found<T>> {
  const rows: T[] = [];
  let after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString('utf8');
  for (let step = 0; step < STEPS_MAX; step++) {
    const found = await read(after, LOOKED_AT);
    for (const row of found.rows) {
      if (!isWanted(row)) continue;
      rows.push(row);
      if (rows.length === limit) {
        const isLast = found.after === null && row === found.rows.at(-1);
        return { rows, next: isLast ? null : cursorOf(nameOf(row)) };
      }
    }
    after = found.after;
    if (after === null) return { rows, next: null };
  }
  return { rows, next: cursorOf(after!) };
}

const cursorOf = (name: string) => Buffer.from(name).toString('base64url');

function hostIn(url: string): string | null {
  return URL.canParse(url) ? new URL(url).host : null;
}

export function hostOf({ host, requests, nextAt, failuresInRow, pace, ban, lastError }: HostSummary): Row {
  return {
    host,
    requests,
    next_at: new Date(nextAt).toISOString(),
    failures_in_row: failuresInRow,
    rate: pace?.rate ?? null,
    is_banned: isBanned(ban),
    last_error: lastError && { ...lastError, at: new Date(lastError.at).toISOString() },
  };
}

interface Found<T> {
  rows: T[];
  next: string | null;
}

type Step<T> = (after: number, limit: number) => Promise<{ rows: T[]; after: number; isEnd: boolean }>;

export async function steps<T>(cursor: string | undefined, limit: number, read: Step<T>): Promise<Found<T>> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw new Problem('bad-cursor');
  const rows: T[] = [];
  let after = Number(cursor ?? 0);
  for (let step = 0; step < STEPS_MAX && rows.length < limit; step++) {
    const found = await read(after, limit - rows.length);
    rows.push(...found.rows);
    after = found.after;
    if (found.isEnd) return { rows, next: null };
  }
  return { rows, next: String(after) };
}

export function attemptOf(attempt: NumberedAttempt): Row {
  const { url, startedAt, durationMs, httpStatus, outcome, failureCode, detail, bytes, fetcher, proxy } =
    attempt;
  return {
    url,
    outcome,
    http_status: httpStatus,
    code: failureCode,
    detail,
    started_at: startedAt,
    duration_ms: durationMs,
    bytes,
    fetcher,
    proxy,
    worker: attempt.worker,
  };
}

function wantsRows({ headers: { accept = '' } }: FastifyRequest): boolean {
  return accept.includes('ndjson') || accept.includes('text/csv');
}

/** The cursor of NDJSON and CSV is in a header: the body has rows alone. */
export function sendRows(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  name: string,
  rows: readonly Row[],
  next: string | null,
): FastifyReply {
  const accept = headers.accept ?? '';
  if (next !== null) reply.header('x-next-cursor', next);
  if (accept.includes('ndjson'))
    return reply
      .header('content-type', 'application/x-ndjson')
      .send(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  if (accept.includes('text/csv'))
    return reply.header('content-type', 'text/csv; charset=utf-8').send(csvOf(rows));
  return reply.send({ [name]: rows, next_cursor: next });
}

function csvOf(rows: readonly Row[]): string {
  const [first] = rows;
  if (!first) return '';
  const names = Object.keys(first);
  const lines = rows.map((row) => names.map((name) => cellOf(row[name])).join(','));
  return [names.join(','), ...lines, ''].join('\r\n');
}

/** A cell that a spreadsheet would take for a formula is led by an apostrophe. */
export function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
