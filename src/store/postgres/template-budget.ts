import type { NewTask } from '../../core/model.ts';
import type { Transaction } from './database.ts';
import type { Books } from './rows.ts';

/**
 * What is spent of the budgets of URL templates. Read without a lock, and written at the end: reports that are settled
 * at the same moment may spend a little too much together, but need not wait for each other.
 */
export async function readSpent(
  tx: Transaction,
  jobId: number,
  tasks: readonly NewTask[],
): Promise<Map<string, number>> {
  const templates = new Set(tasks.flatMap(({ template }) => (template === null ? [] : [template])));
  if (templates.size === 0) return new Map();
  const rows = await tx.run<{ template: string; count: number }>(SELECT_SPENT, jobId, [...templates]);
  return new Map(rows.map(({ template, count }) => [template, count]));
}

/** Spends for a new task, if there is something left. */
export function spend(
  spent: Map<string, number>,
  { template }: NewTask,
  max: number | null,
  books: Books,
): boolean {
  if (max === null || template === null) return true;
  const count = spent.get(template) ?? 0;
  if (count >= max) return false;
  spent.set(template, count + 1);
  books.spend(template, 1);
  return true;
}

const SELECT_SPENT = 'SELECT template, count FROM templates WHERE job_id = $1 AND template = ANY($2::text[])';
