import type { LeasedBatch, LeasedTask, LeaseRequest } from '../../../ports/store.ts';
import { type ReadyColumns, toLeased } from '../../shared/leased-rows.ts';
import { LEASED, READY } from '../../shared/states.ts';
import type { Database } from '../connection/database.ts';
import type { QueueDelta } from '../connection/rows.ts';

/** Lends the tasks of one planned batch. Lives inside the transaction of its lease. */
export function leaseBatch(
  db: Database,
  job: { id: number; pass: number },
  batchId: number,
  grants: LeaseRequest['batches'][number]['grants'],
  queues: QueueDelta,
): Omit<LeasedBatch, 'id'> {
  const batch: LeasedTask[] = [];
  // Nothing was visited before the first pass: its leases need not look.
  const select = job.pass > 1 ? SELECT_READY_AGAIN : SELECT_READY;
  for (const grant of grants) {
    const rows = db.all<ReadyColumns>(select, job.id, grant.hostId, grant.count);
    let taken = 0;
    for (const row of rows) {
      // A task whose worker died runs alone, so that no other task is blamed or lost with it.
      if (row.losses > 0 && batch.length > 0) break;
      db.run('UPDATE tasks SET state = ?, batch_id = ? WHERE id = ?', LEASED, batchId, row.id);
      batch.push(toLeased(row, grant.hostId));
      taken++;
      if (row.losses > 0) break;
    }
    if (taken === 0) continue;
    queues.add(grant.hostId, -taken);
    takeHost(db, job.id, grant);
    if (rows[0]!.losses > 0) break;
  }
  const piggybacked = batch.length === 0 ? [] : grants.filter(({ count }) => count === 0);
  if (piggybacked.length === 0) return { tasks: batch };
  for (const grant of piggybacked) takeHost(db, job.id, grant);
  return { tasks: batch, piggybacked: piggybacked.map(({ hostId }) => hostId) };
}

function takeHost(db: Database, jobId: number, { hostId, nextAt }: { hostId: number; nextAt: number }): void {
  db.run('UPDATE hosts SET next_at = ? WHERE id = ?', nextAt, hostId);
  db.run('UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?', nextAt, jobId, hostId);
}

const SELECT_READY = `
  SELECT id, url, at_url, depth, route, attempts, hops, losses, meta, referrer FROM tasks
  WHERE job_id = ? AND host_id = ? AND state = ${READY} ORDER BY priority DESC, id LIMIT ?`;

/** A page that could not be read is not compared with: it must be tried again even if it is the same. */
const SELECT_READY_AGAIN = `
  SELECT tasks.id, tasks.url, tasks.at_url, tasks.depth, tasks.route, tasks.attempts, tasks.hops, tasks.losses, tasks.meta,
    tasks.referrer, pages.sha256, attempts.etag, attempts.last_modified, pages.at_url AS page_at_url
  FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id
    LEFT JOIN attempts AS pages
      ON pages.id = coalesce(attempts.page_id, attempts.id) AND pages.outcome IN ('fetched', 'unchanged')
  WHERE tasks.job_id = ? AND tasks.host_id = ? AND tasks.state = ${READY} ORDER BY tasks.priority DESC, tasks.id LIMIT ?`;
