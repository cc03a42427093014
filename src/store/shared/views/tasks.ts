import type { Via } from '../../../core/escalation/escalation.ts';
import type { AttemptRow, TaskRow } from '../../../core/model.ts';
import type { VisitHistory } from '../../../core/revisits/revisit-interval.ts';
import { publicMeta } from '../../../core/row-meta/row-meta.ts';
import type {
  ArchivedPage,
  AttemptFilter,
  NumberedAttempt,
  NumberedTask,
  RowStep,
  Since,
  TaskFilter,
  VisitedPage,
} from '../../../ports/store.ts';
import { type Hash, hexOf } from '../hash.ts';
import { givenPriority } from '../retry-order.ts';
import { isFinished, numbersOf, stateName } from '../states.ts';
import { PAGE_ROWS, type Reader, rowPages } from './reader.ts';

/** Tasks of several jobs lie in one table: read only from the first to the last of this one. */
async function* taskPages(reader: Reader, jobId: number): AsyncIterable<TaskColumns[]> {
  const [bounds] = await reader.all<{ first: number | null; accepted: number }>(SELECT_BOUNDS, jobId);
  if (!bounds || bounds.first === null) return;
  const before = bounds.first - 1;
  let left = bounds.accepted;
  if (left <= 0) return;
  for await (const rows of rowPages<TaskColumns>((last) =>
    reader.all(SELECT_TASK_PAGE, last?.id ?? before, PAGE_ROWS),
  )) {
    const own = rows.filter((row) => row.job_id === jobId);
    yield own;
    left -= own.length;
    if (left <= 0) return;
  }
}

export async function* readTasks(reader: Reader, jobId: number, { since }: Since): AsyncIterable<TaskRow> {
  for await (const rows of taskPages(reader, jobId))
    for (const row of rows)
      if (since === undefined || (row.visited_at !== null && row.visited_at >= since)) yield toTaskRow(row);
}

export async function* readPages(reader: Reader, jobId: number): AsyncIterable<ArchivedPage> {
  for await (const rows of taskPages(reader, jobId))
    for (const row of rows) {
      const archive = archiveOf(row);
      if (archive && isFinished(row.state)) yield toArchivedPage(row, archive);
    }
}

export async function* readVisitedPages(reader: Reader, jobId: number): AsyncIterable<VisitedPage> {
  for await (const rows of rowPages<VisitedColumns>((last) =>
    reader.all(SELECT_VISITED_PAGE, last?.id ?? 0, PAGE_ROWS),
  ))
    for (const row of rows) {
      if (row.job_id !== jobId) continue;
      const archive = { key: row.key, offset: row.archive_offset, length: row.archive_length };
      const sha256 = row.sha256 && hexOf(row.sha256);
      yield { taskId: row.task_id, archive, sha256, fetchedAt: row.started_at };
    }
}

interface VisitedColumns {
  id: number;
  job_id: number;
  task_id: number;
  started_at: number;
  sha256: Hash | null;
  key: string;
  archive_offset: number;
  archive_length: number;
}

const SELECT_VISITED_PAGE = `
  SELECT attempts.id, attempts.job_id, attempts.task_id, attempts.started_at, attempts.sha256, archives.key,
    attempts.archive_offset, attempts.archive_length
  FROM attempts JOIN archives ON archives.id = attempts.archive_id
  WHERE attempts.id > $1 AND attempts.outcome = 'fetched' ORDER BY attempts.id LIMIT $2`;

export async function readTask(reader: Reader, id: number): Promise<TaskRow | null> {
  const [row] = await reader.all<TaskColumns>(SELECT_TASK, id);
  return row ? toTaskRow(row) : null;
}

export async function* readAttempts(
  reader: Reader,
  jobId: number,
  { since = Number.MIN_SAFE_INTEGER }: Since,
): AsyncIterable<AttemptRow> {
  for await (const rows of rowPages<AttemptColumns>((last) =>
    reader.all(SELECT_ATTEMPT_PAGE, last?.id ?? 0, PAGE_ROWS),
  ))
    for (const row of rows) if (row.job_id === jobId && row.started_at >= since) yield toAttemptRow(row);
}

