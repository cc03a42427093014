import { expect, test } from 'vitest';
import { judge, kindOf } from '../../../fuzz/judge.ts';
import { minimise } from '../../../fuzz/minimise.ts';
import { mutate } from '../../../fuzz/mutate.ts';
import { Random, seedOfCase } from '../../../fuzz/random.ts';
import { mustEqual } from '../../../fuzz/target.ts';

/** What a finding goes through before it is kept. */

test('an input becomes as small as its defect', async () => {
  const isBad = async (input: Buffer) => /a.*b/s.test(input.toString('latin1'));
  const input = Buffer.from(`${'noise '.repeat(500)}a${'more '.repeat(300)}b${'!'.repeat(99)}`);
  expect((await minimise(input, isBad, 5_000)).toString()).toBe('ab');
  // Also when there is little time, it stays bad.
  expect(await isBad(await minimise(input, isBad, 20))).toBe(true);
});

test('a verdict says what kind of defect it is', async () => {
  const target = {
    generate: () => Buffer.alloc(0),
    check: (input: Buffer) => mustEqual(input.length, 0, 'length'),
  };
  expect(await judge(target, Buffer.alloc(0))).toBeNull();
  const [one, two] = [await judge(target, Buffer.alloc(1)), await judge(target, Buffer.alloc(2))];
  expect(one).toBe('Finding: length: 1 instead of 0');
  expect(kindOf(one!)).toBe(kindOf(two!));
  const thrower = { ...target, check: () => Promise.reject(new RangeError('out of 5 bounds')) };
  expect(kindOf((await judge(thrower, Buffer.alloc(0)))!)).not.toBe(kindOf(one!));
  const polluter = {
    ...target,
    check: () => {
      Object.assign(Object.prototype, { polluted: 1 });
    },
  };
  try {
    expect(await judge(polluter, Buffer.alloc(0))).toMatch(/Object.prototype has "polluted"/);
  } finally {
    Reflect.deleteProperty(Object.prototype, 'polluted');
  }
});

test('one seed makes the same cases again, and another one others', () => {
  const inputs = (seed: number) =>
    Array.from({ length: 50 }, (_, index) =>
      mutate(Buffer.from('some bytes'), new Random(seedOfCase(seed, index)), ['x']).toString('hex'),
    );
  expect(inputs(1)).toEqual(inputs(1));
  expect(inputs(1)).not.toEqual(inputs(2));
  expect(new Set(inputs(1)).size).toBeGreaterThan(25);
});
