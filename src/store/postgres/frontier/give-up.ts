import type { FailureCode } from '../../../core/failures.ts';
import { ALL_HOSTS, emptyRollup, lostTasks } from '../../../core/rollups/rollup.ts';
import { LOSSES_MAX, nextSuspicion, type Suspicion } from '../../../core/suspicion/suspicion.ts';
import type { Frontier, ReleaseOptions } from '../../../ports/store.ts';
import { LEASED, READY, STATE_NUMBERS, WAITING } from '../../shared/states.ts';
import { LOST } from '../../shared/views/tasks.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import { TAKE_ATTEMPT_NUMBERS } from '../connection/attempt-numbers.ts';
import type { Transaction } from '../connection/database.ts';
import { CounterUpdates, cleanText, indexHint } from '../connection/rows.ts';
import { appendHostLogs } from '../host-log.ts';
import { addRollups } from '../rollup-store.ts';
import { POSTGRES_OUTBOX, writeOutbox } from '../webhooks.ts';
import { ALIVE } from './coordinator-heartbeats.ts';

/** Takes a batch back: its tasks are ready again, unless they have killed workers too often. */
export async function releaseInTransaction(
  tx: Transaction,
  batchId: number,
  options: ReleaseOptions,
  coordinator: number,
): ReturnType<Frontier['release']> {
  const [batch] = await tx.run<{ job_id: number; others: boolean }>(LOCK_BATCH, batchId, coordinator);
  if (!batch) return { returned: 0, dead: 0 };
  // Of several that see a batch of one that is gone, the first has taken it over.
  if (batch.others) return { returned: 0, dead: 0, isOthers: true };
  const reason = cleanText(options.reason);
  const held = await tx.run<Suspicion & { id: number; host_id: number }>(SELECT_HELD, batchId);
  const next = held.map((row) => nextSuspicion(row, options.blame, row.id));
  if (held.length > 0)
    await tx.run(
      RETURN_TASKS,
      held.map(({ id }) => id),
      next.map(({ losses }) => losses),
      next.map(({ crashes }) => crashes),
      'worker-lost' satisfies FailureCode,
      reason,
    );
  if (held.length > 0) {
    tx.finally(tx.run(TAKE_ATTEMPT_NUMBERS));
    tx.finally(
      tx.run(
        LOG_LOST,
        batchId,
        held.map(({ id }) => id),
        options.now,
      ),
    );
  }
  const counterUpdates = new CounterUpdates();
  let returned = 0;
  for (const [index, { host_id: hostId }] of held.entries()) {
    if (next[index]!.losses >= LOSSES_MAX) continue;
    counterUpdates.queue(hostId, 1);
    returned++;
  }
  const dead = held.length - returned;
  counterUpdates.tally('dead', 'worker-lost', dead);
  counterUpdates.count('leased', -returned - dead);
  counterUpdates.count('pending', returned);
  counterUpdates.count('dead', dead);
  counterUpdates.count('batches', 1);
  await tx.run(RELEASE_HOSTS, batchId);
  await freeHosts(tx, batchId, options.hosts ?? [], counterUpdates);
  await appendHostLogs(tx, options.logs ?? []);
  await tx.run(CLOSE_BATCH, batchId, options.now, reason);
  const rollup = lostTasks(held.length, dead);
  tx.finally(counterUpdates.write(tx, batch.job_id));
  tx.finally(addRollups(tx, batch.job_id, [{ host: ALL_HOSTS, at: options.now, rollup }]));
  const deadIds = held.filter((_, index) => next[index]!.losses >= LOSSES_MAX).map(({ id }) => id);
  if (dead > 0) await tellDead(tx, batch.job_id, deadIds, options.now);
  return { returned, dead };
}

/** Gives back the time of hosts that the batch cannot use any more. */
async function freeHosts(
  tx: Transaction,
  batchId: number,
  hosts: NonNullable<ReleaseOptions['hosts']>,
  counterUpdates: CounterUpdates,
): Promise<void> {
  if (hosts.length === 0) return;
  const freed = await tx.run<{ id: number; nextAt: number; takenUntil: number }>(
    FREE_HOSTS,
    hosts.map(({ host }) => host),
    hosts.map(({ nextAt }) => nextAt),
    hosts.map(({ takenUntil }) => Math.ceil(takenUntil)),
    batchId,
  );
  for (const { id, ...times } of freed) counterUpdates.free(id, times);
}

