import { expect, test } from 'vitest';
import { addTaskCosts, exhausted, NO_TASK_COSTS, tasksWithin } from '../../../../src/core/budget/budget.ts';

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
