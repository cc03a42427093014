import { expect, test } from 'vitest';
import { TaskPriorities } from '../../../../src/coordinator/priority/task-priorities.ts';
import {
  addPriorityRule,
  compilePriorities,
  parsePriorityRule,
} from '../../../../src/core/priority/priority.ts';
import { specOf } from '../../../support/fixtures.ts';

const spec = specOf({ routes: [{ name: 'product', match: '/p/*' }, { name: 'rest' }] });
const A = 'https://a.example';

test('the newest rule that is about a task holds, by pattern or by route', () => {
  const rules = [
    { pattern: '/p/*', priority: 1 },
    { pattern: 'route:rest', priority: 2 },
    { pattern: 'b.example', priority: 3 },
  ];
  const priorityOf = compilePriorities(rules, spec);
  const of = (url: string, route: string | null = null) => priorityOf({ url, route });
  expect(of(`${A}/p/1`)).toBe(1);
  expect(of(`${A}/x/1`)).toBe(2);
  expect(of(`${A}/p/1`, 'rest')).toBe(2);
  expect(of('https://b.example/x', 'rest')).toBe(3);
  expect(of(`${A}/x/1`, 'product')).toBeNull();
});

test('a rule that cannot be is refused with a reason', () => {
  expect(parsePriorityRule('/p/*', '-5', spec)).toEqual({ pattern: '/p/*', priority: -5 });
  expect(parsePriorityRule('route:rest', '1000', spec).priority).toBe(1_000);
  for (const number of ['1001', '1.5', 'high', ''])
    expect(() => parsePriorityRule('/p/*', number, spec)).toThrow(/whole number from -1000 to 1000/);
  expect(() => parsePriorityRule('route:none', '1', spec)).toThrow("the job has no route 'none'");
  expect(() => parsePriorityRule('', '1', spec)).toThrow(/is empty/);
});

test('rules for the same tasks replace each other, and there are not too many', () => {
  const rules = addPriorityRule([{ pattern: '/a', priority: 1 }], { pattern: '/b', priority: 2 });
  expect(addPriorityRule(rules, { pattern: '/a', priority: 3 })).toEqual([
    { pattern: '/b', priority: 2 },
    { pattern: '/a', priority: 3 },
  ]);
  const many = Array.from({ length: 100 }, (_, number) => ({ pattern: `/${number}`, priority: 1 }));
  expect(() => addPriorityRule(many, { pattern: '/x', priority: 1 })).toThrow(/at most 100/);
});

test('new tasks get what rules say, as soon as those are known', () => {
  const priorities = new TaskPriorities({ spec, priorities: [] });
  const tasks = [
    { url: `${A}/p/1`, route: null, priority: 4 },
    { url: `${A}/x`, route: null, priority: 4 },
  ];
  priorities.apply(tasks);
  expect(tasks.map(({ priority }) => priority)).toEqual([4, 4]);
  priorities.update([{ pattern: '/p/*', priority: 9 }]);
  priorities.apply(tasks);
  expect(tasks.map(({ priority }) => priority)).toEqual([9, 4]);
});
