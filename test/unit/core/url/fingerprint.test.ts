import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fingerprint } from '../../../../src/core/url/fingerprint.ts';

const REGION = 2 ** 32;
const printOf = (url: string, seed: number) => fingerprint(url, url.split('/')[2]!, seed);

describe('fingerprint', () => {
  test('is a whole number of at most 53 bits, always the same', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '/', '1', 'é', '\ud800', '\uffff', '\0'),
      maxLength: 50,
    });
    fc.assert(
      fc.property(text, text, fc.nat(0x7fff_ffff), (url, host, seed) => {
        const print = fingerprint(url, host, seed);
        expect(Number.isSafeInteger(print)).toBe(true);
        expect(print).toBeGreaterThanOrEqual(0);
        expect(fingerprint(url, host, seed)).toBe(print);
      }),
    );
  });

  test.each([0, 1, 123_456_789, 0x7fff_fffe])(
    'URLs that differ little collide no more than by chance (seed %i)',
    (seed) => {
      const prints = new Set<number>();
      for (let number = 0; number < 100_000; number++) {
        prints.add(printOf(`https://a.example/p/${number}?page=${number % 7}`, seed));
      }
      // 100,000 of 2^32 places: 1.2 pairs on average.
      expect(100_000 - prints.size).toBeLessThanOrEqual(8);
    },
  );

  test('URLs of a host lie in one region, those of others elsewhere', () => {
    const regions = new Set<number>();
    for (let number = 0; number < 1_000; number++) {
      const host = `h${number}.example`;
      const region = Math.floor(printOf(`https://${host}/1`, 5) / REGION);
      expect(Math.floor(printOf(`http://${host}/2?x`, 5) / REGION)).toBe(region);
      regions.add(region);
    }
    expect(regions.size).toBeGreaterThan(990);
  });

  test('within a region the places are spread, so that runs of taken ones stay short', () => {
    const buckets = new Uint32Array(256);
    for (let number = 0; number < 51_200; number++) {
      buckets[Math.floor((printOf(`https://a.example/${number}`, 42) % REGION) / 2 ** 24)]!++;
    }
    expect(Math.min(...buckets)).toBeGreaterThan(130);
    expect(Math.max(...buckets)).toBeLessThan(280);
  });

  test('another seed gives other fingerprints, and parts those that collided', () => {
    const seen = new Map<number, number>();
    const pairs: [string, string][] = [];
    const urlOf = (number: number) => `https://a.example/${number}`;
    for (let number = 0; number < 500_000; number++) {
      const print = fingerprint(urlOf(number), 'a.example', 1);
      const other = seen.get(print);
      if (other !== undefined) pairs.push([urlOf(number), urlOf(other)]);
      seen.set(print, number);
    }
    expect(pairs.length).toBeGreaterThan(0);
    for (const [one, other] of pairs) expect(printOf(one, 2)).not.toBe(printOf(other, 2));
    expect(printOf('https://a.example/', 1)).not.toBe(printOf('https://a.example/', 2));
  });
});
