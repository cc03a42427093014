import { LIMITS } from '../../../core/limits.ts';
import type { DeadFilter, ReopenOptions, SourcePosition } from '../../../ports/store.ts';
import { RUN_ON } from '../../shared/job-rows.ts';
import { isDue } from '../../shared/passes.ts';
import { isFinished, READY, STATE_NUMBERS, stateName } from '../../shared/states.ts';
import { deadFilter, deadFilterValues } from '../../shared/views/read-views.ts';
import type { Database } from '../connection/database.ts';
import { SQLITE_DIALECT, type SqliteReader } from '../connection/reader.ts';
import { addTally, CounterDelta, QueueDelta, readPass } from '../connection/rows.ts';
import type { TaskInserter } from './insert-tasks.ts';
import { writeSource } from './write-source.ts';

/** A task with its last visit. */
export interface VisitedTask {
  id: number;
  job_id: number;
  state: number;
  code: string | null;
  host_id: number;
  home_host_id: number | null;
  url: string;
  at_url: string | null;
  route: string | null;
  attempt_id: number;
  attempts: number;
  modified_at: number | null;
  visited_at: number | null;
  visits: string | null;
  page_id: number | null;
}

interface CounterUpdates {
  counters: CounterDelta;
  queues: QueueDelta;
}

/** Looks at the next tasks of earlier passes and makes those that are due ready again. */
export function reopenInTransaction(
  db: Database,
  inserter: TaskInserter,
  jobId: number,
  options: ReopenOptions,
): { reopened: number; source: SourcePosition } {
  const pass = readPass(db, jobId);
  const position = options.source.position ?? beforeFirst(db, jobId);
  const rows = db.all<VisitedTask>(SELECT_NEXT, Number(position), pass.lastTaskId, options.limit);
  const counterUpdates: CounterUpdates = { counters: new CounterDelta(), queues: new QueueDelta() };
  const deadHosts = new Set<number>();
  let reopened = 0;
  let own = 0;
  for (const row of rows) {
    if (row.job_id !== jobId) continue;
    own++;
    if (!isDue(row, pass, options)) continue;
    const hostId = reopenTask(db, inserter, row, counterUpdates);
    if (row.state === STATE_NUMBERS.dead) deadHosts.add(hostId);
    reopened++;
  }
  counterUpdates.counters.write(db, jobId);
  counterUpdates.queues.write(db, jobId);
  for (const hostId of deadHosts) endRest(db, jobId, hostId, options.now);
  const lastId = rows.at(-1)?.id;
  const source = {
    ...options.source,
    position: lastId === undefined ? options.source.position : String(lastId),
    done: rows.length < options.limit || lastId === pass.lastTaskId,
    rows: options.source.rows + own,
  };
  writeSource(db, jobId, source);
  return { reopened, source };
}

/** Makes one finished task due again. */
export function revisitInTransaction(
  db: Database,
  inserter: TaskInserter,
  jobId: number,
  taskId: number,
): boolean {
  const task = db.get<VisitedTask>(`${SELECT_VISITED} WHERE tasks.id = ?`, taskId);
  if (task?.job_id !== jobId || !isFinished(task.state)) return false;
  const counterUpdates: CounterUpdates = { counters: new CounterDelta(), queues: new QueueDelta() };
  reopenTask(db, inserter, task, counterUpdates);
  counterUpdates.counters.write(db, jobId);
  counterUpdates.queues.write(db, jobId);
  db.run(`${RUN_ON}?`, jobId);
  return true;
}

/** Makes a finished task due again at its own URL, as if it had never been tried. Returns its host. */
export function reopenTask(
  db: Database,
  inserter: TaskInserter,
  task: VisitedTask,
  counterUpdates: CounterUpdates,
): number {
  const { id, at_url: atUrl } = task;
  const hostId = atUrl === null ? task.host_id : (task.home_host_id ?? hostOfUrl(inserter, task));
  // Its page is from elsewhere, and the task is about to forget from where.
  if (atUrl !== null && task.page_id === null)
    db.run('UPDATE attempts SET at_url = ? WHERE id = ?', atUrl, task.attempt_id);
  db.run(REOPEN_TASK, hostId, id);
  const state = stateName(task.state);
  counterUpdates.counters.add(state, -1);
  counterUpdates.counters.add('pending', 1);
  if (task.attempts > 0) counterUpdates.counters.add('attempted', -1);
  counterUpdates.queues.add(hostId, 1);
  if ((state === 'dead' || state === 'skipped') && task.code !== null)
    addTally(db, task.job_id, state, task.code, -1);
  return hostId;
}

/** For tasks that followed a redirect before their home was noted. */
function hostOfUrl(inserter: TaskInserter, { url }: VisitedTask): number {
  return inserter.hostId(new URL(url).host);
}

function beforeFirst(db: Database, jobId: number): number {
  const row = db.get<{ id: number | null }>('SELECT first_task_id AS id FROM jobs WHERE id = ?', jobId);
  return (row?.id ?? Number.MAX_SAFE_INTEGER) - 1;
}

export const SELECT_VISITED = `
  SELECT tasks.id, tasks.job_id, tasks.state, tasks.code, tasks.host_id, tasks.home_host_id, tasks.url, tasks.at_url, tasks.route,
    tasks.attempt_id, tasks.attempts, tasks.modified_at, tasks.visits, attempts.started_at AS visited_at, attempts.page_id
  FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id`;

const SELECT_NEXT = `${SELECT_VISITED} WHERE tasks.id > ? AND tasks.id <= ? ORDER BY tasks.id LIMIT ?`;

const REOPEN_TASK = `
  UPDATE tasks SET state = ${READY}, attempts = 0, losses = 0, crashes = 0, throttles = 0, hops = 0, due_at = NULL, code = NULL, detail = NULL,
    at_url = NULL, home_host_id = NULL, host_id = ? WHERE id = ?`;

/** Puts dead letters back, as if they had never been tried. */
export function retryInTransaction(
  db: Database,
  reader: SqliteReader,
  { jobId, filter, now }: { jobId: number; filter: DeadFilter; now: number },
): number {
  const rows = reader.all<{ id: number; host_id: number; code: string; attempts: number }>(
    SELECT_RETRY,
    jobId,
    ...deadFilterValues(filter),
  );
  const counters = new CounterDelta();
  const queues = new QueueDelta();
  const hosts = new Set<number>();
  for (const row of rows) {
    db.run(
      'UPDATE tasks SET state = ?, attempts = 0, losses = 0, crashes = 0, throttles = 0, due_at = NULL WHERE id = ?',
      READY,
      row.id,
    );
    hosts.add(row.host_id);
    queues.add(row.host_id, 1);
    addTally(db, jobId, 'dead', row.code, -1);
    if (row.attempts > 0) counters.add('attempted', -1);
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
function endRest(db: Database, jobId: number, hostId: number, now: number): void {
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

const SELECT_RETRY = `
  SELECT tasks.id, tasks.host_id, tasks.code, tasks.attempts FROM tasks JOIN hosts ON hosts.id = tasks.host_id
  WHERE tasks.job_id = $1 AND tasks.state = ${STATE_NUMBERS.dead} AND ${deadFilter(SQLITE_DIALECT)}`;