/** Numbers that one step looks at: some 30 ms where none of them is wanted. */
const STEP_NUMBERS = 20_000;

export async function readNumberedTask(reader: Reader, id: number): Promise<NumberedTask | null> {
  const [row] = await reader.all<TaskColumns>(SELECT_TASK, id);
  return row ? { id, ...toTaskRow(row) } : null;
}

export async function readTaskStep(
  reader: Reader,
  jobId: number,
  { after, limit, ...filter }: TaskFilter & { after: number; limit: number },
): Promise<RowStep<NumberedTask>> {
  const [bounds] = await reader.all<{ first: number | null; last: number | null }>(SELECT_EDGES, jobId);
  if (!bounds || bounds.first === null) return { rows: [], after, isEnd: true };
  const from = Math.max(after, bounds.first - 1);
  const to = from + STEP_NUMBERS;
  const { states, host, code, urlContains } = filter;
  const rows = await reader.all<TaskColumns>(
    selectTaskStep(reader.dialect.indexOf, states),
    from,
    to,
    jobId,
    host ?? null,
    code ?? null,
    urlContains ?? null,
    limit,
  );
  const isFull = rows.length === limit;
  const last = isFull ? rows.at(-1)!.id : to;
  return {
    rows: rows.map((row) => ({ id: row.id, ...toTaskRow(row) })),
    after: last,
    isEnd: last >= (bounds.last ?? 0),
  };
}

export async function readAttemptStep(
  reader: Reader,
  jobId: number,
  { after, limit, outcome, host, code, urlContains }: AttemptFilter & { after: number; limit: number },
): Promise<RowStep<NumberedAttempt>> {
  // Before the rows: one that is written between the two reads belongs to the next step.
  const end = await reader.dialect.lastAttempt(reader);
  const to = Math.max(after, Math.min(after + STEP_NUMBERS, end));
  const filter = [outcome, host, code, urlContains].map((value) => value ?? null);
  const rows = filter.every((value) => value === null)
    ? await reader.all<AttemptColumns>(SELECT_ATTEMPT_STEP, after, to, jobId, limit)
    : await reader.all<AttemptColumns>(
        selectSomeAttempts(reader.dialect.indexOf),
        after,
        to,
        jobId,
        limit,
        ...filter,
      );
  const last = rows.length === limit ? rows.at(-1)!.id : to;
  return {
    rows: rows.map((row) => ({ id: row.id, ...toAttemptRow(row) })),
    after: last,
    isEnd: last >= end,
  };
}

export async function readAttemptsOf(
  reader: Reader,
  taskId: number,
  limit: number,
): Promise<NumberedAttempt[]> {
  const rows = await reader.all<AttemptColumns>(SELECT_ATTEMPTS_OF, taskId, limit);
  return rows.map((row) => ({ id: row.id, ...toAttemptRow(row) }));
}

const SELECT_EDGES = `
  SELECT first_task_id AS first, (SELECT max(id) FROM tasks) AS last FROM jobs WHERE id = $1`;

interface TaskColumns {
  id: number;
  job_id: number;
  url: string;
  at_url: string | null;
  state: number;
  http_status: number | null;
  code: string | null;
  detail: string | null;
  attempts: number;
  bytes: number | null;
  sha256: Hash | null;
  content_type: string | null;
  robots_tags: string | null;
  shots: string | null;
  archive_key: string | null;
  archive_offset: number | null;
  archive_length: number | null;
  media_key: string | null;
  media_md5: Hash | null;
  media_member: string | null;
  redirect_to: string | null;
  depth: number;
  priority: number;
  asked_route: string | null;
  found_route: string | null;
  host: string;
  visited_at: number | null;
  page_at: number | null;
  page_id: number | null;
  page_at_url: string | null;
  visits: string | null;
  meta: string | null;
}

