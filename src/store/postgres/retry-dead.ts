import { LIMITS } from '../../core/limits.ts';
import type { DeadFilter } from '../../ports/store.ts';
import { READY, STATE_NUMBERS } from '../rows/states.ts';
import type { Transaction } from './database.ts';
import { Books } from './rows.ts';

/** Dead letters that are put back in one statement. */
const STEP = 10_000;

/** Puts dead letters back, as if they had never been tried. */
export async function retryInTransaction(
  tx: Transaction,
  jobId: number,
  filter: DeadFilter,
  now: number,
): Promise<number> {
  const books = new Books();
  const hosts = new Set<number>();
  let total = 0;
  while (true) {
    const rows = await tx.run<{ host_id: number; code: string; count: number }>(
      RETRY,
      jobId,
      ...deadFilterValues(filter),
      STEP,
    );
    for (const { host_id: hostId, code, count } of rows) {
      hosts.add(hostId);
      books.queue(hostId, count);
      books.tally('dead', code, -count);
      total += count;
    }
    if (rows.length === 0) break;
  }
  books.count('dead', -total);
  books.count('pending', total);
  await endRests(tx, jobId, [...hosts], now);
  await tx.run('DELETE FROM robots WHERE text IS NULL');
  tx.finally(books.write(tx, jobId));
  return total;
}

/** What rested or was given up gets a new chance with its tasks, but not inside a permit that may be out. */
export async function endRests(
  tx: Transaction,
  jobId: number,
  hostIds: readonly number[],
  now: number,
): Promise<void> {
  if (hostIds.length === 0) return;
  const nextAt = now + LIMITS.permitMsMax;
  await tx.run(END_RESTS, hostIds, nextAt);
  await tx.run(END_WAITS, hostIds, nextAt, jobId);
}

/** Follows the job's id in a statement over tasks and hosts; takes `deadFilterValues` as $2 to $4. */
export const DEAD_FILTER = `
  ($2::text IS NULL OR tasks.code = $2) AND ($3::text IS NULL OR hosts.host = $3)
  AND ($4::text IS NULL OR position($4 IN tasks.url) > 0)`;

export function deadFilterValues({ code, host, urlContains }: DeadFilter): (string | null)[] {
  return [code ?? null, host ?? null, urlContains ?? null];
}

const RETRY = `
  WITH chosen AS MATERIALIZED (
    SELECT tasks.id FROM tasks JOIN hosts ON hosts.id = tasks.host_id
    WHERE tasks.job_id = $1 AND tasks.state = ${STATE_NUMBERS.dead} AND ${DEAD_FILTER}
    LIMIT $5 FOR UPDATE OF tasks
  ), put_back AS (
    UPDATE tasks SET state = ${READY}, attempts = 0, losses = 0, due_at = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM chosen)) RETURNING host_id, code
  )
  SELECT host_id, code, count(*) AS count FROM put_back GROUP BY host_id, code`;

const END_RESTS = `
  WITH locked AS MATERIALIZED (SELECT id FROM hosts WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE)
  UPDATE hosts SET rests = 0, failures_in_row = 0, next_at = least(next_at, $2::bigint)
  WHERE id = ANY(ARRAY(SELECT id FROM locked))`;

const END_WAITS = `
  UPDATE queues SET next_at = least(next_at, $2::bigint) WHERE job_id = $3 AND host_id = ANY($1::bigint[])`;
