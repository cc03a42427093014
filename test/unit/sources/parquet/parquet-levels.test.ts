import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readHybrid } from '../../../../src/sources/parquet/parquet-levels.ts';

const read = (bytes: number[] | Uint8Array, width: number, count: number) => {
  const view = new DataView(Uint8Array.from(bytes).buffer);
  return [...readHybrid(view, { start: 0, end: view.byteLength }, width, count)];
};

function countOf(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...countOf(Math.floor(value / 128))];
}

/** A run of one number, or numbers side by side, lowest bit first. */
function encode(part: { value: number; run: number } | { values: number[] }, width: number): number[] {
  if ('value' in part) {
    const bytes = Array.from({ length: (width + 7) >> 3 }, (_, n) => Math.floor(part.value / 256 ** n) % 256);
    return [...countOf(part.run * 2), ...bytes];
  }
  const groups = Math.ceil(part.values.length / 8);
  const bits = part.values
    .map((value) => value.toString(2).padStart(width, '0'))
    .reverse()
    .join('');
  const all = bits.padStart(groups * 8 * width, '0');
  const bytes = Array.from({ length: groups * width }, (_, n) =>
    Number.parseInt(all.slice(all.length - 8 * (n + 1), all.length - 8 * n), 2),
  );
  return [...countOf(groups * 2 + 1), ...bytes];
}

test('what was encoded comes back, for every width', () =>
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 31 }),
      fc.array(fc.boolean(), { maxLength: 6 }),
      fc.gen(),
      (width, kinds, gen) => {
        const number = fc.integer({ min: 0, max: 2 ** width - 1 });
        const bytes: number[] = [];
        const expected: number[] = [];
        for (const isRun of kinds) {
          if (isRun) {
            const part = { value: gen(() => number), run: gen(() => fc.integer({ min: 1, max: 300 })) };
            bytes.push(...encode(part, width));
            expected.push(...Array<number>(part.run).fill(part.value));
          } else {
            const values = gen(() => fc.array(number, { minLength: 8, maxLength: 8 }));
            bytes.push(...encode({ values }, width));
            expected.push(...values);
          }
        }
        expect(read(bytes, width, expected.length)).toEqual(expected);
      },
    ),
  ));

test('a run that claims billions fills no more than is wanted', () => {
  expect(read([0xfe, 0xff, 0xff, 0xff, 0x0f, 7], 3, 4)).toEqual([7, 7, 7, 7]);
  expect(read([0xff, 0xff, 0xff, 0xff, 0x0f, 0b11_010_001, 0x00, 0x00], 3, 2)).toEqual([1, 2]);
});

test('too few bytes, endless counts and impossible widths are errors', () => {
  expect(() => read([], 3, 1)).toThrow(/early/);
  expect(() => read([3, 1], 3, 8)).toThrow(/early/);
  expect(() => read(Array(20).fill(0xff), 3, 8)).toThrow(/too long/);
  expect(() => read([3, 1], 33, 8)).toThrow(/33 bits/);
  expect(read([], 3, 0)).toEqual([]);
  expect(() => read(Array(8).fill(0), 0, 1_000)).toThrow(/early/);
});

test('any bytes at all end soon', () =>
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(32), fc.nat(5_000), (bytes, width, count) => {
      try {
        expect(read(bytes, width, count)).toHaveLength(count);
      } catch (error) {
        expect(String(error)).toMatch(/early|too long/);
      }
    }),
  ));
