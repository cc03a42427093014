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
  hostIds: readonly number[];
}

/** A change that the batch had the right to make. */
export interface Applied {
  change: TaskChange;
  hostId: number;
  /** Its task was never requested before. */
  isFirst: boolean;
}

/** A report, with each of its tasks once. */
interface Part {
  settlement: Settlement;
  changes: readonly TaskChange[];
  hosts: HostNumbers;
}

interface AppliedColumns {
  pass: number;
  collection_id: number;
  /** Whether an endpoint wants to be told of pages or records. */
  wants_work: boolean;
  /** As JSON, of those that are open; the others of the tasks that they still held, in one order. */
  batches: string;
  task_ids: string | null;
  task_hosts: string | null;
  task_attempts: string | null;
}

interface AppliedParts {
  pass: number;
  collectionId: number;
  wantsWork: boolean;
  /** In the order of the reports; null where the batch is not open. */
  settled: ({ batch: OpenBatch; applied: Applied[] } | null)[];
}

/**
 * Tasks, attempts, media and the files that they are in, with one statement: what a page brings is sent and read once.
 * Null where no batch is open; of tasks that a batch does not hold any more nothing counts.
 */
export async function applyChanges(
  tx: Transaction,
  jobId: number,
  parts: readonly Part[],
  earlier: ReadonlyMap<number, EarlierPage>,
): Promise<AppliedParts | null> {
  const batchIds = parts.map(({ settlement }) => settlement.batchId);
  const rows = parts.flatMap(({ settlement: { now }, changes, hosts }, index) =>
    changes.map((change) => toRow(change, index, { now, hosts, earlier: earlier.get(change.id) ?? null })),
  );
  const files = [...filesOf(parts, 'archive'), ...filesOf(parts, 'pack')];
  const [found] = await tx.run<AppliedColumns>(APPLY, batchIds, jobId, toRows(rows), ...files);
  if (!found) return null;
  const batches = new Map(
    (JSON.parse(found.batches) as [number, number, number, number[] | null][]).map(
      ([id, unsettled, coordinator, hostIds]) => [id, { unsettled, coordinator, hostIds: hostIds ?? [] }],
    ),
  );
  const [ids, hostIds, attempts] = [found.task_ids, found.task_hosts, found.task_attempts].map(listOf);
  const places = new Map(ids!.map((id, index) => [id, index]));
  const appliedOf = (change: TaskChange): Applied[] => {
    const at = places.get(change.id);
    if (at === undefined) return [];
    return [{ change, hostId: hostIds![at]!, isFirst: change.countsAsAttempt && attempts![at] === 1 }];
  };
  return {
    pass: found.pass,
    collectionId: found.collection_id,
    wantsWork: found.wants_work,
    settled: parts.map(({ settlement, changes }) => {
      const batch = batches.get(settlement.batchId);
      return batch ? { batch, applied: changes.flatMap(appliedOf) } : null;
    }),
  };
}

const listOf = (json: string | null): number[] => (json === null ? [] : JSON.parse(json));

/** Numbers of the reports that bring a file, its keys and bytes. */
function filesOf(parts: readonly Part[], kind: 'archive' | 'pack'): [number[], string[], number[]] {
  const files = parts.flatMap(({ settlement: { [kind]: file } }, index) =>
    file ? [{ ...file, part: index + 1 }] : [],
  );
  return [files.map(({ part }) => part), files.map(({ key }) => key), files.map(({ bytes }) => bytes)];
}

export function stateOf(change: TaskChange, now: number): number {
  if (change.to !== 'pending') return STATE_NUMBERS[change.to];
  return change.dueAt !== null && change.dueAt > now ? WAITING : READY;
}

/** What is not there is left out: the server reads every letter. */
const ifAny = <T>(value: T | null | undefined): T | undefined => value ?? undefined;

/**
 * The task, the request, and the object that it brought. An attempt without a page of its own points at the one that has it.
 * One literal, because objects that are put together from parts are slower to make.
 */
