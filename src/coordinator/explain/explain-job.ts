import { type Explanation, explain, factsOf, type SlotAccount } from '../../core/explain/explain.ts';
import { newestDecisions, type ScalingDecision } from '../../core/explain/scaling-decision.ts';
import { parseChange } from '../../core/explain/what-if.ts';
import { type Wanted, wantedWorkers } from '../../core/scaling/scaling.ts';
import type { ReadStore } from '../../ports/store/read-store.ts';
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
): Promise<Explanation & { wanted: Wanted | null; decisions: ScalingDecision[] }> {
  const accounts = (await store.slotTimes.load(job.id)).filter(({ pass }) => pass === job.pass);
  const { pending, leased, attempted } = await store.jobs.counters(job.id);
  const { limits } = job.spec;
  const unfinished = pending + leased;
  const sources = await store.jobs.sources(job.id);
  const workers = accounts[0]?.workers ?? 1;
  const explanation = explain({
    accounts,
    remaining:
      limits.pages === null ? unfinished : Math.min(unfinished, Math.max(0, limits.pages - attempted)),
    isRunning: isAlive,
    isSourceDone: sources.length >= job.spec.sources.length && sources.every(({ done }) => done),
    isOverBudget: job.state === 'stopped' && isLimitReached(job.reason),
    changes: changes.map((text) => ({ text, change: parseChange(text, workers) })),
  });
  const wanted = isAlive ? await wantedOf(store, job) : null;
  return { ...explanation, wanted, decisions: decisionsIn(accounts) };
}

/** What was decided about the workers and batches of a job, and why; the newest last. */
export async function decisionsOf(
  store: Pick<ReadStore, 'slotTimes'>,
  job: Pick<Job, 'id' | 'pass'>,
): Promise<ScalingDecision[]> {
  return decisionsIn((await store.slotTimes.load(job.id)).filter(({ pass }) => pass === job.pass));
}

function decisionsIn(accounts: readonly SlotAccount[]): ScalingDecision[] {
  return newestDecisions(accounts.flatMap(({ decisions = [] }) => decisions));
}

/** How many workers a job that runs could use, and why; null while nothing is measured. */
export async function wantedOf(
  store: Pick<ReadStore, 'jobs' | 'slotTimes'>,
  job: Job,
): Promise<Wanted | null> {
  const accounts = (await store.slotTimes.load(job.id)).filter(({ pass }) => pass === job.pass);
  if (accounts.length === 0) return null;
  const { pending, leased } = await store.jobs.counters(job.id);
  // Jobs of an earlier version have no such field.
  const finishSeconds = job.spec.scaling?.finishSeconds ?? null;
  return wantedWorkers({
    ...factsOf(accounts, true),
    remaining: pending + leased,
    finishSeconds: finishSeconds === null ? null : Math.max(1, finishSeconds - job.workedMs / 1_000),
  });
}