/** An attempt that found its page unchanged, or brought none, points at the attempt that has it. */
const SELECT_TASKS = `
  SELECT tasks.id, tasks.job_id, tasks.url, tasks.at_url, tasks.state, attempts.http_status, tasks.code, tasks.detail,
    tasks.attempts, coalesce(pages.bytes, attempts.bytes) AS bytes, coalesce(pages.sha256, attempts.sha256) AS sha256,
    coalesce(pages.content_type, attempts.content_type) AS content_type,
    coalesce(attempts.robots_tags, pages.robots_tags) AS robots_tags, coalesce(attempts.shots, pages.shots) AS shots,
    archives.key AS archive_key, coalesce(pages.archive_offset, attempts.archive_offset) AS archive_offset,
    coalesce(pages.archive_length, attempts.archive_length) AS archive_length,
    media.key AS media_key, media.md5 AS media_md5, media.member AS media_member,
    attempts.redirect_to, tasks.depth, tasks.priority, tasks.route AS asked_route,
    coalesce(attempts.route, pages.route) AS found_route, hosts.host, attempts.started_at AS visited_at,
    coalesce(pages.started_at, attempts.started_at) AS page_at, attempts.page_id, pages.at_url AS page_at_url, tasks.visits,
    tasks.meta
  FROM tasks JOIN hosts ON hosts.id = tasks.host_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id
    LEFT JOIN archives ON archives.id = coalesce(pages.archive_id, attempts.archive_id)
    LEFT JOIN media ON media.attempt_id = coalesce(pages.id, attempts.id)`;

const SELECT_BOUNDS = `
  SELECT first_task_id AS first, (SELECT coalesce(sum(accepted), 0) FROM counters WHERE job_id = $1) AS accepted
  FROM jobs WHERE id = $1`;

const SELECT_TASK_PAGE = `${SELECT_TASKS} WHERE tasks.id > $1 ORDER BY tasks.id LIMIT $2`;

const SELECT_TASK = `${SELECT_TASKS} WHERE tasks.id = $1`;

const selectTaskStep = (indexOf: string, states: TaskFilter['states']) => `
  ${SELECT_TASKS} WHERE tasks.id > $1 AND tasks.id <= $2 AND tasks.job_id = $3
    ${states ? `AND tasks.state IN (${numbersOf(states).join(', ')})` : ''}
    AND (CAST($4 AS text) IS NULL OR hosts.host = $4) AND (CAST($5 AS text) IS NULL OR tasks.code = $5)
    AND (CAST($6 AS text) IS NULL OR ${indexOf}(tasks.url, $6) > 0)
  ORDER BY tasks.id LIMIT $7`;

function toTaskRow(row: TaskColumns): TaskRow {
  return {
    url: row.url,
    state: stateName(row.state),
    httpStatus: row.http_status,
    failureCode: row.code,
    failureDetail: row.detail,
    attempts: row.attempts,
    bytes: row.bytes,
    sha256: row.sha256 && hexOf(row.sha256),
    contentType: row.content_type,
    archive: archiveOf(row),
    media:
      row.media_key === null || row.media_md5 === null
        ? null
        : { key: row.media_key, md5: hexOf(row.media_md5), member: row.media_member },
    shots: row.shots === null ? [] : JSON.parse(row.shots),
    robotsTags: row.robots_tags,
    redirectTo: row.redirect_to ?? row.at_url,
    depth: row.depth,
    priority: givenPriority(row.priority),
    route: row.found_route ?? row.asked_route,
    host: row.host,
    fetchedAt: row.visited_at === null ? null : new Date(row.visited_at).toISOString(),
    revisitSeconds: row.visits === null ? null : intervalSecondsOf(row.visits),
    meta: row.meta === null ? null : publicMeta(JSON.parse(row.meta)),
  };
}

function intervalSecondsOf(visits: string): number {
  const { intervalMs }: VisitHistory = JSON.parse(visits);
  return Math.round(intervalMs / 1_000);
}

function archiveOf(row: TaskColumns): TaskRow['archive'] {
  return row.archive_key === null
    ? null
    : { key: row.archive_key, offset: row.archive_offset ?? 0, length: row.archive_length ?? 0 };
}

