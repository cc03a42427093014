import { SITEMAP_ROUTE } from '../../core/job-schema/job.ts';
import { isIntervalOver, type VisitHistory } from '../../core/revisits/revisit-interval.ts';
import type { ReopenOptions } from '../../ports/store.ts';
import { isFinished, STATE_NUMBERS } from './states.ts';

export interface PassFacts {
  pass: number;
  collectionId: number;
  startedAt: number;
  lastTaskId: number;
}

/** Of a task, and of its last visit. */
interface VisitFacts {
  state: number;
  route: string | null;
  modified_at: number | null;
  visited_at: number | null;
  /** A `VisitHistory` as JSON, where intervals adapt. */
  visits: string | null;
}

/** Whether a task is to be visited again in this pass. */
export function isDue(
  task: VisitFacts,
  pass: PassFacts,
  options: Pick<ReopenOptions, 'visitedBefore' | 'adapt'>,
): boolean {
  if (!isFinished(task.state)) return false;
  const { visited_at: visitedAt, modified_at: modifiedAt, state } = task;
  if (visitedAt === null) return true;
  // Sitemaps say what else is new: they are read in every pass, once.
  if (task.route === SITEMAP_ROUTE) return visitedAt <= pass.startedAt;
  if (options.adapt) {
    const history: VisitHistory | null = task.visits === null ? null : JSON.parse(task.visits);
    if (!isIntervalOver({ history, visitedAt, now: pass.startedAt }, options.adapt)) return false;
  } else if (visitedAt >= options.visitedBefore) return false;
  // A date says that nothing is new only of a page that was got.
  const wasGot = state === STATE_NUMBERS.done || state === STATE_NUMBERS.unchanged;
  return !(wasGot && modifiedAt !== null && modifiedAt <= visitedAt);
}
