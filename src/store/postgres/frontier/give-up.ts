import type { FailureCode } from '../../../core/failures.ts';
import { LIMITS } from '../../../core/limits.ts';
import { LEASED, READY, STATE_NUMBERS, WAITING } from '../../shared/states.ts';
import type { Transaction } from '../connection/database.ts';
import { CounterUpdates, cleanText } from '../connection/rows.ts';

/** Takes a batch back: its tasks are ready again, unless they have killed workers too often. */
export async function releaseInTransaction(
  tx: Transaction,
  batchId: number,
  options: { now: number; suspect: boolean; reason: string },
): Promise<{ returned: number; dead: number }> {
  const [batch] = await tx.run<{ job_id: number }>(LOCK_BATCH, batchId);
  if (!batch) return { returned: 0, dead: 0 };
  const reason = cleanText(options.reason);
  const rows = await tx.run<{ host_id: number; state: number; count: number }>(
    RETURN_TASKS,
    batchId,
    options.suspect ? 1 : 0,
    'worker-lost' satisfies FailureCode,
    reason,
  );
  const counterUpdates = new CounterUpdates();
  let returned = 0;
  let dead = 0;
  for (const { host_id: hostId, state, count } of rows) {
    if (state === READY) {
      counterUpdates.queue(hostId, count);
      returned += count;
    } else dead += count;
  }
  counterUpdates.tally('dead', 'worker-lost', dead);
  counterUpdates.count('leased', -returned - dead);
  counterUpdates.count('pending', returned);
  counterUpdates.count('dead', dead);
  counterUpdates.count('batches', 1);
  await tx.run(RELEASE_HOSTS, batchId);
  await tx.run(CLOSE_BATCH, batchId, options.now, reason);
  tx.finally(counterUpdates.write(tx, batch.job_id));
  return { returned, dead };
}

/** Makes tasks of a host dead letters, those that wait for later last, at most `limit`; returns how many. */
export async function failTasksOfHostInTransaction(
  tx: Transaction,
  jobId: number,
  hostId: number,
  options: { code: FailureCode; detail: string; limit: number },
): Promise<number> {
  const { code, detail, limit } = options;
  const reason = [code, cleanText(detail)];
  const ready = (await tx.run(FAIL_READY, jobId, hostId, limit, ...reason)).length;
  const waiting = (await tx.run(FAIL_WAITING, jobId, hostId, limit - ready, ...reason)).length;
  const counterUpdates = new CounterUpdates();
  counterUpdates.count('pending', -ready - waiting);
  counterUpdates.count('dead', ready + waiting);
  counterUpdates.queue(hostId, -ready);
  counterUpdates.tally('dead', code, ready + waiting);
  tx.finally(counterUpdates.write(tx, jobId));
  return ready + waiting;
}

const LOCK_BATCH = "SELECT job_id FROM batches WHERE id = $1 AND state = 'open' FOR UPDATE";

/** Expressions see a row as it was: a task with one loss less than too many has its last one now. */
const RETURN_TASKS = `
  WITH back AS (
    UPDATE tasks SET batch_id = NULL, losses = losses + $2::smallint,
      state = CASE WHEN losses + $2::smallint < ${LIMITS.lossesMax} THEN ${READY} ELSE ${STATE_NUMBERS.dead} END,
      code = CASE WHEN losses + $2::smallint < ${LIMITS.lossesMax} THEN code ELSE $3 END,
      detail = CASE WHEN losses + $2::smallint < ${LIMITS.lossesMax} THEN detail ELSE $4 END
    WHERE id = ANY((SELECT task_ids FROM batches WHERE batches.id = $1)::bigint[])
      AND state = ${LEASED} AND batch_id = $1
    RETURNING host_id, state
  )
  SELECT host_id, state, count(*) AS count FROM back GROUP BY host_id, state`;

const RELEASE_HOSTS = `
  WITH locked AS MATERIALIZED (
    SELECT hosts.id FROM hosts
    WHERE hosts.id = ANY((SELECT host_ids FROM batches WHERE batches.id = $1)::bigint[])
      AND hosts.holder = (SELECT coordinator FROM batches WHERE batches.id = $1)
    ORDER BY hosts.id FOR UPDATE
  )
  UPDATE hosts SET holds = greatest(holds - 1, 0) WHERE id = ANY(ARRAY(SELECT id FROM locked))`;

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
