import { LIMITS } from '../../core/limits.ts';
import type { DeadFilter } from '../../ports/store.ts';
import { READY, STATE_NUMBERS } from '../rows/states.ts';
import type { Database } from './database.ts';
import { addTally, CounterDelta, QueueDelta } from './rows.ts';

/** Puts dead letters back, as if they had never been tried. */
export function retryInTransaction(db: Database, jobId: number, filter: DeadFilter, now: number): number {
  const rows = db.all<{ id: number; host_id: number; code: string }>(
    SELECT_RETRY,
    jobId,
    ...deadFilterValues(filter),
  );
  const counters = new CounterDelta();
  const queues = new QueueDelta();
  const hosts = new Set<number>();
  for (const row of rows) {
    db.run('UPDATE tasks SET state = ?, attempts = 0, losses = 0, due_at = NULL WHERE id = ?', READY, row.id);
    hosts.add(row.host_id);
    queues.add(row.host_id, 1);
    addTally(db, jobId, 'dead', row.code, -1);
  }
  for (const hostId of hosts) endRest(db, jobId, hostId, now);
  db.run('DELETE FROM robots WHERE text IS NULL');
  counters.add('dead', -rows.length);
  counters.add('pending', rows.length);
  counters.write(db, jobId);
  queues.write(db, jobId);
  return rows.length;
}

/** What rested or was given up gets a new chance with its tasks, but not inside a permit that may be out. */
export function endRest(db: Database, jobId: number, hostId: number, now: number): void {
  const nextAt = now + LIMITS.permitMsMax;
  db.run(
    'UPDATE hosts SET rests = 0, failures_in_row = 0, next_at = min(next_at, ?) WHERE id = ?',
    nextAt,
    hostId,
  );
  db.run(
    'UPDATE queues SET next_at = min(next_at, ?) WHERE job_id = ? AND host_id = ?',
    nextAt,
    jobId,
    hostId,
  );
}

/** Follows the job's id in a statement over tasks and hosts; takes `deadFilterValues`. */
export const DEAD_FILTER =
  '(? IS NULL OR code = ?) AND (? IS NULL OR hosts.host = ?) AND (? IS NULL OR instr(url, ?) > 0)';

export function deadFilterValues({ code, host, urlContains }: DeadFilter): (string | null)[] {
  return [code, code, host, host, urlContains, urlContains].map((value) => value ?? null);
}

const SELECT_RETRY = `
  SELECT tasks.id, host_id, code FROM tasks JOIN hosts ON hosts.id = tasks.host_id
  WHERE tasks.job_id = ? AND state = ${STATE_NUMBERS.dead} AND ${DEAD_FILTER}`;
