import type { LeasedTask, LeaseRequest } from '../../ports/store.ts';
import type { Database } from './database.ts';
import { LEASED, type QueueDelta, READY } from './rows.ts';

/** Lends the tasks of one planned batch. Lives inside the transaction of its lease. */
export function leaseBatch(
  db: Database,
  jobId: number,
  batchId: number,
  grants: LeaseRequest['batches'][number]['grants'],
  queues: QueueDelta,
): LeasedTask[] {
  const batch: LeasedTask[] = [];
  for (const grant of grants) {
    const rows = db.all<TaskColumns>(SELECT_READY, jobId, grant.hostId, grant.count);
    let taken = 0;
    for (const row of rows) {
      // A task whose worker died runs alone, so that nobody else is blamed or lost with it.
      if (row.losses > 0 && batch.length > 0) break;
      db.run('UPDATE tasks SET state = ?, batch_id = ? WHERE id = ?', LEASED, batchId, row.id);
      batch.push(toLeased(row, grant.hostId));
      taken++;
      if (row.losses > 0) break;
    }
    if (taken === 0) continue;
    queues.add(grant.hostId, -taken);
    db.run('UPDATE hosts SET next_at = ? WHERE id = ?', grant.nextAt, grant.hostId);
    db.run(
      'UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?',
      grant.nextAt,
      jobId,
      grant.hostId,
    );
    if (rows[0]!.losses > 0) break;
  }
  return batch;
}

interface TaskColumns {
  id: number;
  url: string;
  at_url: string | null;
  depth: number;
  route: string | null;
  attempts: number;
  hops: number;
  losses: number;
  meta: string | null;
}

function toLeased(row: TaskColumns, hostId: number): LeasedTask {
  return {
    id: row.id,
    url: row.at_url ?? row.url,
    hostId,
    depth: row.depth,
    route: row.route,
    attempt: row.attempts + 1,
    hops: row.hops,
    meta: row.meta === null ? null : JSON.parse(row.meta),
  };
}

const SELECT_READY = `
  SELECT id, url, at_url, depth, route, attempts, hops, losses, meta FROM tasks
  WHERE job_id = ? AND host_id = ? AND state = ${READY} ORDER BY priority DESC, id LIMIT ?`;