function toArchivedPage(row: TaskColumns, archive: ArchivedPage['archive']): ArchivedPage {
  return {
    taskId: row.id,
    url: (row.page_id === null ? row.at_url : row.page_at_url) ?? row.url,
    route: row.asked_route,
    state: stateName(row.state),
    failureCode: row.code,
    depth: row.depth,
    archive,
    sha256: row.sha256 && hexOf(row.sha256),
    fetchedAt: row.page_at ?? 0,
    meta: row.meta === null ? null : JSON.parse(row.meta),
  };
}

interface AttemptColumns {
  id: number;
  job_id: number;
  url: string;
  batch_id: number;
  worker: string | null;
  started_at: number;
  duration_ms: number;
  http_status: number | null;
  outcome: string;
  code: string | null;
  detail: string | null;
  bytes: number;
  via: string | null;
}

/** The outcome of an attempt whose batch was lost: nothing is known but that it was lent. */
export const LOST = 'lost';

const SELECT_ATTEMPTS = `
  SELECT attempts.id, attempts.job_id, tasks.url, attempts.batch_id, batches.worker, attempts.started_at,
    attempts.duration_ms, attempts.http_status, attempts.outcome, attempts.code, attempts.wire_bytes AS bytes,
    attempts.via, CASE WHEN attempts.outcome = '${LOST}' THEN batches.note ELSE attempts.detail END AS detail
  FROM attempts JOIN tasks ON tasks.id = attempts.task_id LEFT JOIN batches ON batches.id = attempts.batch_id`;

const SELECT_ATTEMPT_PAGE = `${SELECT_ATTEMPTS} WHERE attempts.id > $1 ORDER BY attempts.id LIMIT $2`;

const SELECT_ATTEMPT_STEP = `
  ${SELECT_ATTEMPTS} WHERE attempts.id > $1 AND attempts.id <= $2 AND attempts.job_id = $3 ORDER BY attempts.id LIMIT $4`;

/**
 * Each part is found by an index: that of failed attempts is small, one over all would cost every page of a crawl. SQLite
 * takes it only where the condition is written as in the index.
 */
const SELECT_ATTEMPTS_OF = `
  ${SELECT_ATTEMPTS} WHERE attempts.id IN (
    SELECT id FROM attempts WHERE task_id = $1 AND (outcome = 'failed' OR outcome = '${LOST}' OR outcome = 'redirected')
    UNION SELECT attempt_id FROM tasks WHERE id = $1
    UNION SELECT last.page_id FROM tasks JOIN attempts AS last ON last.id = tasks.attempt_id WHERE tasks.id = $1)
  ORDER BY attempts.id DESC LIMIT $2`;
const selectSomeAttempts = (indexOf: string) => `
  ${SELECT_ATTEMPTS} JOIN hosts ON hosts.id = tasks.host_id
  WHERE attempts.id > $1 AND attempts.id <= $2 AND attempts.job_id = $3
    AND (CAST($5 AS text) IS NULL OR attempts.outcome = $5) AND (CAST($6 AS text) IS NULL OR hosts.host = $6)
    AND (CAST($7 AS text) IS NULL OR attempts.code = $7)
    AND (CAST($8 AS text) IS NULL OR ${indexOf}(tasks.url, $8) > 0)
  ORDER BY attempts.id LIMIT $4`;

function toAttemptRow(row: AttemptColumns): AttemptRow {
  const via: Via | null = row.via === null ? null : JSON.parse(row.via);
  return {
    url: row.url,
    batch: row.batch_id,
    worker: row.worker ?? '',
    startedAt: new Date(row.started_at).toISOString(),
    durationMs: row.duration_ms,
    httpStatus: row.http_status,
    outcome: row.outcome,
    failureCode: row.code,
    detail: row.detail,
    bytes: row.bytes,
    fetcher: via?.fetcher ?? null,
    rung: via?.rung ?? null,
    identity: via?.identity ?? null,
    proxy: via?.proxy ?? null,
  };
}
