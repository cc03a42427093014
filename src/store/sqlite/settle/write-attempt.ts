import type { Trace } from '../../../core/batch/outcome.ts';
import type { Settlement, TaskChange } from '../../../ports/store.ts';
import type { Database } from '../connection/database.ts';

/** The page of an earlier attempt that a task still has, and the validators to be sent at the next visit. */
interface EarlierPage {
  id: number;
  etag: string | null;
  last_modified: string | null;
}

/** Whether the page that the task had stays its page. In the first pass it has none before it is done. */
export function keepsPage(change: TaskChange, pass: number): boolean {
  const { page, outcome } = change;
  if (outcome === 'unchanged') return page === null || (page.archive === null && page.media === null);
  return pass > 1 && (page === null || change.moveTo !== null);
}

/** Must be asked before the task gets its next attempt. The page of a redirect is not the task's own. */
export function findEarlierPage(db: Database, taskId: number): EarlierPage | null {
  const row = db.get<EarlierPage & { id: number | null }>(FIND_EARLIER_PAGE, taskId);
  return row && row.id !== null ? row : null;
}

/** Logs one request. An attempt without a page of its own points at the one that has it. */
export function writeAttempt(
  db: Database,
  settlement: Pick<Settlement, 'jobId' | 'batchId'>,
  row: { id: number; archiveId: number | null; trace: Trace; earlier: EarlierPage | null },
  change: TaskChange,
): void {
  const { trace, earlier } = row;
  const page = earlier && change.moveTo ? null : change.page;
  const own = earlier ? null : page;
  const validators = earlier && !page?.etag && !page?.lastModified ? earlier : null;
  db.run(
    INSERT_ATTEMPT,
    row.id,
    settlement.jobId,
    change.id,
    settlement.batchId,
    Math.round(trace.startedAt),
    Math.round(trace.durationMs),
    trace.httpStatus,
    change.outcome,
    change.code,
    trace.bytes,
    own?.bytes ?? null,
    own ? Buffer.from(own.sha256, 'hex') : null,
    own?.contentType ?? null,
    own?.archive ? row.archiveId : null,
    own?.archive?.offset ?? null,
    own?.archive?.length ?? null,
    own?.archive?.sha256 ? Buffer.from(own.archive.sha256, 'hex') : null,
    validators ? validators.etag : (page?.etag ?? null),
    validators ? validators.last_modified : (page?.lastModified ?? null),
    change.redirectTo,
    page?.route ?? null,
    earlier?.id ?? null,
    page?.robotsTags ?? null,
    trace.via ? JSON.stringify(trace.via) : null,
    trace.shots ? JSON.stringify(trace.shots) : null,
    change.outcome === 'failed' ? change.detail : null,
  );
}

const FIND_EARLIER_PAGE = `
  SELECT coalesce(page_id, iif(sha256 IS NULL OR outcome = 'redirected', NULL, attempts.id)) AS id, etag, last_modified
  FROM tasks JOIN attempts ON attempts.id = tasks.attempt_id WHERE tasks.id = ?`;

const INSERT_ATTEMPT = `
  INSERT INTO attempts (id, job_id, task_id, batch_id, started_at, duration_ms, http_status, outcome, code, wire_bytes,
    bytes, sha256, content_type, archive_id, archive_offset, archive_length, archive_sha256, etag, last_modified, redirect_to,
    route, page_id, robots_tags, via, shots, detail)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
