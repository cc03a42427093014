import { LIMITS } from '../../../core/limits.ts';
import type { DeadFilter, ReopenOptions, SourcePosition } from '../../../ports/store.ts';
import { RUN_ON } from '../../shared/job-rows.ts';
import { isDue } from '../../shared/passes.ts';
import { isFinished, READY, STATE_NUMBERS, stateName } from '../../shared/states.ts';
import { deadFilter, deadFilterValues } from '../../shared/views/read-views.ts';
import type { Transaction } from '../connection/database.ts';
import { POSTGRES_DIALECT } from '../connection/reader.ts';
import { CounterUpdates, indexHint, readPass } from '../connection/rows.ts';
import { writeSource } from './write-source.ts';

/** A task with its last visit. */
export interface VisitedTask {
  id: number;
  job_id: number;
  state: number;
  code: string | null;
  at_url: string | null;
  route: string | null;
  attempt_id: number | null;
  attempts: number;
  modified_at: number | null;
  visited_at: number | null;
  visits: string | null;
  page_id: number | null;
}

/** Looks at the next tasks of earlier passes and makes those that are due ready again. */
export async function reopenInTransaction(
  tx: Transaction,
  jobId: number,
  options: ReopenOptions,
): Promise<{ reopened: number; source: SourcePosition }> {
  const pass = await readPass(tx, jobId);
  const position = options.source.position ?? (await beforeFirst(tx, jobId));
  const rows = await tx.run<VisitedTask>(SELECT_NEXT, Number(position), pass.lastTaskId, options.limit);
  const own = rows.filter((row) => row.job_id === jobId);
  const due = own.filter((row) => isDue(row, pass, options));
  const counterUpdates = new CounterUpdates();
  const hostIds = await reopenTasks(tx, due, counterUpdates);
  const dead = due.filter(({ state }) => state === STATE_NUMBERS.dead);
  await endRests(tx, jobId, [...new Set(dead.map(({ id }) => hostIds.get(id)!))], options.now);
  const lastId = rows.at(-1)?.id;
  const source = {
    ...options.source,
    position: lastId === undefined ? options.source.position : String(lastId),
    done: rows.length < options.limit || lastId === pass.lastTaskId,
    rows: options.source.rows + own.length,
  };
  await writeSource(tx, jobId, source);
  tx.finally(counterUpdates.write(tx, jobId));
  return { reopened: due.length, source };
}

/** Makes one finished task due again. */
export async function revisitInTransaction(tx: Transaction, jobId: number, taskId: number): Promise<boolean> {
  const [task] = await tx.run<VisitedTask>(
    `${SELECT_VISITED} WHERE tasks.id = $1 FOR UPDATE OF tasks`,
    taskId,
  );
  if (task?.job_id !== jobId || !isFinished(task.state)) return false;
  const counterUpdates = new CounterUpdates();
  await reopenTasks(tx, [task], counterUpdates);
  await tx.run(`${RUN_ON}$1`, jobId);
  tx.finally(counterUpdates.write(tx, jobId));
  return true;
}

/** Makes finished tasks due again at their own URLs, as if they had never been tried. Returns their hosts. */
export async function reopenTasks(
  tx: Transaction,
  tasks: readonly VisitedTask[],
  counterUpdates: CounterUpdates,
): Promise<Map<number, number>> {
  if (tasks.length === 0) return new Map();
  // Their pages are from elsewhere, and the tasks are about to forget from where.
  const moved = tasks.filter((task) => task.at_url !== null && task.page_id === null);
  if (moved.length > 0) {
    await tx.run(
      KEEP_PLACES,
      moved.map((task) => task.attempt_id),
      moved.map((task) => task.at_url),
    );
  }
  const rows = await tx.run<{ id: number; host_id: number }>(
    REOPEN_TASKS,
    tasks.map(({ id }) => id),
  );
  for (const task of tasks) {
    const state = stateName(task.state);
    counterUpdates.count(state, -1);
    counterUpdates.count('pending', 1);
    if (task.attempts > 0) counterUpdates.count('attempted', -1);
    if ((state === 'dead' || state === 'skipped') && task.code !== null)
      counterUpdates.tally(state, task.code, -1);
  }
  for (const { host_id: hostId } of rows) counterUpdates.queue(hostId, 1);
  return new Map(rows.map((row) => [row.id, row.host_id]));
}

