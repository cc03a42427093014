import { crc32, deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { repackPng } from '../../../../../src/fetch/browser/page/repack-png.ts';
import { readDots } from '../../../../support/browser/png-dots.ts';

interface Picture {
  width: number;
  height: number;
  /** With their filters: any bytes are a picture. */
  lines: Buffer;
}

function chunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}

/** Not compressed at all, so that it always becomes smaller where it can. */
function pngOf({ width, height, lines }: Picture, { colours = 2, bits = 8, pieces = 1 } = {}): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = bits;
  header[9] = colours;
  const data = deflateSync(lines, { level: 0 });
  const size = Math.ceil(data.length / pieces);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('tEXt', Buffer.from('a\0word')),
    ...Array.from({ length: pieces }, (_, at) => chunk('IDAT', data.subarray(at * size, at * size + size))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const picture = fc
  .record({
    width: fc.integer({ min: 1, max: 40 }),
    filters: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 40 }),
    values: fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 50 }),
  })
  .map(({ width, filters, values }): Picture => {
    const lineBytes = width * 3 + 1;
    const lines = Buffer.from(
      filters.flatMap((filter, y) =>
        Array.from({ length: lineBytes }, (_, x) =>
          x === 0 ? filter : values[(x * 7 + y * 13) % values.length]!,
        ),
      ),
    );
    return { width, height: filters.length, lines };
  });

describe('a PNG that is packed again', () => {
  test('has the same dots, whatever its filters', async () => {
    await fc.assert(
      fc.asyncProperty(picture, async (made) => {
        const before = pngOf(made);
        const after = await repackPng(before);
        expect(after.length).toBeLessThanOrEqual(before.length);
        expect(readDots(after)).toEqual(readDots(before));
      }),
    );
  });

  test('is smaller where rows repeat, and keeps its other chunks', async () => {
    const row = Buffer.concat([Buffer.from([2]), Buffer.alloc(300)]);
    const lines = Buffer.concat([Buffer.from([0]), Buffer.alloc(300, 'abc'), ...Array(200).fill(row)]);
    const before = pngOf({ width: 100, height: 201, lines }, { pieces: 7 });
    const after = await repackPng(before);
    expect(after.length).toBeLessThan(before.length / 20);
    expect(after.includes('tEXt')).toBe(true);
    const { dots } = readDots(after);
    expect(dots.equals(readDots(before).dots)).toBe(true);
    expect(dots.subarray(-300).equals(Buffer.alloc(300, 'abc'))).toBe(true);
  });

  test('has four bytes for a dot where one is the opacity', async () => {
    const lines = Buffer.concat(
      Array.from({ length: 50 }, (_, y) => Buffer.concat([Buffer.from([y % 5]), Buffer.alloc(40, y)])),
    );
    const before = pngOf({ width: 10, height: 50, lines }, { colours: 6 });
    const after = await repackPng(before);
    expect(after.length).toBeLessThan(before.length);
    expect(readDots(after)).toEqual(readDots(before));
  });

  test('stays as it is where it is none that Chromium makes', async () => {
    const lines = Buffer.alloc(31 * 5);
    const odd = [
      Buffer.from('no picture'),
      pngOf({ width: 10, height: 5, lines }, { bits: 16 }),
      pngOf({ width: 10, height: 5, lines }, { colours: 3 }),
      pngOf({ width: 10, height: 4, lines }),
      pngOf({ width: 10, height: 6, lines }),
      pngOf({ width: 10, height: 5, lines: Buffer.alloc(lines.length, 9) }),
      pngOf({ width: 10, height: 5, lines }).subarray(0, 100),
    ];
    for (const png of odd) expect(await repackPng(png)).toBe(png);
  });
});
