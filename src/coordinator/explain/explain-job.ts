import { type Explanation, explain } from '../../core/explain/explain.ts';
import { parseChange } from '../../core/explain/what-if.ts';
import type { ReadStore } from '../../ports/read-store.ts';
import type { Job } from '../../ports/store.ts';
import { isLimitReached } from '../stop.ts';

/** Why a job is not faster, from what its coordinators have written down: while it runs, afterwards, and from anywhere. */
export async function explainJob(
  store: Pick<ReadStore, 'jobs' | 'slotTimes'>,
  job: Job,
  {
    changes = [],
    isAlive = job.state === 'running',
  }: { changes?: readonly string[]; isAlive?: boolean } = {},
): Promise<Explanation> {
  const accounts = (await store.slotTimes.load(job.id)).filter(({ pass }) => pass === job.pass);
  const { pending, leased, attempted } = await store.jobs.counters(job.id);
  const { limits } = job.spec;
  const unfinished = pending + leased;
  const sources = await store.jobs.sources(job.id);
  const workers = accounts[0]?.workers ?? 1;
  return explain({
    accounts,
    remaining:
      limits.pages === null ? unfinished : Math.min(unfinished, Math.max(0, limits.pages - attempted)),
    isRunning: isAlive,
    isSourceDone: sources.length >= job.spec.sources.length && sources.every(({ done }) => done),
    isOverBudget: job.state === 'stopped' && isLimitReached(job.reason),
    changes: changes.map((text) => ({ text, change: parseChange(text, workers) })),
  });
}