/** Makes tasks of a host dead letters, those that wait for later last, at most `limit`; returns how many. */
export async function failTasksOfHostInTransaction(
  tx: Transaction,
  jobId: number,
  hostId: number,
  options: { code: FailureCode; detail: string; now: number; limit: number },
): Promise<number> {
  const { code, detail, limit } = options;
  const reason = [code, cleanText(detail)];
  const readyTasks = await tx.run<{ id: number }>(FAIL_READY, jobId, hostId, limit, ...reason);
  const ready = readyTasks.length;
  const waitingTasks = await tx.run<{ id: number }>(FAIL_WAITING, jobId, hostId, limit - ready, ...reason);
  const waiting = waitingTasks.length;
  const counterUpdates = new CounterUpdates();
  counterUpdates.count('pending', -ready - waiting);
  counterUpdates.count('dead', ready + waiting);
  counterUpdates.queue(hostId, -ready);
  counterUpdates.tally('dead', code, ready + waiting);
  const rollup = { ...emptyRollup(), failed: ready + waiting };
  tx.finally(counterUpdates.write(tx, jobId));
  tx.finally(addRollups(tx, jobId, [{ host: ALL_HOSTS, at: options.now, rollup }]));
  const deadIds = [...readyTasks, ...waitingTasks].map(({ id }) => id);
  if (deadIds.length > 0) await tellDead(tx, jobId, deadIds, options.now);
  return ready + waiting;
}

async function tellDead(
  tx: Transaction,
  jobId: number,
  taskIds: readonly number[],
  now: number,
): Promise<void> {
  const [pass] = await tx.run<{ pass: number }>('SELECT pass FROM passes WHERE job_id = $1', jobId);
  const news = { jobId, pass: pass?.pass ?? 1, taskIds, records: [], now };
  await writeOutbox(tx, tellWork(POSTGRES_OUTBOX, news));
}

/** What was sent of a lost batch is not known, so all of it is logged. The task keeps its last real attempt. */
const LOG_LOST = `
  INSERT INTO attempts (id, job_id, task_id, batch_id, started_at, duration_ms, outcome, code, wire_bytes)
  SELECT nextval('attempt_ids'), job_id, task_id, id, leased_at, greatest(0, $3::bigint - leased_at), '${LOST}',
    '${'worker-lost' satisfies FailureCode}', 0
  FROM batches, unnest($2::bigint[]) AS lost (task_id) WHERE id = $1`;

const LOCK_BATCH = `
  SELECT job_id, coordinator IS DISTINCT FROM $2::bigint AND ${ALIVE('batches.coordinator')} AS others FROM batches
  WHERE id = $1 AND state = 'open' FOR UPDATE`;

const SELECT_HELD = `
  SELECT id, host_id, losses, crashes FROM tasks
  WHERE id = ANY((SELECT task_ids FROM batches WHERE batches.id = $1)::bigint[]) AND state = ${LEASED} AND batch_id = $1
  ORDER BY id FOR UPDATE`;

const RETURN_TASKS = `
  UPDATE tasks SET batch_id = NULL, losses = back.losses, crashes = back.crashes,
    state = CASE WHEN back.losses < ${LOSSES_MAX} THEN ${READY} ELSE ${STATE_NUMBERS.dead} END,
    code = CASE WHEN back.losses < ${LOSSES_MAX} THEN code ELSE $4 END,
    detail = CASE WHEN back.losses < ${LOSSES_MAX} THEN detail ELSE $5 END
  FROM unnest($1::bigint[], $2::smallint[], $3::smallint[]) AS back (id, losses, crashes)
  WHERE ${indexHint('back.id')} AND tasks.id = back.id`;

const RELEASE_HOSTS = `
  WITH locked AS MATERIALIZED (
    SELECT hosts.id FROM hosts
    WHERE hosts.id = ANY((SELECT host_ids FROM batches WHERE batches.id = $1)::bigint[])
      AND hosts.holder = (SELECT coordinator FROM batches WHERE batches.id = $1)
    ORDER BY hosts.id FOR UPDATE
  )
  UPDATE hosts SET holds = greatest(holds - 1, 0) WHERE id = ANY(ARRAY(SELECT id FROM locked))`;

const FREE_HOSTS = `
  UPDATE hosts SET next_at = CASE WHEN hosts.next_at <= freed.until THEN freed.next_at
    ELSE greatest(freed.next_at, hosts.next_at) END
  FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS freed (host, next_at, until)
  WHERE hosts.host = freed.host
    AND (hosts.holds = 0 OR hosts.holder = (SELECT coordinator FROM batches WHERE batches.id = $4))
  RETURNING hosts.id, freed.next_at AS "nextAt", freed.until AS "takenUntil"`;

const CLOSE_BATCH = `
  UPDATE batches SET state = 'lost', closed_at = $2, note = $3, task_ids = NULL WHERE id = $1`;

const FAIL_TASKS = (chosen: string) => `
  WITH chosen AS MATERIALIZED (
    SELECT id FROM tasks WHERE job_id = $1 AND host_id = $2 AND ${chosen} LIMIT $3 FOR UPDATE SKIP LOCKED
  )
  UPDATE tasks SET state = ${STATE_NUMBERS.dead}, code = $4, detail = $5
  WHERE id = ANY(ARRAY(SELECT id FROM chosen)) RETURNING id`;

const FAIL_READY = FAIL_TASKS(`state = ${READY} ORDER BY priority DESC, id`);
const FAIL_WAITING = FAIL_TASKS(`state = ${WAITING} ORDER BY id`);
