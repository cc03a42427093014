import { SUSPECT_LOSSES, suspectsTogether } from '../../../core/suspicion/suspicion.ts';
import type { HostHealth, LeasedBatch, LeaseRequest } from '../../../ports/store.ts';
import { type ReadyColumns, toLeased } from '../../shared/leased-rows.ts';
import { LEASED, READY } from '../../shared/states.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { CounterUpdates, indexHint, readPass, toRows } from '../connection/rows.ts';
import { ALIVE, SEVERAL_JOBS } from './coordinator-heartbeats.ts';

type Grant = LeaseRequest['batches'][number]['grants'][number];

/** Lends tasks of hosts that are free for this coordinator, and takes the hosts with them. */
export async function leaseInTransaction(
  tx: Transaction,
  jobId: number,
  request: LeaseRequest,
  coordinator: number,
): Promise<LeasedBatch[]> {
  const grants = request.batches.flatMap((batch) => batch.grants);
  if (grants.length === 0) return request.batches.map(() => ({ id: 0, tasks: [], hosts: [] }));
  const counts = new Map<number, number>();
  for (const { hostId, count } of grants) counts.set(hostId, (counts.get(hostId) ?? 0) + count);
  const [{ pass }, hosts, ids] = await pipelined<[{ pass: number }, HostRow[], { id: number }[]]>(
    readPass(tx, jobId),
    tx.run<HostRow>(LOCK_HOSTS, [...counts.keys()], coordinator),
    tx.run<{ id: number }>(NEXT_IDS, request.batches.length),
  );
  const health = new Map(hosts.map((host) => [host.id, healthOf(host)]));
  const nextAts = new Map(hosts.map(({ id, next_at: nextAt }) => [id, nextAt]));
  const isFree = ({ hostId, startAt }: Grant) =>
    nextAts.has(hostId) && (startAt === undefined || nextAts.get(hostId)! <= startAt);
  const wanted = [...counts.keys()].filter((hostId) => nextAts.has(hostId));
  const select = async (hostIds: number[], suspects: boolean) =>
    byHost(
      await tx.run<HostedColumns>(
        selectOf(pass, suspects),
        jobId,
        hostIds,
        hostIds.map((hostId) => counts.get(hostId)),
      ),
    );
  const ready = await select(wanted, false);
  const bare = wanted.filter((hostId) => counts.get(hostId)! > 0 && !ready.has(hostId));
  const suspects = bare.length === 0 ? new Map<number, HostedColumns[]>() : await select(bare, true);
  const all = await fillBatches(
    tx,
    request,
    ids.map(({ id }) => id),
    { isFree, ready, suspects },
  );
  await writeLeases(tx, jobId, request, all, coordinator);
  return all.map(({ id, tasks, piggybacked, suspectsOf, waiting }) => ({
    id,
    tasks: tasks.map((task) => toLeased(task, task.host_id)),
    ...(piggybacked.length > 0 ? { piggybacked: piggybacked } : {}),
    ...(suspectsOf === undefined ? {} : { suspectsOf }),
    ...(waiting ? { waiting } : {}),
    hosts: [...new Set([...tasks.map((task) => task.host_id), ...piggybacked])].map(
      (hostId) => health.get(hostId)!,
    ),
  }));
}

interface ReadyTasks {
  isFree(grant: Grant): boolean;
  ready: Map<number, HostedColumns[]>;
  suspects: Map<number, HostedColumns[]>;
}

/** The batches as they were planned, and behind them those of suspects, which run apart. */
async function fillBatches(
  tx: Transaction,
  request: LeaseRequest,
  ids: readonly number[],
  { isFree, ready, suspects }: ReadyTasks,
): Promise<FilledBatch[]> {
  const filled: FilledBatch[] = [];
  const apart: FilledBatch[] = [];
  const most = request.suspectBatchesMax ?? Number.POSITIVE_INFINITY;
  for (const [index, planned] of request.batches.entries()) {
    const free = planned.grants.filter(isFree);
    const leaseUntil = request.now + planned.leaseMs;
    const taken = withPiggybacked(fillBatch(free, ready), free);
    const batch: FilledBatch = { id: ids[index]!, leaseUntil, ...taken };
    filled.push(batch);
    const left = free.filter(({ hostId }) => (suspects.get(hostId)?.length ?? 0) > 0);
    if (left.length === 0) continue;
    if (apart.length >= most) {
      batch.waiting = left.map(({ hostId }) => hostId);
      continue;
    }
    const group = fillSuspects(left, suspects);
    const [next] = await tx.run<{ id: number }>(NEXT_IDS, 1);
    const whole = batch.tasks.length > 0 ? { ...group, piggybacked: [] } : withPiggybacked(group, free);
    apart.push({ id: next!.id, leaseUntil, suspectsOf: index, ...whole });
  }
  return [...filled, ...apart];
}

