import { expect, test } from 'vitest';
import { SeenFilter } from '../../../../../src/store/sqlite/dedupe/seen-filter.ts';
import { SlotTable } from '../../../../../src/store/sqlite/dedupe/slot-table.ts';

/** Like fingerprints: a few hosts above, a hash below. */
const keys = (count: number, salt: number) =>
  Float64Array.from(
    { length: count },
    (_, n) => ((n * 7 + salt) % 2_097_152) * 0x1_0000_0000 + (Math.imul(n + salt, 0x9e3779b1) >>> 0),
  );

test('the filter never denies a key that it was given, over several levels, and few others pass', () => {
  const filter = new SeenFilter();
  const given = [keys(600_000, 1), keys(600_000, 1_000_003), keys(100_000, 5_000_011)];
  expect(filter.addAll(given[0]!)).toHaveLength(1);
  expect(filter.addAll(given[1]!)).toHaveLength(2);
  expect(filter.addAll(given[2]!)).toHaveLength(1);
  for (const group of given) expect(group.every((key) => filter.mayHave(key))).toBe(true);
  const others = keys(100_000, 90_000_017);
  expect(others.filter((key) => filter.mayHave(key)).length).toBeLessThan(5_000);
});

test('a filter comes back from its levels as it was', () => {
  const filter = new SeenFilter();
  const given = keys(5_000, 3);
  const levels = filter.addAll(given)!.map((level) => ({ ...level, bits: level.bits.slice() }));
  const again = new SeenFilter(levels);
  expect(given.every((key) => again.mayHave(key))).toBe(true);
  expect(again.addAll(keys(10, 77))?.[0]?.count).toBe(5_010);
});

test('levels grow up to a size, and a filter that would take too much memory gives up', () => {
  const full = (capacity: number) => ({ capacity, count: capacity, bits: new Uint32Array(16) });
  const capacities: number[] = [];
  for (;;) {
    const [level] = new SeenFilter(capacities.map(full)).addAll(keys(1, 1)) ?? [];
    if (!level) break;
    capacities.push(level.capacity);
    expect(level.bits.byteLength).toBeLessThan(13 * 1024 * 1024);
  }
  // Levels are kept by their capacity.
  expect(new Set(capacities).size).toBe(capacities.length);
  const whole = capacities.reduce((sum, capacity) => sum + capacity, 0);
  expect(whole).toBeGreaterThan(40_000_000);
  expect(whole).toBeLessThan(42_000_000);
});

test('a table of slots is a map, also for slots side by side and after it has grown', () => {
  const table = new SlotTable();
  const model = new Map<number, number>();
  for (const [index, key] of keys(3_000, 11).entries()) {
    for (const slot of [key, key + 1, key + 0x1_0000_0000]) {
      table.set(slot, index);
      model.set(slot, index);
    }
  }
  table.set(0, 7);
  model.set(0, 7);
  expect(table.size).toBe(model.size);
  for (const [slot, id] of model) expect(table.get(slot)).toBe(id);
  expect(keys(1_000, 40_000_003).every((key) => model.has(key) || table.get(key) === undefined)).toBe(true);
  expect([...table.sortedSlots()]).toEqual([...model.keys()].sort((a, b) => a - b));
});
