import { expect, test } from 'vitest';
import {
  addTaskCosts,
  dailyBudgetOf,
  exhausted,
  exhaustedOfKey,
  NO_TASK_COSTS,
  tasksWithin,
  tasksWithinKey,
} from '../../../../src/core/budget/budget.ts';
import { KEY_LIMITS_DEFAULT } from '../../../../src/core/keys/api-key.ts';

const none = { requests: null, dollars: null, browserSeconds: null };
const nothing = { requests: 0, dollars: 0, browserSeconds: 0 };

test('what is out counts as spent', () => {
  expect(tasksWithin(none, nothing, 5, NO_TASK_COSTS)).toBe(Number.POSITIVE_INFINITY);
  expect(tasksWithin({ ...none, requests: 10 }, { ...nothing, requests: 4 }, 5, NO_TASK_COSTS)).toBe(1);
  expect(tasksWithin({ ...none, requests: 10 }, { ...nothing, requests: 4 }, 9, NO_TASK_COSTS)).toBe(0);
  const costs = addTaskCosts(NO_TASK_COSTS, { tasks: 100, dollars: 1, browserSeconds: 0 });
  // 0.3 dollars are 30 tasks, of which 12 are on their way.
  expect(tasksWithin({ ...none, dollars: 1 }, { ...nothing, dollars: 0.7 }, 12, costs)).toBe(18);
  expect(tasksWithin({ ...none, dollars: 1 }, { ...nothing, dollars: 1.1 }, 0, costs)).toBe(0);
});

test('a job begins with few tasks, and one goes out while anything is left', () => {
  expect(tasksWithin({ ...none, dollars: 5 }, nothing, 0, NO_TASK_COSTS)).toBe(4);
  expect(tasksWithin({ ...none, browserSeconds: 5 }, nothing, 3, NO_TASK_COSTS)).toBe(1);
  const dear = addTaskCosts(NO_TASK_COSTS, { tasks: 4, dollars: 40, browserSeconds: 0 });
  expect(tasksWithin({ ...none, dollars: 41 }, { ...nothing, dollars: 40 }, 0, dear)).toBe(1);
  expect(tasksWithin({ ...none, dollars: 41 }, { ...nothing, dollars: 40 }, 1, dear)).toBe(0);
});

test('says which budget is used up', () => {
  expect(exhausted(none, { requests: 9, dollars: 9, browserSeconds: 9 })).toBeNull();
  expect(exhausted({ ...none, requests: 9 }, { ...nothing, requests: 9 })).toBe(
    'limit of 9 requests reached',
  );
  expect(exhausted({ ...none, dollars: 2 }, { ...nothing, dollars: 2.1 })).toBe('limit of 2 USD reached');
  expect(exhausted({ ...none, browserSeconds: 3 }, { ...nothing, browserSeconds: 4 })).toContain('3 browser');
});

test('what a key may spend on a day is a budget of all its jobs', () => {
  const others = { requestsPerMinute: 1, pagesUnderWay: 1, pagesPerDay: 1 };
  expect(dailyBudgetOf({ ...KEY_LIMITS_DEFAULT, ...others })).toBeNull();
  const limits = { requestsPerDay: 10, costPerDay: 2, browserSecondsPerDay: 0.5 };
  const budget = dailyBudgetOf({ ...KEY_LIMITS_DEFAULT, ...limits });
  expect(budget).toEqual({ requests: 10, dollars: 2, browserSeconds: 0.5 });
  for (const [name, part] of [
    ['requestsPerDay', { requests: 10 }],
    ['costPerDay', { dollars: 2 }],
    ['browserSecondsPerDay', { browserSeconds: 0.5 }],
  ] as const)
    expect(dailyBudgetOf({ ...KEY_LIMITS_DEFAULT, [name]: limits[name] })).toEqual({ ...none, ...part });
});

test('requests that other jobs of a key have out count as spent, too', () => {
  const requests = { ...none, requests: 10 };
  const spent = { ...nothing, requests: 4 };
  expect(tasksWithinKey(requests, spent, { ofJob: 1, ofKey: 5 }, NO_TASK_COSTS)).toBe(1);
  expect(tasksWithinKey(requests, spent, { ofJob: 0, ofKey: 6 }, NO_TASK_COSTS)).toBe(0);
  // What others have out does not keep a job from its first tasks, whose cost nobody knows yet.
  for (const name of ['dollars', 'browserSeconds'] as const) {
    const budget = { ...none, [name]: 5 };
    expect(tasksWithinKey(budget, nothing, { ofJob: 1, ofKey: 90 }, NO_TASK_COSTS)).toBe(3);
    expect(tasksWithinKey(budget, { ...nothing, [name]: 5 }, { ofJob: 0, ofKey: 0 }, NO_TASK_COSTS)).toBe(0);
  }
});

test('says which budget of a key is used up', () => {
  const spent = { requests: 9, dollars: 2.1, browserSeconds: 4 };
  const ofDay = 'per day of the API key reached';
  expect(exhaustedOfKey(none, spent)).toBeNull();
  expect(exhaustedOfKey({ requests: 10, dollars: 3, browserSeconds: 5 }, spent)).toBeNull();
  expect(exhaustedOfKey({ ...none, requests: 9 }, spent)).toBe(`limit of 9 requests ${ofDay}`);
  expect(exhaustedOfKey({ ...none, dollars: 2 }, spent)).toBe(`limit of 2 USD ${ofDay}`);
  expect(exhaustedOfKey({ ...none, browserSeconds: 3 }, spent)).toBe(`limit of 3 browser seconds ${ofDay}`);
});
