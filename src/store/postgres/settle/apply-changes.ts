import type { Settlement, TaskChange } from '../../../ports/store.ts';
import { nextPriority, priorityStepOf } from '../../shared/retry-order.ts';
import { LEASED, READY, STATE_NUMBERS, WAITING } from '../../shared/states.ts';
import type { Transaction } from '../connection/database.ts';
import { cleanText, indexHint, toRows } from '../connection/rows.ts';
import type { HostNumbers } from '../frontier/host-ids.ts';
import type { EarlierPage } from './earlier-pages.ts';

/** The batch of a report, as it was before. */
export interface OpenBatch {
  unsettled: number;
  coordinator: number;
  pass: number;
  collection_id: number;
  /** As JSON. */
  host_ids: string | null;
  /** Whether an endpoint wants to be told of pages or records. */
  wants_work: boolean;
}

/** A change that the batch had the right to make. */
export interface Applied {
  change: TaskChange;
  hostId: number;
  /** Its task was never requested before. */
  isFirst: boolean;
}

interface AppliedColumns extends OpenBatch {
  /** As JSON, of the tasks that the batch still held, in one order. */
  task_ids: string | null;
  task_hosts: string | null;
  task_attempts: string | null;
}

/**
 * Tasks, attempts, media and the files that they are in, with one statement: what a page brings is sent and read once.
 * Null where the batch is not open; of tasks that it does not hold any more nothing counts.
 */
export async function applyChanges(
  tx: Transaction,
  settlement: Settlement,
  changes: readonly TaskChange[],
  { hosts, earlier }: { hosts: HostNumbers; earlier: ReadonlyMap<number, EarlierPage> },
): Promise<{ batch: OpenBatch; applied: Applied[] } | null> {
  const { jobId, batchId, archive, pack, now } = settlement;
  const rows = changes.map((change) => ({
    ...taskRow(change, now, hosts),
    ...attemptRow(change, earlier.get(change.id) ?? null),
  }));
  const places = [archive, pack].flatMap((stored) => [stored?.key ?? null, stored?.bytes ?? null]);
  const [found] = await tx.run<AppliedColumns>(APPLY, batchId, jobId, toRows(rows), ...places);
  if (!found) return null;
  const { task_ids: ids, task_hosts: hostIds, task_attempts: attempts, ...batch } = found;
  return { batch, applied: appliedOf(changes, list(ids), list(hostIds), list(attempts)) };
}

const list = (json: string | null): number[] => (json === null ? [] : JSON.parse(json));

function appliedOf(
  changes: readonly TaskChange[],
  ids: readonly number[],
  hostIds: readonly number[],
  attempts: readonly number[],
): Applied[] {
  const places = new Map(ids.map((id, index) => [id, index]));
  return changes.flatMap((change) => {
    const at = places.get(change.id);
    if (at === undefined) return [];
    return [{ change, hostId: hostIds[at]!, isFirst: change.countsAsAttempt && attempts[at] === 1 }];
  });
}

export function stateOf(change: TaskChange, now: number): number {
  if (change.to !== 'pending') return STATE_NUMBERS[change.to];
  return change.dueAt !== null && change.dueAt > now ? WAITING : READY;
}

/** What is not there is left out: the server reads every letter. */
const ifAny = <T>(value: T | null | undefined): T | undefined => value ?? undefined;

function taskRow(change: TaskChange, now: number, hosts: HostNumbers): object {
  return {
    id: change.id,
    s: stateOf(change, now),
    n: change.countsAsAttempt ? 1 : undefined,
    r: change.throttled ? 1 : undefined,
    d: ifAny(change.dueAt),
    p: priorityStepOf(change) || undefined,
    c: ifAny(change.code),
    t: ifAny(cleanText(change.detail)),
    u: ifAny(cleanText(change.moveTo?.url)),
    h: change.moveTo ? hosts.of(change.moveTo.host) : undefined,
  };
}

/** The request, and the object that it brought. An attempt without a page of its own points at the one that has it. */
function attemptRow(change: TaskChange, earlier: EarlierPage | null): object | null {
  const { trace } = change;
  if (!trace) return null;
  const page = earlier && change.moveTo ? null : change.page;
  const own = earlier ? null : page;
  const validators = earlier && !page?.etag && !page?.lastModified ? earlier : null;
  const media = earlier ? null : change.page?.media;
  return {
    at: Math.round(trace.startedAt),
    ms: Math.round(trace.durationMs),
    hs: ifAny(trace.httpStatus),
    o: change.outcome,
    w: trace.bytes,
    b: own?.bytes,
    sh: ifAny(own?.sha256),
    ct: ifAny(cleanText(own?.contentType)),
    f: own?.archive?.offset,
    l: own?.archive?.length,
    k: ifAny(own?.archive?.sha256),
    e: ifAny(cleanText(validators ? validators.etag : page?.etag)),
    m: ifAny(cleanText(validators ? validators.last_modified : page?.lastModified)),
    rt: ifAny(cleanText(change.redirectTo)),
    ro: ifAny(page?.route),
    pg: earlier?.id,
    x: ifAny(cleanText(page?.robotsTags)),
    v: trace.via && JSON.stringify(trace.via),
    y: trace.shots && JSON.stringify(trace.shots),
    md: media?.md5,
    mk: media?.key,
    mm: ifAny(media?.member),
  };
}

