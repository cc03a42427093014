import type { LeasedBatch, LeaseRequest } from '../../../ports/store.ts';
import { type ReadyColumns, toLeased } from '../../shared/leased-rows.ts';
import { LEASED, READY } from '../../shared/states.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { CounterUpdates, indexHint, readPass } from '../connection/rows.ts';
import { ALIVE } from './coordinator-heartbeats.ts';

type Grant = LeaseRequest['batches'][number]['grants'][number];

/** Lends tasks of hosts that are free for this coordinator, and takes the hosts with them. */
export async function leaseInTransaction(
  tx: Transaction,
  jobId: number,
  request: LeaseRequest,
  coordinator: number,
): Promise<LeasedBatch[]> {
  const grants = request.batches.flatMap((batch) => batch.grants);
  if (grants.length === 0) return request.batches.map(() => ({ id: 0, tasks: [] }));
  const counts = new Map<number, number>();
  for (const { hostId, count } of grants) counts.set(hostId, (counts.get(hostId) ?? 0) + count);
  const [{ pass }, hosts, ids] = await pipelined<[{ pass: number }, HostRow[], { id: number }[]]>(
    readPass(tx, jobId),
    tx.run<HostRow>(LOCK_HOSTS, [...counts.keys()], coordinator),
    tx.run<{ id: number }>(NEXT_IDS, request.batches.length),
  );
  const nextAts = new Map(hosts.filter(({ free }) => free).map(({ id, next_at: nextAt }) => [id, nextAt]));
  const isFree = ({ hostId, startAt }: Grant) =>
    nextAts.has(hostId) && (startAt === undefined || nextAts.get(hostId)! <= startAt);
  const wanted = [...counts.keys()].filter((hostId) => nextAts.has(hostId));
  const rows = await tx.run<HostedColumns>(
    pass > 1 ? SELECT_READY_AGAIN : SELECT_READY,
    jobId,
    wanted,
    wanted.map((hostId) => counts.get(hostId)),
  );
  const ready = new Map<number, HostedColumns[]>();
  for (const row of rows) {
    const others = ready.get(row.host_id);
    if (others) others.push(row);
    else ready.set(row.host_id, [row]);
  }
  const filled = request.batches.map((planned, index): FilledBatch => {
    const free = planned.grants.filter(isFree);
    const taken = withAlong(fillBatch(free, ready), free);
    return { id: ids[index]!.id, leaseUntil: request.now + planned.leaseMs, ...taken };
  });
  await writeLeases(tx, jobId, request, filled, coordinator);
  return filled.map(({ id, tasks, piggybacked }) => ({
    id,
    tasks: tasks.map((task) => toLeased(task, task.host_id)),
    ...(piggybacked.length > 0 ? { piggybacked: piggybacked } : {}),
  }));
}

interface FilledBatch {
  id: number;
  leaseUntil: number;
  tasks: HostedColumns[];
  /** Those of which tasks were taken, or that were taken piggybacked. */
  used: Grant[];
  piggybacked: number[];
}

/** Takes what the grants allow, from the front of each host's ready tasks. */
function fillBatch(grants: readonly Grant[], ready: Map<number, HostedColumns[]>) {
  const tasks: HostedColumns[] = [];
  const used: Grant[] = [];
  for (const grant of grants) {
    const waiting = ready.get(grant.hostId) ?? [];
    let taken = 0;
    for (; taken < grant.count && waiting.length > 0; taken++) {
      // A task whose worker died runs alone, so that no other task is blamed or lost with it.
      const isAlone = waiting[0]!.losses > 0;
      if (isAlone && tasks.length > 0) break;
      tasks.push(waiting.shift()!);
      if (isAlone) return { tasks, used: [grant] };
    }
    if (taken > 0) used.push(grant);
  }
  return { tasks, used };
}

/** Hosts of which no task is wanted go with the tasks of the others. */
function withAlong({ tasks, used }: Pick<FilledBatch, 'tasks' | 'used'>, grants: readonly Grant[]) {
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
  const work: Promise<unknown>[] = [];
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
    const taskIds = tasks.map((task) => task.id);
    const hostIds = [...new Set(used.map(({ hostId }) => hostId))];
    work.push(
      tx.run(INSERT_BATCH, id, jobId, coordinator, tasks.length, taskIds, hostIds, request.now, leaseUntil),
    );
  }
  counterUpdates.count('pending', -held.length);
  counterUpdates.count('leased', held.length);
  const hostIds = [...nextAts.keys()];
  for (const hostId of hostIds) counterUpdates.reschedule(hostId);
  work.push(
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
    counterUpdates.write(tx, jobId),
  );
  tx.finally(pipelined(...work));
}

interface HostedColumns extends ReadyColumns {
  host_id: number;
}

interface HostRow {
  id: number;
  next_at: number;
  free: boolean;
}

/** A host is free when no coordinator has batches out for it, or only this one, or one that is gone. */
const LOCK_HOSTS = `
  SELECT id, next_at, holds = 0 OR holder = $2 OR NOT ${ALIVE('hosts.holder')} AS free
  FROM hosts WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`;

const NEXT_IDS = "SELECT nextval('batch_ids') AS id FROM generate_series(1, $1::integer)";

const READY_OF_HOST = `
  WHERE tasks.job_id = $1 AND tasks.host_id = granted.host_id AND tasks.state = ${READY}
  ORDER BY tasks.priority DESC, tasks.id LIMIT granted.count FOR UPDATE OF tasks SKIP LOCKED`;

/** Nothing was visited before the first pass: its leases need not look. */
const SELECT_READY = `
  SELECT task.* FROM unnest($2::bigint[], $3::bigint[]) AS granted (host_id, count) CROSS JOIN LATERAL (
    SELECT id, host_id, url, at_url, depth, route, attempts, hops, losses, meta, referrer, priority FROM tasks ${READY_OF_HOST}
  ) AS task`;

/** A page that could not be read is not compared with: it must be tried again even if it is the same. */
const SELECT_READY_AGAIN = `
  SELECT task.* FROM unnest($2::bigint[], $3::bigint[]) AS granted (host_id, count) CROSS JOIN LATERAL (
    SELECT tasks.id, tasks.host_id, tasks.url, tasks.at_url, tasks.depth, tasks.route, tasks.attempts, tasks.hops,
      tasks.losses, tasks.meta, tasks.referrer, pages.sha256, attempts.etag, attempts.last_modified, pages.at_url AS page_at_url
    FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id
      LEFT JOIN attempts AS pages
        ON pages.id = coalesce(attempts.page_id, attempts.id) AND pages.outcome IN ('fetched', 'unchanged')
    ${READY_OF_HOST}
  ) AS task`;

const INSERT_BATCH = `
  INSERT INTO batches (id, job_id, coordinator, state, size, unsettled, task_ids, host_ids, leased_at, lease_until)
  VALUES ($1, $2, $3, 'open', $4, $4, $5, $6, $7, $8)`;

const LEND_TASKS = `
  UPDATE tasks SET state = ${LEASED}, batch_id = lent.batch
  FROM unnest($1::bigint[], $2::bigint[]) AS lent (id, batch) WHERE ${indexHint('lent.id')} AND tasks.id = lent.id`;

const HOLD_HOSTS = `
  UPDATE hosts SET next_at = lent.next_at, holder = $4,
    holds = CASE WHEN hosts.holder = $4 THEN hosts.holds ELSE 0 END + lent.holds
  FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) AS lent (id, next_at, holds)
  WHERE ${indexHint('lent.id')} AND hosts.id = lent.id`;
