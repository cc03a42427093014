import { join } from 'node:path';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import { type Costs, type Frontier, noCosts, workRound } from './flat-work.ts';

/**
 * Costs of stores that `flat-child.ts` has filled: `node bench/flat-costs-child.ts '[{"folder": …, "tasks": …, "nextUrl": …}]'`.
 * Their rounds go in turns in one process: the machine's speed moves by half within seconds, and so it moves for all.
 */

interface Filled {
  folder: string;
  tasks: number;
  nextUrl: number;
}

/** After what the filling has used. */
const FIRST_ROUND = 1_000;
const WARM_UP = 30;
const ROUNDS = 200;

const filled = JSON.parse(process.argv[2] ?? '[]') as Filled[];
const entries: { frontier: Frontier; costs: Costs }[] = [];
for (const { folder, tasks, nextUrl } of filled) {
  const store = openSqliteStore(join(folder, 'seine.db'), { checkpointThread: true });
  const job = await store.jobs.find('bench');
  if (!job) throw new Error(`${folder} has no job`);
  entries.push({ frontier: { store, jobId: job.id, known: tasks, nextUrl }, costs: noCosts() });
}
for (let round = -WARM_UP; round < ROUNDS; round++) {
  for (const { frontier, costs } of entries)
    await workRound(frontier, FIRST_ROUND + WARM_UP + round, round < 0 ? noCosts() : costs);
}
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
for (const { frontier } of entries) await frontier.store.close();
process.stdout.write(
  `${JSON.stringify(
    entries.map(({ costs }) => ({
      enqueueUs: mean(costs.enqueue),
      leaseUs: mean(costs.lease),
      settleUs: mean(costs.settle),
      statusUs: mean(costs.status),
    })),
  )}\n`,
);