function toRow(
  change: TaskChange,
  index: number,
  { now, hosts, earlier }: { now: number; hosts: HostNumbers; earlier: EarlierPage | null },
): object {
  const { trace } = change;
  const page = trace === null || (earlier && change.moveTo) ? null : change.page;
  const own = earlier ? null : page;
  const validators = trace && earlier && !page?.etag && !page?.lastModified ? earlier : null;
  const media = own?.media;
  return {
    id: change.id,
    // The first report is the only one most of the time.
    g: index === 0 ? undefined : index + 1,
    s: stateOf(change, now),
    n: change.countsAsAttempt ? 1 : undefined,
    r: change.throttled ? 1 : undefined,
    d: ifAny(change.dueAt),
    p: priorityStepOf(change) || undefined,
    c: ifAny(change.code),
    t: ifAny(cleanText(change.detail)),
    u: ifAny(cleanText(change.moveTo?.url)),
    h: change.moveTo ? hosts.of(change.moveTo.host) : undefined,
    at: trace ? Math.round(trace.startedAt) : undefined,
    ms: trace ? Math.round(trace.durationMs) : undefined,
    hs: ifAny(trace?.httpStatus),
    o: trace ? change.outcome : undefined,
    w: trace?.bytes,
    b: own?.bytes,
    sh: ifAny(own?.sha256),
    ct: ifAny(cleanText(own?.contentType)),
    f: own?.archive?.offset,
    l: own?.archive?.length,
    k: ifAny(own?.archive?.sha256),
    e: ifAny(cleanText(validators ? validators.etag : page?.etag)),
    m: ifAny(cleanText(validators ? validators.last_modified : page?.lastModified)),
    rt: trace ? ifAny(cleanText(change.redirectTo)) : undefined,
    ro: ifAny(page?.route),
    pg: trace ? earlier?.id : undefined,
    x: ifAny(cleanText(page?.robotsTags)),
    v: trace?.via && JSON.stringify(trace.via),
    y: trace?.shots && JSON.stringify(trace.shots),
    md: media?.md5,
    mk: media?.key,
    mm: ifAny(media?.member),
  };
}

/** Number of the batch of a row. */
const BATCH_OF = (row: string) => `($1::bigint[])[coalesce(${row}.g, 1)]`;

const INSERT_FILES = (parts: string, keys: string, bytes: string) => `
    INSERT INTO archives (job_id, batch_id, key, bytes) SELECT $2, batch.id, file.key, file.bytes
    FROM unnest(${parts}::integer[], ${keys}::text[], ${bytes}::bigint[]) AS file (g, key, bytes)
      JOIN batch ON batch.id = ${BATCH_OF('file')}`;

/**
 * Batches are locked before their tasks, here and everywhere, and in one order. They are found by their numbers: IS TRUE keeps
 * the planner from the index of all open batches of the job, which it takes while there are few. The same object again, in a
 * later pass, only gets a new date.
 */
const APPLY = `
  WITH batch AS MATERIALIZED (
    SELECT id, unsettled, coordinator, host_ids FROM batches
    WHERE id = ANY($1::bigint[]) AND (job_id = $2 AND state = 'open') IS TRUE ORDER BY id FOR UPDATE
  ), archive AS (
    ${INSERT_FILES('$4', '$5', '$6')} RETURNING id, batch_id
  ), pack AS (
    ${INSERT_FILES('$7', '$8', '$9')}
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
    FROM json_to_recordset($3::json) AS change (id bigint, g integer, s smallint, n integer, r integer, d bigint,
      p integer, c text, t text, u text, h bigint, at bigint, ms bigint, hs integer, o text, w bigint, b bigint, sh text,
      ct text, f bigint, l bigint, k text, e text, m text, rt text, ro text, pg bigint, x text, v text, y text, md text,
      mk text, mm text)
    WHERE ${indexHint('change.id')} AND tasks.id = change.id AND tasks.state = ${LEASED}
      AND tasks.batch_id = ${BATCH_OF('change')} AND tasks.batch_id IN (SELECT id FROM batch)
    RETURNING tasks.host_id, tasks.attempts, tasks.attempt_id, ${BATCH_OF('change')} AS batch, change.*
  ), attempt AS (
    INSERT INTO attempts (id, job_id, task_id, batch_id, started_at, duration_ms, http_status, outcome, code, wire_bytes,
      bytes, sha256, content_type, archive_id, archive_offset, archive_length, archive_sha256, etag, last_modified,
      redirect_to, route, page_id, robots_tags, via, shots, detail)
    SELECT attempt_id, $2, id, batch, at, ms, hs, o, c, w, b, decode(sh, 'hex'), ct,
      CASE WHEN f IS NOT NULL THEN (SELECT archive.id FROM archive WHERE archive.batch_id = held.batch) END, f, l,
      decode(k, 'hex'), e, m, rt, ro, pg, x, v, y, CASE WHEN o = 'failed' THEN t END
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
  ), open AS (
    SELECT json_agg(json_build_array(id, unsettled, coordinator, host_ids)) AS batches FROM batch
  )
  SELECT passes.pass, passes.collection_id, open.batches, array_to_json(settled.ids) AS task_ids,
    array_to_json(settled.hosts) AS task_hosts, array_to_json(settled.attempts) AS task_attempts,
    EXISTS (SELECT 1 FROM webhook_endpoints WHERE wants_work = 1 AND (job_id IS NULL OR job_id = $2)) AS wants_work
  FROM passes CROSS JOIN settled CROSS JOIN open WHERE passes.job_id = $2 AND open.batches IS NOT NULL`;
