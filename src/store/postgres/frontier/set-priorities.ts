import type { Frontier } from '../../../ports/store.ts';
import { withGivenPriority } from '../../shared/retry-order.ts';
import { isFinished } from '../../shared/states.ts';
import type { Transaction } from '../connection/database.ts';
import { indexHint } from '../connection/rows.ts';

interface Row {
  id: number;
  job_id: number;
  state: number;
  url: string;
  route: string | null;
}

export async function setPrioritiesInTransaction(
  tx: Transaction,
  jobId: number,
  { after, limit, priorityOf }: Parameters<Frontier['setPriorities']>[1],
): Promise<Awaited<ReturnType<Frontier['setPriorities']>>> {
  const rows = await tx.run<Row>(SELECT_TASKS, after, jobId, limit);
  const wanted = rows
    .filter((row) => row.job_id === jobId && !isFinished(row.state))
    .map((row) => ({ id: row.id, priority: priorityOf(row) }))
    .filter(({ priority }) => priority !== null);
  const changed =
    wanted.length === 0
      ? []
      : await tx.run(
          SET_PRIORITIES,
          wanted.map(({ id }) => id),
          wanted.map(({ priority }) => priority),
        );
  return { changed: changed.length, after: rows.at(-1)?.id ?? after, isDone: rows.length < limit };
}

const SELECT_TASKS = `
  SELECT id, job_id, state, url, route FROM tasks
  WHERE id > greatest($1::bigint, (SELECT coalesce(first_task_id, 0) FROM jobs WHERE id = $2) - 1) ORDER BY id LIMIT $3`;

/** Reports and leases of the same tasks may come between: what has ended meanwhile only keeps another number. */
const SET_PRIORITIES = `
  UPDATE tasks SET priority = ${withGivenPriority('given.priority', 'tasks.priority')}
  FROM unnest($1::bigint[], $2::integer[]) AS given (id, priority)
  WHERE ${indexHint('given.id')} AND tasks.id = given.id
    AND tasks.priority != ${withGivenPriority('given.priority', 'tasks.priority')}
  RETURNING tasks.id`;
