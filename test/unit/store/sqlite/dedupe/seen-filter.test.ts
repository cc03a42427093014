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

test('a filter that would take too much memory gives up', () => {
  const full = (power: number) => ({
    capacity: 1_048_576 * 2 ** power,
    count: 1_048_576 * 2 ** power,
    bits: new Uint32Array(16),
  });
  const filter = new SeenFilter([0, 1, 2, 3].map(full));
  expect(filter.addAll(keys(1, 1))).toBeNull();
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
