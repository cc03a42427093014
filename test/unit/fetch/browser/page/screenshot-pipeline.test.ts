import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  ScreenshotPipeline,
  SHOTS_AT_ONCE_MAX,
} from '../../../../../src/fetch/browser/page/screenshot-pipeline.ts';

const WHILE_MS = 20;
const PICTURE_MS = 300;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Counts the pictures that are begun and not yet there. */
function pictures(pipeline: ScreenshotPipeline) {
  const counts = { open: 0, begun: 0, most: 0 };
  const take = (number: number) =>
    pipeline.take(async () => {
      counts.begun++;
      counts.most = Math.max(counts.most, ++counts.open);
      await new Promise((resolve) => setTimeout(resolve, PICTURE_MS));
      counts.open--;
      if (number === 3) throw new Error('the page is gone');
      return number;
    });
  return { counts, take };
}

test('few pictures are taken at once, and all of them', async () => {
  const { counts, take } = pictures(new ScreenshotPipeline());
  const taken = Promise.allSettled([0, 1, 2, 3, 4, 5, 6, 7].map(take));
  await vi.advanceTimersByTimeAsync(8 * PICTURE_MS);
  expect((await taken).filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
  expect(counts.most).toBe(SHOTS_AT_ONCE_MAX);
});

test('a picture is begun when the one before is drawn, which is known from those before', async () => {
  const { counts, take } = pictures(new ScreenshotPipeline());
  void Promise.all([0, 1, 2].map(take));
  await vi.advanceTimersByTimeAsync(PICTURE_MS - 1);
  expect(counts.begun).toBe(1);
  await vi.advanceTimersByTimeAsync(PICTURE_MS / 2);
  expect(counts.begun).toBe(2);
  await vi.advanceTimersByTimeAsync(PICTURE_MS * 0.4);
  expect(counts).toMatchObject({ begun: 3, open: 2 });
});

test('pictures that never come do not keep others from being taken', async () => {
  vi.useRealTimers();
  const pipeline = new ScreenshotPipeline(WHILE_MS);
  const never = new Promise<void>(() => {});
  for (let stuck = 0; stuck < SHOTS_AT_ONCE_MAX; stuck++) void pipeline.take(() => never);
  await expect(pipeline.take(async () => 'taken')).resolves.toBe('taken');
});
