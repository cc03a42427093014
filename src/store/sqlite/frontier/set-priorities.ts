import type { Frontier } from '../../../ports/store.ts';
import { withGivenPriority } from '../../shared/retry-order.ts';
import { isFinished } from '../../shared/states.ts';
import type { Database } from '../connection/database.ts';

interface Row {
  id: number;
  job_id: number;
  state: number;
  url: string;
  route: string | null;
}

export function setPrioritiesInTransaction(
  db: Database,
  jobId: number,
  { after, limit, priorityOf }: Parameters<Frontier['setPriorities']>[1],
): Awaited<ReturnType<Frontier['setPriorities']>> {
  const rows = db.all<Row>(SELECT_TASKS, after, jobId, limit);
  let changed = 0;
  for (const row of rows) {
    if (row.job_id !== jobId || isFinished(row.state)) continue;
    const priority = priorityOf(row);
    if (priority !== null) changed += db.run(SET_PRIORITY, priority, row.id);
  }
  return { changed, after: rows.at(-1)?.id ?? after, isDone: rows.length < limit };
}

const SELECT_TASKS = `
  SELECT id, job_id, state, url, route FROM tasks
  WHERE id > max(?, (SELECT coalesce(first_task_id, 0) FROM jobs WHERE id = ?) - 1) ORDER BY id LIMIT ?`;

const SET_PRIORITY = `
  UPDATE tasks SET priority = ${withGivenPriority('?1', 'priority')}
  WHERE id = ?2 AND priority != ${withGivenPriority('?1', 'priority')}`;
