import type { Settlement, TaskChange } from '../../../ports/store.ts';
import type { Transaction } from '../connection/database.ts';
import { cleanText, toRows } from '../connection/rows.ts';
import type { Applied } from './settle.ts';

/** The page of an earlier attempt that a task still has, and the validators to be sent at the next visit. */
export interface EarlierPage {
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

/** By task. Must be asked before the tasks get their next attempts. The page of a redirect is not the task's own. */
export async function findEarlierPages(
  tx: Transaction,
  taskIds: readonly number[],
): Promise<Map<number, EarlierPage>> {
  if (taskIds.length === 0) return new Map();
  const rows = await tx.run<EarlierPage & { task_id: number; id: number | null }>(
    FIND_EARLIER_PAGES,
    taskIds,
  );
  return new Map(rows.filter(({ id }) => id !== null).map((row) => [row.task_id, row]));
}

/** Logs requests. An attempt without a page of its own points at the one that has it. */
export function writeAttempts(
  tx: Transaction,
  settlement: Pick<Settlement, 'jobId' | 'batchId'>,
  archiveId: number | null,
  applied: readonly Applied[],
  earlier: ReadonlyMap<number, EarlierPage>,
): void {
  const rows = applied.flatMap(({ change, attemptId }) =>
    attemptId === null ? [] : [toRow(change, attemptId, archiveId, earlier.get(change.id) ?? null)],
  );
  if (rows.length === 0) return;
  tx.finally(tx.run(INSERT_ATTEMPTS, settlement.jobId, settlement.batchId, toRows(rows)));
}

function toRow(
  change: TaskChange,
  id: number,
  archiveId: number | null,
  earlier: EarlierPage | null,
): object {
  const trace = change.trace!;
  const page = earlier && change.moveTo ? null : change.page;
  const own = earlier ? null : page;
  const validators = earlier && !page?.etag && !page?.lastModified ? earlier : null;
  return {
    id,
    t: change.id,
    at: Math.round(trace.startedAt),
    d: Math.round(trace.durationMs),
    h: trace.httpStatus,
    o: change.outcome,
    c: change.code,
    w: trace.bytes,
    b: own?.bytes,
    s: own?.sha256,
    ct: cleanText(own?.contentType),
    a: own?.archive ? archiveId : null,
    f: own?.archive?.offset,
    l: own?.archive?.length,
    k: own?.archive?.sha256,
    e: cleanText(validators ? validators.etag : page?.etag),
    m: cleanText(validators ? validators.last_modified : page?.lastModified),
    r: cleanText(change.redirectTo),
    n: page?.route,
    p: earlier?.id,
    x: cleanText(page?.robotsTags),
    v: trace.via && JSON.stringify(trace.via),
    y: trace.shots && JSON.stringify(trace.shots),
    z: change.outcome === 'failed' ? cleanText(change.detail) : null,
  };
}

const FIND_EARLIER_PAGES = `
  SELECT tasks.id AS task_id, attempts.etag, attempts.last_modified, coalesce(attempts.page_id,
    CASE WHEN attempts.sha256 IS NULL OR attempts.outcome = 'redirected' THEN NULL ELSE attempts.id END) AS id
  FROM tasks JOIN attempts ON attempts.id = tasks.attempt_id WHERE tasks.id = ANY($1::bigint[])`;

const INSERT_ATTEMPTS = `
  INSERT INTO attempts (id, job_id, task_id, batch_id, started_at, duration_ms, http_status, outcome, code, wire_bytes,
    bytes, sha256, content_type, archive_id, archive_offset, archive_length, archive_sha256, etag, last_modified, redirect_to,
    route, page_id, robots_tags, via, shots, detail)
  SELECT id, $1, t, $2, at, d, h, o, c, w, b, decode(s, 'hex'), ct, a, f, l, decode(k, 'hex'), e, m, r, n, p, x, v, y, z
  FROM json_to_recordset($3::json) AS attempt (id bigint, t bigint, at bigint, d bigint, h integer, o text, c text,
    w bigint, b bigint, s text, ct text, a bigint, f bigint, l bigint, k text, e text, m text, r text, n text, p bigint, x text,
    v text, y text, z text)`;
