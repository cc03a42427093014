import { describe, expect, test } from 'vitest';
import {
  addSize,
  BatchBytes,
  expectedBytes,
  NO_SIZES,
  pagesWithin,
} from '../../../../src/core/byte-limit/byte-limit.ts';

const sizesOf = (...bytes: number[]) => bytes.reduce(addSize, NO_SIZES);

describe('pages within a limit of bytes', () => {
  test('are few until it is known how large they are, then as many as fit', () => {
    expect(pagesWithin(5_000_000, 0, NO_SIZES)).toBe(4);
    expect(pagesWithin(5_000_000, 3, NO_SIZES)).toBe(1);
    const known = sizesOf(...Array.from({ length: 200 }, () => 100_000));
    expect(pagesWithin(5_000_000, 0, known)).toBe(50);
    expect(pagesWithin(5_000_000, 20, known)).toBe(30);
    expect(pagesWithin(5_000_000, 60, known)).toBe(0);
    expect(expectedBytes(known, 5_000_000)).toBeCloseTo(100_000);
  });

  test('are no more at once than were learned from', () => {
    expect(pagesWithin(5_000_000, 0, sizesOf(100, 100, 100, 100, 100, 100))).toBe(6);
  });

  test('are one for the last bytes, and none without bytes', () => {
    const known = sizesOf(1_000);
    expect(pagesWithin(10, 0, known)).toBe(1);
    expect(pagesWithin(10, 1, known)).toBe(0);
    expect(pagesWithin(0, 0, known)).toBe(0);
    expect(pagesWithin(-5, 0, NO_SIZES)).toBe(0);
    expect(pagesWithin(10, 0, sizesOf(0, 0))).toBeGreaterThan(0);
  });
});

describe('bytes of a batch', () => {
  test('are used by what has come and by what is in flight', () => {
    const bytes = new BatchBytes(400, 4);
    expect([1, 2, 3, 4, 5].map(() => bytes.begin())).toEqual([true, true, true, true, false]);
    for (const size of [10, 10, 10]) bytes.end(size);
    expect([1, 2, 3].map(() => bytes.begin())).toEqual([true, true, true]);
    expect(bytes.begin()).toBe(false);
  });

  test('of pages larger than expected, fewer are sent', () => {
    const bytes = new BatchBytes(1_000, 100);
    expect(bytes.begin()).toBe(true);
    expect(bytes.begin()).toBe(true);
    bytes.end(400);
    expect(bytes.begin()).toBe(true);
    expect(bytes.begin()).toBe(false);
    bytes.end(null);
    expect(bytes.begin()).toBe(true);
    bytes.end(600);
    expect(bytes.begin()).toBe(false);
  });
});
