import type { Via } from '../../core/escalation/escalation.ts';
import type { AttemptRow, TaskRow } from '../../core/model.ts';
import type { ArchivedPage } from '../../ports/store.ts';
import { type Hash, hexOf } from './hash.ts';
import { stateName } from './states.ts';

export interface TaskColumns {
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
  meta: string | null;
}

/** An attempt that found its page unchanged, or brought none, points at the attempt that has it. */
export const SELECT_TASKS = `
  SELECT tasks.id, tasks.job_id, tasks.url, tasks.at_url, tasks.state, attempts.http_status, tasks.code, tasks.detail,
    tasks.attempts, coalesce(pages.bytes, attempts.bytes) AS bytes, coalesce(pages.sha256, attempts.sha256) AS sha256,
    coalesce(pages.content_type, attempts.content_type) AS content_type,
    coalesce(attempts.robots_tags, pages.robots_tags) AS robots_tags, coalesce(attempts.shots, pages.shots) AS shots,
    archives.key AS archive_key, coalesce(pages.archive_offset, attempts.archive_offset) AS archive_offset,
    coalesce(pages.archive_length, attempts.archive_length) AS archive_length,
    media.key AS media_key, media.md5 AS media_md5, media.member AS media_member,
    attempts.redirect_to, tasks.depth, tasks.priority, tasks.route AS asked_route,
    coalesce(attempts.route, pages.route) AS found_route, hosts.host, attempts.started_at AS visited_at,
    coalesce(pages.started_at, attempts.started_at) AS page_at, attempts.page_id, pages.at_url AS page_at_url, tasks.meta
  FROM tasks JOIN hosts ON hosts.id = tasks.host_id
    LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id
    LEFT JOIN archives ON archives.id = coalesce(pages.archive_id, attempts.archive_id)
    LEFT JOIN media ON media.attempt_id = coalesce(pages.id, attempts.id)`;

export function toTaskRow(row: TaskColumns): TaskRow {
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
    priority: row.priority,
    route: row.found_route ?? row.asked_route,
    host: row.host,
    fetchedAt: row.visited_at === null ? null : new Date(row.visited_at).toISOString(),
    meta: row.meta === null ? null : JSON.parse(row.meta),
  };
}

export function archiveOf(row: TaskColumns): TaskRow['archive'] {
  return row.archive_key === null
    ? null
    : { key: row.archive_key, offset: row.archive_offset ?? 0, length: row.archive_length ?? 0 };
}

export function toArchivedPage(row: TaskColumns, archive: ArchivedPage['archive']): ArchivedPage {
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

export interface AttemptColumns {
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
  bytes: number;
  via: string | null;
}

export const SELECT_ATTEMPTS = `
  SELECT attempts.id, attempts.job_id, tasks.url, attempts.batch_id, batches.worker, attempts.started_at,
    attempts.duration_ms, attempts.http_status, attempts.outcome, attempts.code, attempts.wire_bytes AS bytes,
    attempts.via
  FROM attempts JOIN tasks ON tasks.id = attempts.task_id LEFT JOIN batches ON batches.id = attempts.batch_id`;

export function toAttemptRow(row: AttemptColumns): AttemptRow {
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
    bytes: row.bytes,
    fetcher: via?.fetcher ?? null,
    rung: via?.rung ?? null,
    identity: via?.identity ?? null,
    proxy: via?.proxy ?? null,
  };
}
