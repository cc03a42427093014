import type { NewTask } from '../../core/model.ts';
import type { Transaction } from './database.ts';
import type { Books } from './rows.ts';

/**
 * Takes from the budgets of URL templates what new tasks need; says which of them get it, the first ones first.
 * The sums are read without a lock and written at the end: reports that are settled at the same moment may take a
 * little too much together, but need not wait for each other.
 */
export async function takeBudget(
  tx: Transaction,
  jobId: number,
  tasks: readonly NewTask[],
  { max, books }: { max: number | null; books: Books },
): Promise<(task: NewTask) => boolean> {
  if (max === null) return () => true;
  const templates = new Set(tasks.flatMap(({ template }) => (template === null ? [] : [template])));
  if (templates.size === 0) return () => true;
  const rows = await tx.run<{ template: string; count: number }>(SELECT_COUNTS, jobId, [...templates]);
  const counts = new Map(rows.map(({ template, count }) => [template, count]));
  return ({ template }) => {
    if (template === null) return true;
    const count = counts.get(template) ?? 0;
    if (count >= max) return false;
    counts.set(template, count + 1);
    books.spend(template, 1);
    return true;
  };
}

const SELECT_COUNTS =
  'SELECT template, count FROM templates WHERE job_id = $1 AND template = ANY($2::text[])';