function healthOf({
  id,
  crawl_delay_ms: crawlDelayMs,
  failures_in_row: failuresInRow,
  rests,
  pace,
  ban,
  reached_at: reachedAt,
}: HostRow): HostHealth {
  return {
    ...{ id, crawlDelayMs, failuresInRow, rests, reachedAt },
    pace: pace === null ? null : JSON.parse(pace),
    ban: ban === null ? null : JSON.parse(ban),
  };
}

interface FilledBatch {
  id: number;
  leaseUntil: number;
  tasks: HostedColumns[];
  /** Those of which tasks were taken, or that were taken piggybacked. */
  used: Grant[];
  piggybacked: number[];
  suspectsOf?: number;
  waiting?: number[];
}

function byHost(rows: readonly HostedColumns[]): Map<number, HostedColumns[]> {
  const hosts = new Map<number, HostedColumns[]>();
  for (const row of rows) {
    const others = hosts.get(row.host_id);
    if (others) others.push(row);
    else hosts.set(row.host_id, [row]);
  }
  return hosts;
}

/** Takes what the grants allow, from the front of each host's ready tasks. */
function fillBatch(grants: readonly Grant[], ready: Map<number, HostedColumns[]>) {
  const tasks: HostedColumns[] = [];
  const used: Grant[] = [];
  for (const grant of grants) {
    const taken = ready.get(grant.hostId)?.splice(0, grant.count) ?? [];
    tasks.push(...taken);
    if (taken.length > 0) used.push(grant);
  }
  return { tasks, used };
}

/** The same of suspects, as many as may be together. */
function fillSuspects(grants: readonly Grant[], suspects: Map<number, HostedColumns[]>) {
  const tasks: HostedColumns[] = [];
  const used: Grant[] = [];
  for (const grant of grants) {
    const waiting = suspects.get(grant.hostId)!;
    const wanted = [...tasks, ...waiting.slice(0, grant.count)];
    const taken = Math.max(0, suspectsTogether(wanted, wanted.length) - tasks.length);
    tasks.push(...waiting.splice(0, taken));
    if (taken > 0) used.push(grant);
  }
  return { tasks, used };
}

/** Hosts of which no task is wanted go with the tasks of the others. */
function withPiggybacked({ tasks, used }: Pick<FilledBatch, 'tasks' | 'used'>, grants: readonly Grant[]) {
  const extra = tasks.length === 0 ? [] : grants.filter(({ count }) => count === 0);
  return { tasks, used: [...used, ...extra], piggybacked: extra.map(({ hostId }) => hostId) };
}

async function writeLeases(
  tx: Transaction,
  jobId: number,
  request: LeaseRequest,
  filled: readonly FilledBatch[],
  coordinator: number,
): Promise<void> {
  const batches = filled.filter(({ tasks }) => tasks.length > 0);
  if (batches.length === 0) return;
  const counterUpdates = new CounterUpdates();
  const nextAts = new Map<number, number>();
  const holds = new Map<number, number>();
  const rows: object[] = [];
  const held: { id: number; batch: number }[] = [];
  for (const { id, tasks, used, leaseUntil } of batches) {
    for (const { hostId, nextAt } of used) {
      nextAts.set(hostId, nextAt);
      holds.set(hostId, (holds.get(hostId) ?? 0) + 1);
    }
    for (const task of tasks) {
      counterUpdates.queue(task.host_id, -1);
      held.push({ id: task.id, batch: id });
    }
    rows.push({
      id,
      size: tasks.length,
      tasks: tasks.map((task) => task.id),
      hosts: [...new Set(used.map(({ hostId }) => hostId))],
      until: leaseUntil,
    });
  }
  counterUpdates.count('pending', -held.length);
  counterUpdates.count('leased', held.length);
  const hostIds = [...nextAts.keys()];
  for (const hostId of hostIds) counterUpdates.reschedule(hostId);
  const work = pipelined(
    tx.run(INSERT_BATCHES, jobId, coordinator, request.now, toRows(rows)),
    tx.run(
      LEND_TASKS,
      held.map(({ id }) => id),
      held.map(({ batch }) => batch),
    ),
    tx.run(
      HOLD_HOSTS,
      hostIds,
      [...nextAts.values()],
      hostIds.map((id) => holds.get(id)),
      coordinator,
    ),
    tx.run(NOTE_TURNS, jobId, hostIds, request.now),
    counterUpdates.write(tx, jobId),
  );
  tx.finally(work);
}

