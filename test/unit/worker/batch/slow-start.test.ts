import { describe, expect, test } from 'vitest';
import { SlowStart } from '../../../../src/worker/batch/slow-start.ts';

/** A clock whose one timer is fired by hand. */
function openSlowStart(answers: number) {
  let fire: (() => void) | null = null;
  const clock = {
    now: () => 0,
    after: (_: number, run: () => void) => {
      fire = run;
      return () => {
        if (fire === run) fire = null;
      };
    },
  };
  const start = new SlowStart(answers, clock);
  const begun: number[] = [];
  for (let index = 0; index < 4; index++) void start.admission(index).then(() => begun.push(index));
  const seen = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return begun.toSorted();
  };
  return { start, seen, fire: () => fire?.(), isTimed: () => fire !== null };
}

describe('slow start', () => {
  test('one request begins at once, and one more for every five answers', async () => {
    const { start, seen } = openSlowStart(0);
    expect(await seen()).toEqual([0]);
    for (let count = 0; count < 4; count++) start.onAnswer();
    expect(await seen()).toEqual([0]);
    start.onAnswer();
    expect(await seen()).toEqual([0, 1]);
  });

  test('what answered before counts', async () => {
    expect(await openSlowStart(12).seen()).toEqual([0, 1, 2]);
  });

  test('where nothing answers, one more begins after a while', async () => {
    const { seen, fire } = openSlowStart(0);
    fire();
    expect(await seen()).toEqual([0, 1]);
    fire();
    expect(await seen()).toEqual([0, 1, 2]);
  });

  test('all begin when nothing is left, and no timer stays', async () => {
    const { start, seen, isTimed } = openSlowStart(0);
    start.end();
    expect(await seen()).toEqual([0, 1, 2, 3]);
    expect(isTimed()).toBe(false);
  });
});
