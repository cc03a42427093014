import { describe, expect, test } from 'vitest';
import {
  type Blame,
  CRASHES_MAX,
  LOSSES_MAX,
  nextSuspicion,
  SUSPECT_LOSSES,
  type Suspicion,
  suspectsTogether,
} from '../../../../src/core/suspicion/suspicion.ts';

const NEW: Suspicion = { losses: 0, crashes: 0 };
const isSuspect = ({ losses }: Suspicion) => losses >= SUSPECT_LOSSES;

function lostBy(...blames: Blame[]): Suspicion {
  return blames.reduce((suspicion, blame) => nextSuspicion(suspicion, blame, 1), NEW);
}

describe('suspicion', () => {
  test('needs more than one dead worker', () => {
    expect(isSuspect(lostBy('worker'))).toBe(false);
    expect(isSuspect(lostBy('worker', 'worker'))).toBe(true);
    expect(lostBy('none', 'none', 'none', 'none')).toEqual(NEW);
  });

  test('a task that was running when its worker died is alone at once, its neighbours are not suspected', () => {
    const named = lostBy({ running: [1] });
    expect(suspectsTogether([named, named], 100)).toBe(1);
    expect(named.losses).toBeLessThan(LOSSES_MAX);
    expect(lostBy({ running: [2] }, { running: [3] }, { running: [] })).toEqual(NEW);
  });

  test('coordinators that die make suspects after a while, but never dead letters', () => {
    const deaths = (count: number) => lostBy(...Array.from({ length: count }, () => 'coordinator' as const));
    expect(isSuspect(deaths(CRASHES_MAX - 1))).toBe(false);
    expect(isSuspect(deaths(CRASHES_MAX))).toBe(true);
    expect(deaths(100)).toEqual(deaths(CRASHES_MAX));
    expect(deaths(100).losses).toBe(SUSPECT_LOSSES);
  });
});

/** Runs all tasks as a coordinator would, until each has ended. One worker has room for `room` tasks that are no suspects. */
function simulate(count: number, poison: ReadonlySet<number>, room: number) {
  const tasks = new Map(Array.from({ length: count }, (_, id) => [id, NEW]));
  const dead: number[] = [];
  let batches = 0;
  let deaths = 0;
  while (tasks.size > 0) {
    const suspects = [...tasks].filter(([, suspicion]) => isSuspect(suspicion));
    const others = [...tasks].filter(([, suspicion]) => !isSuspect(suspicion));
    const group =
      others.length > 0
        ? others.slice(0, room)
        : suspects.slice(
            0,
            suspectsTogether(
              suspects.map(([, suspicion]) => suspicion),
              room,
            ),
          );
    batches++;
    const kills = group.some(([id]) => poison.has(id));
    if (kills) deaths++;
    for (const [id, before] of group) {
      const next = nextSuspicion(before, kills ? 'worker' : 'none', id);
      if (kills && next.losses < LOSSES_MAX) tasks.set(id, next);
      else tasks.delete(id);
      if (kills && next.losses >= LOSSES_MAX) dead.push(id);
    }
  }
  return { dead: dead.sort((a, b) => a - b), batches, deaths };
}

describe('the search', () => {
  test('finds one task among thousands with few dead workers and few batches', () => {
    const { dead, batches, deaths } = simulate(1_000, new Set([777]), 1_000);
    expect(dead).toEqual([777]);
    expect(deaths).toBe(LOSSES_MAX);
    // Not a thousand of one task each.
    expect(batches).toBeLessThan(80);
  });

  test.each([[[0]], [[5, 6, 7]], [[0, 63, 64, 119]]])('%j die, and no innocent one', (poison) => {
    expect(simulate(120, new Set(poison), 120).dead).toEqual(poison);
  });

  test('a worker that is ended from outside costs one more batch', () => {
    const tasks = Array.from({ length: 120 }, () => nextSuspicion(NEW, 'worker', 0));
    expect(tasks.some(isSuspect)).toBe(false);
  });
});