/**
 * The batch is locked before its tasks, here and everywhere. It is found by its number: IS TRUE keeps the planner from
 * the index of all open batches of the job, which it takes while there are few. The same object again, in a later pass, only gets a new date.
 */
const APPLY = `
  WITH batch AS MATERIALIZED (
    SELECT id, unsettled, coordinator, host_ids FROM batches
    WHERE id = $1 AND (job_id = $2 AND state = 'open') IS TRUE FOR UPDATE
  ), archive AS (
    INSERT INTO archives (job_id, batch_id, key, bytes) SELECT $2, id, $4::text, $5::bigint FROM batch WHERE $4 IS NOT NULL
    RETURNING id
  ), pack AS (
    INSERT INTO archives (job_id, batch_id, key, bytes) SELECT $2, id, $6::text, $7::bigint FROM batch WHERE $6 IS NOT NULL
  ), held AS (
    UPDATE tasks SET state = change.s, batch_id = NULL,
      attempt_id = CASE WHEN change.at IS NULL THEN tasks.attempt_id ELSE nextval('attempt_ids') END,
      attempts = tasks.attempts + coalesce(change.n, 0), losses = CASE WHEN change.n > 0 THEN 0 ELSE tasks.losses END,
      crashes = CASE WHEN change.n > 0 THEN 0 ELSE tasks.crashes END,
      throttles = tasks.throttles + coalesce(change.r, 0), due_at = change.d,
      priority = ${nextPriority('change.p', 'tasks.priority')}, code = change.c, detail = change.t,
      at_url = coalesce(change.u, tasks.at_url), host_id = coalesce(change.h, tasks.host_id),
      home_host_id = CASE WHEN change.h IS NULL THEN tasks.home_host_id ELSE coalesce(tasks.home_host_id, tasks.host_id) END,
      hops = tasks.hops + CASE WHEN change.h IS NULL THEN 0 ELSE 1 END
    FROM json_to_recordset($3::json) AS change (id bigint, s smallint, n integer, r integer, d bigint, p integer, c text,
      t text, u text, h bigint, at bigint, ms bigint, hs integer, o text, w bigint, b bigint, sh text, ct text, f bigint,
      l bigint, k text, e text, m text, rt text, ro text, pg bigint, x text, v text, y text, md text, mk text, mm text)
    WHERE ${indexHint('change.id')} AND tasks.id = change.id AND tasks.state = ${LEASED} AND tasks.batch_id = $1
      AND (SELECT count(*) FROM batch) > 0
    RETURNING tasks.host_id, tasks.attempts, tasks.attempt_id, change.*
  ), attempt AS (
    INSERT INTO attempts (id, job_id, task_id, batch_id, started_at, duration_ms, http_status, outcome, code, wire_bytes,
      bytes, sha256, content_type, archive_id, archive_offset, archive_length, archive_sha256, etag, last_modified,
      redirect_to, route, page_id, robots_tags, via, shots, detail)
    SELECT attempt_id, $2, id, $1, at, ms, hs, o, c, w, b, decode(sh, 'hex'), ct,
      CASE WHEN f IS NOT NULL THEN (SELECT archive.id FROM archive) END, f, l, decode(k, 'hex'), e, m, rt, ro, pg, x, v, y,
      CASE WHEN o = 'failed' THEN t END
    FROM held WHERE at IS NOT NULL
  ), same AS (
    DELETE FROM media USING held
    WHERE (SELECT pass FROM passes WHERE job_id = $2) > 1 AND ${indexHint('held.id')} AND held.mk IS NOT NULL
      AND media.task_id = held.id AND media.key = held.mk AND media.member IS NOT DISTINCT FROM held.mm
  ), object AS (
    INSERT INTO media (attempt_id, job_id, task_id, md5, key, member)
    SELECT attempt_id, $2, id, decode(md, 'hex'), mk, mm FROM held WHERE mk IS NOT NULL
  ), settled AS (
    SELECT array_agg(id) AS ids, array_agg(host_id) AS hosts, array_agg(attempts) AS attempts FROM held
  )
  SELECT batch.unsettled, batch.coordinator, passes.pass, passes.collection_id,
    array_to_json(batch.host_ids) AS host_ids, array_to_json(settled.ids) AS task_ids,
    array_to_json(settled.hosts) AS task_hosts, array_to_json(settled.attempts) AS task_attempts,
    EXISTS (SELECT 1 FROM webhook_endpoints WHERE wants_work = 1 AND (job_id IS NULL OR job_id = $2)) AS wants_work
  FROM batch JOIN passes ON passes.job_id = $2 CROSS JOIN settled`;
