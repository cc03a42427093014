import { describe, expect, test } from 'vitest';
import { TAR_END, tarHeader, tarPadding } from '../../../../src/core/media/tar.ts';

const text = (block: Buffer, from: number, to: number) => block.toString('latin1', from, to);

describe('a tar header', () => {
  const block = tarHeader({ name: 'ab12.jpg', size: 80_000, modifiedAt: 1_700_000_000_999 });

  test('is one block with name, size and time where ustar has them', () => {
    expect(block.length).toBe(512);
    expect(text(block, 0, 9)).toBe('ab12.jpg\0');
    // Readable by all, and of nobody.
    expect(text(block, 100, 124)).toBe('0000644\x000000000\x000000000\0');
    expect(Number.parseInt(text(block, 124, 135), 8)).toBe(80_000);
    expect(Number.parseInt(text(block, 136, 147), 8)).toBe(1_700_000_000);
    expect(text(block, 156, 157)).toBe('0');
    expect(text(block, 257, 265)).toBe('ustar\x0000');
  });

  test('has the sum of its bytes, with spaces for the sum itself', () => {
    const blank = Buffer.from(block);
    blank.fill(' ', 148, 156);
    expect(Number.parseInt(text(block, 148, 154), 8)).toBe(blank.reduce((sum, byte) => sum + byte));
    expect(text(block, 154, 156)).toBe('\0 ');
  });

  test('takes any clock, and refuses names and sizes that do not fit', () => {
    for (const modifiedAt of [-1, Number.MAX_SAFE_INTEGER])
      expect(text(tarHeader({ name: 'a', size: 0, modifiedAt }), 136, 147)).toMatch(/^[0-7]{11}$/);
    const at = 0;
    for (const name of ['', 'a'.repeat(101), 'ü.jpg', 'a\nb'])
      expect(() => tarHeader({ name, size: 0, modifiedAt: at })).toThrow(TypeError);
    for (const size of [-1, 8 ** 11, Number.NaN])
      expect(() => tarHeader({ name: 'a', size, modifiedAt: at })).toThrow(RangeError);
  });
});

test('padding fills the last block, and nothing when it is full', () => {
  expect([0, 1, 511, 512, 513].map((size) => tarPadding(size).length)).toEqual([0, 511, 1, 0, 511]);
  expect(tarPadding(1).every((byte) => byte === 0)).toBe(true);
  expect(TAR_END.equals(Buffer.alloc(1_024))).toBe(true);
});
