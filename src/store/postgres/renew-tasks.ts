import { isFinished } from '../rows/states.ts';
import type { InsertContext } from './insert-tasks.ts';
import { reopenTasks, SELECT_VISITED, type VisitedTask } from './reopen.ts';
import { few, readPass } from './rows.ts';

/** Known pages have these dates. Those that were visited before, and not in this pass, are due again; how many. */
export async function renewTasks(
  { tx, jobId, books }: Pick<InsertContext, 'tx' | 'jobId' | 'books'>,
  dates: readonly { id: number; modifiedAt: number }[],
): Promise<number> {
  const pass = await readPass(tx, jobId);
  const ids = [...new Set(dates.map(({ id }) => id))];
  const rows = await tx.run<VisitedTask>(SELECT_DATED, ids);
  const tasks = new Map(rows.map((row) => [row.id, row]));
  const dated = new Map<number, number>();
  const due = new Map<number, VisitedTask>();
  for (const { id, modifiedAt } of dates) {
    const task = tasks.get(id);
    if (!task) continue;
    if (task.modified_at !== modifiedAt) dated.set(id, modifiedAt);
    const { visited_at: visitedAt } = task;
    if (pass.pass === 1 || visitedAt === null || !isFinished(task.state) || due.has(id)) continue;
    if (visitedAt < modifiedAt && visitedAt <= pass.startedAt) due.set(id, task);
  }
  if (dated.size > 0) await tx.run(SET_DATES, [...dated.keys()], [...dated.values()]);
  await reopenTasks(tx, [...due.values()], books);
  return due.size;
}

const SELECT_DATED = `${SELECT_VISITED} WHERE tasks.id = ANY($1::bigint[]) ORDER BY tasks.id FOR UPDATE OF tasks`;

const SET_DATES = `
  UPDATE tasks SET modified_at = dated.at FROM unnest($1::bigint[], $2::bigint[]) AS dated (id, at)
  WHERE ${few('dated.id')} AND tasks.id = dated.id`;
