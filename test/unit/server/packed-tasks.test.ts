import { expect, test } from 'vitest';
import type { NewTask } from '../../../src/core/model.ts';
import { packTasks, unpackTasks } from '../../../src/server/api/scrape/packed-tasks.ts';

const task = (path: string, more: Partial<NewTask> = {}): NewTask => ({
  ...{ url: `https://a.example/${path}`, host: 'a.example', depth: 0, priority: 0, route: null },
  ...{ meta: null, hops: 0, template: null, modifiedAt: null },
  ...more,
});

test.each<[string, NewTask[]]>([
  ['no task', []],
  ['tasks that differ by their URL alone', [task('1'), task('2'), task('3')]],
  [
    'tasks that differ in everything',
    [
      task('1', { host: 'b.example', depth: 2, priority: 5, route: 'item', meta: { a: 1 } }),
      task('2', { hops: 1, template: 't', modifiedAt: 7, referrer: 'https://a.example/' }),
      task('', { meta: { a: null }, priority: -3 }),
    ],
  ],
])('%s are the same after their way between threads', (_, tasks) => {
  expect(unpackTasks(structuredClone(packTasks(tasks)))).toEqual(tasks);
});

test('what all tasks share crosses once', () => {
  const { hosts, columns } = packTasks(Array.from({ length: 50 }, (_, at) => task(String(at))));
  expect(hosts).toEqual(['a.example']);
  expect(Object.values(columns).every((column) => 'all' in column)).toBe(true);
});
