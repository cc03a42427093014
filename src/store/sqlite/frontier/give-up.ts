import type { FailureCode } from '../../../core/failures.ts';
import { ALL_HOSTS, emptyRollup, lostTasks } from '../../../core/rollups/rollup.ts';
import { LOSSES_MAX, nextSuspicion, type Suspicion } from '../../../core/suspicion/suspicion.ts';
import type { ReleaseOptions } from '../../../ports/store.ts';
import { LEASED, READY, STATE_NUMBERS, WAITING } from '../../shared/states.ts';
import { LOST } from '../../shared/views/tasks.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import type { Database } from '../connection/database.ts';
import { addTally, CounterDelta, followHost, NO_ID, QueueDelta, readPass } from '../connection/rows.ts';
import { appendHostLog } from '../host-log.ts';
import { addRollups } from '../rollup-store.ts';
import { SQLITE_OUTBOX, writeOutbox } from '../webhooks.ts';

/** Takes a batch back: its tasks are ready again, unless they have killed workers too often. */
export function releaseInTransaction(
  db: Database,
  batchId: number,
  options: ReleaseOptions,
): { returned: number; dead: number } {
  const batch = db.get<{ job_id: number; task_ids: string; leased_at: number }>(
    "SELECT job_id, task_ids, leased_at FROM batches WHERE id = ? AND state = 'open'",
    batchId,
  );
  if (!batch) return { returned: 0, dead: 0 };
  const queues = new QueueDelta();
  let returned = 0;
  let dead = 0;
  const deadIds: number[] = [];
  for (const id of JSON.parse(batch.task_ids) as number[]) {
    const row = db.get<Suspicion & { host_id: number }>(SELECT_HELD, id, batchId);
    if (!row) continue;
    const { losses, crashes } = nextSuspicion(row, options.blame, id);
    db.run(RETURN_TASK, losses, crashes, id);
    db.run(LOG_LOST, batch.job_id, id, batchId, batch.leased_at, Math.max(0, options.now - batch.leased_at));
    if (losses < LOSSES_MAX) {
      queues.add(row.host_id, 1);
      returned++;
    } else {
      db.run(MAKE_DEAD, STATE_NUMBERS.dead, 'worker-lost' satisfies FailureCode, options.reason, id);
      dead++;
      deadIds.push(id);
    }
  }
  if (dead > 0) addTally(db, batch.job_id, 'dead', 'worker-lost', dead);
  db.run(
    "UPDATE batches SET state = 'lost', closed_at = ?, note = ?, task_ids = NULL WHERE id = ?",
    options.now,
    options.reason,
    batchId,
  );
  for (const { host, nextAt, takenUntil } of options.hosts ?? []) {
    db.run(FREE_HOST, takenUntil, nextAt, nextAt, host);
    const hostId = db.get<{ id: number }>('SELECT id FROM hosts WHERE host = ?', host)?.id;
    if (hostId === undefined) continue;
    db.run(FREE_QUEUE, nextAt, batch.job_id, hostId);
    followHost(db, hostId, { nextAt, takenUntil });
  }
  for (const log of options.logs ?? []) appendHostLog(db, log);
  const counters = new CounterDelta();
  counters.add('leased', -returned - dead);
  counters.add('pending', returned);
  counters.add('dead', dead);
  counters.add('batches', 1);
  counters.write(db, batch.job_id);
  queues.write(db, batch.job_id);
  if (dead > 0) tellDead(db, batch.job_id, deadIds, options.now);
  const rollup = lostTasks(returned + dead, dead);
  addRollups(db, batch.job_id, [{ host: ALL_HOSTS, at: options.now, rollup }]);
  return { returned, dead };
}

/** Makes tasks of a host dead letters, those that wait for later last, at most `limit`; returns how many. */
export function failTasksOfHostInTransaction(
  db: Database,
  jobId: number,
  hostId: number,
  options: { code: FailureCode; detail: string; now: number; limit: number },
): number {
  const ready = db.all<{ id: number }>(SELECT_READY_IDS, jobId, hostId, options.limit);
  const waiting = db.all<{ id: number }>(SELECT_WAITING_IDS, jobId, hostId, options.limit - ready.length);
  const rows = [...ready, ...waiting];
  if (rows.length === 0) return 0;
  for (const { id } of rows) db.run(MAKE_DEAD, STATE_NUMBERS.dead, options.code, options.detail, id);
  const counters = new CounterDelta();
  counters.add('pending', -rows.length);
  counters.add('dead', rows.length);
  counters.write(db, jobId);
  const queues = new QueueDelta();
  queues.add(hostId, -ready.length);
  queues.write(db, jobId);
  addTally(db, jobId, 'dead', options.code, rows.length);
  const deadIds = rows.map(({ id }) => id);
  tellDead(db, jobId, deadIds, options.now);
  const rollup = { ...emptyRollup(), failed: rows.length };
  addRollups(db, jobId, [{ host: ALL_HOSTS, at: options.now, rollup }]);
  return rows.length;
}

function tellDead(db: Database, jobId: number, taskIds: readonly number[], now: number): void {
  const { pass } = readPass(db, jobId);
  writeOutbox(db, tellWork(SQLITE_OUTBOX, { jobId, pass, taskIds, records: [], now }));
}

/** What was sent of a lost batch is not known, so all of it is logged. The task keeps its last real attempt. */
const LOG_LOST = `
  INSERT INTO attempts (job_id, task_id, batch_id, started_at, duration_ms, outcome, code, wire_bytes)
  VALUES (?, ?, ?, ?, ?, '${LOST}', '${'worker-lost' satisfies FailureCode}', 0)`;

const SELECT_READY_IDS = `
  SELECT id FROM tasks WHERE job_id = ? AND host_id = ? AND state = ${READY} ORDER BY priority DESC, id LIMIT ?`;

const SELECT_WAITING_IDS = `SELECT id FROM tasks WHERE job_id = ? AND host_id = ? AND state = ${WAITING} ORDER BY id LIMIT ?`;

const MAKE_DEAD = 'UPDATE tasks SET state = ?, code = ?, detail = ? WHERE id = ?';

const SELECT_HELD = `
  SELECT host_id, losses, crashes FROM tasks WHERE id = ? AND state = ${LEASED} AND batch_id = ?`;

const RETURN_TASK = `UPDATE tasks SET state = ${READY}, batch_id = ${NO_ID}, losses = ?, crashes = ? WHERE id = ?`;

const FREE_HOST = 'UPDATE hosts SET next_at = iif(next_at > ?, max(?, next_at), ?) WHERE host = ?';

const FREE_QUEUE = 'UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?';
