import { SUSPECT_LOSSES, suspectsTogether } from '../../../core/suspicion/suspicion.ts';
import type { LeasedTask, LeaseRequest } from '../../../ports/store.ts';
import { type ReadyColumns, toLeased } from '../../shared/leased-rows.ts';
import { LEASED, READY } from '../../shared/states.ts';
import type { Database } from '../connection/database.ts';
import type { QueueDelta } from '../connection/rows.ts';

type Grant = LeaseRequest['batches'][number]['grants'][number];

interface Lent {
  tasks: LeasedTask[];
  piggybacked: number[];
  /** Grants under which nothing was ready. */
  unused: Grant[];
}

/** Lends the tasks of one planned batch: those that are no suspects, or only those. Lives inside the transaction of its lease. */
export function leaseBatch(
  db: Database,
  job: { id: number; pass: number; now: number },
  batchId: number,
  grants: readonly Grant[],
  { queues, suspects }: { queues: QueueDelta; suspects: boolean },
): Lent {
  const chosen: ReadyColumns[] = [];
  const tasks: LeasedTask[] = [];
  const unused: Grant[] = [];
  const select = selectOf(job.pass, suspects);
  for (const grant of grants) {
    if (grant.count === 0) continue;
    const rows = db.all<ReadyColumns>(select, job.id, grant.hostId, grant.count);
    const before = chosen.length;
    chosen.push(...rows);
    if (suspects) chosen.length = Math.max(before, suspectsTogether(chosen, chosen.length));
    for (const row of chosen.slice(before)) {
      db.run('UPDATE tasks SET state = ?, batch_id = ? WHERE id = ?', LEASED, batchId, row.id);
      tasks.push(toLeased(row, grant.hostId));
    }
    const taken = chosen.length - before;
    if (taken === 0) {
      unused.push(grant);
      continue;
    }
    queues.add(grant.hostId, -taken);
    takeHost(db, job, grant);
  }
  const piggybacked = tasks.length === 0 ? [] : grants.filter(({ count }) => count === 0);
  for (const grant of piggybacked) takeHost(db, job, grant);
  return { tasks, piggybacked: piggybacked.map(({ hostId }) => hostId), unused };
}

function takeHost(
  db: Database,
  job: { id: number; now: number },
  { hostId, nextAt }: { hostId: number; nextAt: number },
): void {
  db.run('UPDATE hosts SET next_at = ? WHERE id = ?', nextAt, hostId);
  const update = 'UPDATE queues SET next_at = ?, served_at = ? WHERE job_id = ? AND host_id = ?';
  db.run(update, nextAt, job.now, job.id, hostId);
}

/** Nothing was visited before the first pass: its leases need not look. */
function selectOf(pass: number, suspects: boolean): string {
  const losses = suspects ? `tasks.losses >= ${SUSPECT_LOSSES}` : `tasks.losses < ${SUSPECT_LOSSES}`;
  const where = `WHERE tasks.job_id = ? AND tasks.host_id = ? AND tasks.state = ${READY} AND ${losses}
    ORDER BY tasks.priority DESC, tasks.id LIMIT ?`;
  return `${pass > 1 ? SELECT_READY_AGAIN : SELECT_READY} ${where}`;
}

const SELECT_READY = `
  SELECT id, url, at_url, depth, route, attempts, hops, losses, throttles, meta, referrer FROM tasks`;

/** A page that could not be read is not compared with: it must be tried again even if it is the same. */
const SELECT_READY_AGAIN = `
  SELECT tasks.id, tasks.url, tasks.at_url, tasks.depth, tasks.route, tasks.attempts, tasks.hops, tasks.losses, tasks.throttles, tasks.meta,
    tasks.referrer, pages.sha256, attempts.etag, attempts.last_modified, pages.at_url AS page_at_url,
    CASE WHEN pages.archive_id IS NOT NULL THEN pages.started_at END AS archived_at, pages.archive_sha256
  FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id
    LEFT JOIN attempts AS pages
      ON pages.id = coalesce(attempts.page_id, attempts.id) AND pages.outcome IN ('fetched', 'unchanged')`;
