import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RecentSet, unsliced } from '../../../src/core/lru.ts';

describe('recent strings', () => {
  test('"yes" is exact, and the last so many are always known', () => {
    const text = fc.oneof(
      { weight: 5, arbitrary: fc.string({ maxLength: 2 }) },
      fc.string({ unit: fc.constantFrom('a', '\ufffd', 'é'), maxLength: 2 }),
    );
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 60 }),
        fc.array(text),
        fc.integer({ min: 1, max: 8 }),
        (added, asked, max) => {
          const recent = new RecentSet(max);
          const all = new Set<string>();
          for (const each of added) {
            recent.add(each);
            all.add(each);
            expect(recent.size).toBeLessThanOrEqual(2 * max);
          }
          for (const each of [...asked, ...asked.map(unsliced)])
            if (recent.has(each)) expect(all.has(each)).toBe(true);
          for (const each of added.slice(-max)) if (each.isWellFormed()) expect(recent.has(each)).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('is bounded', () => {
    const recent = new RecentSet(1_000);
    for (let number = 0; number < 10_000; number++) recent.add(`https://a.example/${number}`);
    expect(recent.size).toBeLessThanOrEqual(2_000);
    expect(recent.has('https://a.example/9999')).toBe(true);
    expect(recent.has('https://a.example/1')).toBe(false);
  });

  test('a broken character is not taken for the sign that stands for broken ones', () => {
    const recent = new RecentSet(10);
    recent.add('a\ud800');
    expect(recent.has('a\ufffd')).toBe(false);
  });

  test('unsliced strings are equal to what they were', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(unsliced(text)).toBe(text);
      }),
    );
  });
});
