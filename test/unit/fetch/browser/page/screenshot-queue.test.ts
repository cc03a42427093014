import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ScreenshotQueue } from '../../../../../src/fetch/browser/page/screenshot-queue.ts';

const WHILE_MS = 20;

test('one picture is taken at a time, and all of them', async () => {
  const queue = new ScreenshotQueue();
  const counts = { open: 0, most: 0 };
  const take = (number: number) =>
    queue.take(async () => {
      counts.most = Math.max(counts.most, ++counts.open);
      await nextTurn();
      counts.open--;
      if (number === 3) throw new Error('the page is gone');
      return number;
    });
  const taken = await Promise.allSettled([0, 1, 2, 3, 4, 5, 6, 7].map(take));
  expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
  expect(counts.most).toBe(1);
});

test('a picture that never comes does not keep others from being taken', async () => {
  const queue = new ScreenshotQueue(WHILE_MS);
  void queue.take(() => new Promise<void>(() => {}));
  await expect(queue.take(async () => 'taken')).resolves.toBe('taken');
});
