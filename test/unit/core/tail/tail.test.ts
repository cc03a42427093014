import { describe, expect, test } from 'vitest';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import { isLate, isTail, isTailOver } from '../../../../src/core/tail/tail.ts';

test('the tail is the last hundredth', () => {
  expect(isTail({ accepted: 1_000, left: 11 })).toBe(false);
  expect(isTail({ accepted: 1_000, left: 10 })).toBe(true);
  expect(isTail({ accepted: 1_000, left: 0 })).toBe(false);
  expect(isTail({ accepted: 99, left: 1 })).toBe(false);
});

test('it may take a tenth of the whole time, and half a minute in any case', () => {
  expect(isTailOver({ beganMs: 900_000, workedMs: 999_999 })).toBe(false);
  expect(isTailOver({ beganMs: 900_000, workedMs: 1_000_000 })).toBe(true);
  expect(isTailOver({ beganMs: 1_000, workedMs: 30_999 })).toBe(false);
  expect(isTailOver({ beganMs: 1_000, workedMs: 31_000 })).toBe(true);
});

describe('a batch is late', () => {
  const permit: Permit = { host: 'a.example', startAt: 0, endAt: 5_000, gapMs: 250, parallel: 2 };
  const host = { permit, tasks: 2, parallel: 4 };

  test('some time after the last request could leave', () => {
    expect(isLate([host], 0, 6_999)).toBe(false);
    expect(isLate([host], 0, 7_000)).toBe(true);
    expect(isLate([], 0, 7_000)).toBe(false);
  });

  test('later where pages usually take long', () => {
    const slow = { ...host, permit: { ...permit, usualMs: 3_000 } };
    expect(isLate([slow], 0, 16_999)).toBe(false);
    expect(isLate([slow], 0, 17_000)).toBe(true);
    expect(isLate([host, slow], 0, 16_999)).toBe(false);
  });

  test('without a gap from when it was planned', () => {
    const open = { ...host, permit: { ...permit, gapMs: 0, endAt: 90_000 } };
    expect(isLate([open], 1_000, 2_999)).toBe(false);
    expect(isLate([open], 1_000, 3_000)).toBe(true);
  });

  test('never where the host would get more requests at once than it takes, or may be down', () => {
    expect(isLate([{ ...host, tasks: 3 }], 0, 60_000)).toBe(false);
    expect(isLate([{ ...host, permit: { ...permit, probe: { url: null } } }], 0, 60_000)).toBe(false);
  });
});
