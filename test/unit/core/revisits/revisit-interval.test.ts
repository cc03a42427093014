import { describe, expect, test } from 'vitest';
import {
  addVisit,
  isIntervalOver,
  type RevisitBounds,
  type Visit,
  type VisitHistory,
} from '../../../../src/core/revisits/revisit-interval.ts';
import { comparePolicies } from '../../../sim/revisits.ts';

const DAY = 86_400_000;
const BOUNDS: RevisitBounds = { minMs: DAY, maxMs: 30 * DAY };
type Finding = Visit['finding'];

/** Visits as soon as they are due; the intervals after each. */
function intervals(findings: readonly Finding[], bounds = BOUNDS): number[] {
  let history: VisitHistory | null = null;
  let at = 0;
  return findings.map((finding) => {
    history = addVisit(history, { at, finding }, bounds);
    at += history.intervalMs;
    return history.intervalMs / DAY;
  });
}
const times = (count: number, finding: Finding): Finding[] => Array(count).fill(finding);

describe('intervals between visits', () => {
  test('the first visit says nothing, and the shortest interval follows', () => {
    expect(intervals(['changed'])).toEqual([1]);
    expect(intervals(['same'])).toEqual([1]);
    expect(isIntervalOver({ history: null, visitedAt: 0, now: DAY }, BOUNDS)).toBe(true);
    expect(isIntervalOver({ history: null, visitedAt: 0, now: DAY / 2 }, BOUNDS)).toBe(false);
  });

  test('a refresh a little earlier in the day than the visit before is early enough', () => {
    expect(isIntervalOver({ history: null, visitedAt: DAY / 24, now: DAY }, BOUNDS)).toBe(true);
  });

  test('a page that never changes is visited at intervals that double, up to the longest', () => {
    expect(intervals(times(8, 'same'))).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
  });

  test('a page that changes at every visit stays at the shortest', () => {
    expect(new Set(intervals(times(20, 'changed')))).toEqual(new Set([1]));
  });

  test('one change after a quiet time shortens the interval, and does not forget the quiet time', () => {
    const [quiet, after] = intervals([...times(7, 'same'), 'changed']).slice(-2) as [number, number];
    expect(quiet).toBe(30);
    expect(after).toBeLessThan(30);
    expect(after).toBeGreaterThan(5);
  });

  test('a page that takes up another habit is followed', () => {
    const found = intervals([...times(10, 'same'), ...times(25, 'changed')]);
    expect(found.at(-1)).toBe(1);
  });

  test('a page that is gone, and stays so, counts as unchanged; one that comes back has changed', () => {
    expect(
      intervals(['same', 'gone', 'gone', 'gone', 'gone', 'gone', 'gone', 'gone']).at(-1),
    ).toBeGreaterThan(1);
    const back = intervals([...times(6, 'gone'), 'same']);
    expect(back.at(-1)).toBeLessThan(back.at(-2)!);
  });

  test('other bounds count at once, and a clock that was set back harms nothing', () => {
    const history = addVisit(null, { at: 5 * DAY, finding: 'same' }, BOUNDS);
    const long = { history: { ...history, intervalMs: 9 * DAY }, visitedAt: 5 * DAY, now: 6 * DAY };
    expect(isIntervalOver(long, BOUNDS)).toBe(false);
    expect(isIntervalOver(long, { minMs: 1, maxMs: DAY })).toBe(true);
    const back = addVisit(history, { at: 0, finding: 'changed' }, BOUNDS);
    expect(back.intervalMs).toBe(DAY);
    expect(Object.values(back).every((value) => Number.isFinite(Number(value)))).toBe(true);
  });

  test('with fewer visits than fixed intervals, nearly as many changes are found', () => {
    const results = comparePolicies(3);
    const [fixed, adaptive] = [results.get('every day')!, results.get('adaptive, 1 day to 30 days')!];
    expect(adaptive.visits).toBeLessThan(0.6 * fixed.visits);
    expect(adaptive.found).toBeGreaterThan(0.9 * fixed.found);
    expect(adaptive.found).toBeGreaterThan(1.2 * results.get('every 2 days')!.found);
  });
});