async function beforeFirst(tx: Transaction, jobId: number): Promise<number> {
  const [row] = await tx.run<{ id: number | null }>(
    'SELECT first_task_id AS id FROM jobs WHERE id = $1',
    jobId,
  );
  return (row?.id ?? Number.MAX_SAFE_INTEGER) - 1;
}

export const SELECT_VISITED = `
  SELECT tasks.id, tasks.job_id, tasks.state, tasks.code, tasks.at_url, tasks.route, tasks.attempt_id,
    tasks.attempts, tasks.modified_at, tasks.visits, attempts.started_at AS visited_at, attempts.page_id
  FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id`;

const SELECT_NEXT = `
  ${SELECT_VISITED} WHERE tasks.id > $1 AND tasks.id <= $2 ORDER BY tasks.id LIMIT $3 FOR UPDATE OF tasks`;

const KEEP_PLACES = `
  UPDATE attempts SET at_url = moved.url FROM unnest($1::bigint[], $2::text[]) AS moved (id, url)
  WHERE ${indexHint('moved.id')} AND attempts.id = moved.id`;

const REOPEN_TASKS = `
  UPDATE tasks SET state = ${READY}, attempts = 0, losses = 0, crashes = 0, throttles = 0, hops = 0, due_at = NULL, code = NULL, detail = NULL,
    at_url = NULL, host_id = coalesce(home_host_id, host_id), home_host_id = NULL
  WHERE id = ANY($1::bigint[]) RETURNING id, host_id`;

/** Dead letters that are put back in one statement. */
const STEP = 10_000;

/** Puts dead letters back, as if they had never been tried. */
export async function retryInTransaction(
  tx: Transaction,
  jobId: number,
  filter: DeadFilter,
  now: number,
): Promise<number> {
  const counterUpdates = new CounterUpdates();
  const hosts = new Set<number>();
  let total = 0;
  while (true) {
    const rows = await tx.run<{ host_id: number; code: string; count: number; attempted: number }>(
      RETRY,
      jobId,
      ...deadFilterValues(filter),
      STEP,
    );
    for (const { host_id: hostId, code, count, attempted } of rows) {
      hosts.add(hostId);
      counterUpdates.count('attempted', -attempted);
      counterUpdates.queue(hostId, count);
      counterUpdates.tally('dead', code, -count);
      total += count;
    }
    if (rows.length === 0) break;
  }
  counterUpdates.count('dead', -total);
  counterUpdates.count('pending', total);
  await endRests(tx, jobId, [...hosts], now);
  await tx.run('DELETE FROM robots WHERE text IS NULL');
  tx.finally(counterUpdates.write(tx, jobId));
  return total;
}

/** What rested or was given up gets a new chance with its tasks, but not inside a permit that may be out. */
async function endRests(
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

const RETRY = `
  WITH chosen AS MATERIALIZED (
    SELECT tasks.id, tasks.attempts FROM tasks JOIN hosts ON hosts.id = tasks.host_id
    WHERE tasks.job_id = $1 AND tasks.state = ${STATE_NUMBERS.dead} AND ${deadFilter(POSTGRES_DIALECT)}
    LIMIT $5 FOR UPDATE OF tasks
  ), put_back AS (
    UPDATE tasks SET state = ${READY}, attempts = 0, losses = 0, crashes = 0, throttles = 0, due_at = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM chosen)) RETURNING id, host_id, code
  )
  SELECT host_id, code, count(*) AS count, count(*) FILTER (WHERE chosen.attempts > 0) AS attempted
  FROM put_back JOIN chosen ON chosen.id = put_back.id GROUP BY host_id, code`;

const END_RESTS = `
  WITH locked AS MATERIALIZED (SELECT id FROM hosts WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE)
  UPDATE hosts SET rests = 0, failures_in_row = 0, next_at = least(next_at, $2::bigint)
  WHERE id = ANY(ARRAY(SELECT id FROM locked))`;

const END_WAITS = `
  UPDATE queues SET next_at = least(next_at, $2::bigint) WHERE job_id = $3 AND host_id = ANY($1::bigint[])`;
