import { expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { Camera } from '../../src/fetch/browser/camera.ts';

const WHILE_MS = 20;

test('few pictures are taken at once, and all of them', async () => {
  const camera = new Camera();
  let open = 0;
  let most = 0;
  const take = async (number: number) => {
    most = Math.max(most, ++open);
    await new Promise((resolve) => setImmediate(resolve));
    open--;
    if (number === 3) throw new Error('the page is gone');
    return number;
  };
  const numbers = [0, 1, 2, 3, 4, 5, 6, 7];
  const taken = await Promise.allSettled(numbers.map((number) => camera.take(() => take(number))));
  expect(most).toBe(LIMITS.shotsAtOnceMax);
  expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
});

test('pictures that never come do not keep others from being taken', async () => {
  const camera = new Camera(WHILE_MS);
  const never = new Promise<void>(() => {});
  for (let stuck = 0; stuck < LIMITS.shotsAtOnceMax; stuck++) void camera.take(() => never);
  await expect(camera.take(async () => 'taken')).resolves.toBe('taken');
});
