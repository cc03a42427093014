import { hash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { md5OfEach } from '../../../../src/core/media/md5.ts';

function check(bodies: readonly Uint8Array[]): void {
  expect(md5OfEach(bodies)).toEqual(bodies.map((body) => hash('md5', body, 'hex')));
}

describe('md5OfEach', () => {
  test('is that of OpenSSL for any number of bodies of any lengths', () => {
    // Some are much longer than others, so that lanes are filled again and are left empty at the end.
    const length = fc.oneof(fc.nat(300), fc.nat(70_000));
    fc.assert(
      fc.property(fc.array(length, { maxLength: 40 }), (lengths) =>
        check(lengths.map((n) => randomBytes(n))),
      ),
      { numRuns: 150 },
    );
  });

  test('ends every length around the edges of a block as it must', () => {
    for (let length = 0; length <= 200; length++)
      check(Array.from({ length: 18 }, () => randomBytes(length)));
  });

  test('takes pieces that end where the memory of a lane does', () => {
    for (const length of [4_096 - 64, 4_096 - 9, 4_096 - 8, 4_096, 2 * 4_096, 2 * 4_096 + 1])
      for (const count of [4, 5, 8, 9, 12, 13, 16, 17])
        check(Array.from({ length: count }, () => randomBytes(length)));
  });

  test('reads a body where it lies in a larger buffer', () => {
    const buffer = randomBytes(4_000);
    check([0, 1, 2, 3, 4].map((at) => buffer.subarray(at * 7, at * 7 + 1_000)));
  });

  test('of nothing is nothing', () => {
    expect(md5OfEach([])).toEqual([]);
  });
});
