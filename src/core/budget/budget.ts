import type { KeyLimits } from '../keys/api-key.ts';

/**
 * Budgets hold before requests are sent: what is out counts as spent, each task as a mean one. So a budget is exceeded by
 * what is in flight at most. A job begins with few tasks at once, and has as many out later as it has learned from.
 */
export interface Budget {
  requests: number | null;
  dollars: number | null;
  browserSeconds: number | null;
}

export type Spent = { [Name in keyof Budget]: number };

/** What all jobs of a key may spend within a day; null where it limits none of that. */
export function dailyBudgetOf(limits: KeyLimits): Budget | null {
  const budget = {
    requests: limits.requestsPerDay,
    dollars: limits.costPerDay,
    browserSeconds: limits.browserSecondsPerDay,
  };
  return isLimited(budget) ? budget : null;
}

export function isLimited(budget: Budget): boolean {
  return Object.values(budget).some((limit) => limit !== null);
}

/** What so many tasks of this run took together. Sums, as the price of a call comes with the last part of its report. */
interface TaskCosts {
  tasks: number;
  dollars: number;
  browserSeconds: number;
}

export const NO_TASK_COSTS: Readonly<TaskCosts> = { tasks: 0, dollars: 0, browserSeconds: 0 };

/** Tasks that are out at once while nothing is known of what they take. */
const FIRST_TASKS = 4;

export function addTaskCosts(sum: TaskCosts, more: TaskCosts): TaskCosts {
  return {
    tasks: sum.tasks + more.tasks,
    dollars: sum.dollars + more.dollars,
    browserSeconds: sum.browserSeconds + more.browserSeconds,
  };
}

/** How many tasks may still be sent out, with `out` of them on their way. */
export function tasksWithin(budget: Budget, spent: Spent, out: number, costs: TaskCosts): number {
  const { requests, dollars, browserSeconds } = budget;
  const { tasks } = costs;
  return Math.min(
    // Each task is one request.
    requests === null ? Number.POSITIVE_INFINITY : Math.max(0, Math.floor(requests - spent.requests) - out),
    dollars === null
      ? Number.POSITIVE_INFINITY
      : tasksFor(dollars - spent.dollars, out, tasks, costs.dollars),
    browserSeconds === null
      ? Number.POSITIVE_INFINITY
      : tasksFor(browserSeconds - spent.browserSeconds, out, tasks, costs.browserSeconds),
  );
}

/**
 * The same for the budget of a key, which its jobs share. Requests are counted over all of them. What a task costs is known
 * of this job alone, so what others have out is no part of that: a new job would wait for theirs before its first task.
 */
export function tasksWithinKey(
  budget: Budget,
  spent: Spent,
  out: { ofJob: number; ofKey: number },
  costs: TaskCosts,
): number {
  const { requests } = budget;
  return Math.min(
    tasksWithin({ ...budget, requests: null }, spent, out.ofJob, costs),
    tasksWithin({ requests, dollars: null, browserSeconds: null }, spent, out.ofKey, costs),
  );
}

/** One at least while nothing is out: otherwise the last of it is never used, and the job never ends. */
function tasksFor(left: number, out: number, tasks: number, took: number): number {
  if (left <= 0) return 0;
  const fitting = took > 0 ? Math.floor((left / took) * tasks) : Number.POSITIVE_INFINITY;
  return Math.max(Math.min(fitting, Math.max(FIRST_TASKS, tasks)) - out, out === 0 ? 1 : 0);
}

/** Which budget is used up, in words; null while none is. */
export function exhausted(budget: Budget, spent: Spent): string | null {
  const limit = usedUp(budget, spent);
  return limit === null ? null : `limit of ${limit} reached`;
}

/** The same for the budget of a key. */
export function exhaustedOfKey(budget: Budget, spent: Spent): string | null {
  const limit = usedUp(budget, spent);
  return limit === null ? null : `limit of ${limit} per day of the API key reached`;
}

function usedUp(budget: Budget, spent: Spent): string | null {
  const { requests, dollars, browserSeconds } = budget;
  if (requests !== null && spent.requests >= requests) return `${requests} requests`;
  if (dollars !== null && spent.dollars >= dollars) return `${dollars} USD`;
  if (browserSeconds !== null && spent.browserSeconds >= browserSeconds)
    return `${browserSeconds} browser seconds`;
  return null;
}