interface HostedColumns extends ReadyColumns {
  host_id: number;
}

interface HostRow {
  id: number;
  next_at: number;
  crawl_delay_ms: number | null;
  failures_in_row: number;
  rests: number;
  /** As JSON. */
  pace: string | null;
  ban: string | null;
  reached_at: number | null;
}

/**
 * A host is free when no coordinator has batches out for it, or only this one, or one that is gone. The others are not
 * locked: whoever has them settles meanwhile.
 */
const LOCK_HOSTS = `
  SELECT id, next_at, crawl_delay_ms, failures_in_row, rests, pace, ban, reached_at FROM hosts
  WHERE id = ANY($1::bigint[]) AND (holds = 0 OR holder = $2 OR NOT ${ALIVE('hosts.holder')}) ORDER BY id FOR UPDATE`;

const NEXT_IDS = "SELECT nextval('batch_ids') AS id FROM generate_series(1, $1::integer)";

/** Nothing was visited before the first pass: its leases need not look. */
function selectOf(pass: number, suspects: boolean): string {
  const losses = suspects ? `tasks.losses >= ${SUSPECT_LOSSES}` : `tasks.losses < ${SUSPECT_LOSSES}`;
  return `
  SELECT task.* FROM unnest($2::bigint[], $3::bigint[]) AS granted (host_id, count) CROSS JOIN LATERAL (
    ${pass > 1 ? SELECT_READY_AGAIN : SELECT_READY}
    WHERE tasks.job_id = $1 AND tasks.host_id = granted.host_id AND tasks.state = ${READY} AND ${losses}
    ORDER BY tasks.priority DESC, tasks.id LIMIT granted.count FOR UPDATE OF tasks SKIP LOCKED
  ) AS task`;
}

const SELECT_READY = `
    SELECT id, host_id, url, at_url, depth, route, attempts, hops, losses, throttles, meta, referrer, priority FROM tasks`;

/** A page that could not be read is not compared with: it must be tried again even if it is the same. */
const SELECT_READY_AGAIN = `
    SELECT tasks.id, tasks.host_id, tasks.url, tasks.at_url, tasks.depth, tasks.route, tasks.attempts, tasks.hops,
      tasks.losses, tasks.throttles, tasks.meta, tasks.referrer, pages.sha256, attempts.etag, attempts.last_modified, pages.at_url AS page_at_url,
      CASE WHEN pages.archive_id IS NOT NULL THEN pages.started_at END AS archived_at, pages.archive_sha256
    FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id
      LEFT JOIN attempts AS pages
        ON pages.id = coalesce(attempts.page_id, attempts.id) AND pages.outcome IN ('fetched', 'unchanged')`;

const INSERT_BATCHES = `
  INSERT INTO batches (id, job_id, coordinator, state, size, unsettled, task_ids, host_ids, leased_at, lease_until)
  SELECT id, $1, $2, 'open', size, size, tasks, hosts, $3, until
  FROM json_to_recordset($4::json) AS batch (id bigint, size integer, tasks bigint[], hosts bigint[], until bigint)`;

const LEND_TASKS = `
  UPDATE tasks SET state = ${LEASED}, batch_id = lent.batch
  FROM unnest($1::bigint[], $2::bigint[]) AS lent (id, batch) WHERE ${indexHint('lent.id')} AND tasks.id = lent.id`;

const HOLD_HOSTS = `
  UPDATE hosts SET next_at = lent.next_at, holder = $4,
    holds = CASE WHEN hosts.holder = $4 THEN hosts.holds ELSE 0 END + lent.holds
  FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS lent (id, next_at, holds)
  WHERE ${indexHint('lent.id')} AND hosts.id = lent.id`;

/** Only where others could have their turn. */
const NOTE_TURNS = `
  UPDATE queues SET served_at = $3 WHERE job_id = $1 AND host_id = ANY($2::bigint[]) AND ${SEVERAL_JOBS}`;
