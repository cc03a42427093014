import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BoundedMap, BoundedSet, LruMap, RecentSet, unsliced } from '../../../src/core/lru.ts';

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

describe('least recently used', () => {
  test('what is asked for stays, and what is not is forgotten', () => {
    const map = new LruMap<number>(10);
    map.set('asked', 1);
    map.set('left', 2);
    for (let number = 0; number < 100; number++) {
      map.set(`other ${number}`, number);
      expect(map.get('asked')).toBe(1);
    }
    expect(map.get('left')).toBeUndefined();
    expect(map.get('other 99')).toBe(99);
  });

  test('a value is made once, until it is forgotten', () => {
    const map = new LruMap<number>(10);
    let made = 0;
    const make = () => ++made;
    expect([map.getOr('a', make), map.getOr('a', make)]).toEqual([1, 1]);
    for (let number = 0; number < 20; number++) map.set(`other ${number}`, number);
    expect(map.getOr('a', make)).toBe(2);
  });
});

describe('bounded maps and sets', () => {
  test('a new key makes a full map forget the entry written the longest ago', () => {
    const forgotten: number[] = [];
    const map = new BoundedMap<string, number>(2, (value) => forgotten.push(value));
    map.set('a', 1).set('b', 2).set('c', 3);
    expect([...map]).toEqual([
      ['b', 2],
      ['c', 3],
    ]);
    expect(forgotten).toEqual([1]);
  });

  test('a key that is written again is the newest, and nothing is forgotten for it', () => {
    const forgotten: number[] = [];
    const map = new BoundedMap<string, number>(2, (value) => forgotten.push(value));
    map.set('a', 1).set('b', 2).set('a', 3);
    expect(forgotten).toEqual([]);
    map.set('c', 4);
    expect([...map.keys()]).toEqual(['a', 'c']);
    expect(map.get('a')).toBe(3);
  });

  test('what was deleted makes room', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).delete('b');
    map.set('c', 3);
    expect([...map.keys()]).toEqual(['a', 'c']);
    map.clear();
    expect(map.size).toBe(0);
  });

  test('a full set forgets the member added the longest ago', () => {
    const set = new BoundedSet<string>(2);
    set.add('a').add('b').add('a').add('c');
    expect([...set]).toEqual(['a', 'c']);
  });

  test('an undefined member is forgotten as any other', () => {
    const set = new BoundedSet<string | undefined>(1);
    set.add(undefined).add('a');
    expect([...set]).toEqual(['a']);
  });
});
