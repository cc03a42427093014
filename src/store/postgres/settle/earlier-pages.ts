import type { TaskChange } from '../../../ports/store.ts';
import type { Transaction } from '../connection/database.ts';

/** The page of an earlier attempt that a task still has, and the validators to be sent at the next visit. */
export interface EarlierPage {
  id: number;
  etag: string | null;
  last_modified: string | null;
}

/** Whether the page that the task had stays its page. In the first pass it has none before it is done. */
export function keepsPage(change: TaskChange, pass: number): boolean {
  const { page, outcome } = change;
  if (outcome === 'unchanged') return page === null || (page.archive === null && page.media === null);
  return pass > 1 && (page === null || change.moveTo !== null);
}

/** By task. Must be asked before the tasks get their next attempts. The page of a redirect is not the task's own. */
export async function findEarlierPages(
  tx: Transaction,
  taskIds: readonly number[],
): Promise<Map<number, EarlierPage>> {
  if (taskIds.length === 0) return new Map();
  const rows = await tx.run<EarlierPage & { task_id: number; id: number | null }>(
    FIND_EARLIER_PAGES,
    taskIds,
  );
  return new Map(rows.filter(({ id }) => id !== null).map((row) => [row.task_id, row]));
}

const FIND_EARLIER_PAGES = `
  SELECT tasks.id AS task_id, attempts.etag, attempts.last_modified, coalesce(attempts.page_id,
    CASE WHEN attempts.sha256 IS NULL OR attempts.outcome = 'redirected' THEN NULL ELSE attempts.id END) AS id
  FROM tasks JOIN attempts ON attempts.id = tasks.attempt_id WHERE tasks.id = ANY($1::bigint[])`;
